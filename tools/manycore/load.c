// SPDX-License-Identifier: GPL-2.0
/*
 * load: block I/O as fixed work, for the many-core measurement.
 *
 * Each thread submits `batch` direct I/Os to the device, waits for all of
 * them, and does so `batches` times; io_uring with a fixed file and buffers.
 * Only the part after a warm-up lies between the marks.  Prints the I/Os in
 * the marked stretch.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

static const char usage[] =
"usage: load [NAME=VALUE]... DEVICE\n"
"  threads=N  batches=N batch=N (I/Os a submit)  size=BYTES\n"
"  reads=PERCENT  order=random|parts|alternate   (parts: each thread is\n"
"  sequential in its own part; alternate: adjacent blocks in turns)\n"
"  streams=N (parts: a thread has N of them, which it serves in turns)\n"
"  warm-up=N (batches before the stretch)\n"
"  seconds=N (do the work again until N seconds have passed)\n"
"  stat=FILE (the disk's counters, printed as they were before and after)\n"
"  groups=DIR (threads are in turns in the cgroups DIR/0 and DIR/1)\n"
"  together=1 (the work is done as soon as all have done as many batches\n"
"  together; nobody stands still before)\n"
"  single=1 (one system call an I/O)  writer=1 (thread 0 writes one by one in\n"
"  sequence, `depth` I/Os in flight; the others go on until it is done)\n";

enum { ORDER_RANDOM, ORDER_PARTS, ORDER_ALTERNATE };
static int threads = 1, batches = 100, batch = 4, size = 512;
static int reads = 100, order = ORDER_RANDOM, single, writer, depth = 32;
static int seconds, warm_up = 20, streams = 1, together;
static const char *device;
static uint64_t blocks;
static const char *groups;	/* directory of cgroups 0 and 1, of threads */
static const char *stat_file;	/* /sys/block/DISK/stat */
static char stat_before[256], stat_after[256];
static pthread_barrier_t ready;
static volatile bool done, again;
static int together_left;
static struct timespec begun;
static uint64_t ios;

struct ring {
	int fd;
	unsigned int *sq_tail, sq_mask, *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

struct task {
	int me, batch, reads, order;
	bool single;
	uint64_t rnd, next;
	char *buf;
	size_t buf_size;	/* of one I/O */
	struct ring ring;
};

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
	mark(MARK_PROGRESS);
}

/* after @nr batches */
static bool goes_on(const struct task *t, int nr)
{
	if (together && nr &&
	    __atomic_sub_fetch(&together_left, 1, __ATOMIC_RELAXED) == 0) {
		mark(MARK_STOP);
		done = true;
	}
	return together || (writer && t->me) ? !done : nr < batches;
}

/*
 * A kernel that is many times faster does the same work again, so that its
 * figure does not hang on a few batches.
 */
static bool short_of_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - begun.tv_sec < seconds;
}

/* The disk's counters, separated by commas. */
static void read_stat(char *to, size_t size)
{
	int fd = stat_file ? open(stat_file, O_RDONLY) : -1;
	ssize_t len = fd < 0 ? 0 : read(fd, to, size - 1);
	char *word, *rest = NULL, text[256] = "";

	if (stat_file && len <= 0)
		fail(stat_file);
	for (word = strtok_r(to, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest)) {
		if (*text)
			strcat(text, ",");
		strcat(text, word);
	}
	strcpy(to, text);
	if (fd >= 0)
		close(fd);
}

static void join_group(const struct task *t)
{
	char name[256];
	FILE *tasks;

	snprintf(name, sizeof(name), "%s/%d/tasks", groups, t->me % 2);
	tasks = fopen(name, "w");
	/* 0: this thread */
	if (!tasks || fprintf(tasks, "0") < 0 || fclose(tasks))
		fail(name);
}

static void *work(void *arg)
{
	struct task *t = arg;
	int i;

	if (groups)
		join_group(t);
	task_setup(t);
	mark(MARK_WORK);
	for (i = 0; i < warm_up; i++)
		one_batch(t);
	pthread_barrier_wait(&ready);
	if (!t->me) {
		read_stat(stat_before, sizeof(stat_before));
		clock_gettime(CLOCK_MONOTONIC, &begun);
		mark(MARK_START);
	}
	do {
		pthread_barrier_wait(&ready);
		for (i = 0; goes_on(t, i); i++)
			one_batch(t);
		if (writer && !t->me) {
			mark(MARK_STOP);
			done = true;
		}
		__atomic_fetch_add(&ios, (uint64_t)i * t->batch,
				   __ATOMIC_RELAXED);
		if (!t->me)
			again = !writer && !together && short_of_time();
		pthread_barrier_wait(&ready);
	} while (again);
	if (!writer && !together && !t->me)
		mark(MARK_STOP);
	if (!t->me)
		read_stat(stat_after, sizeof(stat_after));
	return NULL;
}

static void *start_work(int me)
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

static void parse(char *arg)
{
	static const struct { const char *name; int *to; } numbers[] = {
		{ "threads", &threads },
		{ "batches", &batches }, { "batch", &batch },
		{ "size", &size }, { "reads", &reads }, { "single", &single },
		{ "writer", &writer }, { "depth", &depth },
		{ "seconds", &seconds }, { "warm-up", &warm_up },
		{ "streams", &streams }, { "together", &together },
	};
	static const char *const orders[] = { "random", "parts", "alternate" };
	char *value = strchr(arg, '=');
	size_t i;

	if (!value) {
		device = arg;
		return;
	}
	*value++ = '\0';
	if (!strcmp(arg, "stat")) {
		stat_file = value;
		return;
	}
	if (!strcmp(arg, "groups")) {
		groups = value;
		return;
	}
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(arg, numbers[i].name)) {
			*numbers[i].to = atoi(value);
			return;
		}
	for (i = 0; !strcmp(arg, "order") && i < 3; i++)
		if (!strcmp(value, orders[i])) {
			order = i;
			return;
		}
	fprintf(stderr, "load: cannot use `%s=%s`\n%s", arg, value, usage);
	exit(2);
}

int main(int argc, char **argv)
{
	pthread_t *ids;
	off_t end;
	int i, fd;

	for (i = 1; i < argc; i++)
		parse(argv[i]);
	if (!device || streams < 1) {
		fputs(usage, stderr);
		return 2;
	}
	fd = open(device, O_RDONLY);
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (end < size)
		fail(device);
	close(fd);
	blocks = end / size;
	together_left = threads * batches;
	pthread_barrier_init(&ready, NULL, threads);
	ids = calloc(threads, sizeof(*ids));
	for (i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, start_work(i)))
			fail("starting a thread");
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	if (together)	/* what was still under way does not count */
		ios = (uint64_t)threads * batches * batch;
	printf("ios=%lu before=%s after=%s\n", ios, stat_before, stat_after);
	return 0;
}
