// SPDX-License-Identifier: GPL-2.0
/*
 * load: block I/O as measured work, for the many-core measurement.
 *
 * Each thread submits `batch` direct I/Os to its device, waits for all of
 * them, and does so until the end; io_uring with a fixed file and buffers.
 * Threads take the devices in turns.  They are of one process, or of one in
 * each cgroup: the io controller of cgroup version 2 knows processes only.
 * The measured stretch begins when each has done `warm-up` batches and has been
 * at work for WARM_MS of the guest's time: schedulers settle in time, too.  In
 * it the vCPUs go in step, for laps of `ticks` each.  The first WARM_LAPS are
 * warm-up, too: in step, things settle differently.  The others are runs:
 * MIN_RUNS of them, and more, up to MAX_RUNS, as long as their mean is not known
 * to within 5 %.  No thread stands still before the end.
 *
 * Prints a word for each lap: `warm-up`, or the ticks of a run, what the disks
 * counted in it (I/Os, writes, merged writes and written sectors), and the I/Os
 * of the first process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

static const char usage[] =
"usage: load [NAME=VALUE]... DEVICE...\n"
"  threads=N  batch=N (I/Os a submit)  size=BYTES\n"
"  reads=PERCENT  order=random|parts|alternate   (parts: each thread is\n"
"  sequential in its own part; alternate: adjacent blocks in turns, and who\n"
"  lags goes on where the others are)\n"
"  streams=N (parts: a thread has N of them, which it serves in turns)\n"
"  warm-up=N (batches that each thread does at least before it is measured)\n"
"  apart=MS (that a thread starts after the one before it)\n"
"  later=FILE (a setting that is 0 until the warm-up is over; one a device)\n"
"  ticks=N (length of a lap)  clock=FILE (that the plugin writes)\n"
"  stat=FILE (a disk's counters; one a device)\n"
"  group=DIR (a cgroup for a process of its own; given several times, threads\n"
"  are in turns of these processes)  light=1 (the first has one thread only)\n"
"  single=1 (one system call an I/O)  writer=1 (thread 0 writes one by one in\n"
"  sequence, `depth` I/Os in flight)\n"
"  starts=1 (each lap has a new thread 0, as if a program started)\n";

#define WARM_MS		250	/* bfq forgets after 125 */
#define WARM_LAPS	2
#define MIN_RUNS	3
#define MAX_RUNS	9
#define MAX_THREADS	256
#define MAX_GROUPS	8
#define MAX_DISKS	32
#define LINE_SIZE	64

enum { ORDER_RANDOM, ORDER_PARTS, ORDER_ALTERNATE };
static int threads = 1, batch = 4, size = 512;
static int reads = 100, order = ORDER_RANDOM, single, writer, depth = 32;
static int warm_up = 1, streams = 1, ticks = 4000000, apart, light, starts;
static const char *devices[MAX_DISKS];
static int nr_devices;
static uint64_t blocks;		/* of the smallest */
static const char *groups[MAX_GROUPS];
static int nr_groups;
static const char *stat_files[MAX_DISKS];	/* /sys/block/DISK/stat */
static int stat_fds[MAX_DISKS], nr_stats;
static const char *clock_file;
static const volatile uint64_t *now;	/* in ticks */
static const char *later_files[MAX_DISKS];
static int later[MAX_DISKS], nr_later;	/* what was in them */

struct ring {
	int fd;
	unsigned int *sq_tail, sq_mask, *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

struct task {
	int me, batch, reads, order;
	bool single, warm;
	uint64_t rnd, next;
	char *buf;
	size_t buf_size;	/* of one I/O */
	struct ring ring;
};

/* What the disks counted, and when; I/Os of the first process. */
struct counts {
	uint64_t ticks, ios, writes, merged, sectors, first;
};

/* What all processes know. */
static struct shared {
	struct counts last, runs[MAX_RUNS];
	volatile int laps;
	int cold;		/* threads that have not done their warm-up */
	uint64_t due;		/* the end of the lap */
	uint64_t front;		/* alternate: where the newest batch began */
	volatile bool done;
	struct {
		uint64_t ios __attribute__((aligned(LINE_SIZE)));
	} threads[MAX_THREADS];
} *shared;

static void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *map_ring(int fd, size_t len, uint64_t offset)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, fd, offset);

	if (p == MAP_FAILED)
		fail("mapping the ring");
	return p;
}

