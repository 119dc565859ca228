// SPDX-License-Identifier: GPL-2.0
/*
 * Two tasks that write the even and the odd blocks of one region, strictly in
 * turn, one write a submit.  No task ever submits two adjacent blocks, so no
 * plug can merge: what is merged was merged in the scheduler.  fio cannot keep
 * two jobs side by side closely enough for that.
 *
 *	alternate DEVICE SECONDS DEPTH
 *
 * prints the writes and the time they took.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, TASKS = 2 };

static const char *device;
static int depth;
static unsigned long long blocks;
static double end;
static atomic_uint turn;	/* the block that is to be written next */
static atomic_int stop;

static void fail(const char *what)
{
	fprintf(stderr, "alternate: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* A task that spins for its turn would keep the other from the CPU. */
static void wait_turn(unsigned int block)
{
	unsigned int seen;

	while ((seen = atomic_load(&turn)) != block && !atomic_load(&stop))
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen,
			&(struct timespec){ .tv_nsec = 50000000 }, NULL, 0);
}

static void pass_turn(unsigned int block)
{
	atomic_store(&turn, block);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Wait for at least `least` writes; returns how many have ended. */
static int reap(aio_context_t ctx, int least, struct io_event *events)
{
	int got;

	do {
		got = syscall(SYS_io_getevents, ctx, least, depth, events, NULL);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		fail("io_getevents");
	for (int i = 0; i < got; i++) {
		errno = events[i].res < 0 ? -events[i].res : EIO;
		if (events[i].res != BLOCK)
			fail("write");
	}
	return got;
}

static void *task(void *arg)
{
	int fd = open(device, O_WRONLY | O_DIRECT), flying = 0;
	struct io_event *events = calloc(depth, sizeof(*events));
	unsigned int block = (unsigned long)arg;
	unsigned long ended = 0;
	aio_context_t ctx = 0;
	void *buffer;

	if (fd < 0)
		fail(device);
	if (!events || posix_memalign(&buffer, BLOCK, BLOCK))
		fail("memory");
	memset(buffer, 0, BLOCK);
	if (syscall(SYS_io_setup, depth, &ctx))
		fail("io_setup");
	for (; !atomic_load(&stop); block += TASKS) {
		struct iocb cb = {
			.aio_fildes = fd,
			.aio_lio_opcode = IOCB_CMD_PWRITE,
			.aio_buf = (unsigned long)buffer,
			.aio_nbytes = BLOCK,
			.aio_offset = (long long)(block % blocks) * BLOCK,
		}, *list = &cb;

		if (flying == depth) {
			int got = reap(ctx, 1, events);

			flying -= got;
			ended += got;
		}
		wait_turn(block);
		if (syscall(SYS_io_submit, ctx, 1, &list) != 1)
			fail("io_submit");
		flying++;
		pass_turn(block + 1);
		if (now() > end)
			atomic_store(&stop, 1);
	}
	while (flying) {
		int got = reap(ctx, flying, events);

		flying -= got;
		ended += got;
	}
	return (void *)ended;
}

int main(int argc, char **argv)
{
	unsigned long long bytes;
	unsigned long ended = 0;
	pthread_t tasks[TASKS];
	double begun = now();
	int fd;

	if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
		fprintf(stderr, "usage: alternate DEVICE SECONDS DEPTH\n");
		return 2;
	}
	device = argv[1];
	end = begun + atoi(argv[2]);
	depth = atoi(argv[3]);
	fd = open(device, O_RDONLY);
	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes))
		fail(device);
	close(fd);
	blocks = bytes / BLOCK / TASKS * TASKS;
	for (long i = 0; i < TASKS; i++)
		if (pthread_create(&tasks[i], NULL, task, (void *)i))
			fail("pthread_create");
	for (int i = 0; i < TASKS; i++) {
		void *result;

		pthread_join(tasks[i], &result);
		ended += (unsigned long)result;
	}
	printf("%lu %.3f\n", ended, now() - begun);
	return 0;
}
