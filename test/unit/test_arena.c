/* Arenas: zeroed, complete, on the requested nodes and pages; and the errors if these are not available. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/memory/arena.h"
#include "core/memory/arena_pages.h"
#include "core/memory/memory.h"
#include "test/support/alloc_fault.h"
#include "test/support/sandbox.h"

#define MIB (1ull << 20)

static const struct gw_arena_options private_memory = {.name = "test", .huge = GW_HUGE_TRY, .numa = GW_NUMA_SPREAD};
static const struct gw_arena_options shared_memory = {
	.name = "test", .huge = GW_HUGE_TRY, .numa = GW_NUMA_SPREAD, .shareable = true};

static bool is_zero(const uint8_t *memory, uint64_t bytes)
{
	return bytes == 0 || (memory[0] == 0 && memcmp(memory, memory + 1, bytes - 1) == 0);
}

static void check_arena(const struct gw_arena *arena, uint64_t bytes)
{
	uint64_t capacity = gw_arena_bytes(arena), slice = gw_arena_slice_bytes(arena);
	assert_true(capacity >= bytes && capacity > 0);
	assert_true(capacity % GW_ARENA_ALIGN == 0);
	assert_true((slice & (slice - 1)) == 0 && slice <= GW_ARENA_SLICE_MAX);
	assert_true((uintptr_t)gw_arena_base(arena) % GW_ARENA_ALIGN == 0);
	assert_true(is_zero(gw_arena_base(arena), capacity));
	memset(gw_arena_base(arena), 0x5a, capacity);
	double share = gw_pages_huge_share(gw_arena_base(arena), gw_arena_bytes(arena));
	if (gw_arena_page_level(arena) == GW_PAGES_4K)
		assert_true(share < 0.5);
	else
		assert_true(share >= 0.5);
}

static void test_sizes(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {0, 1, 4096, 4097, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 130 * MIB + 5};
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		struct gw_arena *arena;
		assert_int_equal(gw_arena_create(sizes[i / 2], i % 2 ? &private_memory : &shared_memory, &arena),
				 GW_OK);
		check_arena(arena, sizes[i / 2]);
		assert_int_equal(gw_arena_fd(arena) >= 0, i % 2 == 0);
		gw_arena_destroy(arena);
	}
	gw_arena_destroy(NULL);
}

static void test_defaults(void **state)
{
	(void)state;
	struct gw_arena *arena;
	assert_int_equal(gw_arena_create(MIB, NULL, &arena), GW_OK);
	check_arena(arena, MIB);
	assert_int_equal(gw_arena_fd(arena), -1);
	gw_arena_destroy(arena);
}

static void test_huge_off(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct gw_arena_options options = i ? private_memory : shared_memory;
		options.huge = GW_HUGE_OFF;
		struct gw_arena *arena;
		assert_int_equal(gw_arena_create(4 * MIB + 1, &options, &arena), GW_OK);
		check_arena(arena, 4 * MIB + 1);
		assert_int_equal(gw_arena_page_level(arena), GW_PAGES_4K);
		assert_true(gw_pages_huge_share(gw_arena_base(arena), gw_arena_bytes(arena)) == 0);
		assert_int_equal(gw_arena_bytes(arena), 4 * MIB + 4096);
		gw_arena_destroy(arena);
	}
}

static void test_huge_required(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct gw_arena_options options = i ? private_memory : shared_memory;
		options.huge = GW_HUGE_REQUIRE;
		struct gw_arena *arena;
		gw_status status = gw_arena_create(10 * MIB, &options, &arena);
		if (status != GW_OK) {
			assert_int_equal(status, GW_UNSUPPORTED);
			assert_null(arena);
			assert_non_null(strstr(gw_last_error(), "sysctl"));
			continue;
		}
		check_arena(arena, 10 * MIB);
		assert_true(gw_arena_page_level(arena) != GW_PAGES_4K);
		assert_true(gw_pages_huge_share(gw_arena_base(arena), gw_arena_bytes(arena)) > 0.999);
		gw_arena_destroy(arena);
	}
}

static void test_shared_is_shared(void **state)
{
	(void)state;
	struct gw_arena *arena;
	assert_int_equal(gw_arena_create(3 * MIB, &shared_memory, &arena), GW_OK);
	memcpy(gw_arena_base(arena) + 2 * MIB + 17, "graph", 6);
	void *view = mmap(NULL, gw_arena_bytes(arena), PROT_READ, MAP_SHARED, gw_arena_fd(arena), 0);
	assert_ptr_not_equal(view, MAP_FAILED);
	assert_string_equal((char *)view + 2 * MIB + 17, "graph");
	munmap(view, gw_arena_bytes(arena));
	assert_int_not_equal(fcntl(gw_arena_fd(arena), F_GET_SEALS), -1); /* the sharing code seals it later */
	assert_int_equal(fcntl(gw_arena_fd(arena), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	gw_arena_destroy(arena);
}

static void test_take(void **state)
{
	(void)state;
	struct gw_arena_options options = private_memory;
	options.huge = GW_HUGE_OFF;
	struct gw_arena *arena;
	assert_int_equal(gw_arena_create(16384, &options, &arena), GW_OK);
	uint64_t offset = 99;
	assert_int_equal(gw_arena_take(arena, 100, 8, &offset), GW_OK);
	assert_int_equal(offset, 0);
	assert_int_equal(gw_arena_take(arena, 10, 64, &offset), GW_OK);
	assert_int_equal(offset, 128);
	assert_int_equal(gw_arena_take(arena, 0, 4096, &offset), GW_OK);
	assert_int_equal(offset, 4096);
	assert_int_equal(gw_arena_take(arena, 12289, 4096, &offset), GW_NO_MEMORY);
	assert_non_null(strstr(gw_last_error(), "12289"));
	assert_int_equal(gw_arena_take(arena, UINT64_MAX, 4096, &offset), GW_NO_MEMORY);
	assert_int_equal(gw_arena_take(arena, 12288, 4096, &offset), GW_OK);
	assert_int_equal(offset, 4096);
	assert_int_equal(gw_arena_take(arena, 1, 1ull << 40, &offset), GW_NO_MEMORY);
	assert_int_equal(gw_arena_take(arena, 1, 1, &offset), GW_NO_MEMORY);
	gw_arena_destroy(arena);
}

static void test_too_much_allocates_nothing(void **state)
{
	(void)state;
	struct gw_memory memory;
	gw_memory_read("", -1, &memory);
	const uint64_t sizes[] = {memory.available + 64 * MIB, 1ull << 45, UINT64_MAX};
	for (size_t i = 0; i < 3; i++) {
		struct gw_arena *arena = (struct gw_arena *)1;
		assert_int_equal(gw_arena_create(sizes[i], &private_memory, &arena), GW_NO_MEMORY);
		assert_null(arena);
		assert_non_null(strstr(gw_last_error(), "test"));
	}
	assert_non_null(strstr(gw_last_error(), "18446744073709551615"));
}

static void test_numa(void **state)
{
	(void)state;
	struct gw_numa_nodes nodes;
	gw_numa_nodes_read("", &nodes);
	struct gw_arena_options options = private_memory;
	struct gw_arena *arena;
	options.numa = nodes.numbers[nodes.count - 1];
	assert_int_equal(gw_arena_create(2 * MIB, &options, &arena), GW_OK);
	check_arena(arena, 2 * MIB);
	gw_arena_destroy(arena);
	options.numa = GW_NUMA_LOCAL;
	assert_int_equal(gw_arena_create(2 * MIB, &options, &arena), GW_OK);
	gw_arena_destroy(arena);
	options.numa = 1023;
	assert_int_equal(gw_arena_create(2 * MIB, &options, &arena), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "1023"));
	assert_null(arena);
}

