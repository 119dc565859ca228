// SPDX-License-Identifier: GPL-2.0
/*
 * tasks: processes of several kinds side by side on one disk, and what each
 * kind gets: I/Os, latencies, the time that an application takes to start.
 *
 *	tasks DEVICE SEED WARM-UP SECONDS GROUP...
 *
 * A group is NAME,key=value,...; see usage. Measured is from WARM-UP ms on,
 * for SECONDS at most, or until all applications have started. A request that
 * has not ended by then counts with the time that it took in the end. A start-up
 * that has not ended by then was cut off: it is counted as such and has no time.
 * DEVICE may be a file. Prints a JSON object:
 * {"seconds": S, "NAME": {"ios": N, "p50": us, ..., "starts": [ms, ...],
 * "cut": N}, ...}
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static const char usage[] =
"usage: tasks DEVICE SEED WARM-UP SECONDS NAME[,key=value]...\n"
"  n=N (processes)  depth=N  size=BYTES  write=1  seq=1 (each in its own part)\n"
"  from=PERMILLE (seq: where its part begins; else random from there on)\n"
"  stride=N (seq: every Nth block, so that nothing merges)\n"
"  burst=1 (depth at once, when all have ended)  pause=MS (after a burst)\n"
"  start=MS (after the warm-up; negative: before)  gap=MS (between processes)\n"
"  class=1|2|3 level=0..7 (I/O priority)  cgroup=DIR\n"
"  cpu=N (not on another one)  fifo=1 (SCHED_FIFO; a reader never sleeps then)\n"
"  idle=1 (SCHED_IDLE)\n"
"  hog=US period=US (no I/O: keeps its CPU busy for US of each period)\n"
"  app=1 (200 random 4 KiB, 20 sequential 128 KiB reads, with pauses)\n"
"  tree=N (N times a tree of processes that reads, as a shell's start-up)\n";

enum { CLASSES = 40, STEPS = 32, STARTS = 64, GROUPS = 16 };

/* what the processes of a group count together */
struct count {
	uint64_t ios;		/* ended while it was measured */
	uint64_t longest;	/* ns */
	uint64_t lat[CLASSES * STEPS];
	uint64_t starts;	/* that ended while it was measured */
	uint64_t cut;		/* that did not */
	uint64_t start_ns[STARTS];
};

struct group {
	const char *name, *cgroup;
	int n, depth, size, write, seq, from, stride, burst, pause, start, gap;
	int class, level, cpu, fifo, idle, hog, period, app, tree;
	struct count *count;
};

/* between processes */
struct shared {
	uint64_t begin, end;	/* of what is measured, ns */
	int apps;		/* that have not started up yet */
	bool failed;
};

static struct group groups[GROUPS];
static int nr_groups;
static struct shared *shared;
static const char *device;
static uint64_t bytes, rnd;
static int nr_loads;	/* sequential processes so far: each has its part */

static void fail(const char *what)
{
	fprintf(stderr, "tasks: %s: %s\n", what, strerror(errno));
	if (shared) {
		shared->failed = true;
		shared->end = 0;
	}
	exit(1);
}

static void sleep_ms(int ms)
{
	sleep_until(now() + ms * 1000000ull);
}

static uint64_t random_number(void)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd;
}

static bool over(void)
{
	return now() >= __atomic_load_n(&shared->end, __ATOMIC_RELAXED);
}

/* Classes of 2^n ns, each in 32 steps: within 3 per cent. */
static int lat_class(uint64_t ns)
{
	int high = 63 - __builtin_clzll(ns | STEPS);

	return (high - 5) * STEPS + (ns >> (high - 5)) % STEPS;
}

static uint64_t lat_ns(int class)
{
	return (STEPS + class % STEPS + 0.5) * (1ull << class / STEPS);
}

