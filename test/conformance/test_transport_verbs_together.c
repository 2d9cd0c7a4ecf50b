/* Small requests over RDMA leave together with the next poll, and so do their replies: one call to the device and one
 * completion for all of them. A large request leaves at once. Calls are counted where the device gets them. */
#include <stdio.h>
#ifndef GRAPHWIRE_VERBS
int main(void)
{
	printf("1..0 # SKIP built without RDMA\n");
	return 0;
}
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/verbs_one.h"

#define SMALL 7u
#define LARGE (2 * GW_TOGETHER_BYTES)

/* What one side has posted. */
struct posts {
	_Atomic uint32_t calls, works, signalled;
};

static struct counted {
	int (*post)(struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad);
	struct ibv_context *context;
	const struct ibv_qp *ours; /* the client's queue pair for messages */
	struct posts client, server;
} counted;

static int count_post(struct ibv_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
	struct posts *side = qp == counted.ours ? &counted.client : &counted.server;
	atomic_fetch_add(&side->calls, 1);
	for (const struct ibv_send_wr *work = list; work; work = work->next) {
		atomic_fetch_add(&side->works, 1);
		atomic_fetch_add(&side->signalled, (work->send_flags & IBV_SEND_SIGNALED) != 0);
	}
	return counted.post(qp, list, bad);
}

/* The server sleeps until gw_bed_resume. */
static void begin(struct one *one, void **state)
{
	gw_one_begin(one, state, NULL, 4096);
	gw_one_call(one, BED_OP_ECHO, 0, "x", 1);
	gw_bed_pause(&one->bed);
	memset(&counted, 0, sizeof(counted));
	counted.ours = verbs_inside(one)->conns[0].qp->id->qp;
	counted.context = counted.ours->context;
	counted.post = counted.context->ops.post_send;
	counted.context->ops.post_send = count_post;
}

static void end(struct one *one)
{
	gw_bed_pause(&one->bed);
	counted.context->ops.post_send = counted.post;
	gw_bed_resume(&one->bed);
	gw_one_read_works(one);
	gw_one_end(one);
}

static void request(struct one *one, const uint8_t *bytes, uint32_t n)
{
	assert_int_equal(gw_endpoint_request(one->endpoint, BED_OP_ECHO, NULL, bytes, n, gw_deadline_ns(20000),
					     (void *)(uintptr_t)bytes),
			 GW_OK);
}

/* In their order. */
static void expect_echo(struct one *one, const uint8_t *bytes, uint32_t n)
{
	struct gw_completion done = gw_bed_wait(one->group, bytes);
	assert_int_equal(done.status, GW_OK);
	assert_int_equal(done.reply_bytes, n);
	assert_memory_equal(done.reply, bytes, n);
}

/* Whether the peer's device has all messages of the client. */
static bool has_arrived(struct one *one)
{
	const struct verbs_stream *stream = &verbs_inside(one)->stream;
	return !stream->unposted && stream->send_begin == stream->send_end;
}

static void small_messages_leave_together(void **state)
{
	struct one one;
	uint8_t bytes[SMALL + VERBS_SENDS];
	begin(&one, state);
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 11);
	for (uint32_t i = 0; i < VERBS_SENDS; i++)
		request(&one, bytes + i, SMALL);
	assert_int_equal(counted.client.calls, 0);
	verbs_inside(&one)->heard = false;
	gw_verbs_run_deferred(verbs_inside(&one)->loop);
	assert_int_equal(counted.client.calls, 1);
	assert_false(verbs_inside(&one)->heard); /* a post is no sign of life of the server */
	while (!has_arrived(&one))
		gw_one_nothing_more(&one, 1);
	assert_int_equal(counted.client.works, VERBS_SENDS);
	assert_int_equal(counted.client.signalled, 1);
	gw_bed_resume(&one.bed);
	for (uint32_t i = 0; i < VERBS_SENDS; i++)
		expect_echo(&one, bytes + i, SMALL);
	assert_int_equal(counted.server.calls, 1);
	assert_int_equal(counted.server.works, VERBS_SENDS);
	assert_int_equal(counted.server.signalled, 1);
	end(&one);
}

/* More than one list: the rest leaves when the send buffers are free again. */
static void many_requests_keep_their_order(void **state)
{
	static uint8_t bytes[SMALL + 64];
	struct one one;
	begin(&one, state);
	gw_bed_resume(&one.bed);
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13);
	uint32_t n = verbs_inside(&one)->requests_max < 64 ? verbs_inside(&one)->requests_max : 64;
	for (uint32_t i = 0; i < n; i++)
		request(&one, bytes + i, SMALL);
	for (uint32_t i = 0; i < n; i++)
		expect_echo(&one, bytes + i, SMALL);
	assert_in_range(counted.client.works, n, n + n / (VERBS_RECEIVES / 2)); /* and credits */
	assert_in_range(counted.client.calls, n / VERBS_SENDS, n - 1);
	end(&one);
}

static void a_large_request_leaves_at_once(void **state)
{
	struct one one;
	static uint8_t bytes[LARGE + 2];
	begin(&one, state);
	request(&one, bytes, SMALL);
	assert_int_equal(counted.client.calls, 0);
	request(&one, bytes + 1, LARGE);
	assert_int_equal(counted.client.calls, 1);
	assert_int_equal(counted.client.works, 2);
	gw_bed_resume(&one.bed);
	expect_echo(&one, bytes, SMALL);
	expect_echo(&one, bytes + 1, LARGE);
	end(&one);
}

/* A goodbye is the last request before the close. */
static void a_goodbye_leaves_before_the_close(void **state)
{
	struct one one;
	begin(&one, state);
	gw_endpoint_goodbye(one.endpoint);
	assert_int_equal(counted.client.calls, 0);
	gw_endpoint_close(one.endpoint);
	assert_int_equal(counted.client.calls, 1);
	gw_bed_resume(&one.bed);
	struct gw_connect_options options = gw_bed_options(&one.bed);
	struct gw_completion done; /* of the goodbye, whose answer nobody awaits */
	while (gw_poll_group_poll(one.group, &done, 1, GW_NS_PER_SECOND) == 0)
		;
	assert_null(done.cookie);
	assert_int_equal(gw_bed_connect(one.group, &options, &one.endpoint), GW_OK);
	one.region = one.endpoint->peer.regions[0];
	end(&one);
}

static void a_lost_endpoint_answers_what_has_not_left(void **state)
{
	struct one one;
	uint8_t bytes[SMALL] = {1};
	begin(&one, state);
	request(&one, bytes, SMALL);
	gw_verbs_lose(verbs_inside(&one), gw_fail(GW_PEER_LOST, "lost by the test"));
	assert_int_equal(gw_bed_wait(one.group, bytes).status, GW_PEER_LOST);
	assert_int_equal(counted.client.calls, 0);
	gw_bed_resume(&one.bed);
	verbs_connect_again(&one);
	end(&one);
}

int main(void)
{
	const struct bed_kind *kind = verbs_kind();
	if (!gw_bed_possible(kind))
		return 0;
	void *state = (void *)(uintptr_t)kind;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(small_messages_leave_together, state),
		cmocka_unit_test_prestate(many_requests_keep_their_order, state),
		cmocka_unit_test_prestate(a_large_request_leaves_at_once, state),
		cmocka_unit_test_prestate(a_goodbye_leaves_before_the_close, state),
		cmocka_unit_test_prestate(a_lost_endpoint_answers_what_has_not_left, state),
	};
	return cmocka_run_group_tests_name("messages over RDMA that leave together", tests, NULL, NULL);
}
#endif