/* Slices over several nodes, on a kernel with only one: all slices exist. */
static void test_spread(void **state)
{
	(void)state;
	struct gw_pages pages;
	assert_int_equal(gw_pages_map(40 * MIB, GW_PAGES_COLLAPSED, true, "test", 4, &pages), GW_OK);
	assert_true(pages.slice_bytes >= 2 * MIB && pages.bytes / pages.slice_bytes >= 8);
	const struct gw_numa_nodes nodes = {.count = 4, .numbers = {0, 1000, 1001, 1002}};
	const char *note = NULL;
	assert_int_equal(gw_pages_place(&pages, GW_NUMA_SPREAD, &nodes, &note), GW_OK);
	assert_non_null(note);
	assert_int_equal(gw_pages_place(&pages, 1001, &nodes, &note), GW_UNSUPPORTED);
	assert_non_null(strstr(gw_last_error(), "1001"));
	assert_int_equal(gw_pages_populate(&pages, 2), GW_OK);
	assert_true(is_zero(pages.base, pages.bytes));
	gw_pages_unmap(&pages);
}

static gw_status create_body(void *context)
{
	struct gw_arena *arena;
	gw_status status = gw_arena_create(4096, context, &arena);
	if (status != GW_OK)
		assert_null(arena);
	gw_arena_destroy(arena);
	return status;
}

