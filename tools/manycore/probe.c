// SPDX-License-Identifier: GPL-2.0
/*
 * probe: work whose cost under the lockstep plugin is known beforehand.
 *
 *	probe pingpong THREADS N  a line goes from thread to thread, N times
 *	probe lock THREADS N      each takes a ticket lock N times
 *	probe alone THREADS N     each counts N times in memory of its own
 *	probe hang                no progress, for ever
 *
 * With the plugin's user=1 the misses of this program count.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

#define LINE 64

static int threads;
static long rounds;
static pthread_barrier_t ready;

/* Each on a cache line of its own. */
static struct {
	volatile long value;
	char pad[LINE - sizeof(long)];
} turn __attribute__((aligned(LINE))), next_ticket __attribute__((aligned(LINE))),
  now_served __attribute__((aligned(LINE))), shared __attribute__((aligned(LINE))),
  own[64] __attribute__((aligned(LINE)));

/*
 * Each hand-over is one load that misses (the other stored) and one store that
 * misses (the other still holds a copy, as it waits).
 */
static void pingpong(long me)
{
	long i;

	for (i = me; i < rounds; i += threads) {
		while (turn.value != i)
			;
		turn.value = i + 1;
	}
}

static void lock(long me)
{
	long i, mine;

	for (i = 0; i < rounds; i++) {
		mine = __atomic_fetch_add(&next_ticket.value, 1,
					  __ATOMIC_RELAXED);
		while (__atomic_load_n(&now_served.value, __ATOMIC_ACQUIRE) !=
		       mine)
			;
		shared.value++;
		__atomic_store_n(&now_served.value, mine + 1, __ATOMIC_RELEASE);
	}
}

static void alone(long me)
{
	long i;

	for (i = 0; i < rounds; i++)
		own[me].value++;
}

static void hang(long me)
{
	while (turn.value >= 0)
		;
}

static void (*probe)(long me);

static void *work(void *arg)
{
	long me = (long)arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof(set), &set);
	pthread_barrier_wait(&ready);
	if (!me)
		mark(MARK_START);
	pthread_barrier_wait(&ready);
	probe(me);
	mark(MARK_PROGRESS);
	pthread_barrier_wait(&ready);
	if (!me)
		mark(MARK_STOP);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*probe)(long me);
	} probes[] = {
		{ "pingpong", pingpong }, { "lock", lock },
		{ "alone", alone }, { "hang", hang },
	};
	pthread_t ids[64];
	unsigned int k;
	long i;

	for (k = 0; argc > 1 && k < sizeof(probes) / sizeof(probes[0]); k++)
		if (!strcmp(argv[1], probes[k].name))
			probe = probes[k].probe;
	threads = argc > 2 ? atoi(argv[2]) : 1;
	rounds = argc > 3 ? atol(argv[3]) : 0;
	if (!probe || threads < 1 || threads > 64) {
		fputs("usage: probe pingpong|lock|alone|hang THREADS N\n",
		      stderr);
		return 2;
	}
	pthread_barrier_init(&ready, NULL, threads);
	for (i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)i))
			return 1;
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("done %s %d %ld\n", argv[1], threads, rounds);
	return 0;
}
