// SPDX-License-Identifier: GPL-2.0
/*
 * tickdisk: a disk whose time is work done by a CPU.
 *
 * For a many-core simulation in which timers stand nearly still.  A kernel
 * thread on a CPU of its own is the device, and one turn of its loop the unit
 * of time.  Requests end in the order of their arrival; one that arrives at t
 * ends at
 *	max(t + latency, end of the one before + interval + transfer * sectors
 *	    + (seek if it does not start where the one before ended))
 * latency 40, interval 1: flash; latency 0, interval 20, transfer 1, seek 500:
 * a hard disk without command queueing.
 *
 * Test code, built as a module against the kernel under test: /dev/td0.
 */
#include <linux/blk-mq.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/module.h>

static unsigned int depth = 32, cpu, mb = 1024;
module_param(depth, uint, 0444);
module_param(cpu, uint, 0444);
module_param(mb, uint, 0444);

static unsigned int latency = 100, interval = 1, transfer, seek;
module_param(latency, uint, 0444);
module_param(interval, uint, 0444);
module_param(transfer, uint, 0444);
module_param(seek, uint, 0444);

/* Counters: turns of the device, turns with a request in it, and full turns. */
static unsigned long turns, busy, full;
module_param(turns, ulong, 0444);
module_param(busy, ulong, 0444);
module_param(full, ulong, 0444);

/* The device turns only while it is on, as it takes a whole CPU. */
static unsigned int on;
static int set_on(const char *val, const struct kernel_param *kp);
static const struct kernel_param_ops on_ops = {
	.set = set_on,
	.get = param_get_uint,
};
module_param_cb(on, &on_ops, &on, 0644);

struct td_cmd {
	struct llist_node arrival;
	struct list_head run;
	u64 end;
};

static struct blk_mq_tag_set tag_set;
static struct gendisk *disk;
static struct task_struct *device;
static LLIST_HEAD(arrived);

/* What the device thread alone knows; it keeps most of it in registers. */
struct td_state {
	u64 now, last_end;
	sector_t position;
	unsigned int nr;	/* requests in the device */
};

static int set_on(const char *val, const struct kernel_param *kp)
{
	int ret = param_set_uint(val, kp);

	if (!ret && device)
		wake_up_process(device);
	return ret;
}

static blk_status_t td_queue_rq(struct blk_mq_hw_ctx *hctx,
				const struct blk_mq_queue_data *bd)
{
	struct td_cmd *cmd = blk_mq_rq_to_pdu(bd->rq);

	blk_mq_start_request(bd->rq);
	llist_add(&cmd->arrival, &arrived);
	return BLK_STS_OK;
}

static void td_complete_rq(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

static const struct blk_mq_ops td_mq_ops = {
	.queue_rq	= td_queue_rq,
	.complete	= td_complete_rq,
};

static const struct block_device_operations td_fops = {
	.owner		= THIS_MODULE,
};

static __always_inline void td_take_arrived(struct td_state *s,
					    struct list_head *running)
{
	struct llist_node *list = llist_reverse_order(llist_del_all(&arrived));
	struct td_cmd *cmd, *next;

	llist_for_each_entry_safe(cmd, next, list, arrival) {
		struct request *rq = blk_mq_rq_from_pdu(cmd);
		u64 cost = interval + (u64)transfer * blk_rq_sectors(rq);

		if (blk_rq_pos(rq) != s->position)
			cost += seek;
		s->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
		s->last_end = max(max(s->last_end, s->now) + cost,
				  s->now + latency);
		cmd->end = s->last_end;
		list_add_tail(&cmd->run, running);
		s->nr++;
	}
}

static __always_inline void td_end_due(struct td_state *s,
				       struct list_head *running)
{
	struct td_cmd *cmd;

	/* Completions raise the block softirq: let it run once, at the end. */
	local_bh_disable();
	while (!list_empty(running)) {
		cmd = list_first_entry(running, struct td_cmd, run);
		if (cmd->end > s->now)
			break;
		list_del(&cmd->run);
		s->nr--;
		blk_mq_complete_request(blk_mq_rq_from_pdu(cmd));
	}
	local_bh_enable();
}

static int td_thread(void *unused)
{
	struct td_state s = { };
	LIST_HEAD(running);

	while (!kthread_should_stop()) {
		/* Nothing may stay in the device when it is switched off. */
		if (!on && !s.nr && llist_empty(&arrived)) {
			schedule_timeout_interruptible(HZ / 10);
			continue;
		}
		s.now++;
		turns++;
		if (s.nr)
			busy++;
		if (s.nr >= depth)
			full++;
		if (!llist_empty(&arrived))
			td_take_arrived(&s, &running);
		td_end_due(&s, &running);
		cpu_relax();
		if (!s.nr)
			cond_resched();
	}
	return 0;
}

static int td_add_disk(void)
{
	/* a disk that seeks says so, and schedulers treat it as one */
	struct queue_limits lim = {
		.features = seek ? BLK_FEAT_ROTATIONAL : 0,
	};
	int ret;

	disk = blk_mq_alloc_disk(&tag_set, &lim, NULL);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	disk->fops = &td_fops;
	disk->flags |= GENHD_FL_NO_PART;
	strscpy(disk->disk_name, "td0", DISK_NAME_LEN);
	set_capacity(disk, (sector_t)mb << 11);
	ret = add_disk(disk);
	if (ret)
		put_disk(disk);
	return ret;
}

static int __init td_init(void)
{
	int ret;

	tag_set.ops = &td_mq_ops;
	tag_set.nr_hw_queues = 1;
	tag_set.queue_depth = depth;
	tag_set.numa_node = NUMA_NO_NODE;
	tag_set.cmd_size = sizeof(struct td_cmd);
	ret = blk_mq_alloc_tag_set(&tag_set);
	if (ret)
		return ret;
	device = kthread_create(td_thread, NULL, "tickdisk");
	if (IS_ERR(device)) {
		ret = PTR_ERR(device);
		goto free_tags;
	}
	kthread_bind(device, cpu);
	wake_up_process(device);
	ret = td_add_disk();
	if (ret)
		goto stop_device;
	return 0;

stop_device:
	kthread_stop(device);
free_tags:
	blk_mq_free_tag_set(&tag_set);
	return ret;
}

static void __exit td_exit(void)
{
	del_gendisk(disk);
	put_disk(disk);
	kthread_stop(device);
	blk_mq_free_tag_set(&tag_set);
}

module_init(td_init);
module_exit(td_exit);
MODULE_DESCRIPTION("A disk in tick time, for the many-core measurement");
MODULE_LICENSE("GPL");
