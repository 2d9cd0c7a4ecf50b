/* Loading in a process whose kernel refuses something: io_uring, registered buffers, O_DIRECT, locked memory, reads.
 * Each refusal has a fallback that gives the same bytes, or an error with its name. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/load_job.h"
#include "test/support/load_bed.h"
#include "test/support/sandbox.h"

enum { RAN_URING_FIXED = 1, RAN_URING, RAN_PREAD, RAN_BUFFERED = 8, RAN_WRONG = 32, RAN_FAILED = 64 };

static int load_and_report(void *context)
{
	struct load_bed *f = context;
	struct gw_load_stats stats;
	gw_status status = gw_load(f->arena, f->items, LOAD_BED_ITEMS, NULL, &stats);
	if (status != GW_OK)
		return RAN_FAILED + (int)status;
	if (!load_bed_holds(f))
		return RAN_WRONG;
	int ran = strcmp(stats.driver, "pread") == 0      ? RAN_PREAD
		  : strcmp(stats.driver, "io_uring") == 0 ? RAN_URING
							  : RAN_URING_FIXED;
	return ran + (stats.files_buffered == LOAD_BED_ITEMS ? RAN_BUFFERED : 0);
}

/* The driver that a child used. Children exit with RAN_... values, so that a failed check's number cannot pass for a
 * driver. */
static int driver_of(int ran)
{
	assert_in_range(ran, RAN_URING_FIXED, RAN_WRONG - 1);
	return ran & 7;
}

static void test_no_io_uring(void **state)
{
	static const int errors[] = {EPERM, ENOSYS, ENOMEM};
	for (int i = 0; i < 3; i++) {
		const struct sandbox_rule rule = {.call = SYS_io_uring_setup, .error = errors[i]};
		assert_int_equal(driver_of(sandbox_run(&rule, 1, false, load_and_report, *state)), RAN_PREAD);
	}
}

/* A seccomp profile that allows to create a ring, but not to use it. */
static void test_io_uring_without_reads(void **state)
{
	const struct sandbox_rule rule = {.call = SYS_io_uring_enter, .error = EPERM};
	assert_int_equal(driver_of(sandbox_run(&rule, 1, false, load_and_report, *state)), RAN_PREAD);
	struct load_bed *f = *state;
	f->items[0].path = "/nowhere"; /* the file's own error is still reported */
	assert_int_equal(sandbox_run(&rule, 1, false, load_and_report, f), RAN_FAILED + GW_NOT_FOUND);
}

/* Reads of opened files wait for the disk. With O_NONBLOCK, io_uring would get EAGAIN on some file systems. */
static void test_files_are_read_blocking(void **state)
{
	struct load_bed *f = *state;
	struct gw_load_job job = {.items = f->items, .count = LOAD_BED_ITEMS};
	for (int buffered = 0; buffered < 2; buffered++) {
		struct gw_load_file file;
		job.options.buffered = buffered;
		assert_int_equal(gw_load_file_open(&job, 4, &file), GW_OK);
		int flags = fcntl(file.fd, F_GETFL);
		assert_int_equal(flags & O_NONBLOCK, 0);
		assert_int_equal(!!(flags & O_DIRECT), file.direct);
		if (file.direct) {
			assert_int_equal(gw_load_file_refuse(&job, 4, &file), GW_OK);
			assert_int_equal(fcntl(file.fd, F_GETFL) & (O_NONBLOCK | O_DIRECT), 0);
		}
		gw_load_file_close(&file);
	}
}

static int demand_uring(void *context)
{
	struct load_bed *f = context;
	const struct gw_load_options options = {.driver = GW_LOAD_URING};
	gw_status status = gw_load(f->arena, f->items, LOAD_BED_ITEMS, &options, NULL);
	return status == GW_UNSUPPORTED && strstr(gw_last_error(), "io_uring") ? 0 : 1;
}

