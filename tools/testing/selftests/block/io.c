// SPDX-License-Identifier: GPL-2.0
/* The I/O of blkload: one by one, or several in flight */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blkload.h"
#include "passthrough.h"

#define STUCK_SECS	20
#define CHANGE_AFTER	100	/* I/Os, see -a */

static uint64_t rnd(struct worker *w)
{
	w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return w->seed >> 33;
}

static void account(struct worker *w, uint64_t us, bool failed)
{
	unsigned int log = us < 8 ? 0 : 60 - __builtin_clzll(us);
	unsigned int bucket = us < 8 ? us : (log + 1) * 8 + (us >> log) % 8;

	w->lat[bucket < LAT_BUCKETS ? bucket : LAT_BUCKETS - 1]++;
	w->done++;
	w->errors += failed;
	w->over3ms += us > 3000;
	if (us > w->max_us)
		w->max_us = us;
}

static bool more(struct worker *w)
{
	if (stop || (opt.ios && w->next >= opt.ios))
		return false;
	return !opt.secs || now_us() - start_us < opt.secs * 1e6;
}

/*
 * RANDOM goes through all the blocks of the thread's region once before it
 * repeats one (an odd step in a power of two), so that a sector names an I/O.
 */
static uint64_t next_pos(struct worker *w)
{
	uint64_t blocks = opt.size / opt.block / opt.threads, n = w->next++;
	uint64_t pow2 = 1ULL << (63 - __builtin_clzll(blocks));
	uint64_t first = w->nr * blocks;

	switch (opt.pattern) {
	case RANDOM:
		n = first + ((n * 2654435761ULL + w->nr * 12345) & (pow2 - 1));
		break;
	case SEQUENTIAL:
		n = first + n % opt.streams * (blocks / opt.streams) +
			n / opt.streams % (blocks / opt.streams);
		break;
	case REVERSE:
		n = first + blocks - 1 - n % blocks;
		break;
	case ALTERNATE:
		n = n % blocks * opt.threads + w->nr;
		break;
	}
	return opt.offset + n * opt.block;
}

static void *buffer(unsigned int nr)
{
	void *p;

	if (posix_memalign(&p, 4096, (size_t)nr * opt.block))
		die("memory");
	memset(p, 0x5a, (size_t)nr * opt.block);
	return p;
}

/*
 * All threads start an I/O within a few microseconds, and none starts another
 * before all are done: an I/O that is left behind has nobody to rescue it.
 * Spins, because a wake-up would set the threads apart.
 */
static bool over;	/* a thread has left its loop */

static bool together(struct worker *w)
{
	static unsigned int arrived;
	unsigned int target, spins = 0;

	target = __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST) - 1;
	target = (target / opt.threads + 1) * opt.threads;
	while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < target)
		if (++spins % 1024 == 0) {
			if (__atomic_load_n(&over, __ATOMIC_SEQ_CST))
				return false;
			sched_yield();
		}
	for (spins = rnd(w) % 1024; spins; spins--)
		__asm__ volatile("");
	return true;
}

static ssize_t read_or_write(struct worker *w, void *buf, uint64_t pos)
{
	bool read = rnd(w) % 100 < opt.reads;
	ssize_t ret;

	if (opt.verify)
		data_begin(pos, buf, read);
	ret = read ? pread(w->fd, buf, opt.block, pos) :
		     pwrite(w->fd, buf, opt.block, pos);
	if (opt.verify)
		w->wrong += !data_end(pos, buf, read, ret != (ssize_t)opt.block);
	return ret;
}

static void set_prio(struct worker *w, const int *prio)
{
	if (prio[w->nr % 2] >= 0 && syscall(SYS_ioprio_set, 1, 0, prio[w->nr % 2]))
		die("ioprio_set");
}

/*
 * The thread is of another class from now on. A write without O_DIRECT, which is
 * asynchronous, tells the scheduler.
 */
static void change_prio(struct worker *w)
{
	int fd = open(opt.file, O_WRONLY);
	void *buf = buffer(1);

	set_prio(w, opt.later_prio);
	if (fd < 0 || pwrite(fd, buf, opt.block, opt.offset) != (ssize_t)opt.block ||
	    sync_file_range(fd, opt.offset, opt.block, SYNC_FILE_RANGE_WRITE))
		die("change of class");
	usleep(500000);	/* the write may have to wait for others */
	close(fd);
	free(buf);
}

