// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the insertion lists. Included by elv-insert.c.
 *
 * A scheduler that only keeps what it is given, on a request queue without a
 * disk. Each request has an owner, mostly the CPU that inserts it, and a number:
 * what has arrived is right if each owner's requests are all there, once and in
 * order.
 */
#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/smp.h>

#define STRESS_REQUESTS		2048

struct elv_test_rq {
	struct request rq;
	unsigned int owner;
	unsigned int nr;
	bool inserted;
};

struct elv_test {
	struct blk_mq_tag_set set;
	struct elevator_tags *et;
	struct request_queue *q;
	struct blk_mq_hw_ctx *hctx;
	struct elevator_queue *e;
	/* number of requests of each owner */
	unsigned int *nr;
	/* what came by ->insert_staged() and ->insert_requests() */
	struct list_head inserted;
	struct list_head direct;
	/* calls of ->stage_requests() */
	atomic_t prepared;
	/* what a test does inside of ->insert_staged() */
	void (*on_insert)(struct elv_test *t, struct list_head *list);
	/* requests for @on_insert to insert, what it found, and of which CPU */
	struct list_head more;
	bool on_the_way;
	int cpu;
	/* the stress test */
	atomic_t missed;
	struct completion done;
};

/* A thread or a call on a CPU, and what it inserts. */
struct elv_test_work {
	struct elv_test *t;
	struct list_head list;
	struct task_struct *task;
	struct bio *bio;
};

static void elv_test_stage_requests(struct blk_mq_hw_ctx *hctx,
				    struct list_head *list)
{
	struct elv_test *t = hctx->queue->elevator->elevator_data;

	atomic_inc(&t->prepared);
}

static void elv_test_insert_staged(struct request_queue *q,
				   struct list_head *list,
				   struct list_head *free)
{
	struct elv_test *t = q->elevator->elevator_data;
	struct elv_test_rq *trq;

	lockdep_assert_held(&t->e->lock);
	if (t->on_insert)
		t->on_insert(t, list);
	list_for_each_entry(trq, list, rq.queuelist)
		WRITE_ONCE(trq->inserted, true);
	list_splice_tail_init(list, &t->inserted);
}

static void elv_test_insert_requests(struct blk_mq_hw_ctx *hctx,
				     struct list_head *list, blk_insert_t flags)
{
	struct elv_test *t = hctx->queue->elevator->elevator_data;

	list_splice_tail_init(list, &t->direct);
}

static struct elevator_type elv_test_type = {
	.ops = {
		.stage_requests		= elv_test_stage_requests,
		.insert_staged		= elv_test_insert_staged,
		.insert_requests	= elv_test_insert_requests,
	},
	.elevator_name = "kunit",
};

static blk_status_t elv_test_queue_rq(struct blk_mq_hw_ctx *hctx,
				      const struct blk_mq_queue_data *bd)
{
	return BLK_STS_IOERR;
}

static const struct blk_mq_ops elv_test_mq_ops = {
	.queue_rq = elv_test_queue_rq,
};

/* Append @nr new requests of @owner to @list. */
static void elv_test_add(struct kunit *test, struct list_head *list,
			 unsigned int owner, unsigned int nr)
{
	struct elv_test *t = test->priv;
	struct elv_test_rq *trq;

	while (nr--) {
		trq = kunit_kzalloc(test, sizeof(*trq), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, trq);
		blk_rq_init(t->q, &trq->rq);
		trq->owner = owner;
		trq->nr = t->nr[owner]++;
		list_add_tail(&trq->rq.queuelist, list);
	}
}

/* Everything is in the scheduler, once and in order. */
static void elv_test_expect_all(struct kunit *test)
{
	struct elv_test *t = test->priv;
	struct elv_test_rq *trq;
	unsigned int *next;
	int owner;

	next = kunit_kcalloc(test, nr_cpu_ids, sizeof(*next), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, next);

	KUNIT_EXPECT_FALSE(test, elv_has_staged(t->e));
	list_for_each_entry(trq, &t->inserted, rq.queuelist) {
		KUNIT_ASSERT_EQ_MSG(test, trq->nr, next[trq->owner],
				    "of owner %u", trq->owner);
		next[trq->owner]++;
	}
	for_each_possible_cpu(owner)
		KUNIT_EXPECT_EQ_MSG(test, next[owner], t->nr[owner],
				    "of owner %u", owner);
}