static void test_memory_shortage(void **state)
{
	(void)state;
	struct gw_arena_options options = shared_memory;
	assert_true(gw_fault_each(create_body, &options) > 0);
}

static void test_leaves_nothing(void **state)
{
	(void)state;
	int before = dup(0);
	close(before);
	struct gw_arena *arena;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gw_arena_create(4 * MIB, &shared_memory, &arena), GW_OK);
		gw_arena_destroy(arena);
		assert_int_not_equal(gw_arena_create(1ull << 45, &shared_memory, &arena), GW_OK);
	}
	int after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

/* ---- where the kernel refuses: in a child under a system call filter ---- */

static int create_and_check(void *context)
{
	const struct gw_arena_options *options = context;
	struct gw_arena *arena;
	if (gw_arena_create(5 * MIB, options, &arena))
		return 10;
	if (!is_zero(gw_arena_base(arena), gw_arena_bytes(arena)))
		return 11;
	int level = (int)gw_arena_page_level(arena);
	gw_arena_destroy(arena);
	return level;
}

static struct sandbox_rule populate_refused(int error)
{
	return (struct sandbox_rule){
		.call = SYS_madvise, .argument = 2, .bits = ~0u, .value = MADV_POPULATE_WRITE, .error = error};
}

static void test_kernel_without_populate(void **state)
{
	(void)state;
	struct gw_arena_options options = shared_memory;
	options.huge = GW_HUGE_OFF;
	static const int errors[] = {EINVAL, ENOSYS, EPERM};
	for (int i = 0; i < 3; i++) {
		const struct sandbox_rule rule = populate_refused(errors[i]);
		assert_int_equal(sandbox_run(&rule, 1, false, create_and_check, &options), GW_PAGES_4K);
	}
}

static void test_kernel_without_collapse(void **state)
{
	(void)state;
	struct gw_arena_options options = shared_memory;
	const struct sandbox_rule rule = {
		.call = SYS_madvise, .argument = 2, .bits = ~0u, .value = 25, .error = EINVAL};
	int level = sandbox_run(&rule, 1, false, create_and_check, &options);
	assert_true(level == GW_PAGES_4K || level == GW_PAGES_COLLAPSED || level == GW_PAGES_HUGETLB);
	options.huge = GW_HUGE_REQUIRE;
	level = sandbox_run(&rule, 1, false, create_and_check, &options);
	assert_true(level == 10 || level == GW_PAGES_HUGETLB || level == GW_PAGES_COLLAPSED);
}

