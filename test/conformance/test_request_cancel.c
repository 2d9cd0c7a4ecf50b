/* Cancelled requests: over every backend they complete at once, whatever the server does. Their answers are dropped,
 * and later requests are answered as usual. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/transport_bed.h"

#define REQUESTS 5

static gw_status echo(struct gw_endpoint *endpoint, uint32_t what, int *cookie)
{
	return gw_endpoint_request(endpoint, BED_OP_ECHO, 0, &what, sizeof(what), GW_NO_DEADLINE, cookie);
}

static void expect_echo(struct gw_poll_group *group, struct gw_endpoint *endpoint, uint32_t what)
{
	int cookie;
	assert_int_equal(echo(endpoint, what, &cookie), GW_OK);
	struct gw_completion completion = gw_bed_wait(group, &cookie);
	assert_int_equal(completion.status, GW_OK);
	assert_int_equal(completion.reply_bytes, sizeof(what));
	assert_memory_equal(completion.reply, &what, sizeof(what));
}

static void a_cancelled_request_is_over(void **state)
{
	const struct bed_kind *kind = *state;
	struct bed bed;
	gw_bed_begin(&bed, kind, NULL);
	struct gw_poll_group *group = gw_bed_group(kind);
	struct gw_connect_options to = gw_bed_options(&bed);
	struct gw_endpoint *endpoint;
	assert_int_equal(gw_bed_connect(group, &to, &endpoint), GW_OK);
	expect_echo(group, endpoint, 1);

	int cookies[REQUESTS], unknown;
	if (kind->network)
		gw_bed_pause(&bed);
	for (uint32_t i = 0; i < REQUESTS; i++)
		assert_int_equal(echo(endpoint, 100 + i, &cookies[i]), GW_OK);
	gw_endpoint_request_cancel(endpoint, &unknown); /* no request has this cookie: nothing happens */
	/* The server is stopped: only the cancelled requests end. */
	for (uint32_t i = 1; i < REQUESTS; i += 2) {
		gw_endpoint_request_cancel(endpoint, &cookies[i]);
		gw_endpoint_request_cancel(endpoint, &cookies[i]);
	}
	if (kind->network) {
		for (uint32_t i = 1; i < REQUESTS; i += 2)
			assert_int_equal(gw_bed_wait(group, &cookies[i]).status, GW_CANCELLED);
		gw_bed_resume(&bed);
	}
	/* In process, a request is complete when the call returns: cancelling comes too late. */
	for (uint32_t i = 0; i < REQUESTS; i++) {
		if (kind->network && i % 2 == 1)
			continue;
		struct gw_completion completion = gw_bed_wait(group, &cookies[i]);
		uint32_t what;
		assert_int_equal(completion.status, GW_OK);
		assert_int_equal(completion.reply_bytes, sizeof(what));
		memcpy(&what, completion.reply, sizeof(what));
		assert_int_equal(what, 100 + i);
	}
	for (uint32_t i = 0; i < 200; i++)
		expect_echo(group, endpoint, i);
	gw_endpoint_close(endpoint);
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

int main(void)
{
	static const struct bed_test tests[] = {{BED_TEST(a_cancelled_request_is_over)}};
	return gw_bed_run("request cancel", tests, sizeof(tests) / sizeof(tests[0]));
}
