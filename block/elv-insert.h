/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ELV_INSERT_H
#define ELV_INSERT_H

#include "elevator.h"

struct seq_file;

struct elv_insert_list __percpu *elv_insert_alloc(void);
void elv_insert_exit(struct elevator_queue *e);
void elv_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			 blk_insert_t flags);
void elv_insert_staged(struct request_queue *q, struct list_head *free);
bool elv_staged_bio_merge(struct request_queue *q, struct bio *bio,
			  unsigned int nr_segs);
int elv_staged_show(void *data, struct seq_file *m);

/**
 * elv_has_staged() - does an insertion list hold requests?
 * @e: the elevator queue
 *
 * Context: Any. See elv-insert.c for what the answer is good for.
 */
static inline bool elv_has_staged(struct elevator_queue *e)
{
	return e->insert_lists && !cpumask_empty(&e->staged);
}

#endif /* ELV_INSERT_H */