/* Nothing has reached the scheduler; @cpu has requests staged, no other has. */
static void elv_test_expect_staged(struct kunit *test, int cpu)
{
	struct elv_test *t = test->priv;

	KUNIT_EXPECT_TRUE(test, list_empty(&t->inserted));
	KUNIT_EXPECT_TRUE(test, list_empty(&t->direct));
	KUNIT_EXPECT_TRUE(test, cpumask_equal(&t->e->staged, cpumask_of(cpu)));
}

static void elv_test_drain(struct elv_test *t, struct list_head *free)
{
	elv_lock(t->e);
	elv_insert_staged(t->q, free);
	elv_unlock(t->e);
}

/* Insert while the elevator lock is held: it does not matter by whom. */
static int elv_test_insert_held(void *data)
{
	struct elv_test_work *work = data;
	struct elv_test *t = work->t;

	elv_lock(t->e);
	elv_insert_requests(t->hctx, &work->list, 0);
	elv_unlock(t->e);
	return 0;
}

static int elv_test_insert(void *data)
{
	struct elv_test_work *work = data;

	elv_insert_requests(work->t->hctx, &work->list, 0);
	return 0;
}

/* Call @func on @cpu with @nr new requests of it. */
static void elv_test_on_cpu(struct kunit *test, int cpu, unsigned int nr,
			    int (*func)(void *data))
{
	struct elv_test_work work = { .t = test->priv };

	INIT_LIST_HEAD(&work.list);
	elv_test_add(test, &work.list, cpu, nr);
	KUNIT_ASSERT_EQ(test, smp_call_on_cpu(cpu, func, &work, false), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&work.list));
}

/* A CPU that is not the first, which cannot go offline everywhere. */
static int elv_test_second_cpu(struct kunit *test)
{
	const int cpu = cpumask_next(cpumask_first(cpu_online_mask),
				     cpu_online_mask);

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
	return cpu;
}

/* The batches that a CPU stages enter the scheduler in the order they came. */
static void elv_test_order(struct kunit *test)
{
	const int cpu = cpumask_first(cpu_online_mask);
	struct elv_test *t = test->priv;
	LIST_HEAD(free);
	int i;

	for (i = 1; i <= 4; i++)
		elv_test_on_cpu(test, cpu, i, elv_test_insert_held);
	elv_test_expect_staged(test, cpu);
	elv_test_drain(t, &free);
	elv_test_expect_all(test);
}

/* What is staged goes before a later batch that finds the lock free. */
static void elv_test_staged_before_later(struct kunit *test)
{
	const int cpu = cpumask_first(cpu_online_mask);

	elv_test_on_cpu(test, cpu, 3, elv_test_insert_held);
	elv_test_expect_staged(test, cpu);
	elv_test_on_cpu(test, cpu, 2, elv_test_insert);
	elv_test_expect_all(test);
}

/* One elv_insert_staged() empties the lists of all CPUs. */
static void elv_test_all_cpus(struct kunit *test)
{
	struct elv_test *t = test->priv;
	LIST_HEAD(free);
	int cpu;

	for_each_online_cpu(cpu)
		elv_test_on_cpu(test, cpu, cpu + 1, elv_test_insert_held);
	KUNIT_EXPECT_TRUE(test, cpumask_equal(&t->e->staged, cpu_online_mask));
	elv_test_drain(t, &free);
	elv_test_expect_all(test);
}

static void elv_test_note_bit(struct elv_test *t, struct list_head *list)
{
	struct elv_insert_list *il = per_cpu_ptr(t->e->insert_lists, t->cpu);

	t->on_the_way = !list_empty(list) && list_empty(&il->requests) &&
			cpumask_test_cpu(t->cpu, &t->e->staged);
}

/* The bit of a list is set until what was taken from it is inserted. */
static void elv_test_bit(struct kunit *test)
{
	struct elv_test *t = test->priv;
	LIST_HEAD(free);

	t->cpu = cpumask_last(cpu_online_mask);
	t->on_insert = elv_test_note_bit;

	KUNIT_EXPECT_FALSE(test, elv_has_staged(t->e));
	elv_test_on_cpu(test, t->cpu, 2, elv_test_insert_held);
	elv_test_expect_staged(test, t->cpu);
	elv_test_drain(t, &free);
	KUNIT_EXPECT_TRUE(test, t->on_the_way);
	elv_test_expect_all(test);
}

static void elv_test_insert_more(struct elv_test *t, struct list_head *list)
{
	if (!list_empty(&t->more))
		elv_insert_requests(t->hctx, &t->more, 0);
}

