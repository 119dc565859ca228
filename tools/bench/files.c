// SPDX-License-Identifier: GPL-2.0
/*
 * files: what people do with files, side by side in one file system: databases
 * that commit, readers, a copy, and programs that start.
 *
 *	files prepare DIR
 *	files run DIR SEED WARM-UP GAP SECONDS LOAD=N...
 *
 * N processes of each load, which begin GAP ms after one another; see usage.
 * Measured is from WARM-UP ms on, for SECONDS, or, if programs start, until all
 * of them have started. An operation that has not ended by then counts with the
 * time that it took in the end.
 * Prints a JSON object:
 * {"seconds": S, "LOAD": {"done": N, "p50": ms, "p99": ms, "longest": ms}, ...}
 *
 * Caches of the file system are to be empty: mount it anew after `prepare`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static const char usage[] =
"usage: files prepare DIR\n"
"       files run DIR SEED WARM-UP GAP SECONDS LOAD=N...\n"
"  rollback  a database commits: journal, fdatasync, pages in place,\n"
"            fdatasync, the journal is removed\n"
"  wal       a database commits to a log that is written again and again,\n"
"            with fdatasync; each 1000 pages they go to their place\n"
"  direct    random reads of 4 KiB, one at a time, past the page cache\n"
"  buffered  the same through the page cache, of what is not in it\n"
"  copy      a large file is copied, again and again\n"
"  start     6 programs start, one after the other, from files not in memory\n";

enum {
	PAGE = 4096,
	CHUNK = 128 << 10,	/* of a copy */
	DATABASES = 4,
	DB_PAGES = 1024,
	FRAME = PAGE + 24,	/* a page in a log, with its header */
	LOG_PAGES = 1000,	/* in a log before they go to their place */
	MOST = 4,		/* pages in a commit */
	COLD = 32 << 20,	/* the readers' file */
	BIG = 64 << 20,		/* the file to copy */
	PROGRAMS = 6,
	PARTS = 40,		/* files of a program */
	FOLDERS = 5,
	LOADS = 8,
	SAMPLES = 1 << 18,	/* that are kept of a load */
};

struct load;
typedef void work_fn(struct load *load, int me);

/* what the processes of a load count together */
struct count {
	uint64_t done;		/* ended while it was measured */
	uint64_t begun;		/* begun while it was measured, whenever it ended */
	uint64_t ns[SAMPLES];	/* of those that were begun */
};

struct load {
	const char *name;
	work_fn *work;
	int n;
	struct count *count;
};

/* between processes */
static struct shared {
	uint64_t begin, end;	/* of what is measured, ns */
	bool failed;
} *shared;

static struct load loads[LOADS];
static int nr_loads;
static char page[PAGE] __attribute__((aligned(PAGE)));
static char chunk[CHUNK] __attribute__((aligned(PAGE)));
static uint64_t rnd;

static void fail(const char *what)
{
	fprintf(stderr, "files: %s: %s\n", what, strerror(errno));
	if (shared) {
		shared->failed = true;
		shared->end = 0;
	}
	exit(1);
}

static void *shared_memory(size_t size)
{
	void *found = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (found == MAP_FAILED)
		fail("memory");
	return found;
}

static uint64_t below(uint64_t most)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd % most;
}

static bool over(void)
{
	return now() >= __atomic_load_n(&shared->end, __ATOMIC_RELAXED);
}

static void ended(struct load *load, uint64_t begun)
{
	const uint64_t at = now(), end = shared->end;
	struct count *c = load->count;
	uint64_t nr;

	if (begun >= shared->begin && begun < end) {
		nr = __atomic_fetch_add(&c->begun, 1, __ATOMIC_RELAXED);
		if (nr < SAMPLES)
			c->ns[nr] = at - begun;
	}
	if (at >= shared->begin && at < end)
		__atomic_add_fetch(&c->done, 1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ files */

static int open_file(int flags, const char *form, int nr)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), form, nr);
	fd = open(name, flags, 0644);
	if (fd < 0)
		fail(name);
	return fd;
}

static void put(int fd, const void *from, size_t size, off_t at)
{
	if (pwrite(fd, from, size, at) != (ssize_t)size)
		fail("a write");
}

static void get(int fd, void *to, size_t size, off_t at)
{
	if (pread(fd, to, size, at) != (ssize_t)size)
		fail("a read");
}

static void sync_file(int fd)
{
	if (fdatasync(fd))
		fail("fdatasync");
}

/* ------------------------------------------------------------ databases */

