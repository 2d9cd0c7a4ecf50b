/* A TCP server and pending clients, and clients that do not read their answers. They cost little, they exclude no other
 * client, and a refused client gets the reason. Both drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "test/support/rude.h"

/* Far more pending clients than the limit: sockets that send nothing, or a hello and no proof. A client that proves the
 * key is admitted meanwhile, and only such clients count as connections. The oldest pending clients are closed. */
static void a_flood_of_pending_clients(void **state)
{
	enum { FLOOD = 200, KEPT = 8 };
	struct bed_options options = {.limits = {.connections = 4, .unproven = KEPT}};
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	struct wire_hello hello = {.versions = WIRE_VERSIONS};
	int fds[FLOOD], inside[3];
	for (int i = 0; i < FLOOD; i++) {
		fds[i] = gw_fake_connect(rude->bed.address.port);
		assert_true(fds[i] >= 0);
		if (i % 2)
			gw_fake_frame(fds[i], WIRE_HELLO, 0, &hello, sizeof(hello));
		if (i % 80 == 79)
			inside[i / 80] = rude_enter(rude, regions);
	}
	inside[2] = rude_enter(rude, regions);
	others_are_served(rude);
	while (rude_counters(rude).dropped < FLOOD - KEPT)
		others_are_served(rude);
	struct gw_service_counters counters = rude_counters(rude);
	assert_in_range(counters.unproven, 1, KEPT);
	assert_int_equal(counters.connections_open, 4);
	assert_int_equal(counters.connections_total, 4);
	for (int i = 0; i < FLOOD - KEPT - 2; i++) /* the others were admitted for a moment */
		assert_true(gw_fake_closed(fds[i], 5000));
	for (int i = 0; i < FLOOD; i++)
		close(fds[i]);
	while (rude_counters(rude).unproven)
		others_are_served(rude);
	for (int i = 0; i < 3; i++)
		close(inside[i]);
	rude_end(rude);
}

/* More clients with the key than the limit: the admitted ones go on, the others are refused with the reason. */
static void a_full_server_refuses_with_the_reason(void **state)
{
	struct bed_options options = {.limits = {.connections = 2}};
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	struct wire_hello hello = {.versions = WIRE_VERSIONS};
	struct wire_challenge challenge;
	uint8_t proof[WIRE_PROOF_BYTES] = {0};
	int inside = rude_enter(rude, regions);
	for (int i = 0; i < 20; i++) {
		struct wire_header answer;
		char text[WIRE_ERROR_TEXT + 1] = {0};
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, &hello, sizeof(hello)));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
		assert_true(gw_fake_frame(fd, WIRE_PROOF, 0, proof, sizeof(proof)));
		assert_true(gw_fake_expect(fd, WIRE_ERROR, &answer, text, WIRE_ERROR_TEXT));
		assert_int_equal(answer.status, GW_LIMIT);
		assert_int_equal(answer.tag, 0);
		assert_non_null(strstr(text, "too many connections"));
		assert_non_null(strstr(text, " 2 "));
		assert_true(gw_fake_closed(fd, 5000));
		close(fd);
	}
	assert_int_equal(rude_counters(rude).refused, 20);
	others_are_served(rude);
	close(inside);
	while (rude_counters(rude).connections_open > 1)
		others_are_served(rude);
	close(rude_enter(rude, regions));
	rude_end(rude);
}

static _Atomic uint32_t large_blocks;

static void *counting_allocate(size_t bytes)
{
	if (bytes >= 16384)
		atomic_fetch_add(&large_blocks, 1);
	return malloc(bytes);
}

static void *counting_reallocate(void *old, size_t bytes)
{
	if (bytes >= 16384)
		atomic_fetch_add(&large_blocks, 1);
	return realloc(old, bytes);
}

static void a_pending_client_has_no_buffers(void **state)
{
	static const struct gw_allocator counting = {
		.allocate = counting_allocate, .reallocate = counting_reallocate, .release = free};
	gw_allocator_set(&counting);
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	struct wire_hello hello = {.versions = WIRE_VERSIONS};
	int fds[20];
	others_are_served(rude); /* with buffers that exist from now on */
	uint32_t before = atomic_load(&large_blocks);
	assert_true(before > 0);
	for (int i = 0; i < 20; i++) {
		struct wire_header answer;
		struct wire_challenge challenge;
		fds[i] = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fds[i], WIRE_HELLO, 0, &hello, sizeof(hello)));
		assert_true(gw_fake_expect(fds[i], WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
	}
	assert_int_equal(atomic_load(&large_blocks), before);
	int inside = rude_enter(rude, regions);
	others_are_served(rude);
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	close(inside);
	rude_end(rude);
	gw_allocator_set(NULL);
}

