/* Wakes of a poll group with several backends. Once a wake has been noticed, polls sleep again, whichever instructions
 * the waking thread had reached by then. The waking thread is stepped (test/support/stepped.h). */
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/stepped.h"
#include "transport/transport.h"

static struct gw_poll_group *group;
static int slept; /* what the group's last sleep returned: 0 at its time limit */

/* Replaces the C library's function in this program. */
int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	typedef int (*sleeper)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	static sleeper real;
	if (!real)
		real = (sleeper)(uintptr_t)dlsym(RTLD_NEXT, "ppoll");
	return slept = real(fds, count, timeout, mask);
}

static gw_status add_part(const char *scheme)
{
	const struct gw_transport *transport;
	void *part;
	assert_int_equal(gw_transport_find(scheme, &transport), GW_OK);
	return gw_poll_group_state(group, transport, &part);
}

static void poll_for(uint64_t timeout_ns)
{
	struct gw_completion completion;
	assert_int_equal(gw_poll_group_poll(group, &completion, 1, timeout_ns), 0);
}

static void wake(void *context)
{
	(void)context;
	gw_poll_group_wake(group);
}

static void poll_now(void *context)
{
	(void)context;
	poll_for(0);
}

static void a_wake_that_was_noticed_ends_no_more_polls(void **state)
{
	const char *driver = *state;
	const struct gw_poll_group_options options = {.tcp_driver = driver};
	assert_int_equal(gw_poll_group_create(&options, &group), GW_OK);
	assert_int_equal(add_part("memory"), GW_OK);
	gw_status status = add_part("tcp");
	if (!gw_stepped_can() || status == GW_UNSUPPORTED || status == GW_LOCKED_MEMORY) {
		gw_poll_group_destroy(group);
		skip();
	}
	assert_int_equal(status, GW_OK);
	unsigned long at = 0;
	while (gw_stepped_run(at, wake, poll_now, NULL)) {
		/* The first poll may notice the wake. The second may find the rest of it. */
		for (int polls = 0; polls < 3; polls++)
			poll_for(GW_NS_PER_MS);
		if (slept != 0)
			fail_msg("no poll sleeps any more after a poll before instruction %lu of a wake", at);
		at++;
	}
	assert_true(at > 20);
	gw_poll_group_destroy(group);
}

int main(void)
{
	static char epoll[] = "epoll", io_uring[] = "io_uring";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(a_wake_that_was_noticed_ends_no_more_polls, epoll),
		cmocka_unit_test_prestate(a_wake_that_was_noticed_ends_no_more_polls, io_uring),
	};
	return cmocka_run_group_tests_name("wakes", tests, NULL, NULL);
}