static void ring_setup(struct ring *r, unsigned int entries)
{
	struct io_uring_params p = { 0 };
	unsigned int *array, i;
	char *sq, *cq;

	r->fd = syscall(SYS_io_uring_setup, entries, &p);
	if (r->fd < 0)
		fail("io_uring_setup");
	sq = map_ring(r->fd, p.sq_off.array + p.sq_entries * sizeof(*array),
		      IORING_OFF_SQ_RING);
	cq = map_ring(r->fd, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqes),
		      IORING_OFF_CQ_RING);
	r->sqes = map_ring(r->fd, p.sq_entries * sizeof(*r->sqes),
			   IORING_OFF_SQES);
	r->sq_tail = (unsigned int *)(sq + p.sq_off.tail);
	r->sq_mask = p.sq_entries - 1;
	r->cq_head = (unsigned int *)(cq + p.cq_off.head);
	r->cq_tail = (unsigned int *)(cq + p.cq_off.tail);
	r->cq_mask = p.cq_entries - 1;
	r->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	array = (unsigned int *)(sq + p.sq_off.array);
	for (i = 0; i < p.sq_entries; i++)
		array[i] = i;
}

static void task_setup(struct task *t)
{
	const char *device = devices[t->me % nr_devices];
	struct iovec iov;
	int fd = open(device, (t->reads < 100 ? O_RDWR : O_RDONLY) | O_DIRECT);

	if (fd < 0)
		fail(device);
	ring_setup(&t->ring, t->batch);
	t->buf_size = size < 4096 ? 4096 : size;
	iov.iov_len = t->buf_size * t->batch;
	iov.iov_base = t->buf = aligned_alloc(4096, iov.iov_len);
	memset(t->buf, 1, iov.iov_len);
	if (syscall(SYS_io_uring_register, t->ring.fd,
		    IORING_REGISTER_BUFFERS, &iov, 1))
		fail("registering buffers");
	if (syscall(SYS_io_uring_register, t->ring.fd, IORING_REGISTER_FILES,
		    &fd, 1))
		fail("registering the file");
}

static uint64_t random_number(struct task *t)
{
	t->rnd ^= t->rnd << 13;
	t->rnd ^= t->rnd >> 7;
	t->rnd ^= t->rnd << 17;
	return t->rnd;
}

static uint64_t next_block(struct task *t)
{
	uint64_t stream, part;

	switch (t->order) {
	case ORDER_PARTS:
		stream = t->next % streams;
		part = t->me * streams + stream;
		return (blocks / (threads * streams) * part +
			t->next++ / streams) % blocks;
	case ORDER_ALTERNATE:
		return (t->next++ * threads + t->me) % blocks;
	default:
		return random_number(t) % blocks;
	}
}

/* Threads that are once apart would stay so, and none could merge with another. */
static void join_others(struct task *t)
{
	uint64_t front = __atomic_load_n(&shared->front, __ATOMIC_RELAXED);

	if (t->next < front)
		t->next = front;
	else
		__atomic_store_n(&shared->front, t->next, __ATOMIC_RELAXED);
}

static bool is_read(struct task *t)
{
	if (t->reads % 100 == 0)
		return t->reads;
	return (random_number(t) >> 32) % 100 < (unsigned int)t->reads;
}