/* The bit stays if requests are staged while others are on their way. */
static void elv_test_bit_stays(struct kunit *test)
{
	struct elv_test *t = test->priv;
	LIST_HEAD(list);
	LIST_HEAD(free);
	bool stays;

	elv_test_add(test, &list, 0, 2);
	elv_test_add(test, &t->more, 0, 2);
	t->on_insert = elv_test_insert_more;

	/* all on one CPU */
	elv_lock(t->e);
	elv_insert_requests(t->hctx, &list, 0);
	elv_insert_staged(t->q, &free);
	stays = cpumask_test_cpu(smp_processor_id(), &t->e->staged);
	elv_insert_staged(t->q, &free);
	elv_unlock(t->e);

	KUNIT_EXPECT_TRUE(test, stays);
	elv_test_expect_all(test);
}

/* With the lock free, requests are inserted at once. */
static void elv_test_lock_free(struct kunit *test)
{
	struct elv_test *t = test->priv;

	elv_test_on_cpu(test, 0, 2, elv_test_insert);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->prepared), 1);
	elv_test_expect_all(test);

	elv_test_type.lock_mode = ELV_LOCK_IRQ;
	elv_test_on_cpu(test, 0, 2, elv_test_insert);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->prepared), 2);
	elv_test_expect_all(test);
}

static int elv_test_thread(void *data)
{
	struct elv_test_work *work = data;
	struct elv_test *t = work->t;

	elv_insert_requests(t->hctx, &work->list, 0);
	kthread_complete_and_exit(&t->done, 0);
}

/* While another CPU holds the lock, requests are staged. */
static void elv_test_lock_held(struct kunit *test)
{
	const enum elv_lock_mode modes[] = { ELV_LOCK_PLAIN, ELV_LOCK_IRQ };
	struct elv_test *t = test->priv;
	LIST_HEAD(free);
	int i, cpu;

	elv_test_second_cpu(test);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		struct elv_test_work work = { .t = t };

		elv_test_type.lock_mode = modes[i];
		INIT_LIST_HEAD(&work.list);
		elv_test_add(test, &work.list, 0, 3);

		migrate_disable();
		cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
		work.task = kthread_create_on_cpu(elv_test_thread, &work, cpu,
						  "elv_test/%u");
		if (!IS_ERR(work.task)) {
			/* interrupts stay enabled: nobody is to wait for us */
			elv_lock(t->e);
			wake_up_process(work.task);
			while (!try_wait_for_completion(&t->done))
				cpu_relax();
			elv_unlock(t->e);
		}
		migrate_enable();

		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, work.task);
		KUNIT_EXPECT_EQ(test, atomic_read(&t->prepared), i + 1);
		elv_test_expect_staged(test, cpu);
		elv_test_drain(t, &free);
		elv_test_expect_all(test);
		/* the next round begins with nothing inserted */
		INIT_LIST_HEAD(&t->inserted);
		t->nr[0] = 0;
	}
}

/* Requests for the head of the queue are not staged. */
static void elv_test_at_head(struct kunit *test)
{
	struct elv_test *t = test->priv;
	LIST_HEAD(list);

	elv_test_add(test, &list, 0, 2);
	elv_lock(t->e);
	elv_insert_requests(t->hctx, &list, BLK_MQ_INSERT_AT_HEAD);
	elv_unlock(t->e);

	KUNIT_EXPECT_FALSE(test, elv_has_staged(t->e));
	KUNIT_EXPECT_EQ(test, list_count_nodes(&t->direct), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->prepared), 0);
}

/* Where merges are expected, the scheduler waits for the lock. */
static void elv_test_merges_expected(struct kunit *test)
{
	struct elv_test *t = test->priv;

	t->e->merge_misses = 0;
	elv_test_on_cpu(test, 0, 2, elv_test_insert_held);

	KUNIT_EXPECT_FALSE(test, elv_has_staged(t->e));
	KUNIT_EXPECT_EQ(test, list_count_nodes(&t->direct), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->prepared), 0);
}

/* But not if they are switched off. */
static void elv_test_nomerges(struct kunit *test)
{
	struct elv_test *t = test->priv;
	LIST_HEAD(free);

	t->e->merge_misses = 0;
	blk_queue_flag_set(QUEUE_FLAG_NOMERGES, t->q);
	elv_test_on_cpu(test, 0, 2, elv_test_insert_held);

	KUNIT_EXPECT_TRUE(test, elv_has_staged(t->e));
	KUNIT_EXPECT_TRUE(test, list_empty(&t->direct));
	elv_test_drain(t, &free);
	KUNIT_EXPECT_TRUE(test, list_empty(&free));
	elv_test_expect_all(test);
}

static int elv_test_bio_merge(void *data)
{
	struct elv_test_work *work = data;

	return elv_staged_bio_merge(work->t->q, work->bio, 1);
}

