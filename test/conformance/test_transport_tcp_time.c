/* A TCP client and time. An answer that arrived in time counts, however late the client receives it. A server is lost
 * only if it had time to answer a probe and did not. The server is a script in the client's own thread, and the test
 * advances the clocks: nothing here waits. Both drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/sockios.h>

#include "core/system/clock.h"
#include "test/support/tcp_scene.h"

#define LONG_NS (30 * GW_NS_PER_SECOND)

static void ask(struct scene *scene, uint32_t bytes, uint64_t deadline_ns)
{
	struct gw_span span = {.bytes = bytes};
	struct wire_header header;
	uint8_t body[64];
	scene->reads[0] = (struct gw_read_set){.cookie = scene->reads, .deadline_ns = deadline_ns};
	assert_int_equal(gw_endpoint_readv(scene->endpoint, scene->reads, &scene->endpoint->peer.regions[0],
					   scene->buffer, &span, 1, true),
			 1);
	gw_tcp_clients_flush(scene->client->loop);
	assert_true(gw_fake_expect(scene->fd, WIRE_GATHER, &header, body, sizeof(body)));
	header = (struct wire_header){.bytes = bytes, .type = WIRE_DATA, .tag = header.tag};
	memcpy(scene->answer, &header, sizeof(header));
	for (uint32_t i = 0; i < bytes; i++)
		scene->answer[WIRE_HEADER_BYTES + i] = (uint8_t)(bytes + i * 7);
}

/* Sends bytes, and waits until all are in the client's socket, which is not polled meanwhile. */
static void say(struct scene *scene, const void *bytes, size_t n)
{
	int left = 1;
	assert_true(gw_fake_send(scene->fd, bytes, n));
	while (left)
		assert_int_equal(ioctl(scene->fd, SIOCOUTQ, &left), 0);
}

static gw_status wait_end(struct scene *scene)
{
	struct gw_completion completion;
	while (gw_poll_group_poll(scene->group, &completion, 1, LONG_NS) == 0)
		;
	return completion.status;
}

/* A thread is delayed past the deadline. */
static void an_answer_in_time_counts(void **state)
{
	static const uint32_t sizes[] = {0, 400, 30000}; /* the last one lands in place, its header before it */
	struct scene *scene = scene_begin(*state, LONG_NS);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t deadline = gw_now_ns() + 5 * GW_NS_PER_MS;
		ask(scene, sizes[i], deadline);
		say(scene, scene->answer, WIRE_HEADER_BYTES + sizes[i]);
		while (gw_now_ns() <= deadline)
			;
		assert_int_equal(wait_end(scene), GW_OK);
		assert_memory_equal(scene->landing, scene->answer + WIRE_HEADER_BYTES, sizes[i]);
	}
	/* An answer that had not arrived is late. */
	ask(scene, 400, gw_now_ns() + 5 * GW_NS_PER_MS);
	say(scene, scene->answer, 100);
	assert_int_equal(wait_end(scene), GW_DEADLINE);
	scene_end(scene);
}

/* As if nothing had been polled for `ns`. */
static void let_time_pass(struct scene *scene, uint64_t ns)
{
	scene->client->heard_ns -= ns;
	scene->client->probed_ns -= ns;
	tcp_loop_timer(scene->client->loop, 0);
}

static void look(struct scene *scene)
{
	struct gw_completion completion;
	for (int looks = 0; looks < 4; looks++)
		assert_int_equal(gw_poll_group_poll(scene->group, &completion, 1, 0), 0);
}

/* A thread is delayed for longer than the liveness limit: the server is probed, and may answer. */
static void a_probed_server_has_time_to_answer(void **state)
{
	struct wire_header ping;
	struct scene *scene = scene_begin(*state, LONG_NS);
	ask(scene, 400, GW_NO_DEADLINE);
	look(scene);
	let_time_pass(scene, 2 * LONG_NS);
	look(scene);
	assert_true(gw_fake_expect(scene->fd, WIRE_PING, &ping, NULL, 0));
	assert_true(gw_fake_send(scene->fd, scene->answer, WIRE_HEADER_BYTES + 400));
	assert_int_equal(wait_end(scene), GW_OK);
	assert_true(gw_fake_frame(scene->fd, WIRE_PONG, ping.tag, NULL, 0));
	while (client_queued(scene->client))
		look(scene);
	/* A server that does not answer is lost. */
	ask(scene, 400, GW_NO_DEADLINE);
	let_time_pass(scene, 2 * LONG_NS);
	look(scene);
	assert_true(gw_fake_expect(scene->fd, WIRE_PING, &ping, NULL, 0));
	let_time_pass(scene, 2 * LONG_NS);
	assert_int_equal(wait_end(scene), GW_PEER_LOST);
	scene_end(scene);
}

static void an_unasked_pong_is_a_sign_of_life(void **state)
{
	struct wire_header header;
	struct gw_completion completion;
	uint8_t body[64];
	struct scene *scene = scene_begin(*state, LONG_NS);
	assert_int_equal(gw_endpoint_request(scene->endpoint, 1, NULL, "abc", 3, GW_NO_DEADLINE, scene), GW_OK);
	gw_tcp_clients_flush(scene->client->loop);
	assert_true(gw_fake_expect(scene->fd, WIRE_REQUEST, &header, body, sizeof(body)));
	for (int i = 0; i < 5; i++) {
		let_time_pass(scene, LONG_NS - GW_NS_PER_SECOND);
		uint64_t heard = scene->client->heard_ns;
		assert_true(gw_fake_frame(scene->fd, WIRE_PONG, 0, NULL, 0));
		while (scene->client->heard_ns == heard)
			assert_int_equal(gw_poll_group_poll(scene->group, &completion, 1, GW_NS_PER_MS), 0);
		assert_int_equal(scene->client->phase, CLIENT_OPEN);
	}
	assert_true(gw_fake_frame(scene->fd, WIRE_REPLY, header.tag, "reply", 5));
	assert_true(gw_fake_frame(scene->fd, WIRE_PONG, 0, NULL, 0));
	while (gw_poll_group_poll(scene->group, &completion, 1, LONG_NS) == 0)
		;
	assert_int_equal(completion.status, GW_OK);
	assert_int_equal(completion.reply_bytes, 5);
	assert_memory_equal(completion.reply, "reply", 5);
	scene_end(scene);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(an_answer_in_time_counts)},
		{BED_TEST(a_probed_server_has_time_to_answer)},
		{BED_TEST(an_unasked_pong_is_a_sign_of_life)},
	};
	return gw_bed_run_tcp("tcp time", tests, sizeof(tests) / sizeof(tests[0]));
}
