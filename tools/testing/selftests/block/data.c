// SPDX-License-Identifier: GPL-2.0
/*
 * What each block has to hold (blkload -V). All of a sector is filled with what it
 * is: of which run, which sector, written how often. A block belongs to one thread,
 * which has at most one I/O for it in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blkload.h"

#define SECTOR	512

struct stamp {
	uint64_t run, sector, written, inverted;
};

struct block {
	uint64_t written;	/* so many times */
	bool known;		/* what it holds: the last write has succeeded */
	bool in_flight;
};

static struct block *blocks;

void data_init(void)
{
	if (opt.size / opt.block / opt.threads / opt.streams < 2 * opt.depth) {
		errno = EINVAL;
		die("-V: not enough blocks for the depth");
	}
	blocks = calloc(opt.size / opt.block, sizeof(*blocks));
	if (!blocks)
		die("memory");
}

static struct block *block_at(uint64_t pos)
{
	return &blocks[(pos - opt.offset) / opt.block];
}

static struct stamp stamp_of(uint64_t pos, uint64_t written)
{
	return (struct stamp) {
		.run = start_us,
		.sector = pos / SECTOR,
		.written = written,
		.inverted = ~written,
	};
}

/* Returns false if there is an I/O for the block at @pos already. */
bool data_begin(uint64_t pos, void *buf, bool read)
{
	struct block *b = block_at(pos);
	struct stamp *s = buf;
	unsigned int i;

	if (b->in_flight)
		return false;
	b->in_flight = true;
	if (read) {
		/* what was there before must not be taken for what is read */
		memset(buf, 0, opt.block);
		return true;
	}
	b->known = false;
	b->written++;
	for (i = 0; i < opt.block / sizeof(*s); i++)
		s[i] = stamp_of(pos + i * sizeof(*s), b->written);
	return true;
}

/* Returns false if a read has not found what the block at @pos has to hold. */
bool data_end(uint64_t pos, const void *buf, bool read, bool failed)
{
	struct block *b = block_at(pos);
	const struct stamp *s = buf;
	unsigned int i;

	b->in_flight = false;
	if (!read)
		b->known = !failed;
	if (!read || failed || !b->known)
		return true;
	for (i = 0; i < opt.block / sizeof(*s); i++) {
		struct stamp want = stamp_of(pos + i * sizeof(*s), b->written);

		if (!memcmp(&s[i], &want, sizeof(want)))
			continue;
		fprintf(stderr, "blkload: %s: sector %lu, write %lu: it holds %s%lu, write %lu\n",
			opt.file, want.sector, want.written,
			s[i].run == want.run ? "" : "of another run ", s[i].sector,
			s[i].written);
		return false;
	}
	return true;
}

/* All that is known, when nothing is in flight */
void data_read_back(struct worker *w)
{
	void *buf = aligned_alloc(4096, (opt.block + 4095) / 4096 * 4096);
	uint64_t i, pos;

	if (!buf)
		die("memory");
	for (i = 0; i < opt.size / opt.block && !stop; i++) {
		if (!blocks[i].known)
			continue;
		pos = opt.offset + i * opt.block;
		data_begin(pos, buf, true);
		w->since = now_us();
		if (pread(w->fd, buf, opt.block, pos) != (ssize_t)opt.block)
			w->errors++;
		else
			w->wrong += !data_end(pos, buf, true, false);
		w->since = 0;
	}
}
