/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MANYCORE_LOCKSTEP_H
#define MANYCORE_LOCKSTEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "qemu_plugin_api.h"

#define MAX_VCPUS 64
#define CLOCK_SIZE 4096		/* of the file, and QEMU's shared memory */

/* Each can be set as a plugin argument of its name. */
struct model {
	unsigned int quantum;	/* ticks that a vCPU may be ahead */
	unsigned int atomic;	/* more ticks for a locked instruction */
	unsigned int miss;	/* more ticks for a coherence miss */
	unsigned int lockstep;	/* 0: count, but hold no vCPU */
	unsigned int user;	/* misses of user code count too */
	unsigned int profile;	/* count by instruction */
};
extern struct model model;

/* An instruction or a block, and what was counted there. */
struct site {
	uint64_t pc;
	_Atomic uint64_t misses, quanta;
};

struct vcpu {
	uint64_t slice;		/* ticks since the last barrier */
	uint64_t ticks;		/* only without lockstep */
	uint64_t misses, atomics;
	const struct site *at;	/* where the last slice ended */
	char pad[24];
};
extern struct vcpu *vcpus[MAX_VCPUS];
extern unsigned int nr_vcpus;
extern volatile int on;		/* inside the marked stretch */

/* lockstep.c */
extern struct qemu_plugin_scoreboard *score;
extern unsigned long long idle_from, idle_to;
void idle_pause(unsigned int cpu, void *unused);
void slice_end(unsigned int cpu, void *site);
void marked(unsigned int cpu, void *mark);

/* count.c */
static inline void add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void count_translated(plugin_id id, struct qemu_plugin_tb *tb);
void count_find_registers(void);
bool count_event(const char *text);
void count_reset(void);
void count_print_events(FILE *to);
void count_print_sites(FILE *to);

#endif
