// SPDX-License-Identifier: GPL-2.0
/*
 * lockstep: lets N vCPUs on a few host cores behave like N cores.
 *
 * A QEMU TCG plugin (QEMU 9.1 or newer, multi-threaded TCG).  Time is ticks:
 * one an instruction, `atomic` more for a locked one, and `miss` more for each
 * coherence miss of kernel code: a load from a cache line that this vCPU holds
 * no copy of, or a store to one that another vCPU holds.  No vCPU runs more
 * than `quantum` ticks ahead of the slowest.  So a lock holder is never
 * descheduled while others spin, and contention, hand-over and serial sections
 * cost what they cost on N cores, whatever else the host does.
 *
 * The guest marks the stretch to measure (mark.h) and must run with idle=poll,
 * as a halted vCPU does not tick.  What was counted goes to `log`.  The file
 * `clock` holds the ticks since the mark; it is a page that the guest can see.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "lockstep.h"
#include "mark.h"

#define EXIT_HUNG	97

EXPORT int qemu_plugin_version = 3;

struct model model = {
	.quantum = 500, .atomic = 20, .miss = 200, .lockstep = 1,
};
static unsigned int freeze = 1, thaw = 4000000;
static unsigned int hang = 60;	/* seconds without progress; 0: never */
static FILE *log_file;
static uint64_t no_clock;
static volatile uint64_t *ticks = &no_clock;

struct qemu_plugin_scoreboard *score;
struct vcpu *vcpus[MAX_VCPUS];
unsigned int nr_vcpus;
volatile int on;

static struct {
	struct timespec wall;
	uint64_t skews, thaws, holds, quiet;
	_Atomic uint64_t batches;
	uint32_t last_progress, first;	/* epochs */
} run;
static volatile bool working;		/* from the first mark to the last */

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - from->tv_sec + (now.tv_nsec - from->tv_nsec) / 1e9;
}

/*
 * Emulated timers fire in QEMU's main thread by the host's clock, thousands of
 * times too often for a guest slowed so much.  So that thread is held in a
 * signal handler and let go for a millisecond every `thaw` ticks: timers then
 * fire about as often in ticks as on a real machine.  It may be held only
 * where the signal found it in a system call: anywhere else it may own the big
 * lock, which every vCPU needs sooner or later.
 */
static volatile int hold, held;
static uint32_t held_epoch;
static struct timespec hold_changed;

static void hold_main_thread(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *pc = (const uint8_t *)regs[REG_RIP];
	struct timespec nap = { 0, 100000 };
	int saved = errno;

	if (!hold || pc[-2] != 0x0f || pc[-1] != 0x05 || regs[REG_RAX] != -EINTR)
		return;
	held = 1;
	while (on && hold)
		nanosleep(&nap, NULL);
	held = 0;
	errno = saved;
}

/* Once an epoch, while every vCPU stands at the barrier. */
static void tend_main_thread(uint32_t epoch)
{
	double since;

	if (held) {
		if (thaw && hold && epoch - held_epoch >= thaw / model.quantum) {
			hold = 0;
			run.thaws++;
			clock_gettime(CLOCK_MONOTONIC, &hold_changed);
		}
		return;
	}
	since = seconds_since(&hold_changed);
	if (since < (hold ? 0.0001 : 0.001))
		return;
	hold = 1;
	held_epoch = epoch;
	run.holds++;
	clock_gettime(CLOCK_MONOTONIC, &hold_changed);
	syscall(SYS_tgkill, getpid(), getpid(), SIGUSR2);
}

/*
 * The barrier: epoch in the upper half, vCPUs that ended their slice in the
 * lower.  The last to arrive opens the next epoch.  One that waits for over
 * 2 ms leaves uncounted and runs on a little: another may be in an exclusive
 * section of the emulator that waits for it.  Many such skews spoil a figure.
 */
static _Atomic uint64_t gate;

static uint32_t *gate_epoch(void)
{
	return (uint32_t *)&gate + 1;
}

