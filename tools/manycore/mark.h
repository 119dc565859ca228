/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a program in the guest says to the plugin: no-ops with a magic
 * displacement, which do nothing wherever no plugin looks for them.
 */
#ifndef MANYCORE_MARK_H
#define MANYCORE_MARK_H

#define MARK_WORK	0x04	/* from here on, no progress is a hang */
#define MARK_START	0x01	/* the measured stretch begins */
#define MARK_STOP	0x02	/* and ends */
#define MARK_LAP	0x05	/* it ends, and another begins at once */
#define MARK_PROGRESS	0x03	/* a batch of work is done */

/* nopl 0x5eed0000+n(%rax): 0f 1f 80 n 00 ed 5e */
#define MARK_TAIL	0x00, 0xed, 0x5e
#define MARK_LEN	7

#define MARK_STR_(n)	#n
#define MARK_STR(n)	MARK_STR_(n)
#define mark(n)								\
	asm volatile(".byte 0x0f,0x1f,0x80," MARK_STR(n) ",0x00,0xed,0x5e" \
		     ::: "memory")

#endif
