// SPDX-License-Identifier: GPL-2.0
/* Does the machine keep time, and does I/O go on? */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blkload.h"

void pin_to(unsigned int nr)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(nr % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

uint64_t stall_us;	/* the longest; a lost race of two is harmless */

static void *watch_stalls(void *arg)
{
	pin_to((long)arg);
	while (1) {
		uint64_t late, t = now_us();

		usleep(10000);
		late = now_us() - t - 10000;
		if (late > stall_us)
			stall_us = late;
	}
	return NULL;
}

unsigned int rescued;

/*
 * Who holds what, before it is run by hand: what the scheduler and the hardware
 * queues have, a line each, to stderr. Between two lines of the disk's counters,
 * which tell if others go on.
 */
static void show_queues(const char *disk)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "exec >&2; cd /sys/kernel/debug/block/%s || exit\n"
		 "cat /sys/block/%s/stat /sys/block/%s/queue/scheduler\n"
		 "grep -s . state requeue_list hctx*/state hctx*/dispatch hctx*/busy \\\n"
		 "	hctx*/dispatch_busy sched/* | cut -c-160 | head -n 60\n"
		 "grep -s -e busy= -e ws_active= hctx*/*tags\n"
		 "sleep .5; cat /sys/block/%s/stat\n", disk, disk, disk, disk);
	if (system(command))
		fprintf(stderr, "%s: no debugfs\n", disk);
}

/* like `echo run >/sys/kernel/debug/block/DISK/state` */
static void run_queues(void)
{
	const char *slash = strrchr(opt.file, '/');
	const char *disk = slash ? slash + 1 : opt.file;
	char path[256];
	int fd;

	show_queues(disk);
	snprintf(path, sizeof(path), "/sys/kernel/debug/block/%s/state", disk);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return;
	if (write(fd, "run", 3) == 3)
		rescued++;
	close(fd);
}

/* Something is in flight, and nothing completed anywhere for so long */
static bool stands_still(struct worker *workers, uint64_t patience)
{
	uint64_t last = 0;
	unsigned int i;

	for (i = 0; i < opt.threads; i++)
		if (workers[i].since > last)
			last = workers[i].since;
	return last && now_us() > last + patience;
}

static void *watch_progress(void *arg)
{
	/* a slow machine serves others for seconds, by right */
	uint64_t patience = opt.limit_ms ? 2000 * opt.limit_ms : 15000000;

	while (1) {
		usleep(100000);
		if (stands_still(arg, patience)) {
			run_queues();
			usleep(patience);
		}
	}
	return NULL;
}

void watch(struct worker *workers)
{
	pthread_t thread;
	long cpu;

	if (pthread_create(&thread, NULL, watch_progress, workers))
		die("pthread_create");
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		if (pthread_create(&thread, NULL, watch_stalls, (void *)cpu))
			die("pthread_create");
}
