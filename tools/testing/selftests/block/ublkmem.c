// SPDX-License-Identifier: GPL-2.0
/*
 * A ublk server for the tests: a disk that is a file, usually of a tmpfs. It needs no
 * library. The name of the disk is printed when it is there; SIGTERM removes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/ioctl.h>
#include <linux/ublk_cmd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_QUEUES	16
#define MAX_BYTES	(512U << 10)
/* Older headers have the numbers only. */
#define DEV_CMD(name)	_IOWR('u', UBLK_CMD_##name, struct ublksrv_ctrl_cmd)
#define IO_CMD(name)	_IOWR('u', UBLK_IO_##name, struct ublksrv_io_cmd)

struct ring {
	int fd;
	unsigned int queued;
	unsigned int *sq_tail, sq_mask, sqe_size;
	unsigned int *cq_head, *cq_tail, cq_mask;
	struct io_uring_cqe *cqes;
	char *sqes;
};

static struct ublksrv_ctrl_dev_info info = {
	.nr_hw_queues = 1, .queue_depth = 128, .max_io_buf_bytes = MAX_BYTES,
	.dev_id = -1,
};

static int device;		/* ublkcN */
static char *data;

static void die(const char *what)
{
	fprintf(stderr, "ublkmem: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *map(int fd, size_t size, int prot, off_t offset)
{
	void *p = mmap(NULL, size, prot, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
		       fd, offset);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void ring_init(struct ring *r, unsigned int entries, unsigned int flags)
{
	struct io_uring_params p = { .flags = flags };
	unsigned int *array, i;
	char *sq, *cq;

	r->fd = syscall(SYS_io_uring_setup, entries, &p);
	if (r->fd < 0)
		die("io_uring_setup");
	sq = map(r->fd, p.sq_off.array + p.sq_entries * sizeof(*array),
		 PROT_READ | PROT_WRITE, IORING_OFF_SQ_RING);
	cq = map(r->fd, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqes),
		 PROT_READ | PROT_WRITE, IORING_OFF_CQ_RING);
	r->sqe_size = sizeof(struct io_uring_sqe) << !!(flags & IORING_SETUP_SQE128);
	r->sqes = map(r->fd, p.sq_entries * r->sqe_size, PROT_READ | PROT_WRITE,
		      IORING_OFF_SQES);
	r->sq_tail = (void *)(sq + p.sq_off.tail);
	r->sq_mask = p.sq_entries - 1;
	r->cq_head = (void *)(cq + p.cq_off.head);
	r->cq_tail = (void *)(cq + p.cq_off.tail);
	r->cq_mask = p.cq_entries - 1;
	r->cqes = (void *)(cq + p.cq_off.cqes);
	array = (void *)(sq + p.sq_off.array);
	for (i = 0; i < p.sq_entries; i++)
		array[i] = i;
}

/* The ring has an entry for each tag. */
static void ring_queue(struct ring *r, int fd, unsigned int op, unsigned int tag,
		       const void *cmd, size_t size)
{
	unsigned int tail = *r->sq_tail;
	struct io_uring_sqe *sqe = (void *)(r->sqes + (tail & r->sq_mask) * r->sqe_size);

	memset(sqe, 0, r->sqe_size);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->off = op;		/* ->cmd_op */
	sqe->user_data = tag;
	memcpy((char *)sqe + 48, cmd, size);
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	r->queued++;
}

/* Waits for a completion; returns its result and for which tag it is. */
static int ring_wait(struct ring *r, unsigned int *tag)
{
	struct io_uring_cqe *cqe;
	int ret;

	while (*r->cq_head == __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) {
		ret = syscall(SYS_io_uring_enter, r->fd, r->queued, 1,
			      IORING_ENTER_GETEVENTS, NULL, 0);
		if (ret < 0 && errno != EINTR)
			die("io_uring_enter");
		r->queued -= ret > 0 ? ret : 0;
	}
	cqe = &r->cqes[*r->cq_head & r->cq_mask];
	ret = cqe->res;
	*tag = cqe->user_data;
	__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
	return ret;
}

static int ctrl(unsigned int op, const void *buf, unsigned int len, uint64_t value)
{
	struct ublksrv_ctrl_cmd cmd = {
		.dev_id = info.dev_id, .queue_id = -1, .len = len,
		.addr = (uintptr_t)buf, .data = { value },
	};
	static struct ring control;
	static int fd = -1;
	unsigned int tag;

	if (fd < 0) {
		fd = open("/dev/ublk-control", O_RDWR);
		if (fd < 0)
			die("/dev/ublk-control");
		ring_init(&control, 4, IORING_SETUP_SQE128);
	}
	ring_queue(&control, fd, op, 0, &cmd, sizeof(cmd));
	errno = -ring_wait(&control, &tag);
	return errno;
}

/* What the driver has left in the buffer of a write, or will take from that of a read */
static int transfer(const struct ublksrv_io_desc *iod)
{
	size_t bytes = (size_t)iod->nr_sectors << 9;
	char *pos = data + (iod->start_sector << 9);

	switch (iod->op_flags & 0xff) {
	case UBLK_IO_OP_READ:
		memcpy((void *)(uintptr_t)iod->addr, pos, bytes);
		return bytes;
	case UBLK_IO_OP_WRITE:
		memcpy(pos, (void *)(uintptr_t)iod->addr, bytes);
		return bytes;
	case UBLK_IO_OP_FLUSH:
		return 0;
	}
	return -EOPNOTSUPP;
}

static void *serve(void *arg)
{
	struct ublksrv_io_cmd cmd = { .q_id = (uintptr_t)arg };
	unsigned int tag, left = info.queue_depth;
	const size_t size = (left * sizeof(struct ublksrv_io_desc) + 4095) & ~4095UL;
	const struct ublksrv_io_desc *iods;
	struct ring ring = {};
	char *buf;
	int ret;

	ring_init(&ring, info.queue_depth, 0);
	iods = map(device, size, PROT_READ, UBLKSRV_CMD_BUF_OFFSET + (off_t)cmd.q_id *
		   UBLK_MAX_QUEUE_DEPTH * sizeof(struct ublksrv_io_desc));
	buf = map(-1, (size_t)left * MAX_BYTES, PROT_READ | PROT_WRITE, 0);
	for (tag = 0; tag < info.queue_depth; tag++) {
		cmd.tag = tag;
		cmd.addr = (uintptr_t)buf + (size_t)tag * MAX_BYTES;
		ring_queue(&ring, device, IO_CMD(FETCH_REQ), tag, &cmd, sizeof(cmd));
	}
	while (left) {
		ret = ring_wait(&ring, &tag);
		if (ret == UBLK_IO_RES_ABORT) {		/* the disk goes away */
			left--;
			continue;
		}
		errno = -ret;
		if (ret != UBLK_IO_RES_OK)
			die("command");
		cmd.tag = tag;
		cmd.addr = (uintptr_t)buf + (size_t)tag * MAX_BYTES;
		cmd.result = transfer(&iods[tag]);
		ring_queue(&ring, device, IO_CMD(COMMIT_AND_FETCH_REQ), tag, &cmd, sizeof(cmd));
	}
	close(ring.fd);
	munmap((void *)iods, size);
	return NULL;
}

static void add(off_t bytes)
{
	struct ublk_params params = {
		.len = sizeof(params), .types = UBLK_PARAM_TYPE_BASIC,
		.basic = {
			.attrs = UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA,
			.logical_bs_shift = 9, .physical_bs_shift = 12,
			.io_opt_shift = 12, .io_min_shift = 9,
			.max_sectors = MAX_BYTES >> 9, .dev_sectors = bytes >> 9,
		},
	};

	/* what is in flight when a server dies is for the next one */
	info.flags = UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_REISSUE;
	if (ctrl(DEV_CMD(ADD_DEV), &info, sizeof(info), 0))
		die("no disk");
	if (ctrl(DEV_CMD(SET_PARAMS), &params, sizeof(params), 0))
		die("no parameters");
}

/* The driver may not have noticed yet that the server before this one is gone. */
static void take_over(void)
{
	int i;

	for (i = 0; ctrl(DEV_CMD(START_USER_RECOVERY), NULL, 0, 0); i++) {
		if (errno != EBUSY || i == 200)
			die("no recovery");
		usleep(50000);
	}
}

static void run(const char *file, bool recover)
{
	pthread_t threads[MAX_QUEUES];
	struct stat st;
	char name[32];
	sigset_t set;
	int i, fd;

	fd = open(file, O_RDWR);
	if (fd < 0 || fstat(fd, &st))
		die(file);
	data = map(fd, st.st_size, PROT_READ | PROT_WRITE, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!recover)
		add(st.st_size);
	else
		take_over();
	snprintf(name, sizeof(name), "/dev/ublkc%d", (int)info.dev_id);
	for (i = 0; (device = open(name, O_RDWR)) < 0 && i < 100; i++)
		usleep(100000);
	if (device < 0)
		die(name);
	for (i = 0; i < info.nr_hw_queues; i++)
		if (pthread_create(&threads[i], NULL, serve, (void *)(uintptr_t)i))
			die("pthread_create");
	if (ctrl(recover ? DEV_CMD(END_USER_RECOVERY) : DEV_CMD(START_DEV), NULL, 0, getpid()))
		die("the disk does not start");
	printf("ublkb%d\n", (int)info.dev_id);
	fflush(stdout);
	sigwait(&set, &i);
	if (ctrl(DEV_CMD(STOP_DEV), NULL, 0, 0))
		die("the disk does not stop");
	for (i = 0; i < info.nr_hw_queues; i++)
		pthread_join(threads[i], NULL);
	close(device);
	if (ctrl(DEV_CMD(DEL_DEV), NULL, 0, 0))
		die("the disk stays");
}

int main(int argc, char **argv)
{
	bool recover = false;
	int c;

	while ((c = getopt(argc, argv, "q:d:r:x:")) != -1) {
		switch (c) {
		case 'q':
			info.nr_hw_queues = atoi(optarg);
			break;
		case 'd':
			info.queue_depth = atoi(optarg);
			break;
		case 'r':
			info.dev_id = atoi(optarg);
			recover = true;
			break;
		case 'x':	/* a disk without a server */
			info.dev_id = atoi(optarg);
			return ctrl(DEV_CMD(STOP_DEV), NULL, 0, 0) ||
			       ctrl(DEV_CMD(DEL_DEV), NULL, 0, 0);
		default:
			exit(2);
		}
	}
	errno = EINVAL;
	if (argc != optind + 1 || !info.queue_depth || !info.nr_hw_queues ||
	    info.nr_hw_queues > MAX_QUEUES)
		die("usage: ublkmem [-q queues] [-d depth] [-r NUMBER] FILE, or -x NUMBER");
	run(argv[optind], recover);
	return 0;
}