static void run_sync(struct worker *w)
{
	unsigned long pause_us = opt.pause_us[w->nr > 0];
	void *buf = buffer(1);

	while (more(w)) {
		uint64_t pos = next_pos(w), t;
		ssize_t ret;

		if (opt.together && !together(w))
			break;
		if (opt.later_prio[0] >= 0 && w->done == CHANGE_AFTER)
			change_prio(w);
		t = now_us();
		w->since = t;
		if (opt.command)
			ret = passthrough(opt.command, w->fd) ? -1 : (ssize_t)opt.block;
		else
			ret = read_or_write(w, buf, pos);
		w->since = 0;
		account(w, now_us() - t, ret != (ssize_t)opt.block);
		if (pause_us)
			usleep(rnd(w) % (2 * pause_us));
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
}

static void prep(struct worker *w, struct iocb *cb, uint64_t *t, void *buf)
{
	bool read = rnd(w) % 100 < opt.reads, odd;
	uint64_t pos;

	odd = w->next % 2;
	do {
		pos = next_pos(w);
	} while (opt.verify && !data_begin(pos, buf, read));
	*t = now_us();
	if (!w->since)
		w->since = *t;
	*cb = (struct iocb) {
		.aio_fildes = w->fd,
		.aio_lio_opcode = read ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
		.aio_buf = (uintptr_t)buf,
		.aio_nbytes = odd ? opt.block : opt.small_block,
		.aio_offset = pos,
		.aio_data = (uintptr_t)t,
	};
}

static unsigned int reap(struct worker *w, aio_context_t ctx, unsigned int min,
			 unsigned int *unused, unsigned int nr_unused,
			 uint64_t *started)
{
	struct timespec stuck = { .tv_sec = STUCK_SECS };
	struct io_event ev[MAX_DEPTH];
	int i, nr = syscall(SYS_io_getevents, ctx, min, MAX_DEPTH, ev, &stuck);

	if (nr < 0 && errno == EINTR)
		return nr_unused;
	if (nr < (int)min) {
		fprintf(stderr, "blkload: %s: nothing completed for %u s\n",
			opt.file, STUCK_SECS);
		_exit(3);
	}
	w->since = now_us();
	for (i = 0; i < nr; i++) {
		const struct iocb *cb = (struct iocb *)(uintptr_t)ev[i].obj;
		uint64_t *t = (uint64_t *)(uintptr_t)ev[i].data;
		bool failed = (uint64_t)ev[i].res != cb->aio_nbytes;

		account(w, now_us() - *t, failed);
		if (opt.verify)
			w->wrong += !data_end(cb->aio_offset, (void *)(uintptr_t)cb->aio_buf,
					      cb->aio_lio_opcode == IOCB_CMD_PREAD, failed);
		unused[nr_unused++] = t - started;
	}
	if (nr_unused == opt.depth)
		w->since = 0;
	return nr_unused;
}

/*
 * ALTERNATE: neighbours meet in the queue only if no task runs away from the
 * others.
 */
static bool ahead(struct worker *w)
{
	struct worker *all = w - w->nr;
	unsigned int i;

	if (opt.pattern != ALTERNATE || __atomic_load_n(&over, __ATOMIC_SEQ_CST))
		return false;
	for (i = 0; i < opt.threads; i++)
		if (w->next > __atomic_load_n(&all[i].next, __ATOMIC_RELAXED) + 2)
			return true;
	return false;
}

static void run_aio(struct worker *w)
{
	unsigned int i, n, unused[MAX_DEPTH], nr_unused = opt.depth;
	unsigned long pause_us = opt.pause_us[w->nr > 0];
	struct iocb cbs[MAX_DEPTH], *list[MAX_DEPTH];
	char *buf = buffer(opt.depth);
	uint64_t started[MAX_DEPTH];
	aio_context_t ctx = 0;

	if (syscall(SYS_io_setup, opt.depth, &ctx))
		die("io_setup");
	for (i = 0; i < opt.depth; i++)
		unused[i] = i;
	while (more(w)) {
		if (ahead(w)) {
			sched_yield();
			continue;
		}
		while (opt.together && nr_unused < opt.depth)
			nr_unused = reap(w, ctx, 1, unused, nr_unused, started);
		if (opt.together && !together(w))
			break;
		for (n = 0; n < opt.batch && nr_unused && more(w); n++) {
			i = unused[--nr_unused];
			prep(w, &cbs[i], &started[i], buf + (size_t)i * opt.block);
			list[n] = &cbs[i];
		}
		for (i = 0; i < n;) {
			int ret = syscall(SYS_io_submit, ctx, n - i, list + i);

			if (ret < 0 && errno != EINTR && errno != EAGAIN)
				die("io_submit");
			i += ret > 0 ? ret : 0;
		}
		if (pause_us)
			usleep(pause_us);
		if (nr_unused < opt.batch)
			nr_unused = reap(w, ctx, 1, unused, nr_unused, started);
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	while (nr_unused < opt.depth)
		nr_unused = reap(w, ctx, 1, unused, nr_unused, started);
	syscall(SYS_io_destroy, ctx);
}

/* A scheduler that keeps data of each process knows this one from now on. */
static void read_first(struct worker *w)
{
	void *buf = buffer(1);

	if (pread(w->fd, buf, opt.block, opt.offset) != (ssize_t)opt.block)
		die("first read");
	free(buf);
	usleep(opt.first_ms * 1000);
}

void *run(void *arg)
{
	struct worker *w = arg;

	if (opt.pin)
		pin_to(w->nr);
	set_prio(w, opt.prio);
	usleep(w->nr * opt.apart_ms * 1000);
	if (opt.first_ms >= 0)
		read_first(w);
	if (opt.depth == 1)
		run_sync(w);
	else
		run_aio(w);
	return NULL;
}
