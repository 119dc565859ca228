// SPDX-License-Identifier: GPL-2.0
/*
 * Insertion lists: a CPU that inserts requests into a scheduler does not wait
 * for the elevator lock.
 *
 * While the lock is free, requests are inserted, and merged, under it. If
 * another CPU holds it, then they are staged: appended to the insertion list of
 * this CPU, from which whoever holds the lock next moves them into the
 * scheduler. The last requests of the list can be merged with there, too, but
 * only by this CPU. So nothing is staged where merges are expected, see
 * blk_mq_sched_merges_expected(): there, to wait for the lock is to wait for a
 * merge.
 *
 * Who takes requests from the lists: elv_insert_staged(), under the elevator
 * lock. It is called before requests are inserted, so that a CPU's requests
 * enter the scheduler in the order in which they came, before a request to
 * merge with is looked for, and by the dispatcher, before it chooses a request,
 * and before it leaves. Requests for the head of the queue are never staged.
 *
 * Why no request is left behind: everybody who inserts requests runs the
 * hardware queue after that, and a run that finds a dispatcher leaves word to
 * it (see blk_mq_sched_become_dispatcher()). What has to be shown is that the
 * run and the dispatcher see the request. e->staged has a bit for each list
 * that is not empty. Both are changed under the lock of the list:
 *
 *	elv_stage()				elv_insert_staged()
 *
 *	lock of the list			lock of the list
 *	append					take all from the list
 *	set bit					unlock
 *	unlock					insert into the scheduler
 *						lock of the list
 *						if the list is empty,
 *						    smp_mb(), clear bit	[S]
 *						unlock
 *
 * So the bit is set at all times when the list is not empty, and until the
 * requests that were taken from it are in the scheduler: blk_mq_sched_has_work(),
 * which looks at the bits first, and, after smp_rmb() [S], at the scheduler,
 * finds a request that was staged before it looked and is not dispatched yet.
 * elv_insert_staged() reads the bits without the locks, and may miss one that is
 * just being set: the run that follows finds it, by the barriers of
 * blk_mq_sched_become_dispatcher(), or by being a dispatcher itself.
 *
 * Lock order: elevator lock, lock of a list. With a scheduler that takes the
 * elevator lock in interrupts, the locks of the lists must be taken with
 * interrupts disabled, so this is done for all.
 */
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-debugfs.h"
#include "blk-mq-sched.h"
#include "elv-insert.h"

struct elv_insert_list {
	/* protects @requests, and the bit of this list in e->staged */
	spinlock_t lock;
	struct list_head requests;
};

/**
 * elv_insert_alloc() - allocate the insertion lists of an elevator queue
 *
 * For a scheduler with ->stage_requests().
 *
 * Return: the lists, to be freed with free_percpu(), or NULL.
 */
struct elv_insert_list __percpu *elv_insert_alloc(void)
{
	struct elv_insert_list __percpu *lists;
	int cpu;

	lists = alloc_percpu(struct elv_insert_list);
	if (!lists)
		return NULL;

	for_each_possible_cpu(cpu) {
		struct elv_insert_list *il = per_cpu_ptr(lists, cpu);

		spin_lock_init(&il->lock);
		INIT_LIST_HEAD(&il->requests);
	}
	return lists;
}

/**
 * elv_insert_exit() - free the insertion lists
 * @e: the elevator queue, which holds no request
 */
void elv_insert_exit(struct elevator_queue *e)
{
	WARN_ON_ONCE(elv_has_staged(e));
	free_percpu(e->insert_lists);
}

static void elv_stage(struct elevator_queue *e, struct list_head *list)
{
	const int cpu = raw_smp_processor_id();
	struct elv_insert_list *il = per_cpu_ptr(e->insert_lists, cpu);
	unsigned long flags;

	spin_lock_irqsave(&il->lock, flags);
	list_splice_tail_init(list, &il->requests);
	if (!cpumask_test_cpu(cpu, &e->staged))
		cpumask_set_cpu(cpu, &e->staged);
	spin_unlock_irqrestore(&il->lock, flags);
}

/**
 * elv_insert_staged() - move all staged requests into the scheduler
 * @q: the request queue
 * @free: requests that were merged into others are added to it. The caller
 *	frees them after it has released the elevator lock.
 *
 * Context: Under the elevator lock.
 */