static void rollback(struct load *load, int me)
{
	const int db = open_file(O_RDWR, "db%d", me);
	int journal, pages;
	char name[32];

	snprintf(name, sizeof(name), "db%d-journal", me);
	while (!over()) {
		const uint64_t begun = now();

		journal = open_file(O_RDWR | O_CREAT | O_TRUNC, "db%d-journal", me);
		for (pages = 1 + below(3); pages--; )
			put(journal, page, PAGE, pages * PAGE);
		sync_file(journal);
		for (pages = 1 + below(MOST); pages--; )
			put(db, page, PAGE, below(DB_PAGES) * PAGE);
		sync_file(db);
		close(journal);
		if (unlink(name))
			fail(name);
		ended(load, begun);
	}
}

/* The pages of a full log go to their place, in the order of places. */
static void checkpoint(int db)
{
	int at;

	for (at = 0; at < DB_PAGES; at++)
		if (below(2))
			put(db, page, PAGE, (off_t)at * PAGE);
	sync_file(db);
}

static void wal(struct load *load, int me)
{
	const int db = open_file(O_RDWR, "db%d", me);
	const int log = open_file(O_RDWR, "db%d-wal", me);
	int used = 0, pages;
	char frame[FRAME] = {};

	while (!over()) {
		const uint64_t begun = now();

		for (pages = 1 + below(MOST); pages--; used++)
			put(log, frame, FRAME, (off_t)used * FRAME);
		sync_file(log);
		if (used >= LOG_PAGES) {
			checkpoint(db);
			used = 0;
		}
		ended(load, begun);
	}
}

/* ------------------------------------------------------------ readers, copy */

