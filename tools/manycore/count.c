// SPDX-License-Identifier: GPL-2.0
/*
 * What the plugin counts in translated code: coherence misses, locked
 * instructions, events, and where they happen.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"
#include "mark.h"

/*
 * Sites: instructions and blocks by address, found once at translation, so
 * that counting is one addition.  Ticks are samples: each vCPU leaves one a
 * quantum at the block where the quantum ended.
 */
#define SITES (1u << 20)
static struct site sites[SITES];
static pthread_mutex_t sites_lock = PTHREAD_MUTEX_INITIALIZER;

static struct site *site_of(uint64_t pc)
{
	unsigned int i = pc * 0x9E3779B97F4A7C15ull >> 44, n;
	struct site *s = &sites[0];	/* user code, and what finds no room */

	if (!(pc >> 63))
		return s;
	pthread_mutex_lock(&sites_lock);
	for (n = 0; n < 64; n++, i = (i + 1) % SITES) {
		if (!i || (sites[i].pc && sites[i].pc != pc))
			continue;
		s = &sites[i];
		s->pc = pc;
		break;
	}
	pthread_mutex_unlock(&sites_lock);
	return s;
}

/*
 * Who holds a copy of a cache line: an unbounded cache, so that hits and
 * capacity misses are free.  Races of vCPUs on this table only blur it.
 */
#define LINE_BITS 22
static struct line {
	uint64_t tag, holders;
} lines[1u << LINE_BITS];

/* Each CPU's own local APIC lies at one address there. */
#define FIXMAP 0xffffffffff400000ull

static inline void touch(struct vcpu *v, unsigned int cpu, uint64_t vaddr,
			 bool store, struct site *site)
{
	uint64_t tag = vaddr >> 6, me = 1ull << cpu;
	struct line *l =
		&lines[tag * 0x9E3779B97F4A7C15ull >> (64 - LINE_BITS)];
	uint64_t holders = l->holders;

	if (l->tag != tag) {
		if (vaddr >= FIXMAP)
			return;
		l->tag = tag;
		l->holders = me;
		return;
	}
	if (holders == me || (!store && (holders & me)))
		return;
	l->holders = store ? me : holders | me;
	v->slice += model.miss;
	v->misses++;
	add(&site->misses, 1);
}

static void plain_access(unsigned int cpu, uint32_t info, uint64_t vaddr,
			 void *site)
{
	if (on)
		touch(vcpus[cpu], cpu, vaddr, qemu_plugin_mem_is_store(info),
		      site);
}

static void locked_access(unsigned int cpu, uint32_t info, uint64_t vaddr,
			  void *site)
{
	struct vcpu *v = vcpus[cpu];

	if (!on || !qemu_plugin_mem_is_store(info))
		return;
	v->slice += model.atomic;
	v->atomics++;
	touch(v, cpu, vaddr, true, site);
}

/*
 * Counted events: executions of the instruction at an address.  With `func`
 * the address is delayed_work_timer_fn and only timers count whose work runs
 * `func`: the timer lies in struct delayed_work behind struct work_struct,
 * whose last member is the function.
 */
struct event {
	char name[32];
	unsigned long long pc, func;
	_Atomic uint64_t count;
};
static struct event events[8];
static unsigned int nr_events;
static struct qemu_plugin_register *reg_rdi;

static uint64_t u64_at(struct garray *buf)
{
	uint64_t value = 0;

	if (buf->len >= sizeof(value))
		memcpy(&value, buf->data, sizeof(value));
	return value;
}

static uint64_t work_function(void)
{
	static __thread struct garray *buf;
	uint64_t timer;

	if (!reg_rdi || !qemu_plugin_read_memory_vaddr)
		return 0;
	if (!buf)
		buf = g_byte_array_new();
	g_byte_array_set_size(buf, 0);
	qemu_plugin_read_register(reg_rdi, buf);
	timer = u64_at(buf);
	g_byte_array_set_size(buf, 0);
	if (!qemu_plugin_read_memory_vaddr(timer - 8, buf, 8))
		return 0;
	return u64_at(buf);
}

static void event_happened(unsigned int cpu, void *udata)
{
	struct event *e = udata;

	if (on && (!e->func || work_function() == e->func))
		add(&e->count, 1);
}

