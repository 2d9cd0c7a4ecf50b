/* A kernel that forbids io_uring, or allows to set up a ring but not to enter it. "auto" continues with epoll and logs
 * this once. A driver that was requested by name reports why it is not available. Also a kernel without epoll_pwait2.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "test/support/sandbox.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/driver/driver.h"

static int lines;
static char line[1000];

static void keep_line(void *context, enum gw_log_level level, const char *text)
{
	(void)context;
	(void)level;
	if (!strstr(text, "using epoll"))
		return;
	lines++;
	strncpy(line, text, sizeof(line) - 1);
}

/* Runs in the sandbox. Returns the number of the failed check. */
static int live(void *context)
{
	static const struct bed_kind automatic = {"tcp/auto", "auto", "tcp", true, false, 0};
	static const struct gw_poll_group_options forced = {.tcp_driver = "io_uring"};
	const char *reason = context;
	gw_log_set_sink(keep_line, NULL);
	gw_log_set_level(GW_LOG_INFO);
	struct one one;
	void *row = (void *)(uintptr_t)&automatic;
	gw_one_begin(&one, &row, NULL, 4096);
	gw_one_read_works(&one);
	gw_one_end(&one);
	if (lines != (reason ? 1 : 0))
		return 1;
	if (!reason)
		return 0;
	if (!strstr(line, reason))
		return 2;
	const struct gw_transport *tcp;
	struct gw_poll_group *group;
	void *state;
	if (gw_transport_find("tcp", &tcp) || gw_poll_group_create(&forced, &group))
		return 3;
	gw_status expected = strstr(reason, "locked memory") ? GW_LOCKED_MEMORY : GW_UNSUPPORTED;
	if (gw_poll_group_state(group, tcp, &state) != expected)
		return 4;
	if (!strstr(gw_last_error(), reason))
		return 5;
	gw_poll_group_destroy(group);
	return 0;
}

static void without(long call, int error, const char *reason)
{
	const struct sandbox_rule rule = {.call = call, .error = error};
	assert_int_equal(sandbox_run(&rule, 1, false, live, (void *)(uintptr_t)reason), 0);
}

static void io_uring_is_refused(void **state)
{
	(void)state;
	without(SYS_io_uring_setup, EPERM, "forbidden");
	without(SYS_io_uring_setup, ENOSYS, "5.19");
	without(SYS_io_uring_setup, ENOMEM, "limit of locked memory");
	without(SYS_io_uring_enter, EPERM, "forbidden");
	without(SYS_io_uring_enter, ENOSYS, "5.19");
}

static int wait_for_nothing(void *context)
{
	(void)context;
	struct epoll_event event;
	int fd = epoll_create1(EPOLL_CLOEXEC), n = gw_epoll_wait(fd, &event, 1, GW_NS_PER_MS);
	close(fd);
	return n == 0 ? 0 : 1;
}

static void epoll_without_nanoseconds(void **state)
{
	(void)state;
	static const int errors[] = {ENOSYS, EPERM};
	for (int i = 0; i < 2; i++) {
		const struct sandbox_rule rule = {.call = SYS_epoll_pwait2, .error = errors[i]};
		assert_int_equal(sandbox_run(&rule, 1, false, wait_for_nothing, NULL), 0);
	}
}

/* An ordinary user without locked memory: one of the drivers works. */
static void no_locked_memory(void **state)
{
	(void)state;
	static const struct sandbox_rule refused = {.call = SYS_io_uring_setup, .error = EPERM};
	assert_int_equal(sandbox_run(&refused, 1, true, live, (void *)(uintptr_t) "forbidden"), 0);
	assert_in_range(sandbox_run(NULL, 0, true, live, NULL), 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(io_uring_is_refused),
					   cmocka_unit_test(epoll_without_nanoseconds),
					   cmocka_unit_test(no_locked_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