static void read_cold(struct load *load, int flags, bool forget)
{
	const int fd = open_file(O_RDONLY | flags, "cold", 0);

	if (posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
		fail("fadvise");
	while (!over()) {
		const off_t at = below(COLD / PAGE) * PAGE;
		const uint64_t begun = now();

		get(fd, page, PAGE, at);
		ended(load, begun);
		if (forget)
			posix_fadvise(fd, at, PAGE, POSIX_FADV_DONTNEED);
	}
}

static void direct(struct load *load, int me)
{
	(void)me;
	read_cold(load, O_DIRECT, false);
}

static void buffered(struct load *load, int me)
{
	(void)me;
	read_cold(load, 0, true);
}

static void copy(struct load *load, int me)
{
	const int from = open_file(O_RDONLY, "big", 0);
	char name[32];
	int to, at;

	snprintf(name, sizeof(name), "copy%d", me);
	while (!over()) {
		to = open_file(O_WRONLY | O_CREAT | O_TRUNC, "copy%d", me);
		for (at = 0; at < BIG && !over(); at += CHUNK) {
			const uint64_t begun = now();

			get(from, chunk, CHUNK, at);
			put(to, chunk, CHUNK, at);
			ended(load, begun);
			posix_fadvise(from, at, CHUNK, POSIX_FADV_DONTNEED);
		}
		close(to);
		if (unlink(name))
			fail(name);
	}
	close(from);
}

/* ------------------------------------------------------------ programs */

static int part_size(int part)
{
	/* from 4 to 512 KiB, small ones are as many as large ones */
	static const int kib[] = { 4, 12, 32, 64, 8, 176, 20, 512 };

	return kib[part % 8] << 10;
}

static int open_part(int flags, int program, int part)
{
	char form[32];

	/* another folder and size than the last one */
	part = part * 7 % PARTS;
	snprintf(form, sizeof(form), "program%d/%d/%%d", program, part % FOLDERS);
	return open_file(flags, form, part);
}

/* Each read is known only when the one before has ended. */
static void read_program(int nr)
{
	int part, fd, at;
	struct stat st;

	for (part = 0; part < PARTS; part++) {
		fd = open_part(O_RDONLY, nr, part);
		if (fstat(fd, &st))
			fail("fstat");
		for (at = 0; at < st.st_size; at += PAGE)
			get(fd, page, PAGE, at);
		close(fd);
	}
}

static void start(struct load *load, int me)
{
	(void)me;
	for (int nr = 0; nr < PROGRAMS; nr++) {
		const uint64_t begun = now();
		const pid_t pid = fork();
		int status;

		if (pid < 0)
			fail("fork");
		if (!pid) {
			read_program(nr);
			exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			fail("a program");
		ended(load, begun);
		sleep_until(now() + 200 * 1000000ull);
	}
	__atomic_store_n(&shared->end, now(), __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ prepare */

static void fill(int fd, int size)
{
	int at, part;

	for (at = 0; at < size; at += part) {
		part = size - at < CHUNK ? size - at : CHUNK;
		put(fd, chunk, part, at);
	}
	close(fd);
}

static void make_folder(const char *form, int program, int folder)
{
	char name[32];

	snprintf(name, sizeof(name), form, program, folder);
	if (mkdir(name, 0755))
		fail(name);
}

static void prepare(void)
{
	const int made = O_WRONLY | O_CREAT | O_EXCL;
	int nr, part, size;

	memset(chunk, 'x', CHUNK);
	for (nr = 0; nr < DATABASES; nr++) {
		fill(open_file(made, "db%d", nr), DB_PAGES * PAGE);
		fill(open_file(made, "db%d-wal", nr), (LOG_PAGES + MOST) * FRAME);
	}
	fill(open_file(made, "cold", 0), COLD);
	fill(open_file(made, "big", 0), BIG);
	for (nr = 0; nr < PROGRAMS; nr++) {
		make_folder("program%d", nr, 0);
		for (part = 0; part < FOLDERS; part++)
			make_folder("program%d/%d", nr, part);
		for (part = 0; part < PARTS; part++) {
			size = part_size(part);
			fill(open_part(made, nr, part), size);
		}
	}
}

/* ------------------------------------------------------------ run */

static const struct { const char *name; work_fn *work; int most; } works[] = {
	{ "rollback", rollback, DATABASES }, { "wal", wal, DATABASES },
	{ "direct", direct, 64 }, { "buffered", buffered, 64 },
	{ "copy", copy, 1 }, { "start", start, 1 },
};

static void parse(char *word)
{
	const size_t nr = sizeof(works) / sizeof(*works);
	char *number = strchr(word, '=');
	size_t i = nr;

	if (number) {
		*number++ = '\0';
		for (i = 0; i < nr && strcmp(works[i].name, word); i++)
			;
	}
	if (i == nr || nr_loads == LOADS || atoi(number) < 1 ||
	    atoi(number) > works[i].most) {
		fprintf(stderr, "files: cannot use `%s`\n%s", word, usage);
		exit(2);
	}
	loads[nr_loads++] = (struct load){
		.name = works[i].name, .work = works[i].work, .n = atoi(number),
		.count = shared_memory(sizeof(struct count)),
	};
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(const struct load *load)
{
	struct count *c = load->count;
	const uint64_t nr = c->begun < SAMPLES ? c->begun : SAMPLES;

	printf(", \"%s\": {\"done\": %lu", load->name, c->done);
	if (nr) {
		qsort(c->ns, nr, sizeof(*c->ns), by_size);
		printf(", \"p50\": %.4f, \"p99\": %.4f, \"longest\": %.4f",
		       c->ns[(nr - 1) / 2] / 1e6, c->ns[(nr - 1) * 99 / 100] / 1e6,
		       c->ns[nr - 1] / 1e6);
	}
	printf("}");
}

/* begin: when the first load does; me: among those of its load */
static void process(struct load *load, int me, int nr, uint64_t begin, int gap)
{
	rnd += (nr + 1) * 7919ull;
	for (int i = 0; i < 20; i++)
		below(2);
	sleep_until(load->work == start ? shared->begin :
					  begin + nr * gap * 1000000ull);
	load->work(load, me);
	exit(0);
}

/* Returns whether all have ended well. */
static bool run_loads(int warm_up, int gap, double seconds)
{
	/* processes get 50 ms to come into being */
	const uint64_t begin = now() + 50 * 1000000ull;
	int i, me, status, nr = 0;

	shared->begin = begin + warm_up * 1000000ull;
	shared->end = shared->begin + seconds * 1e9;
	for (i = 0; i < nr_loads; i++)
		if (loads[i].work == start)	/* until it has ended */
			shared->end = UINT64_MAX;
	for (i = 0; i < nr_loads; i++)
		for (me = 0; me < loads[i].n; me++, nr++) {
			const pid_t pid = fork();

			if (pid < 0)
				fail("fork");
			if (!pid)
				process(&loads[i], me, nr, begin, gap);
		}
	while ((me = wait(&status)) > 0 || errno == EINTR)
		if (me > 0 && status)
			shared->failed = true;
	return !shared->failed;
}

int main(int argc, char **argv)
{
	const bool preparing = argc == 3 && !strcmp(argv[1], "prepare");
	int i;

	if (!preparing && (argc < 8 || strcmp(argv[1], "run"))) {
		fputs(usage, stderr);
		return 2;
	}
	if (chdir(argv[2]))
		fail(argv[2]);
	if (preparing) {
		prepare();
		return 0;
	}
	shared = shared_memory(sizeof(*shared));
	rnd = 88172645463325252ull + atoi(argv[3]);
	for (i = 7; i < argc; i++)
		parse(argv[i]);
	if (!run_loads(atoi(argv[4]), atoi(argv[5]), atof(argv[6])))
		return 1;
	printf("{\"seconds\": %.4f", (shared->end - shared->begin) / 1e9);
	for (i = 0; i < nr_loads; i++)
		print(&loads[i]);
	printf("}\n");
	return 0;
}
