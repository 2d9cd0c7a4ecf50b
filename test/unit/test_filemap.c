/* Files that shrink or fail under a map: one line names them, whichever thread faults. Other faults are unchanged. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/filemap.h"
#include "core/files/staging.h"
#include "core/system/parallel.h"
#include "test/support/alloc_fault.h"
#include "test/support/scratch.h"

#define PAGE  4096u
#define PAGES 16u

struct bed {
	char root[64];
	char path[128];
	const uint8_t *map;
};

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	strcpy(bed->root, "/tmp/gw-test-filemap-XXXXXX");
	gw_scratch_make(bed->root);
	snprintf(bed->path, sizeof(bed->path), "%s/file\n.npy", bed->root);
	int file = open(bed->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *map;
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, PAGES * PAGE), 0);
	assert_int_equal(gw_filemap_open(file, bed->path, PAGES * PAGE, &map), GW_OK);
	bed->map = map;
	close(file);
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;
	gw_filemap_close((void *)(uintptr_t)bed->map, PAGES * PAGE);
	gw_remove_tree(bed->root);
	free(bed);
	return 0;
}

static int lines(const char *text)
{
	int count = 0;
	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void clean_up(void)
{
	if (write(STDERR_FILENO, "cleaned\n", 8) != 8)
		_exit(3);
}

/* Returns the child's wait status. */
static int run_guarded(void (*body)(struct bed *), struct bed *bed, char text[2048])
{
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		gw_filemap_guard("graphwire test", clean_up);
		body(bed);
		_exit(0);
	}
	close(ends[1]);
	size_t used = 0;
	ssize_t got;
	while ((got = read(ends[0], text + used, 2047 - used)) > 0)
		used += (size_t)got;
	text[used] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static volatile uint8_t sink;

static void read_page(const struct bed *bed, uint64_t page)
{
	sink = bed->map[page * PAGE + 5];
}

static void shrink(struct bed *bed)
{
	if (truncate(bed->path, 3 * PAGE))
		_exit(4);
}

static void shrink_and_read(struct bed *bed)
{
	read_page(bed, 9);
	shrink(bed);
	read_page(bed, 2);
	read_page(bed, 9);
}

static gw_status read_pages(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	for (uint64_t page = begin; page < end; page++)
		read_page(context, page);
	return GW_OK;
}

/* The caller's thread sleeps in its first chunk until another thread ends the process. */
static gw_status read_by_worker(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	if (thread == 0) {
		for (;;)
			pause();
	}
	return read_pages(context, begin, end, thread);
}

static void shrink_and_read_by_worker(struct bed *bed)
{
	shrink(bed);
	gw_parallel_for(2, PAGES, 1, read_by_worker, bed);
}

static void shrink_and_read_by_many(struct bed *bed)
{
	shrink(bed);
	gw_parallel_for(8, PAGES, 1, read_pages, bed);
}

static void test_shrinks(void **state)
{
	void (*const bodies[])(struct bed *) = {shrink_and_read, shrink_and_read_by_worker, shrink_and_read_by_many};
	struct bed *bed = *state;
	char text[2048], expected[512];
	snprintf(expected, sizeof(expected),
		 "graphwire test: %s/file?.npy: cut short while it was read: 12288 bytes long now, 65536 before: "
		 "run it again when the file is complete\ncleaned\n",
		 bed->root);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		assert_int_equal(truncate(bed->path, PAGES * PAGE), 0);
		int status = run_guarded(bodies[i], bed, text);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
		assert_string_equal(text, expected);
	}
}

/* Like a failing disk: the file keeps its length, and its page cannot be read. */
static void read_lost_page(struct bed *bed)
{
	int none = memfd_create("none", MFD_CLOEXEC);
	void *at = (void *)(uintptr_t)(bed->map + 4 * PAGE);
	if (none < 0 || mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, none, 0) != at)
		_exit(4);
	read_page(bed, 3);
	read_page(bed, 5);
	read_page(bed, 4);
}

static void test_fails(void **state)
{
	struct bed *bed = *state;
	char text[2048];
	int status = run_guarded(read_lost_page, bed, text);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_non_null(strstr(text, "file?.npy: cannot be read at byte 16389: the disk or its file system failed"));
	assert_int_equal(lines(text), 2);
}

