// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of batches of bits of an sbitmap_queue.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/sbitmap.h>

#define DEPTH	200
#define SHIFT	5	/* words of 32 bits, the last one of 8 */
#define WORDS	DIV_ROUND_UP(DEPTH, 1U << SHIFT)

static struct sbitmap_queue sbq;
static DECLARE_BITMAP(taken, DEPTH);

static int sbitmap_test_init(struct kunit *test)
{
	bitmap_zero(taken, DEPTH);
	return sbitmap_queue_init_node(&sbq, DEPTH, SHIFT, false, GFP_KERNEL,
				       NUMA_NO_NODE);
}

static void sbitmap_test_exit(struct kunit *test)
{
	sbitmap_queue_free(&sbq);
}

/* Take batches of @nr until there is none; no bit is allocated twice. */
static unsigned int take_all(struct kunit *test, int nr, unsigned int shallow)
{
	unsigned int offset, bit, sum = 0;
	unsigned long mask;

	while ((mask = __sbitmap_queue_get_batch(&sbq, nr, shallow, &offset))) {
		KUNIT_ASSERT_LE(test, hweight_long(mask), (unsigned long)nr);
		for_each_set_bit(bit, &mask, BITS_PER_LONG) {
			KUNIT_ASSERT_LT(test, offset + bit, DEPTH);
			KUNIT_ASSERT_FALSE(test, test_bit(offset + bit, taken));
			__set_bit(offset + bit, taken);
			sum++;
		}
	}
	KUNIT_EXPECT_EQ(test, sum, sbitmap_weight(&sbq.sb));
	return sum;
}

/* Also what was taken one by one; a bit may be cleared twice. */
static void give_back(void)
{
	unsigned int bit;

	for (bit = 0; bit < DEPTH; bit++)
		if (sbitmap_test_bit(&sbq.sb, bit))
			sbitmap_queue_clear(&sbq, bit, 0);
	bitmap_zero(taken, DEPTH);
}

static unsigned int taken_in_word(unsigned int word)
{
	const unsigned int start = word << SHIFT;
	const unsigned int end = min(start + (1U << SHIFT), DEPTH);
	unsigned int bit, nr = 0;

	for (bit = start; bit < end; bit++)
		nr += test_bit(bit, taken);
	return nr;
}

/* One by one all bits can be had, also those of the short last word. */
static void sbitmap_batch_of_one(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, take_all(test, 1, UINT_MAX), DEPTH);
}

/* A batch is of one word: what is left in a word is less than a batch. */
static void sbitmap_batch_of_several(struct kunit *test)
{
	unsigned int word;

	take_all(test, 6, UINT_MAX);
	for (word = 0; word < WORDS - 1; word++)
		KUNIT_EXPECT_GT(test, taken_in_word(word), (1U << SHIFT) - 6);
	KUNIT_EXPECT_GT(test, taken_in_word(WORDS - 1),
			DEPTH % (1U << SHIFT) - 6);
}

/*
 * A batch goes no deeper than sbitmap_queue_get_shallow(), and is smaller where
 * a word has no more.
 */
static void sbitmap_batch_shallow(struct kunit *test)
{
	static const unsigned int shallow[] = { 1, 2, 50, 100, 199, 200 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shallow); i++) {
		unsigned int batches, singly = 0;

		sbitmap_queue_min_shallow_depth(&sbq, shallow[i]);
		batches = take_all(test, shallow[i] < DEPTH ? 8 : 1, shallow[i]);
		KUNIT_EXPECT_LT(test, sbitmap_queue_get_shallow(&sbq, shallow[i]), 0);
		give_back();

		while (sbitmap_queue_get_shallow(&sbq, shallow[i]) >= 0)
			singly++;
		KUNIT_EXPECT_EQ(test, batches, singly);
		KUNIT_EXPECT_LE(test, batches, shallow[i]);
		give_back();
	}
}

/* Freed bits can be allocated again, though they are cleared late. */
static void sbitmap_batch_again(struct kunit *test)
{
	take_all(test, 8, UINT_MAX);
	give_back();
	KUNIT_EXPECT_EQ(test, take_all(test, 8, UINT_MAX), DEPTH);
}

static struct kunit_case sbitmap_test_cases[] = {
	KUNIT_CASE(sbitmap_batch_of_one),
	KUNIT_CASE(sbitmap_batch_of_several),
	KUNIT_CASE(sbitmap_batch_shallow),
	KUNIT_CASE(sbitmap_batch_again),
	{}
};

static struct kunit_suite sbitmap_test_suite = {
	.name = "sbitmap",
	.init = sbitmap_test_init,
	.exit = sbitmap_test_exit,
	.test_cases = sbitmap_test_cases,
};

kunit_test_suite(sbitmap_test_suite);

MODULE_DESCRIPTION("KUnit tests of batches of bits of an sbitmap_queue");
MODULE_LICENSE("GPL");