static void fill(struct task *t)
{
	struct ring *r = &t->ring;
	int i;

	if (t->order == ORDER_ALTERNATE)
		join_others(t);
	for (i = 0; i < t->batch; i++) {
		struct io_uring_sqe *sqe =
			&r->sqes[(*r->sq_tail + i) & r->sq_mask];

		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = is_read(t) ? IORING_OP_READ_FIXED :
					   IORING_OP_WRITE_FIXED;
		sqe->flags = IOSQE_FIXED_FILE;
		sqe->addr = (uintptr_t)(t->buf + i * t->buf_size);
		sqe->len = size;
		sqe->off = next_block(t) * size;
	}
	__atomic_store_n(r->sq_tail, *r->sq_tail + t->batch, __ATOMIC_RELEASE);
}

static void enter(struct task *t, int submit, int wait)
{
	if (syscall(SYS_io_uring_enter, t->ring.fd, submit, wait,
		    wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) != submit)
		fail("io_uring_enter");
}

static void reap(struct task *t)
{
	struct ring *r = &t->ring;
	unsigned int head = *r->cq_head;
	unsigned int tail = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);

	for (; head != tail; head++) {
		int res = r->cqes[head & r->cq_mask].res;

		if (res == size)
			continue;
		errno = res < 0 ? -res : EIO;
		fail("an I/O");
	}
	__atomic_store_n(r->cq_head, head, __ATOMIC_RELEASE);
}

static void one_batch(struct task *t)
{
	int i;

	fill(t);
	for (i = 0; t->single && i < t->batch; i++)
		enter(t, 1, 0);
	enter(t, t->single ? 0 : t->batch, t->batch);
	reap(t);
	shared->threads[t->me].ios += t->batch;
	mark(MARK_PROGRESS);
}

/* The process that thread @i is of. */
static int process_of(int i)
{
	if (nr_groups < 2)
		return 0;
	if (light)
		return i ? 1 + (i - 1) % (nr_groups - 1) : 0;
	return i % nr_groups;
}

static void add_stat(int disk, struct counts *c)
{
	uint64_t read_sectors, writes, merged, sectors;
	char text[256];
	ssize_t len = pread(stat_fds[disk], text, sizeof(text) - 1, 0);

	text[len < 0 ? 0 : len] = '\0';
	if (sscanf(text, "%*u %*u %lu %*u %lu %lu %lu", &read_sectors,
		   &writes, &merged, &sectors) != 4)
		fail(stat_files[disk]);
	c->ios += (read_sectors + sectors) * 512 / size;
	c->writes += writes;
	c->merged += merged;
	c->sectors += sectors;
}

static struct counts count(void)
{
	struct counts c = { .ticks = *now };
	int i;

	for (i = 0; i < nr_stats; i++)
		add_stat(i, &c);
	for (i = 0; i < threads; i++)
		if (!process_of(i))
			c.first += shared->threads[i].ios;
	return c;
}

static struct counts between(const struct counts *a, const struct counts *b)
{
	return (struct counts) {
		.ticks = b->ticks - a->ticks, .ios = b->ios - a->ios,
		.writes = b->writes - a->writes, .merged = b->merged - a->merged,
		.sectors = b->sectors - a->sectors,
		.first = b->first - a->first,
	};
}

/* Two standard errors of the mean of @n runs' rates are less than 5 %. */
static bool settled(int n)
{
	double sum = 0, squares = 0, rate, variance;
	int i;

	if (n < MIN_RUNS)
		return false;
	for (i = 0; i < n; i++) {
		rate = (double)shared->runs[i].ios / shared->runs[i].ticks;
		sum += rate;
		squares += rate * rate;
	}
	variance = (squares - sum * sum / n) / (n - 1);
	return 2 * 2 * variance / n < 0.05 * 0.05 * (sum / n) * (sum / n);
}

/* Returns what the setting was. */
static int set(const char *name, int value)
{
	FILE *file = fopen(name, "r+");
	int was;

	if (!file || fscanf(file, "%d", &was) != 1 || fseek(file, 0, SEEK_SET) ||
	    fprintf(file, "%d", value) < 0 || fclose(file))
		fail(name);
	return was;
}