static void fault_elsewhere(struct bed *bed)
{
	(void)bed;
	int none = memfd_create("none", MFD_CLOEXEC);
	const uint8_t *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, none, 0);
	if (at == MAP_FAILED)
		_exit(4);
	sink = *at;
}

static void be_killed(struct bed *bed)
{
	(void)bed;
	raise(SIGBUS);
}

static void fault_when_closed(struct bed *bed)
{
	int none = memfd_create("none", MFD_CLOEXEC);
	void *at = (void *)(uintptr_t)bed->map;
	gw_filemap_close(at, PAGES * PAGE);
	if (mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, none, 0) != at)
		_exit(4);
	read_page(bed, 0);
}

static void test_other_faults(void **state)
{
	void (*const bodies[])(struct bed *) = {fault_elsewhere, be_killed, fault_when_closed};
	char text[2048];
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		int status = run_guarded(bodies[i], *state, text);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
		assert_string_equal(text, "");
	}
}

static void test_check(void **state)
{
	struct bed *bed = *state;
	char other[160];
	assert_int_equal(gw_filemap_check(), GW_OK);
	/* Within the last page there is no fault: the part that was cut off reads as zeros. */
	assert_int_equal(truncate(bed->path, PAGES * PAGE - 100), 0);
	read_page(bed, PAGES - 1);
	assert_int_equal(gw_filemap_check(), GW_IO);
	assert_non_null(
		strstr(gw_last_error(), "file?.npy: written to while it was read (65536 bytes long then, 65436"));
	/* The same length as before with other content. */
	assert_int_equal(truncate(bed->path, PAGES * PAGE), 0);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}};
	assert_int_equal(utimensat(AT_FDCWD, bed->path, times, 0), 0);
	assert_int_equal(gw_filemap_check(), GW_IO);
	/* Another file gets the name, or the name is removed: the mapped file is unchanged. */
	snprintf(other, sizeof(other), "%s/other", bed->root);
	close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	assert_int_equal(rename(other, bed->path), 0);
	assert_int_equal(gw_filemap_check(), GW_OK);
	assert_int_equal(unlink(bed->path), 0);
	assert_int_equal(gw_filemap_check(), GW_OK);
}

/* More maps than one block of the table has, closed in another order, twice. */
static void test_many(void **state)
{
	struct bed *bed = *state;
	void *maps[300];
	for (int round = 0; round < 2; round++) {
		int file = open(bed->path, O_RDONLY | O_CLOEXEC);
		assert_true(file >= 0);
		for (int i = 0; i < 300; i++)
			assert_int_equal(gw_filemap_open(file, bed->path, PAGE, &maps[i]), GW_OK);
		close(file);
		for (int i = 0; i < 300; i += 2)
			gw_filemap_close(maps[i], PAGE);
		for (int i = 1; i < 300; i += 2)
			gw_filemap_close(maps[i], PAGE);
	}
	char text[2048];
	assert_int_equal(WEXITSTATUS(run_guarded(shrink_and_read, bed, text)), 1);
}

static gw_status open_once(void *context)
{
	struct bed *bed = context;
	void *map;
	int file = open(bed->path, O_RDONLY | O_CLOEXEC);
	gw_status status = gw_filemap_open(file, bed->path, PAGE, &map);
	close(file);
	if (status == GW_OK)
		gw_filemap_close(map, PAGE);
	else if (map)
		return GW_INVALID;
	return status;
}

static void test_refusals(void **state)
{
	void *map = state;
	assert_int_equal(gw_filemap_open(-1, "none", PAGE, &map), GW_IO);
	assert_null(map);
	int file = open(((struct bed *)*state)->path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(gw_filemap_open(file, "all of memory", SIZE_MAX / 2, &map), GW_NO_MEMORY);
	assert_null(map);
	close(file);
	assert_true(gw_fault_each(open_once, *state) >= 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_shrinks), TEST(test_fails), TEST(test_other_faults),
		TEST(test_check),   TEST(test_many),  TEST(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
