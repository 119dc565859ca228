# SPDX-License-Identifier: GPL-2.0
# Every entry point; `make help` lists them.  Variables are given on the
# command line, for instance  make boot KERNEL=base CONFIG=debug

# Programs read these from the environment, where make puts them:
# KSRC QEMU BUILD BRANCH PROFILE LOCKSTAT CCACHE_DIR, and BASE=6.12 for the
# back-port: its source, patches, kernels and results are below build/6.12
KERNEL	?= patched
CONFIG	?= small
CPUS	?= 2

ifeq ($(shell command -v python3),)
$(error python3 is missing; install it: apt-get install python3)
endif

.DEFAULT_GOAL := help
.PHONY: help setup base qemu tree refresh am kernels boot scaletest manycore \
	parts part-table deb bench slowdisk promises taken plugtest files \
	nvme-study overtaking irqsoff report \
	compare check check-nvme check-long stress reach clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | \
		expand -t 12
	@echo 'BASE=6.12 after any command: the port to Linux 6.12 (backports/6.12)'

scaletest: ## The main job: set up, build, measure 7.3.4 and the patched kernel, report
	@tools/scaletest

check: ## Run the tests (GROUPS="unit series" for some)
	@tools/check $(GROUPS)

check-nvme: ## More tests on NVMe, and for longer
	@tools/check nvme

check-long: ## Guest tests on kernels with KASAN, KCSAN, PREEMPT_RT: 3 h
	@tools/check kasan kcsan rt

stress: ## All changes at once under load, data verified (DURATION=600 SEED=n)
	@tools/tests/guest --stress $(or $(DURATION),600) \
		$(if $(SEED),--seed $(SEED))

reach: ## Which of the added lines no guest test executes: an hour
	@tools/tests/reach

setup: ## Install the missing packages, or name them
	@tools/setup

base: ## Fetch and unpack the kernel without patches (KSRC=/path for one of yours)
	@tools/base

qemu: ## Find a QEMU that is new enough, or unpack one into build/
	@tools/qemu

tree: ## Make the work tree build/tree: that kernel, and the patches as commits
	@tools/series tree

refresh: ## Write the commits of build/tree back to the patch files
	@tools/series refresh

am: ## Apply the series to a kernel tree, on a branch of its own (KSRC=/path)
	@tools/series am

parts: ## The mails of each part, with cover letters (KSRC=tree with upstream's tag)
	@tools/series parts

kernels: ## Build both kernels (CONFIG=small, debug, ...)
	@tools/kernel/build base $(CONFIG)
	@tools/kernel/build patched $(CONFIG)

boot: ## A shell in a guest (KERNEL=base or patched, CONFIG=, CPUS=)
	@tools/boot/boot --kernel $(KERNEL) --config $(CONFIG) --cpus $(CPUS) \
		--device virtio-blk --device nvme --shell

manycore: ## Many-core measurement, short table (FULL=1: all cells; PROFILE=1)
	@tools/manycore/run $(if $(FULL),--full)

part-table: ## Gain of each part of the series: a kernel up to each part, one table
	@tools/manycore/parts

bench: ## fio by the wall clock in guests (LOCKSTAT=1), or on DEVICE=/dev/X
	@tools/bench/run $(if $(DEVICE),--device $(DEVICE))

deb: ## Packages of both kernels for this machine (KCONFIG=/boot/config-X LOCALMOD=1)
	@tools/kernel/deb $(KCONFIG) $(if $(LOCALMOD),--local)

slowdisk: ## Merging and rates on slow disks, by counted instructions
	@tools/bench/slowdisk

promises: ## Guarantees: latency, start-up, shares, classes, expiry: 2 h (QUICK=1: 4 min; CONFIRM=1)
	@tools/bench/promises $(if $(QUICK),--quick) $(if $(CONFIRM),--confirm)

taken: ## Latency in a guest on half as many host CPUs, by the wall clock
	@tools/bench/taken

plugtest: ## Merging in plugs: raid arrays, buffered writes, doorbells
	@tools/bench/plugtest

files: ## Database commits and program starts on ext4 (WHY=1: count inserted requests)
	@tools/bench/files $(if $(WHY),--why)

nvme-study: ## fio at depths from 1 to 2048 on NVMe, by counted instructions
	@tools/bench/nvmestudy

overtaking: ## Count requests that overtake a waiting one: 15 min
	@tools/bench/overtaking

irqsoff: ## Longest time with interrupts or preemption off; builds two kernels
	@tools/bench/irqsoff

report: ## Tables and pictures of the newest results, in build/report
	@tools/report/report

compare: ## Two result files side by side (A=file B=file)
	@tools/report/compare $(A) $(B)

clean: ## Remove build/ (kernels, guests' files, results)
	rm -rf "$${BUILD:-build}/$$BASE"