void elv_insert_staged(struct request_queue *q, struct list_head *free)
{
	struct elevator_queue *e = q->elevator;
	unsigned long flags;
	int cpu;

	lockdep_assert_held(&e->lock);

	if (likely(!elv_has_staged(e)))
		return;

	for_each_cpu(cpu, &e->staged) {
		struct elv_insert_list *il = per_cpu_ptr(e->insert_lists, cpu);
		LIST_HEAD(list);

		spin_lock_irqsave(&il->lock, flags);
		list_splice_init(&il->requests, &list);
		spin_unlock_irqrestore(&il->lock, flags);

		e->type->ops.insert_staged(q, &list, free);

		spin_lock_irqsave(&il->lock, flags);
		if (list_empty(&il->requests)) {
			/* pairs with the one in blk_mq_sched_has_work() */
			smp_mb__before_atomic();
			cpumask_clear_cpu(cpu, &e->staged);
		}
		spin_unlock_irqrestore(&il->lock, flags);
	}
}
EXPORT_SYMBOL_GPL(elv_insert_staged);

/* Insert requests if the elevator lock is free. */
static bool elv_try_insert(struct request_queue *q, struct list_head *list)
{
	struct elevator_queue *e = q->elevator;
	LIST_HEAD(free);

	if (!elv_trylock_by_mode(e))
		return false;
	elv_insert_staged(q, &free);
	e->type->ops.insert_staged(q, list, &free);
	elv_unlock_by_mode(e);
	blk_mq_free_requests(&free);
	return true;
}

/**
 * elv_insert_requests() - insert requests into the scheduler, or stage them
 * @hctx: hardware queue of the requests
 * @list: the requests
 * @flags: BLK_MQ_INSERT_AT_HEAD or 0
 *
 * The caller runs the hardware queue after that.
 *
 * Context: Process context.
 */
void elv_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			 blk_insert_t flags)
{
	struct elevator_queue *e = hctx->queue->elevator;

	if (!e->insert_lists || (flags & BLK_MQ_INSERT_AT_HEAD) ||
	    blk_mq_sched_merges_expected(hctx->queue)) {
		e->type->ops.insert_requests(hctx, list, flags);
		return;
	}

	e->type->ops.stage_requests(hctx, list);
	if (!elv_try_insert(hctx->queue, list))
		elv_stage(e, list);
}

/**
 * elv_staged_bio_merge() - try to merge a bio with what this CPU has staged
 * @q: the request queue
 * @bio: the bio
 * @nr_segs: number of segments of @bio
 *
 * Context: Process context.
 * Return: true if @bio was merged.
 */
bool elv_staged_bio_merge(struct request_queue *q, struct bio *bio,
			  unsigned int nr_segs)
{
	struct elevator_queue *e = q->elevator;
	struct elv_insert_list *il;
	unsigned long flags;
	bool merged;

	if (!e->insert_lists)
		return false;

	il = raw_cpu_ptr(e->insert_lists);
	if (list_empty_careful(&il->requests) || blk_queue_nomerges(q) ||
	    !bio_mergeable(bio))
		return false;

	spin_lock_irqsave(&il->lock, flags);
	merged = blk_bio_list_merge(q, &il->requests, bio, nr_segs);
	spin_unlock_irqrestore(&il->lock, flags);
	return merged;
}

#ifdef CONFIG_BLK_DEBUG_FS
/**
 * elv_staged_show() - show the staged requests in debugfs
 * @data: the request queue
 * @m: the file
 */
int elv_staged_show(void *data, struct seq_file *m)
{
	struct request_queue *q = data;
	struct elevator_queue *e = q->elevator;
	struct request *rq;
	unsigned long flags;
	int cpu;

	for_each_cpu(cpu, &e->staged) {
		struct elv_insert_list *il = per_cpu_ptr(e->insert_lists, cpu);

		spin_lock_irqsave(&il->lock, flags);
		list_for_each_entry(rq, &il->requests, queuelist)
			__blk_mq_debugfs_rq_show(m, rq);
		spin_unlock_irqrestore(&il->lock, flags);
	}
	return 0;
}
EXPORT_SYMBOL_GPL(elv_staged_show);
#endif

#ifdef CONFIG_BLK_ELV_INSERT_KUNIT_TEST
#include "tests/elv_insert_kunit.c"
#endif
