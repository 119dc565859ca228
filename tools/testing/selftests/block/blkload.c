// SPDX-License-Identifier: GPL-2.0
/*
 * blkload - a small load for the block tests: a known pattern, a known depth,
 * the latency of each I/O. Starts at once where a slow (emulated, debug)
 * machine takes seconds to start a bigger program.
 *
 * If a thread sees nothing complete for seconds then all hardware queues are run
 * by hand (debugfs); I/O that goes on only by that was left behind by the kernel.
 *
 * With -V each block has to hold what was written there last: what is read is
 * compared, and at the end all that was written is read.
 *
 * Prints one line: ios=N errors=N wrong=N rescued=N max_us=N p99_us=N over3ms=N secs=S
 * Exit status: 0 done, 1 wrong data, I/O errors (unless -e), I/O rescued or above
 * the limit of -l, 2 usage, 3 stuck: nothing completed for 20 seconds, 5 rescued or
 * above the limit, but the machine itself stood still: tasks that only sleep, one on
 * each CPU, were late by the limit, or by a quarter of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blkload.h"

#define MAX_THREADS	256

struct options opt = {
	.threads = 1, .depth = 1, .batch = 1, .reads = 100, .block = 4096, .small_block = 4096,
	.streams = 1,
	.prio = { -1, -1 }, .later_prio = { -1, -1 }, .first_ms = -1, .size = 64 << 20,
};

uint64_t start_us;
atomic_int stop;

static void on_term(int sig)
{
	stop = sig;
}

void die(const char *what)
{
	fprintf(stderr, "blkload: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t percentile(const uint64_t *lat, uint64_t total, double share)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < LAT_BUCKETS; i++) {
		sum += lat[i];
		if (sum >= total * share)
			break;
	}
	return i < 8 ? i : (8ULL + i % 8) << (i / 8 - 1);
}

static int report(struct worker *workers)
{
	struct worker all = { 0 };
	unsigned int i, j;

	for (i = 0; i < opt.threads; i++) {
		struct worker *w = &workers[i];

		all.done += w->done;
		all.errors += w->errors;
		all.wrong += w->wrong;
		all.over3ms += w->over3ms;
		if (w->max_us > all.max_us)
			all.max_us = w->max_us;
		for (j = 0; j < LAT_BUCKETS; j++)
			all.lat[j] += w->lat[j];
	}
	printf("ios=%lu errors=%lu wrong=%lu rescued=%u ",
	       all.done, all.errors, all.wrong, rescued);
	printf("max_us=%lu p99_us=%lu over3ms=%lu secs=%.2f\n", all.max_us,
	       percentile(all.lat, all.done, .99), all.over3ms,
	       (now_us() - start_us) / 1e6);
	if (all.wrong || (all.errors && !opt.errors_allowed))
		return 1;
	if (!rescued && (!opt.limit_ms || all.max_us <= opt.limit_ms * 1000))
		return 0;
	fprintf(stderr, "%s; the machine itself stood still for %lu ms\n",
		rescued ? "went on only after the queues were run by hand" :
		"above the limit", stall_us / 1000);
	/* it is run by hand after twice the limit: a short stall does not explain that */
	return stall_us > (opt.limit_ms ? opt.limit_ms : 1000) *
			  (rescued ? 1000 : 250) ? 5 : 1;
}

/* no more than the device has */
static void limit_size(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	if (end < 0 || (uint64_t)end <= opt.offset)
		die("size of the device");
	if (opt.size > end - opt.offset)
		opt.size = end - opt.offset;
}

static uint64_t size_arg(const char *arg)
{
	char *end;
	uint64_t n = strtoull(arg, &end, 0);

	return n << (*end == 'g' ? 30 : *end == 'm' ? 20 : *end == 'k' ? 10 : 0);
}

static enum pattern pattern_arg(const char *arg)
{
	static const char * const names[] = { "random", "seq", "reverse", "alternate" };
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (!strcmp(arg, names[i]))
			return i;
	errno = EINVAL;
	die("pattern");
	return 0;
}

/* one size, or two in turns, the smaller one first */
static void block_arg(const char *arg)
{
	const char *comma = strchr(arg, ',');

	opt.small_block = size_arg(arg);
	opt.block = comma ? size_arg(comma + 1) : opt.small_block;
}

