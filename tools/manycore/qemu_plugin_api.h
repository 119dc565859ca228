/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's TCG plugin interface that is used here, declared by hand:
 * distributions do not ship qemu-plugin.h with their QEMU.
 */
#ifndef MANYCORE_QEMU_PLUGIN_API_H
#define MANYCORE_QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define WEAK __attribute__((weak))	/* newer than the oldest QEMU we take */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

/* glib's arrays, as far as they are looked into */
struct garray { char *data; unsigned int len; };
struct reg_desc {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
};

enum { INLINE_ADD_U64 = 0 };
enum { COND_GE = 7 };
enum { CB_NO_REGS = 0, CB_R_REGS = 1 };
enum { MEM_RW = 3 };

typedef void (*vcpu_udata_fn)(unsigned int cpu, void *udata);
typedef void (*vcpu_mem_fn)(unsigned int cpu, uint32_t info, uint64_t vaddr,
			    void *udata);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score,
				  unsigned int cpu);
void qemu_plugin_register_vcpu_init_cb(plugin_id id,
		void (*fn)(plugin_id id, unsigned int cpu));
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
		void (*fn)(plugin_id id, struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to,
			     size_t len);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		struct qemu_plugin_tb *tb, int op, qemu_plugin_u64 entry,
		uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb,
		vcpu_udata_fn fn, int flags, int cond, qemu_plugin_u64 entry,
		uint64_t imm, void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		vcpu_udata_fn fn, int flags, void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
		vcpu_mem_fn fn, int flags, int rw, void *udata);
bool qemu_plugin_mem_is_store(uint32_t info);

WEAK struct garray *qemu_plugin_get_registers(void);
WEAK int qemu_plugin_read_register(struct qemu_plugin_register *handle,
				   struct garray *buf);
WEAK bool qemu_plugin_read_memory_vaddr(uint64_t vaddr, struct garray *buf,
					size_t len);
WEAK struct garray *g_byte_array_new(void);
WEAK struct garray *g_byte_array_set_size(struct garray *array,
					  unsigned int len);

#endif