static void end_warm_up(void)
{
	int i;

	for (i = 0; i < nr_later; i++)
		set(later_files[i], later[i]);
	mark(MARK_START);
	shared->last = count();
	__atomic_store_n(&shared->due, ticks, __ATOMIC_RELAXED);
}

static void end_lap(void)
{
	struct counts here = count();
	int nr = ++shared->laps - WARM_LAPS;	/* runs so far */

	if (nr > 0)
		shared->runs[nr - 1] = between(&shared->last, &here);
	shared->last = here;
	shared->done = nr == MAX_RUNS || settled(nr);
	if (shared->done) {
		mark(MARK_STOP);
		return;
	}
	mark(MARK_LAP);
	__atomic_store_n(&shared->due, here.ticks + ticks, __ATOMIC_RELAXED);
}

/* One thread does what has to be done now. */
static bool mine(void)
{
	uint64_t end = __atomic_load_n(&shared->due, __ATOMIC_RELAXED);

	return *now >= end &&
		__atomic_compare_exchange_n(&shared->due, &end, UINT64_MAX,
					    false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

/* Does a thread go on, which began in lap @lap? */
static bool goes_on(struct task *t, int lap)
{
	return !shared->done && (!starts || t->me || shared->laps == lap);
}

static void *work(void *arg)
{
	int nr = 0, lap = shared->laps;
	struct task *t = arg;
	uint64_t begin;

	if (!t->buf)
		task_setup(t);
	usleep(1000 * apart * t->me);
	mark(MARK_WORK);
	begin = clock_ms();
	while (goes_on(t, lap)) {
		one_batch(t);
		if (!t->warm && ++nr >= warm_up && clock_ms() - begin >= WARM_MS) {
			t->warm = true;
			if (!__atomic_sub_fetch(&shared->cold, 1,
						__ATOMIC_RELAXED))
				end_warm_up();
		} else if (mine()) {
			end_lap();
		}
	}
	return NULL;
}

/* Each thread has an I/O context of its own: a scheduler sees a new process. */
static void *work_anew(void *arg)
{
	pthread_t id;

	while (!shared->done)
		if (pthread_create(&id, NULL, work, arg) || pthread_join(id, NULL))
			fail("starting a thread");
	return NULL;
}

static struct task *new_task(int me)
{
	static const struct task plain = { .rnd = 88172645463325252ull };
	struct task *t = malloc(sizeof(*t));

	*t = plain;
	t->me = me;
	t->rnd += me * 7919;
	t->batch = batch;
	t->single = single;
	t->order = order;
	t->reads = reads;
	if (writer && !me) {
		t->batch = depth;
		t->single = true;
		t->order = ORDER_PARTS;
		t->reads = 0;
	}
	return t;
}

static void join_group(const char *group)
{
	char name[256];
	FILE *to;

	snprintf(name, sizeof(name), "%s/cgroup.procs", group);
	to = fopen(name, "w");
	/* 0: this process */
	if (!to || fprintf(to, "0") < 0 || fclose(to))
		fail(name);
}

/* Process number @me, with its share of the threads. */
static void process(int me, pid_t parent)
{
	pthread_t ids[MAX_THREADS];
	int i;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		exit(1);
	if (nr_groups)
		join_group(groups[me]);
	for (i = 0; i < threads; i++)
		if (process_of(i) == me &&
		    pthread_create(&ids[i], NULL, starts && !i ? work_anew : work,
				   new_task(i)))
			fail("starting a thread");
	for (i = 0; i < threads; i++)
		if (process_of(i) == me)
			pthread_join(ids[i], NULL);
	exit(0);
}

/* If one process fails, this one ends, and the others die with it. */
static void run_processes(void)
{
	int nr = nr_groups ? nr_groups : 1;
	pid_t me = getpid(), pid;
	int i, status;

	for (i = 0; i < nr; i++) {
		pid = fork();
		if (pid < 0)
			fail("starting a process");
		if (!pid)
			process(i, me);
	}
	while (wait(&status) > 0) {
		if (WIFSIGNALED(status))
			fprintf(stderr, "load: a process died of signal %d\n",
				WTERMSIG(status));
		if (status)
			exit(1);
	}
}

/* Arguments that may be given several times. */
static bool parse_list(const char *name, const char *value)
{
	static const struct {
		const char *name, **to;
		int *nr, most;
	} lists[] = {
		{ "device", devices, &nr_devices, MAX_DISKS },
		{ "stat", stat_files, &nr_stats, MAX_DISKS },
		{ "later", later_files, &nr_later, MAX_DISKS },
		{ "group", groups, &nr_groups, MAX_GROUPS },
	};
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (!strcmp(name, lists[i].name) && *lists[i].nr < lists[i].most) {
			lists[i].to[(*lists[i].nr)++] = value;
			return true;
		}
	return false;
}

static bool parse_number(const char *name, const char *value)
{
	static const struct { const char *name; int *to; } numbers[] = {
		{ "threads", &threads }, { "batch", &batch },
		{ "size", &size }, { "reads", &reads }, { "single", &single },
		{ "writer", &writer }, { "depth", &depth },
		{ "warm-up", &warm_up }, { "streams", &streams },
		{ "ticks", &ticks }, { "apart", &apart }, { "light", &light },
		{ "starts", &starts },
	};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].to = atoi(value);
			return true;
		}
	return false;
}

