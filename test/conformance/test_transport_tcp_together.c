/* Small requests to one server leave together with the next poll; a large one leaves at once. Sends are counted where
 * the driver reports them. Both drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/client/client_private.h"

#define SMALL    7u
#define LARGE    (64u << 10)
#define REQUESTS 5

static uint32_t sends;
static const struct tcp_io_events *usual;

static void count_sent(struct tcp_io *io, ssize_t n)
{
	sends++;
	usual->sent(io, n);
}

/* The endpoint's sends are counted from now on. */
static struct tcp_client *count_sends(struct one *one)
{
	static struct tcp_io_events counting;
	struct tcp_client *client = (struct tcp_client *)one->endpoint;
	gw_one_call(one, BED_OP_ECHO, 0, "x", 1);
	usual = client->io.events;
	counting = *usual;
	counting.sent = count_sent;
	client->io.events = &counting;
	sends = 0;
	return client;
}

static void request(struct one *one, const uint8_t *bytes, uint32_t n, void *cookie)
{
	assert_int_equal(gw_endpoint_request(one->endpoint, BED_OP_ECHO, NULL, bytes, n, gw_deadline_ns(20000), cookie),
			 GW_OK);
}

static void expect_echoes(struct one *one, const uint8_t *bytes, uint32_t n, uint32_t count)
{
	struct gw_completion done;
	for (uint32_t i = 0; i < count;) {
		if (gw_poll_group_poll(one->group, &done, 1, GW_NS_PER_SECOND) == 0)
			continue;
		assert_int_equal(done.status, GW_OK);
		assert_ptr_equal(done.cookie, bytes + i); /* in their order */
		assert_int_equal(done.reply_bytes, n);
		assert_memory_equal(done.reply, bytes + i, n);
		i++;
	}
}

static void small_requests_leave_together(void **state)
{
	struct one one;
	uint8_t bytes[SMALL + REQUESTS];
	gw_one_begin(&one, state, &(struct bed_options){0}, 4096);
	struct tcp_client *client = count_sends(&one);
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 11);
	for (uint32_t i = 0; i < REQUESTS; i++)
		request(&one, bytes + i, SMALL, bytes + i);
	assert_int_equal(client->out_end - client->out_begin,
			 REQUESTS * (WIRE_HEADER_BYTES + WIRE_REQUEST_BYTES + SMALL));
	expect_echoes(&one, bytes, SMALL, REQUESTS);
	assert_int_equal(sends, 1);
	client->io.events = usual;
	gw_one_read_works(&one);
	gw_one_end(&one);
}

static void a_large_request_leaves_at_once(void **state)
{
	struct one one;
	static uint8_t bytes[LARGE + 2];
	gw_one_begin(&one, state, &(struct bed_options){0}, 4096);
	struct tcp_client *client = count_sends(&one);
	request(&one, bytes, SMALL, bytes);
	request(&one, bytes + 1, LARGE, bytes + 1);
	/* io_uring has it in progress; epoll has sent what the socket took. */
	assert_true(client->io.sending || sends > 0);
	struct gw_completion done;
	for (uint32_t i = 0; i < 2;)
		i += (uint32_t)gw_poll_group_poll(one.group, &done, 1, GW_NS_PER_SECOND);
	client->io.events = usual;
	gw_one_end(&one);
}

/* A goodbye is the last request before the close. The server then knows the client's numbers no more. */
static void a_goodbye_leaves_before_the_close(void **state)
{
	struct one one;
	gw_one_begin(&one, state, &(struct bed_options){0}, 4096);
	struct tcp_client *client = count_sends(&one);
	gw_endpoint_goodbye(one.endpoint);
	assert_true(client->unsent);
	gw_endpoint_close(one.endpoint);
	assert_true(sends > 0 || strcmp(one.bed.kind->driver, "epoll") != 0);
	struct gw_completion done; /* of the goodbye, whose answer nobody awaits */
	while (gw_poll_group_poll(one.group, &done, 1, GW_NS_PER_SECOND) == 0)
		;
	assert_null(done.cookie);
	struct gw_connect_options options = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &options, &one.endpoint), GW_OK);
	gw_one_read_works(&one);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(small_requests_leave_together)},
		{BED_TEST(a_large_request_leaves_at_once)},
		{BED_TEST(a_goodbye_leaves_before_the_close)},
	};
	return gw_bed_run_tcp("requests that leave together", tests, sizeof(tests) / sizeof(tests[0]));
}
