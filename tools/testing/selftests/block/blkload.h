/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _BLOCK_TEST_BLKLOAD_H
#define _BLOCK_TEST_BLKLOAD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <time.h>

#define MAX_DEPTH	1024
#define LAT_BUCKETS	(32 * 8)

enum pattern { RANDOM, SEQUENTIAL, REVERSE, ALTERNATE };

struct options {
	const char *file;
	enum pattern pattern;
	const char *command;		/* -x: not reads and writes but this */
	unsigned int threads, depth, batch, reads, block;
	unsigned int small_block;	/* every other I/O, with -d above 1 */
	unsigned int streams;		/* of a SEQUENTIAL thread, in turns */
	unsigned long ios, pause_us[2], limit_ms, apart_ms;
	long first_ms;			/* -f: a read, and then nothing so long */
	double secs;
	uint64_t offset, size;
	int prio[2];			/* class << 13 | level, of even and odd threads */
	int later_prio[2];		/* -a: the same, after some I/Os one by one */
	bool pin, dsync, together, errors_allowed, verify;
};

extern struct options opt;

struct worker {
	pthread_t thread;
	unsigned int nr;
	int fd;
	uint64_t seed, done, errors, wrong, max_us, over3ms;
	uint64_t lat[LAT_BUCKETS];
	uint64_t next;			/* blocks handed out so far */
	atomic_ullong since;	/* last submission or completion, 0: none in flight */
};

static inline uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

extern uint64_t start_us;
extern atomic_int stop;

/* main */
noreturn void die(const char *what);
/* io.c */
void *run(void *worker);
/* data.c: what each block has to hold */
void data_init(void);
bool data_begin(uint64_t pos, void *buf, bool read);
bool data_end(uint64_t pos, const void *buf, bool read, bool failed);
void data_read_back(struct worker *w);
/* watch.c: how long the machine stood still, how often queues were run by hand */
extern uint64_t stall_us;
extern unsigned int rescued;

void pin_to(unsigned int nr);
void watch(struct worker *workers);

#endif