static void test_io_uring_demanded_but_refused(void **state)
{
	const struct sandbox_rule rule = {.call = SYS_io_uring_setup, .error = EPERM};
	assert_int_equal(sandbox_run(&rule, 1, false, demand_uring, *state), 0);
}

static void test_no_registered_buffers(void **state)
{
	const struct sandbox_rule rule = {
		.call = SYS_io_uring_register, .argument = 1, .bits = ~0u, .value = 0, .error = ENOMEM};
	int driver = driver_of(sandbox_run(&rule, 1, false, load_and_report, *state));
	assert_true(driver == RAN_URING || driver == RAN_PREAD);
}

static void test_no_registration_at_all(void **state)
{
	const struct sandbox_rule rule = {.call = SYS_io_uring_register, .error = EINVAL};
	int driver = driver_of(sandbox_run(&rule, 1, false, load_and_report, *state));
	assert_true(driver == RAN_URING || driver == RAN_PREAD);
}

/* Without simulation: an ordinary user without locked memory. */
static void test_locked_memory_limit(void **state)
{
	assert_in_range(driver_of(sandbox_run(NULL, 0, true, load_and_report, *state)), RAN_URING_FIXED, RAN_PREAD);
}

static void test_open_refuses_o_direct(void **state)
{
	const struct sandbox_rule rules[2] = {
		{.call = SYS_openat, .argument = 2, .bits = O_DIRECT, .value = O_DIRECT, .error = EINVAL},
		{.call = SYS_io_uring_setup, .error = EPERM}};
	int ran = sandbox_run(rules, 1, false, load_and_report, *state);
	assert_true(ran == RAN_URING_FIXED + RAN_BUFFERED || ran == RAN_URING + RAN_BUFFERED ||
		    ran == RAN_PREAD + RAN_BUFFERED);
	assert_int_equal(sandbox_run(rules, 2, false, load_and_report, *state), RAN_PREAD + RAN_BUFFERED);
}

static int pread_and_report(void *context)
{
	struct load_bed *f = context;
	const struct gw_load_options options = {.driver = GW_LOAD_PREAD};
	struct gw_load_stats stats;
	gw_status status = gw_load(f->arena, &f->items[1], 1, &options, &stats);
	if (status != GW_OK)
		return RAN_FAILED + (int)status;
	if (memcmp(gw_arena_base(f->arena) + f->items[1].arena_offset, f->payloads[1], load_bed_sizes[1]) != 0)
		return RAN_WRONG;
	return stats.files_buffered == 1 ? RAN_BUFFERED : 0;
}

/* Some file systems allow an open with O_DIRECT and refuse to read. Here reads of whole blocks fail, so a file of one
 * byte can be read only buffered. */
static void test_reading_refuses_o_direct(void **state)
{
	const struct sandbox_rule rule = {
		.call = SYS_pread64, .argument = 2, .bits = 4095, .value = 0, .error = EINVAL};
	assert_int_equal(sandbox_run(&rule, 1, false, pread_and_report, *state), RAN_BUFFERED);
}

static void test_read_error(void **state)
{
	static const int errors[] = {EIO, ENOMEM};
	static const gw_status statuses[] = {GW_IO, GW_NO_MEMORY};
	for (int i = 0; i < 2; i++) {
		const struct sandbox_rule rule = {.call = SYS_pread64, .error = errors[i]};
		assert_int_equal(sandbox_run(&rule, 1, false, pread_and_report, *state), RAN_FAILED + (int)statuses[i]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, load_bed_set_up, load_bed_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_io_uring),
		TEST(test_io_uring_without_reads),
		TEST(test_files_are_read_blocking),
		TEST(test_io_uring_demanded_but_refused),
		TEST(test_no_registered_buffers),
		TEST(test_no_registration_at_all),
		TEST(test_locked_memory_limit),
		TEST(test_open_refuses_o_direct),
		TEST(test_reading_refuses_o_direct),
		TEST(test_read_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
