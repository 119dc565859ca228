/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that never go through a scheduler: passthrough and flush */
#ifndef _BLOCK_TEST_PASSTHROUGH_H
#define _BLOCK_TEST_PASSTHROUGH_H

#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* TEST UNIT READY; a unit attention after an injected error is an answer too */
static inline int passthrough_sg(int fd)
{
	unsigned char cdb[6] = { 0 }, sense[32];
	struct sg_io_hdr hdr = {
		.interface_id = 'S',
		.dxfer_direction = SG_DXFER_NONE,
		.cmd_len = sizeof(cdb),
		.cmdp = cdb,
		.mx_sb_len = sizeof(sense),
		.sbp = sense,
		.timeout = 20000,
	};

	return ioctl(fd, SG_IO, &hdr);
}

/* a flush of the namespace, sent as a command on the I/O queue */
static inline int passthrough_nvme(int fd)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = 0,
		.nsid = ioctl(fd, NVME_IOCTL_ID),
		.timeout_ms = 20000,
	};

	return ioctl(fd, NVME_IOCTL_IO_CMD, &cmd);
}

/* the serial number of a virtio disk is asked from the device at each read */
static inline int passthrough_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	char buf[64];
	int ret;

	if (fd < 0)
		return -1;
	ret = read(fd, buf, sizeof(buf));
	close(fd);
	return ret < 0 ? -1 : 0;
}

static inline int passthrough(const char *command, int fd)
{
	if (!strcmp(command, "fsync"))
		return fsync(fd);
	if (!strcmp(command, "sg"))
		return passthrough_sg(fd);
	if (!strcmp(command, "nvme"))
		return passthrough_nvme(fd);
	if (!strncmp(command, "read:", 5))
		return passthrough_file(command + 5);
	errno = EINVAL;
	return -1;
}

#endif