/* A pending client is closed at the header of a frame that is too long or not part of a hello. */
static void a_pending_client_that_sends_much(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	const struct wire_header headers[] = {
		{.type = WIRE_REQUEST, .bytes = WIRE_REQUEST_BYTES + GW_REQUEST_BYTES_MAX},
		{.type = WIRE_GATHER, .bytes = 100000},
		{.type = WIRE_HELLO, .bytes = 4097},
		{.type = WIRE_PROOF, .bytes = WIRE_PROOF_BYTES + 1},
		{.type = WIRE_PING},
	};
	struct wire_hello hello = {.versions = WIRE_VERSIONS};
	struct wire_challenge challenge;
	struct wire_header answer;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		for (int behind_hello = 0; behind_hello < 2; behind_hello++) {
			char text[WIRE_ERROR_TEXT];
			int fd = gw_fake_connect(rude->bed.address.port);
			if (behind_hello) {
				assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, &hello, sizeof(hello)));
				assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
			}
			assert_true(gw_fake_send(fd, &headers[i], sizeof(headers[i])));
			if (behind_hello) {
				assert_true(gw_fake_expect(fd, WIRE_ERROR, &answer, text, sizeof(text)));
				assert_int_equal(answer.status, GW_PROTOCOL);
			}
			assert_true(gw_fake_closed(fd, 5000));
			close(fd);
		}
	}
	rude_end(rude);
}

static void a_hello_in_one_piece(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	uint8_t frames[2048], body[4096];
	size_t n = 0;
	struct wire_hello hello = {.versions = WIRE_VERSIONS};
	uint8_t proof[WIRE_PROOF_BYTES] = {0}, call[WIRE_REQUEST_BYTES + 4] = {0};
	const uint32_t large = 400000;
	memcpy(call + WIRE_REQUEST_BYTES, &large, 4);
	const struct {
		uint8_t type;
		uint16_t op;
		uint64_t tag;
		const void *body;
		uint32_t bytes;
	} parts[] = {{WIRE_HELLO, 0, 0, &hello, sizeof(hello)},
		     {WIRE_PROOF, 0, 0, proof, sizeof(proof)},
		     {WIRE_PING, 0, 1, NULL, 0},
		     {WIRE_REQUEST, BED_OP_LARGE, 2, call, sizeof(call)},
		     {WIRE_PING, 0, 3, NULL, 0}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct wire_header header = {
			.type = parts[i].type, .op = parts[i].op, .tag = parts[i].tag, .bytes = parts[i].bytes};
		memcpy(frames + n, &header, sizeof(header));
		n += sizeof(header);
		if (parts[i].bytes)
			memcpy(frames + n, parts[i].body, parts[i].bytes);
		n += parts[i].bytes;
	}
	for (size_t cut = 1; cut < n; cut += 1 + cut / 8) {
		struct wire_header answer;
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_send(fd, frames, cut));
		assert_true(gw_fake_send(fd, frames + cut, n - cut));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, body, sizeof(body)));
		assert_true(gw_fake_expect(fd, WIRE_WELCOME, &answer, body, sizeof(body)));
		assert_true(gw_fake_expect(fd, WIRE_PONG, &answer, body, sizeof(body)));
		uint8_t *reply = malloc(large);
		assert_true(gw_fake_expect(fd, WIRE_REPLY, &answer, reply, large));
		assert_int_equal(reply[large - 1], (uint8_t)((large - 1) * 7));
		free(reply);
		assert_true(gw_fake_expect(fd, WIRE_PONG, &answer, body, sizeof(body)));
		assert_int_equal(answer.tag, 3);
		close(fd);
	}
	rude_end(rude);
}

/* A client that does not read its answers uses memory for replies, and loses its connection when others need that
 * memory. A client that was only served before the others waits. */
static void replies_that_are_not_read(void **state)
{
	const uint32_t much = 14u << 20, little = 4u << 20;
	struct bed_options options = {.limits = {.reply_bytes = 16u << 20}};
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	struct wire_header answer;
	int greedy = rude_enter(rude, regions), other = rude_enter(rude, regions);
	assert_true(rude_call(greedy, BED_OP_RESERVE, 1, &much, 4));
	while (rude_counters(rude).reply_bytes < much)
		others_are_served(rude);
	assert_true(rude_call(other, BED_OP_RESERVE, 1, &little, 4));
	uint8_t *reply = malloc(little);
	assert_true(gw_fake_expect(other, WIRE_REPLY, &answer, reply, little));
	assert_int_equal(answer.bytes, little);
	assert_int_equal(reply[little - 1], (uint8_t)((little - 1) * 7));
	free(reply);
	assert_true(gw_fake_closed(greedy, 5000));
	assert_int_equal(rude_counters(rude).dropped, 1);
	while (rude_counters(rude).reply_bytes)
		others_are_served(rude);
	close(greedy);
	close(other);
	rude_end(rude);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(a_flood_of_pending_clients)},
		{BED_TEST(a_full_server_refuses_with_the_reason)},
		{BED_TEST(a_pending_client_has_no_buffers)},
		{BED_TEST(a_pending_client_that_sends_much)},
		{BED_TEST(a_hello_in_one_piece)},
		{BED_TEST(replies_that_are_not_read)},
	};
	return gw_bed_run_tcp("tcp pending clients", tests, sizeof(tests) / sizeof(tests[0]));
}