/* class:level, or two of them */
static void prio_arg(const char *arg, int *prio)
{
	int class[2], level[2], n;

	n = sscanf(arg, "%d:%d,%d:%d", &class[0], &level[0], &class[1], &level[1]);
	errno = EINVAL;
	if (n != 2 && n != 4)
		die("priority");
	prio[0] = class[0] << 13 | level[0];
	prio[1] = n == 4 ? class[1] << 13 | level[1] : prio[0];
}

/* of all threads, or of the first one and of the others */
static void pause_arg(const char *arg)
{
	const char *comma = strchr(arg, ',');

	opt.pause_us[0] = atol(arg);
	opt.pause_us[1] = atol(comma ? comma + 1 : arg);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:d:b:n:s:r:k:p:i:o:z:P:a:u:l:w:x:f:cyBeV")) != -1) {
		switch (c) {
		case 't':
			opt.threads = atoi(optarg);
			break;
		case 'd':
			opt.depth = atoi(optarg);
			break;
		case 'b':
			opt.batch = atoi(optarg);
			break;
		case 'n':
			opt.ios = atol(optarg);
			break;
		case 's':
			opt.secs = atof(optarg);
			break;
		case 'r':
			opt.reads = atoi(optarg);
			break;
		case 'k':
			block_arg(optarg);
			break;
		case 'p':
			opt.pattern = pattern_arg(optarg);
			break;
		case 'i':
			opt.streams = atoi(optarg);
			break;
		case 'o':
			opt.offset = size_arg(optarg);
			break;
		case 'z':
			opt.size = size_arg(optarg);
			break;
		case 'P':
			prio_arg(optarg, opt.prio);
			break;
		case 'a':
			prio_arg(optarg, opt.later_prio);
			break;
		case 'u':
			pause_arg(optarg);
			break;
		case 'l':
			opt.limit_ms = atol(optarg);
			break;
		case 'w':
			opt.apart_ms = atol(optarg);
			break;
		case 'x':
			opt.command = optarg;
			break;
		case 'c':
			opt.pin = true;
			break;
		case 'B':
			opt.together = true;
			break;
		case 'y':
			opt.dsync = true;
			break;
		case 'e':
			opt.errors_allowed = true;
			break;
		case 'f':
			opt.first_ms = atol(optarg);
			break;
		case 'V':
			opt.verify = true;
			break;
		default:
			exit(2);
		}
	}
	opt.file = argv[optind];
	errno = EINVAL;
	if (!opt.file || !(opt.ios || opt.secs) || !opt.depth || !opt.batch ||
	    !opt.threads || opt.depth > MAX_DEPTH || opt.threads > MAX_THREADS ||
	    !opt.streams || opt.size / opt.block / opt.threads / opt.streams == 0 ||
	    (opt.verify && (opt.command || opt.small_block != opt.block)))
		die("usage: blkload -n IOS|-s SECONDS [-t threads] [-d depth] [-b batch]\n"
		    "[-r %reads] [-k [smaller,]block] [-p random|seq|reverse|alternate]\n"
		    "[-i interleaved_streams] [-o offset] [-z size] [-P class:level[,class:level]]\n"
		    "[-a class:level[,class:level] (after 100 ios)] [-u pause_us[,of_other_threads]]\n"
		    "[-l limit_ms] [-w ms_between_starts]\n"
		    "[-f ms_after_a_first_read] [-x fsync|sg|nvme|read:FILE] [-c] [-B] [-y] [-e]\n"
		    "[-V] DEVICE");
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	unsigned int i;

	parse(argc, argv);
	signal(SIGTERM, on_term);
	for (i = 0; i < opt.threads; i++) {
		struct worker *w = &workers[i];

		w->nr = i;
		w->seed = i + 1;
		w->fd = open(opt.file, O_RDWR | O_DIRECT | (opt.dsync ? O_DSYNC : 0));
		if (w->fd < 0)
			die(opt.file);
	}
	limit_size(workers[0].fd);
	if (opt.verify)
		data_init();
	watch(workers);
	start_us = now_us();
	for (i = 0; i < opt.threads; i++) {
		struct worker *w = &workers[i];

		if (pthread_create(&w->thread, NULL, run, w))
			die("pthread_create");
	}
	for (i = 0; i < opt.threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (opt.verify)
		data_read_back(workers);
	return report(workers);
}