void count_find_registers(void)
{
	struct garray *all;
	unsigned int i;

	if (reg_rdi || !qemu_plugin_get_registers)
		return;
	all = qemu_plugin_get_registers();
	for (i = 0; i < all->len; i++) {
		struct reg_desc *d = (struct reg_desc *)all->data + i;

		if (!strcmp(d->name, "rdi"))
			reg_rdi = d->handle;
	}
}

/* A lock prefix, or xchg with memory, which locks by itself. */
static bool is_locked(const uint8_t *b, size_t len)
{
	static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0x65, 0x64,
					    0x2e, 0x3e };
	size_t i;

	for (i = 0; i < len; i++) {
		if (b[i] == 0xf0)
			return true;
		if (!memchr(prefixes, b[i], sizeof(prefixes)) &&
		    (b[i] & 0xf0) != 0x40)
			break;
	}
	return i + 1 < len && (b[i] & 0xfe) == 0x86 && (b[i + 1] & 0xc0) != 0xc0;
}

static bool is_pause(const uint8_t *b, size_t len)
{
	return len == 2 && b[0] == 0xf3 && b[1] == 0x90;
}

static void translate_insn(struct qemu_plugin_insn *insn)
{
	static const uint8_t tail[] = { MARK_TAIL };
	uint64_t pc = qemu_plugin_insn_vaddr(insn);
	uint8_t b[16];
	size_t len = qemu_plugin_insn_data(insn, b, sizeof(b));
	struct site *site = &sites[0];
	unsigned int i;
	bool locked;

	if (len == MARK_LEN && b[0] == 0x0f && b[1] == 0x1f && b[2] == 0x80 &&
	    !memcmp(b + 4, tail, sizeof(tail)))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, CB_NO_REGS,
						       (void *)(uintptr_t)b[3]);
	if (pc >= idle_from && pc < idle_to && is_pause(b, len))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, idle_pause,
						       CB_NO_REGS, NULL);
	for (i = 0; i < nr_events; i++)
		if (events[i].pc == pc)
			qemu_plugin_register_vcpu_insn_exec_cb(insn,
				event_happened, CB_R_REGS, &events[i]);
	locked = is_locked(b, len);
	if (!locked && !model.user && !(pc >> 63))
		return;
	if (model.profile)
		site = site_of(pc);
	qemu_plugin_register_vcpu_mem_cb(insn,
		locked ? locked_access : plain_access, CB_NO_REGS, MEM_RW, site);
}

void count_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	qemu_plugin_u64 slice = { score, offsetof(struct vcpu, slice) };
	size_t n = qemu_plugin_tb_n_insns(tb), i;

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD_U64,
							  slice, n);
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, slice_end, CB_NO_REGS,
		COND_GE, slice, model.quantum, site_of(qemu_plugin_tb_vaddr(tb)));
	for (i = 0; i < n; i++)
		translate_insn(qemu_plugin_tb_get_insn(tb, i));
}

/* event=NAME@ADDRESS or event=NAME@ADDRESS@FUNCTION, hexadecimal */
bool count_event(const char *text)
{
	struct event *e = &events[nr_events];

	if (nr_events == sizeof(events) / sizeof(events[0]) ||
	    sscanf(text, "%31[^@]@%llx@%llx", e->name, &e->pc, &e->func) < 2)
		return false;
	nr_events++;
	return true;
}

void count_reset(void)
{
	unsigned int i;

	for (i = 0; model.profile && i < SITES; i++)
		sites[i].misses = sites[i].quanta = 0;
	for (i = 0; i < nr_events; i++)
		events[i].count = 0;
}

void count_print_events(FILE *to)
{
	unsigned int i;

	for (i = 0; i < nr_events; i++)
		fprintf(to, " %s=%lu", events[i].name, events[i].count);
}

void count_print_sites(FILE *to)
{
	unsigned int i;

	for (i = 0; model.profile && i < SITES; i++)
		if (sites[i].misses || sites[i].quanta)
			fprintf(to, "site %lx %lu %lu\n", sites[i].pc,
				sites[i].misses,
				sites[i].quanta * model.quantum);
}