static void parse(char *arg)
{
	static const char *const orders[] = { "random", "parts", "alternate" };
	char *value = strchr(arg, '=');
	const char *name = arg;
	int i;

	if (value) {
		*value++ = '\0';
	} else {
		name = "device";
		value = arg;
	}
	if (parse_list(name, value) || parse_number(name, value))
		return;
	if (!strcmp(name, "clock")) {
		clock_file = value;
		return;
	}
	for (i = 0; !strcmp(name, "order") && i < 3; i++)
		if (!strcmp(value, orders[i])) {
			order = i;
			return;
		}
	fprintf(stderr, "load: cannot use `%s=%s`\n%s", name, value, usage);
	exit(2);
}

static void *map_clock(void)
{
	int fd = open(clock_file, O_RDONLY);
	void *page = mmap(NULL, sizeof(*now), PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || page == MAP_FAILED)
		fail(clock_file);
	close(fd);
	return page;
}

static void open_disks(void)
{
	off_t end;
	int i, fd;

	blocks = UINT64_MAX;
	for (i = 0; i < nr_devices; i++) {
		fd = open(devices[i], O_RDONLY);
		end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
		if (end < size)
			fail(devices[i]);
		close(fd);
		if ((uint64_t)end / size < blocks)
			blocks = end / size;
	}
	for (i = 0; i < nr_stats; i++)
		stat_fds[i] = open(stat_files[i], O_RDONLY);
	for (i = 0; i < nr_later; i++)
		later[i] = set(later_files[i], 0);
}

int main(int argc, char **argv)
{
	const struct counts *run;
	int i;

	for (i = 1; i < argc; i++)
		parse(argv[i]);
	if (!nr_devices || !clock_file || nr_stats != nr_devices ||
	    streams < 1 || warm_up < 1 || threads < 1 || threads > MAX_THREADS) {
		fputs(usage, stderr);
		return 2;
	}
	now = map_clock();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("memory");
	shared->cold = threads;
	shared->due = UINT64_MAX;
	open_disks();
	run_processes();
	for (i = 0; i < WARM_LAPS; i++)
		printf("warm-up ");
	for (run = shared->runs; run < shared->runs + shared->laps - WARM_LAPS; run++)
		printf("%lu,%lu,%lu,%lu,%lu,%lu ", run->ticks, run->ios,
		       run->writes, run->merged, run->sectors, run->first);
	putchar('\n');
	return 0;
}