static int populate_fails(void *context)
{
	struct gw_arena *arena;
	gw_status status = gw_arena_create(5 * MIB, context, &arena);
	return arena ? 10 : (int)status;
}

static void test_populate_error_is_named(void **state)
{
	(void)state;
	struct gw_arena_options options = shared_memory;
	static const int errors[] = {EFAULT, ENOMEM, EAGAIN}; /* EAGAIN may never end */
	for (int i = 0; i < 3; i++) {
		const struct sandbox_rule rule = populate_refused(errors[i]);
		assert_int_equal(sandbox_run(&rule, 1, false, populate_fails, &options), GW_NO_MEMORY);
	}
}

/* ---- limits of the process: one line that names the limit and lifts it ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadow memory exceeds any limit */
struct limited {
	int resource;
	uint64_t bytes, hard;
	struct gw_arena_options options;
	const char *remedy;
};

static int create_under_limit(void *context)
{
	const struct limited *limited = context;
	struct gw_arena *arena;
	const struct rlimit limit = {limited->bytes, limited->hard};
	if (setrlimit((__rlimit_resource_t)limited->resource, &limit))
		return 1;
	gw_status status = gw_arena_create(1ull << 30, &limited->options, &arena);
	if (status != GW_NO_MEMORY || arena)
		return 2;
	const char *text = gw_last_error();
	return strstr(text, limited->remedy) && strstr(text, "arena test") && !strchr(text, '\n') ? 0 : 3;
}
#endif

static void test_limits_of_the_process(void **state)
{
	(void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	struct limited cases[] = {
		{RLIMIT_AS, 512 * MIB, RLIM_INFINITY, private_memory, "ulimit -v unlimited"},
		{RLIMIT_AS, 512 * MIB, RLIM_INFINITY, shared_memory, "ulimit -v unlimited"},
		{RLIMIT_FSIZE, 512 * MIB, RLIM_INFINITY, shared_memory, "ulimit -f unlimited"},
		{RLIMIT_AS, 512 * MIB, 512 * MIB, private_memory, "'* - as unlimited'"},
		{RLIMIT_FSIZE, 512 * MIB, 512 * MIB, shared_memory, "LimitFSIZE=infinity"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(sandbox_run(NULL, 0, false, create_under_limit, &cases[i]), 0);
#endif
}

static char logged[2][2048];
static int log_lines;

static void keep_line(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	(void)level;
	if (log_lines < 2)
		snprintf(logged[log_lines], sizeof(logged[0]), "%s", line);
	log_lines++;
}

static void test_logs_one_line(void **state)
{
	(void)state;
	gw_log_set_level(GW_LOG_INFO);
	gw_log_set_sink(keep_line, NULL);
	log_lines = 0;
	struct gw_arena *arena;
	assert_int_equal(gw_arena_create(6 * MIB, &shared_memory, &arena), GW_OK);
	gw_log_set_sink(NULL, NULL);
	gw_log_set_level(GW_LOG_WARN);
	assert_int_equal(log_lines, 1);
	assert_non_null(strstr(logged[0], "arena test"));
	if (gw_arena_page_level(arena) != GW_PAGES_HUGETLB)
		assert_non_null(strstr(logged[0], "sysctl -w vm.nr_hugepages="));
	gw_arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_huge_off),
		cmocka_unit_test(test_huge_required),
		cmocka_unit_test(test_shared_is_shared),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_too_much_allocates_nothing),
		cmocka_unit_test(test_numa),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_memory_shortage),
		cmocka_unit_test(test_leaves_nothing),
		cmocka_unit_test(test_kernel_without_populate),
		cmocka_unit_test(test_kernel_without_collapse),
		cmocka_unit_test(test_populate_error_is_named),
		cmocka_unit_test(test_limits_of_the_process),
		cmocka_unit_test(test_logs_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