static void open_gate(uint32_t epoch)
{
	uint32_t quiet;

	if (freeze)
		tend_main_thread(epoch);
	*ticks = (epoch + 1ull) * model.quantum;
	quiet = epoch - run.last_progress;
	if (quiet > run.quiet)
		run.quiet = quiet;
	atomic_store(&gate, (uint64_t)(epoch + 1) << 32);
	syscall(SYS_futex, gate_epoch(), FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* False if the gate stayed shut and this vCPU is no longer counted. */
static bool wait_at_gate(uint32_t epoch)
{
	static const struct timespec patience = { 0, 2000000 };
	uint64_t g;

	for (;;) {
		long r = syscall(SYS_futex, gate_epoch(), FUTEX_WAIT_PRIVATE,
				 epoch, &patience);
		g = atomic_load(&gate);
		if (g >> 32 != epoch || !on)
			return true;
		if (r && errno == ETIMEDOUT && (uint32_t)g < nr_vcpus &&
		    atomic_compare_exchange_strong(&gate, &g, g - 1))
			return false;
	}
}

void slice_end(unsigned int cpu, void *udata)
{
	struct vcpu *v = vcpus[cpu];
	struct site *here = udata;
	uint64_t g;

	if (!on) {
		v->slice = 0;
		return;
	}
	v->at = here;
	add(&here->quanta, v->slice / model.quantum);
	if (!model.lockstep) {
		v->ticks += v->slice;
		v->slice = 0;
		return;
	}
	while (v->slice >= model.quantum && on) {
		g = atomic_fetch_add(&gate, 1) + 1;
		if ((uint32_t)g >= nr_vcpus) {
			v->slice -= model.quantum;
			open_gate(g >> 32);
		} else if (wait_at_gate(g >> 32)) {
			v->slice -= model.quantum;
		} else {
			__atomic_fetch_add(&run.skews, 1, __ATOMIC_RELAXED);
			break;
		}
	}
}

/*
 * A vCPU that polls for work takes host time from the one that works.  Outside
 * the stretch it naps instead: boot and preparation take a fifth of the time.
 * The argument idle= says where the guest's loop lies.
 */
unsigned long long idle_from, idle_to;

void idle_pause(unsigned int cpu, void *unused)
{
	static const struct timespec nap = { 0, 200000 };

	if (!on)
		nanosleep(&nap, NULL);
}

/* Everything counts from here on. */
static void reset(void)
{
	unsigned int i;

	for (i = 0; i < nr_vcpus; i++)
		vcpus[i]->misses = vcpus[i]->atomics = vcpus[i]->ticks = 0;
	count_reset();
	memset(&run, 0, sizeof(run));
	run.first = run.last_progress = gate >> 32;
	clock_gettime(CLOCK_MONOTONIC, &run.wall);
}

static void start(void)
{
	unsigned int i;

	for (i = 0; i < nr_vcpus; i++)
		vcpus[i]->slice = 0;
	memset(&hold_changed, 0, sizeof(hold_changed));
	hold = 0;
	atomic_store(&gate, 0);
	*ticks = 0;
	reset();
	on = 1;
}

static void report(void)
{
	uint64_t misses = 0, atomics = 0, elapsed;
	unsigned int i;

	elapsed = ((uint32_t)(gate >> 32) - run.first) * (uint64_t)model.quantum;
	for (i = 0; i < nr_vcpus; i++) {
		misses += vcpus[i]->misses;
		atomics += vcpus[i]->atomics;
		if (!model.lockstep && vcpus[i]->ticks > elapsed)
			elapsed = vcpus[i]->ticks;
	}
	fprintf(log_file, "cell ticks=%lu misses=%lu atomics=%lu skews=%lu "
		"batches=%lu quiet=%lu thaws=%lu holds=%lu wall=%.2f",
		elapsed, misses, atomics, run.skews, run.batches,
		run.quiet * model.quantum, run.thaws, run.holds,
		seconds_since(&run.wall));
	count_print_events(log_file);
	fputc('\n', log_file);
	count_print_sites(log_file);
	fputs("end\n", log_file);
	fflush(log_file);
}

static void stop(void)
{
	if (!on)
		return;
	on = 0;
	working = false;
	syscall(SYS_futex, gate_epoch(), FUTEX_WAKE_PRIVATE, INT_MAX);
	report();
}

void marked(unsigned int cpu, void *udata)
{
	switch ((uintptr_t)udata) {
	case MARK_WORK:
		working = true;
		break;
	case MARK_START:
		working = true;
		start();
		break;
	case MARK_STOP:
		stop();
		break;
	case MARK_LAP:
		report();
		reset();
		break;
	case MARK_PROGRESS:
		run.last_progress = gate >> 32;
		add(&run.batches, 1);
	}
}

/* Ends an emulator whose guest stopped working, and says where it stands. */
static void *watchdog(void *unused)
{
	uint64_t seen = 0;
	unsigned int quiet = 0, i;

	for (;;) {
		sleep(1);
		quiet = working && run.batches == seen ? quiet + 1 : 0;
		seen = run.batches;
		if (quiet < hang)
			continue;
		fprintf(log_file, "hung after=%u batches=%lu at=", hang, seen);
		for (i = 0; i < nr_vcpus; i++)
			fprintf(log_file, "%s%lx", i ? "," : "",
				vcpus[i]->at ? vcpus[i]->at->pc : 0);
		fputc('\n', log_file);
		fflush(log_file);
		_exit(EXIT_HUNG);
	}
	return NULL;
}

static void vcpu_init(plugin_id id, unsigned int cpu)
{
	unsigned int i;

	if (cpu + 1 > nr_vcpus)
		nr_vcpus = cpu + 1;
	for (i = 0; i < nr_vcpus; i++)	/* growing may have moved them */
		vcpus[i] = qemu_plugin_scoreboard_find(score, i);
	count_find_registers();
}

static int bad_argument(const char *arg)
{
	fprintf(stderr, "lockstep: cannot use the argument `%s`\n", arg);
	return -1;
}

static bool parse_idle(const char *text)
{
	return sscanf(text, "%llx-%llx", &idle_from, &idle_to) == 2;
}

static bool map_clock(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, CLOCK_SIZE))
		return false;
	ticks = mmap(NULL, CLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return ticks != MAP_FAILED;
}

static bool parse_number(const char *arg)
{
	static const struct { const char *name; unsigned int *to; } numbers[] = {
		{ "quantum=", &model.quantum }, { "atomic=", &model.atomic },
		{ "miss=", &model.miss }, { "lockstep=", &model.lockstep },
		{ "user=", &model.user }, { "profile=", &model.profile },
		{ "freeze=", &freeze }, { "thaw=", &thaw }, { "hang=", &hang },
	};
	size_t i, len;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		len = strlen(numbers[i].name);
		if (!strncmp(arg, numbers[i].name, len))
			return sscanf(arg + len, "%u", numbers[i].to) == 1;
	}
	return false;
}

static bool parse(const char *arg)
{
	if (!strncmp(arg, "log=", 4))
		return (log_file = fopen(arg + 4, "we"));
	if (!strncmp(arg, "clock=", 6))
		return map_clock(arg + 6);
	if (!strncmp(arg, "event=", 6))
		return count_event(arg + 6);
	if (!strncmp(arg, "idle=", 5))
		return parse_idle(arg + 5);
	return parse_number(arg);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc,
			       char **argv)
{
	struct sigaction act = { .sa_sigaction = hold_main_thread,
				 .sa_flags = SA_SIGINFO };
	pthread_t thread;
	int i;

	log_file = stderr;
	for (i = 0; i < argc; i++) {
		if (!parse(argv[i]))
			return bad_argument(argv[i]);
	}
	sigaction(SIGUSR2, &act, NULL);
	score = qemu_plugin_scoreboard_new(sizeof(struct vcpu));
	qemu_plugin_register_vcpu_init_cb(id, vcpu_init);
	qemu_plugin_register_vcpu_tb_trans_cb(id, count_translated);
	if (hang && !pthread_create(&thread, NULL, watchdog, NULL))
		pthread_detach(thread);
	return 0;
}