static void ended(struct group *g, uint64_t begun, uint64_t at)
{
	struct count *c = g->count;
	uint64_t old, ns = at - begun;

	/* begun while it was measured, whenever it ended */
	if (begun >= shared->begin && begun < shared->end) {
		__atomic_add_fetch(&c->lat[lat_class(ns)], 1, __ATOMIC_RELAXED);
		old = c->longest;
		while (ns > old && !__atomic_compare_exchange_n(&c->longest,
				&old, ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
	}
	if (at >= shared->begin && at < shared->end)
		__atomic_add_fetch(&c->ios, 1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ steady loads */

static uint64_t place(struct group *g, int part, uint64_t *next)
{
	uint64_t blocks = bytes / g->size, first = blocks / 1000 * g->from;

	if (!g->seq)
		return (first + random_number() % (blocks - first)) * g->size;
	/* a 64th of the disk for each process */
	first = (first + blocks / 64 * part) % blocks;
	return (first + (*next)++ * g->stride % (blocks / 64)) * g->size;
}

static void load(struct group *g, int part)
{
	int fd = open(device, (g->write ? O_WRONLY : O_RDONLY) | O_DIRECT);
	struct io_event *events = calloc(g->depth, sizeof(*events));
	struct iocb *cbs = calloc(g->depth, sizeof(*cbs));
	struct iocb **list = calloc(g->depth, sizeof(*list));
	uint64_t *begun = calloc(g->depth, sizeof(*begun)), next = 0, at;
	int i, idle = g->depth, flying = 0, got;
	aio_context_t ctx = 0;
	void *buf;

	if (fd < 0)
		fail(device);
	if (posix_memalign(&buf, 4096, g->size))
		fail("memory");
	memset(buf, 0, g->size);
	if (syscall(SYS_io_setup, g->depth, &ctx))
		fail("io_setup");
	for (i = 0; i < g->depth; i++)
		list[i] = &cbs[i];

	at = now();
	while (at < __atomic_load_n(&shared->end, __ATOMIC_RELAXED)) {
		for (i = 0; i < idle; i++) {
			*list[i] = (struct iocb){
				.aio_fildes = fd,
				.aio_lio_opcode = g->write ? IOCB_CMD_PWRITE :
							     IOCB_CMD_PREAD,
				.aio_buf = (uintptr_t)buf,
				.aio_nbytes = g->size,
				.aio_offset = place(g, part, &next),
				.aio_data = list[i] - cbs,
			};
			begun[list[i] - cbs] = at;
		}
		for (i = 0; i < idle; i += got) {
			got = syscall(SYS_io_submit, ctx, idle - i, list + i);
			if (got <= 0)
				fail("io_submit");
		}
		flying += idle;
		do {	/* one by one; a poller does not sleep */
			got = syscall(SYS_io_getevents, ctx, g->fifo ? 0 :
				      g->burst ? flying : 1,
				      g->burst ? flying : 1, events, NULL);
			if (got < 0 && errno != EINTR)
				fail("io_getevents");
		} while (got <= 0);
		at = now();
		for (i = 0; i < got; i++) {
			errno = EIO;
			if (events[i].res != g->size)
				fail("an I/O");
			list[i] = &cbs[events[i].data];
			ended(g, begun[events[i].data], at);
		}
		idle = got;
		flying -= got;
		if (g->pause) {
			sleep_ms(g->pause);
			at = now();
		}
	}
	while (flying) {
		got = syscall(SYS_io_getevents, ctx, 1, g->depth, events, NULL);
		if (got < 0 && errno != EINTR)
			fail("io_getevents");
		for (i = 0; i < got; i++)
			ended(g, begun[events[i].data], now());
		flying -= got > 0 ? got : 0;
	}
}

/* ------------------------------------------------------------ applications */

static void read_at(struct group *g, int fd, void *buf, int size, uint64_t at)
{
	uint64_t begun = now();

	if (pread(fd, buf, size, at) != size)
		fail("a read");
	ended(g, begun, now());
}

static void read_some(struct group *g, int randoms, int sequentials)
{
	int fd = open(device, O_RDONLY | O_DIRECT), size = 128 << 10;
	uint64_t at = random_number() % (bytes / 2 / size) * size;
	void *buf;

	if (fd < 0)
		fail(device);
	if (posix_memalign(&buf, 4096, size))
		fail("memory");
	while (randoms-- > 0 && !over())
		read_at(g, fd, buf, 4096, random_number() % (bytes / 4096) * 4096);
	for (; sequentials-- > 0 && !over(); at += size)
		read_at(g, fd, buf, size, at);
	free(buf);
	close(fd);
}

static void app(struct group *g)
{
	int i;

	for (i = 0; i < 10 && !over(); i++) {
		read_some(g, 20, 2);
		sleep_ms(2);
	}
}

static void child(void (*work)(struct group *), struct group *g)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (!pid) {
		rnd += getpid() * 7919ull;
		work(g);
		exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ld.so, libraries, one file of settings */
static void command(struct group *g)
{
	read_some(g, 10, 1);
}

/* a script that has a command run for it */
static void script(struct group *g)
{
	read_some(g, 5, 0);
	child(command, g);
	read_some(g, 5, 0);
}

/* A program that reads itself and its settings and runs scripts. */
static void tree(struct group *g)
{
	int i;

	read_some(g, 20, 4);
	for (i = 0; i < 4 && !over(); i++) {
		child(script, g);
		read_some(g, 5, 0);
		sleep_ms(1);
	}
}

static void start_up(struct group *g, void (*work)(struct group *))
{
	uint64_t begun = now(), nr;

	work(g);
	if (over()) {	/* it may have left out some of its work */
		__atomic_add_fetch(&g->count->cut, 1, __ATOMIC_RELAXED);
		return;
	}
	nr = __atomic_fetch_add(&g->count->starts, 1, __ATOMIC_RELAXED);
	if (nr < STARTS)
		g->count->start_ns[nr] = now() - begun;
	if (!__atomic_sub_fetch(&shared->apps, 1, __ATOMIC_RELAXED))
		__atomic_store_n(&shared->end, now(), __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ processes */

static void hog(struct group *g)
{
	uint64_t next = now();

	while (!over()) {
		while (now() < next + g->hog * 1000ull)
			;
		next += g->period * 1000ull;
		sleep_until(next);
	}
}

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("sched_setaffinity");
}

static void set_policy(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO };

	if (sched_setscheduler(0, policy, &param))
		fail("sched_setscheduler");
}

static void join(const char *cgroup)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/cgroup.procs", cgroup);
	fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		fail(name);
	close(fd);
}

static void process(struct group *g, int me, int part)
{
	int i;

	if (g->cgroup)
		join(g->cgroup);
	if (g->cpu >= 0)
		pin(g->cpu);
	if (g->class && syscall(SYS_ioprio_set, 1, 0, g->class << 13 | g->level))
		fail("ioprio_set");
	rnd += (part + 1) * 7919ull;
	for (i = 0; i < 20; i++)
		random_number();
	sleep_until(shared->begin + (g->start + me * g->gap) * 1000000ll);
	if (g->fifo)
		set_policy(SCHED_FIFO);
	if (g->idle)
		set_policy(SCHED_IDLE);
	if (g->hog)
		hog(g);
	if (g->app)
		start_up(g, app);
	for (i = 0; i < g->tree; i++) {
		start_up(g, tree);
		sleep_ms(200);
	}
	if (!g->hog && !g->app && !g->tree)
		load(g, part);
}

static void parse(char *text)
{
	static const struct { const char *key; size_t at; } numbers[] = {
#define NUMBER(key)	{ #key, offsetof(struct group, key) }
		NUMBER(n), NUMBER(depth), NUMBER(size), NUMBER(write),
		NUMBER(seq), NUMBER(from), NUMBER(stride), NUMBER(burst), NUMBER(pause),
		NUMBER(start), NUMBER(gap), NUMBER(class), NUMBER(level),
		NUMBER(cpu), NUMBER(fifo), NUMBER(idle), NUMBER(hog),
		NUMBER(period), NUMBER(app), NUMBER(tree),
	};
	struct group *g = &groups[nr_groups++];
	char *word, *value, *rest;
	size_t i;

	*g = (struct group){ .n = 1, .depth = 1, .size = 4096, .stride = 1,
			     .level = 4, .cpu = -1 };
	g->name = strtok_r(text, ",", &rest);
	g->count = mmap(NULL, sizeof(*g->count), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->count == MAP_FAILED)
		fail("memory");
	while ((word = strtok_r(NULL, ",", &rest))) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		for (i = 0; value && i < sizeof(numbers) / sizeof(*numbers); i++)
			if (!strcmp(word, numbers[i].key))
				break;
		if (value && !strcmp(word, "cgroup")) {
			g->cgroup = value;
		} else if (value && i < sizeof(numbers) / sizeof(*numbers)) {
			*(int *)((char *)g + numbers[i].at) = atoi(value);
		} else {
			fprintf(stderr, "tasks: cannot use `%s`\n%s", word, usage);
			exit(2);
		}
	}
	shared->apps += g->tree ? g->n * g->tree : g->app ? g->n : 0;
}

static double share_us(const struct count *c, double share)
{
	uint64_t all = 0, sum = 0;
	int i;

	for (i = 0; i < CLASSES * STEPS; i++)
		all += c->lat[i];
	for (i = 0; all && i < CLASSES * STEPS; i++) {
		sum += c->lat[i];
		if (sum >= all * share)
			return lat_ns(i) / 1e3;
	}
	return 0;
}

static void print(const struct group *g)
{
	const struct count *c = g->count;
	uint64_t i;

	printf(", \"%s\": {\"ios\": %lu, \"p50\": %.1f, \"p99\": %.1f, "
	       "\"p999\": %.1f, \"longest\": %.1f, \"starts\": [", g->name,
	       c->ios, share_us(c, .5), share_us(c, .99), share_us(c, .999),
	       c->longest / 1e3);
	for (i = 0; i < c->starts && i < STARTS; i++)
		printf("%s%.2f", i ? ", " : "", c->start_ns[i] / 1e6);
	printf("], \"cut\": %lu}", c->cut);
}

int main(int argc, char **argv)
{
	double seconds;
	int i, me, fd, status;

	if (argc < 6 || argc > GROUPS + 5) {
		fputs(usage, stderr);
		return 2;
	}
	device = argv[1];
	fd = open(device, O_RDONLY);
	if (fd < 0)
		fail(device);
	bytes = lseek(fd, 0, SEEK_END);
	close(fd);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("memory");
	rnd = 88172645463325252ull + atoi(argv[2]);
	seconds = atof(argv[4]);
	for (i = 5; i < argc; i++)
		parse(argv[i]);
	/* processes get 50 ms to come into being */
	shared->begin = now() + (atoi(argv[3]) + 50) * 1000000ull;
	shared->end = shared->begin + seconds * 1e9;
	for (i = 0; i < nr_groups; i++)
		for (me = 0; me < groups[i].n; me++, nr_loads++) {
			pid_t pid = fork();

			if (pid < 0)
				fail("fork");
			if (!pid) {
				process(&groups[i], me, nr_loads);
				exit(0);
			}
		}
	while ((me = wait(&status)) > 0 || errno == EINTR)
		if (me > 0 && status)
			shared->failed = true;
	if (shared->failed)
		return 1;
	printf("{\"seconds\": %.4f", (shared->end - shared->begin) / 1e9);
	for (i = 0; i < nr_groups; i++)
		print(&groups[i]);
	printf("}\n");
	return 0;
}