static void elv_test_init_bio(struct kunit *test, struct bio *bio,
			      struct bio_vec *bvec, sector_t sector)
{
	void *data = kunit_kzalloc(test, SECTOR_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	bio_init(bio, NULL, bvec, 1, REQ_OP_WRITE);
	bio->bi_iter.bi_sector = sector;
	bio_add_virt_nofail(bio, data, SECTOR_SIZE);
}

/* A bio merges with what this CPU has staged, not with what another has. */
static void elv_test_merge(struct kunit *test)
{
	const int cpu = elv_test_second_cpu(test);
	const int other = cpumask_first(cpu_online_mask);
	struct elv_test *t = test->priv;
	struct elv_test_work stage = { .t = t }, work = { .t = t };
	struct bio_vec bvec[3];
	struct bio bio[3];
	struct request *rq;
	LIST_HEAD(free);
	int i;

	/* one behind the other */
	for (i = 0; i < ARRAY_SIZE(bio); i++)
		elv_test_init_bio(test, &bio[i], &bvec[i], i);

	INIT_LIST_HEAD(&stage.list);
	elv_test_add(test, &stage.list, cpu, 1);
	rq = list_first_entry(&stage.list, struct request, queuelist);
	rq->cmd_flags = REQ_OP_WRITE;
	rq->nr_phys_segments = 1;
	rq->bio = &bio[0];
	rq->biotail = &bio[0];
	rq->__sector = 0;
	rq->__data_len = SECTOR_SIZE;
	KUNIT_ASSERT_EQ(test, 0, smp_call_on_cpu(cpu, elv_test_insert_held,
						 &stage, false));

	work.bio = &bio[1];
	KUNIT_EXPECT_EQ(test, 0, smp_call_on_cpu(other, elv_test_bio_merge,
						 &work, false));
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(rq), 1);
	KUNIT_EXPECT_EQ(test, 1, smp_call_on_cpu(cpu, elv_test_bio_merge,
						 &work, false));
	KUNIT_EXPECT_EQ(test, blk_rq_sectors(rq), 2);
	KUNIT_EXPECT_PTR_EQ(test, rq->biotail, &bio[1]);

	/* it is the scheduler's now */
	elv_test_drain(t, &free);
	work.bio = &bio[2];
	KUNIT_EXPECT_EQ(test, 0, smp_call_on_cpu(cpu, elv_test_bio_merge,
						 &work, false));
	elv_test_expect_all(test);
}

/* What a CPU staged before it went offline is inserted by another. */
static void elv_test_cpu_offline(struct kunit *test)
{
	const int cpu = elv_test_second_cpu(test);
	struct elv_test *t = test->priv;
	LIST_HEAD(free);
	int gone;

	elv_test_on_cpu(test, cpu, 3, elv_test_insert_held);
	gone = remove_cpu(cpu);
	elv_test_expect_staged(test, cpu);
	elv_test_drain(t, &free);
	if (!gone)
		KUNIT_EXPECT_EQ(test, add_cpu(cpu), 0);

	elv_test_expect_all(test);
	if (gone)
		kunit_skip(test, "CPU %d cannot go offline: %d", cpu, gone);
}

/* Requests are on their way for longer: more is staged meanwhile. */
static void elv_test_dawdle(struct elv_test *t, struct list_head *list)
{
	udelay(5);
}

static int elv_test_stress_thread(void *data)
{
	struct elv_test_work *work = data;
	struct elv_test *t = work->t;
	const int cpu = raw_smp_processor_id();
	unsigned int round = 0;

	while (!list_empty(&work->list)) {
		struct elv_test_rq *last = NULL;
		LIST_HEAD(batch);
		int i;

		for (i = 0; i <= round % 4 && !list_empty(&work->list); i++) {
			last = list_first_entry(&work->list, struct elv_test_rq,
						rq.queuelist);
			list_move_tail(&last->rq.queuelist, &batch);
		}

		/* half of them as if the lock were held, however fast we are */
		if (round++ % 2)
			elv_stage(t->e, &batch);
		else
			elv_insert_requests(t->hctx, &batch, 0);

		for (i = 0; i < 20; i++) {
			if (cpumask_test_cpu(cpu, &t->e->staged))
				continue;
			/* [S], as in blk_mq_sched_has_work() */
			smp_rmb();
			if (!READ_ONCE(last->inserted))
				atomic_inc(&t->missed);
		}
	}
	kthread_complete_and_exit(&t->done, 0);
}

/*
 * All CPUs insert while this task empties the lists: nothing gets lost, comes
 * twice or is overtaken, and who looks for work never misses any.
 */
static void elv_test_stress(struct kunit *test)
{
	struct elv_test *t = test->priv;
	struct elv_test_work *works;
	int cpu, left = 0;
	LIST_HEAD(free);

	t->on_insert = elv_test_dawdle;
	works = kunit_kcalloc(test, nr_cpu_ids, sizeof(*works), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, works);
	for_each_online_cpu(cpu) {
		works[cpu].t = t;
		INIT_LIST_HEAD(&works[cpu].list);
		elv_test_add(test, &works[cpu].list, cpu, STRESS_REQUESTS);
	}
	for_each_online_cpu(cpu) {
		works[cpu].task = kthread_run_on_cpu(elv_test_stress_thread,
						     &works[cpu], cpu,
						     "elv_test/%u");
		/* no assertion: others are running */
		KUNIT_EXPECT_NOT_ERR_OR_NULL(test, works[cpu].task);
		left += !IS_ERR(works[cpu].task);
	}
	while (left) {
		elv_test_drain(t, &free);
		if (try_wait_for_completion(&t->done))
			left--;
		cond_resched();
	}
	elv_test_drain(t, &free);

	KUNIT_EXPECT_EQ(test, atomic_read(&t->missed), 0);
	elv_test_expect_all(test);
}

static void elv_test_free_queue(void *data)
{
	struct request_queue *q = data;

	q->elevator = NULL;
	blk_mq_destroy_queue(q);
	blk_put_queue(q);
}

KUNIT_DEFINE_ACTION_WRAPPER(elv_test_free_set, blk_mq_free_tag_set,
			    struct blk_mq_tag_set *);
KUNIT_DEFINE_ACTION_WRAPPER(elv_test_put, kobject_put, struct kobject *);

static int elv_test_init(struct kunit *test)
{
	struct elevator_resources res = { };
	struct elv_test *t;
	int ret;

	t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	INIT_LIST_HEAD(&t->inserted);
	INIT_LIST_HEAD(&t->direct);
	INIT_LIST_HEAD(&t->more);
	init_completion(&t->done);
	t->nr = kunit_kcalloc(test, nr_cpu_ids, sizeof(*t->nr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->nr);
	t->et = kunit_kzalloc(test, sizeof(*t->et), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->et);
	t->et->nr_hw_queues = 1;

	t->set.ops = &elv_test_mq_ops;
	t->set.nr_hw_queues = 1;
	t->set.queue_depth = 1;
	t->set.numa_node = NUMA_NO_NODE;
	KUNIT_ASSERT_EQ(test, blk_mq_alloc_tag_set(&t->set), 0);
	ret = kunit_add_action_or_reset(test, elv_test_free_set, &t->set);
	KUNIT_ASSERT_EQ(test, ret, 0);
	t->q = blk_mq_alloc_queue(&t->set, NULL, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->q);
	ret = kunit_add_action_or_reset(test, elv_test_free_queue, t->q);
	KUNIT_ASSERT_EQ(test, ret, 0);
	t->hctx = queue_hctx(t->q, 0);

	elv_test_type.lock_mode = ELV_LOCK_PLAIN;
	res.et = t->et;
	res.data = t;
	res.insert_lists = elv_insert_alloc();
	if (!res.insert_lists)
		return -ENOMEM;
	t->e = elevator_alloc(t->q, &elv_test_type, &res);
	KUNIT_ASSERT_NOT_NULL(test, t->e);
	ret = kunit_add_action_or_reset(test, elv_test_put, &t->e->kobj);
	KUNIT_ASSERT_EQ(test, ret, 0);
	t->e->merge_misses = BLK_MQ_SCHED_MERGE_MISSES;
	t->q->elevator = t->e;
	return 0;
}

static struct kunit_case elv_test_cases[] = {
	KUNIT_CASE(elv_test_order),
	KUNIT_CASE(elv_test_staged_before_later),
	KUNIT_CASE(elv_test_all_cpus),
	KUNIT_CASE(elv_test_bit),
	KUNIT_CASE(elv_test_bit_stays),
	KUNIT_CASE(elv_test_lock_free),
	KUNIT_CASE(elv_test_lock_held),
	KUNIT_CASE(elv_test_at_head),
	KUNIT_CASE(elv_test_merges_expected),
	KUNIT_CASE(elv_test_nomerges),
	KUNIT_CASE(elv_test_merge),
	KUNIT_CASE(elv_test_cpu_offline),
	KUNIT_CASE(elv_test_stress),
	{}
};

static struct kunit_suite elv_test_suite = {
	.name = "blk_elv_insert",
	.init = elv_test_init,
	.test_cases = elv_test_cases,
};

kunit_test_suite(elv_test_suite);
