/* A TCP server and faulty clients: scripted clients that are slow, silent, malformed, greedy or of another version.
 * Both drivers. A well-behaved client is served all the while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/rude.h"

static void garbage_on_the_port(void **state)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00",
					    "0123456789abcdef0123456789abcdef0123456789abcdef"};
	struct rude *rude = rude_begin(state, NULL);
	for (size_t i = 0; i < 3; i++) {
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_send(fd, texts[i], strlen(texts[i])));
		others_are_served(rude);
		if (strlen(texts[i]) >= WIRE_HEADER_BYTES)
			assert_true(gw_fake_closed(fd, 3000));
		close(fd);
	}
	rude_end(rude);
}

static void malformed_frames(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	const struct wire_header headers[] = {
		{.type = WIRE_GATHER, .bytes = 31, .tag = 1},
		{.type = WIRE_GATHER, .bytes = UINT32_MAX, .tag = 1},
		{.type = WIRE_REQUEST, .bytes = WIRE_REQUEST_BYTES + GW_REQUEST_BYTES_MAX + 1, .tag = 1},
		{.type = WIRE_DATA, .bytes = 0, .tag = 1},
		{.type = WIRE_PING, .bytes = 0, .tag = 0},
		{.type = WIRE_PING, .bytes = 1, .tag = 1},
		{.type = WIRE_HELLO, .bytes = sizeof(struct wire_hello), .tag = 1},
		{.type = 0, .bytes = 0, .tag = 1},
		{.type = WIRE_READV, .bytes = 32, .tag = 1, .status = 1},
	};
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		uint8_t body[sizeof(struct wire_hello)] = {0};
		struct wire_header answer;
		char text[WIRE_ERROR_TEXT];
		int fd = rude_enter(rude, regions);
		assert_true(gw_fake_send(fd, &headers[i], sizeof(headers[i])));
		if (headers[i].bytes < 200)
			gw_fake_send(fd, body, headers[i].bytes < sizeof(body) ? headers[i].bytes : sizeof(body));
		assert_true(gw_fake_expect(fd, WIRE_ERROR, &answer, text, sizeof(text)));
		assert_int_equal(answer.tag, 0);
		assert_int_equal(answer.status, GW_PROTOCOL);
		assert_true(gw_fake_closed(fd, 5000));
		close(fd);
	}
	rude_end(rude);
}

static bool ask(int fd, uint64_t tag, struct wire_read read, const void *rest, uint32_t n)
{
	uint8_t body[256];
	memcpy(body, &read, sizeof(read));
	memcpy(body + sizeof(read), rest, n);
	return gw_fake_frame(fd, WIRE_GATHER, tag, body, (uint32_t)sizeof(read) + n);
}

/* A read that no correct client sends is answered with an error, and the next one is answered. */
static void reads_out_of_range(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	int fd = rude_enter(rude, regions);
	uint32_t generation = regions[0].generation, zero = 0, huge = UINT32_MAX;
	uint64_t wide = UINT64_MAX;
	struct wire_header answer;
	uint8_t body[WIRE_ERROR_TEXT];
	const struct wire_read good = {.generation = generation, .count = 1, .length = 8, .width = 4};
	struct wire_read bad[6] = {good, good, good, good, good, good};
	bad[0].region = 3;
	bad[1].generation = generation + 1;
	bad[2].base = regions[0].bytes - 7;
	bad[3].shift = 31; /* with a large offset */
	bad[4].width = 8;  /* with the largest offset: 64 bits overflow */
	bad[4].base = 16;
	bad[5].length = UINT32_MAX;
	for (uint64_t i = 0; i < 6; i++) {
		const void *rest = i == 3 ? (const void *)&huge : i == 4 ? (const void *)&wide : (const void *)&zero;
		assert_true(ask(fd, 2 * i + 1, bad[i], rest, bad[i].width));
		assert_true(gw_fake_expect(fd, WIRE_ERROR, &answer, body, sizeof(body)));
		assert_int_equal(answer.tag, 2 * i + 1);
		assert_int_equal(answer.status, i == 1 ? GW_STALE : GW_RANGE);
		assert_true(ask(fd, 2 * i + 2, good, &zero, 4));
		assert_true(gw_fake_expect(fd, WIRE_DATA, &answer, body, sizeof(body)));
		assert_int_equal(answer.tag, 2 * i + 2);
		assert_memory_equal(body, rude->bed.memory, 8);
	}
	close(fd);
	rude_end(rude);
}

static void clients_of_another_version(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	for (uint32_t n = 12; n < 400; n += 97) {
		uint8_t body[400] = {0};
		struct wire_versions versions = {WIRE_MAGIC, WIRE_VERSION + 2, WIRE_VERSION + 1};
		struct wire_challenge challenge;
		struct wire_header answer;
		memcpy(body, &versions, n < sizeof(versions) ? n : sizeof(versions));
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, body, n));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
		assert_int_equal(challenge.versions.newest, WIRE_VERSION);
		assert_int_equal(challenge.versions.oldest, WIRE_OLDEST);
		assert_int_equal(challenge.versions.magic, WIRE_MAGIC);
		assert_true(gw_fake_closed(fd, 5000));
		close(fd);
	}
	/* The hello of version 6, with a key and without. */
	for (uint8_t key_offered = 0; key_offered < 2; key_offered++) {
		const struct wire_versions own = WIRE_VERSIONS;
		uint8_t hello[72] = "WAPT-GW1\x06\0\0\0", challenge[56 + 8];
		struct wire_header answer;
		hello[12] = key_offered;
		memset(hello + 16, 0xa5, sizeof(hello) - 16);
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, hello, sizeof(hello)));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, challenge, sizeof(challenge)));
		assert_memory_equal(challenge, &own, 12); /* what version 6 reads */
		assert_true(gw_fake_closed(fd, 5000));
		close(fd);
	}
	others_are_served(rude);
	rude_end(rude);
}

/* A client of a later version that speaks this version too: its hello may have more bytes. */
static void clients_of_a_later_version(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	for (uint32_t more = 0; more < 400; more += 97) {
		uint8_t body[sizeof(struct wire_hello) + 400], proof[WIRE_PROOF_BYTES] = {0};
		struct wire_hello hello = {.versions = {WIRE_MAGIC, WIRE_VERSION + 1 + more, WIRE_VERSION}};
		struct wire_challenge challenge;
		struct wire_header answer;
		static uint8_t welcome[sizeof(struct wire_welcome) + GW_REGIONS_MAX * WIRE_REGION_BYTES];
		memset(body, 0xa5, sizeof(body));
		memcpy(body, &hello, sizeof(hello));
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, body, sizeof(hello) + more));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
		assert_int_equal(challenge.versions.newest, WIRE_VERSION);
		assert_true(gw_fake_frame(fd, WIRE_PROOF, 0, proof, sizeof(proof)));
		assert_true(gw_fake_expect(fd, WIRE_WELCOME, &answer, welcome, sizeof(welcome)));
		close(fd);
	}
	rude_end(rude);
}

/* A listener moves: a client of a version that has the notice gets it, another one does not; then the connection ends.
 */
static void clients_of_each_version_when_the_server_moves(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	int fds[WIRE_VERSION - WIRE_OLDEST + 1];
	for (uint32_t version = WIRE_OLDEST; version <= WIRE_VERSION; version++) {
		uint8_t proof[WIRE_PROOF_BYTES] = {0};
		struct wire_hello hello = {.versions = {WIRE_MAGIC, version, version},
					   .client_uuid = {(uint8_t)version}};
		struct wire_challenge challenge;
		struct wire_header answer;
		static uint8_t welcome[sizeof(struct wire_welcome) + GW_REGIONS_MAX * WIRE_REGION_BYTES];
		int fd = fds[version - WIRE_OLDEST] = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, &hello, sizeof(hello)));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
		assert_true(gw_fake_frame(fd, WIRE_PROOF, 0, proof, sizeof(proof)));
		assert_true(gw_fake_expect(fd, WIRE_WELCOME, &answer, welcome, sizeof(welcome)));
	}
	gw_bed_pause(&rude->bed);
	gw_listener_move(rude->bed.listener);
	gw_bed_resume(&rude->bed);
	for (uint32_t version = WIRE_OLDEST; version <= WIRE_VERSION; version++) {
		int fd = fds[version - WIRE_OLDEST];
		struct wire_header moved;
		if (gw_wire_speaks(version, WIRE_MOVED)) {
			assert_true(gw_fake_expect(fd, WIRE_MOVED, &moved, NULL, 0));
			assert_int_equal(moved.tag, 0);
		}
		assert_true(gw_fake_closed(fd, 5000));
		close(fd);
	}
	rude_end(rude);
}

/* The server stops reading from a client that asks for much and reads nothing. A client that reads later gets
 * everything. */
static void a_slow_client(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	int fd = rude_enter(rude, regions);
	struct wire_read read = {
		.generation = regions[0].generation, .count = 1, .length = (uint32_t)regions[0].bytes, .width = 4};
	uint32_t zero = 0;
	uint64_t asked = 0;
	uint8_t frame[WIRE_HEADER_BYTES + WIRE_READ_BYTES + 4];
	while (asked < 200) {
		struct wire_header header = {.bytes = WIRE_READ_BYTES + 4, .type = WIRE_GATHER, .tag = asked + 1};
		memcpy(frame, &header, sizeof(header));
		memcpy(frame + sizeof(header), &read, sizeof(read));
		memcpy(frame + sizeof(header) + sizeof(read), &zero, 4);
		if (send(fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(frame))
			break;
		asked++;
		if (asked % 20 == 0)
			others_are_served(rude);
	}
	struct gw_service_counters counters;
	gw_service_counters(rude->bed.service, &counters);
	/* The client asked for 200 MiB; the server has begun only what fits into the sockets. */
	assert_in_range(counters.read_bytes, 1, 60u << 20);
	uint8_t *payload = malloc(regions[0].bytes);
	for (uint64_t i = 0; i < asked; i++) {
		struct wire_header answer;
		assert_true(gw_fake_expect(fd, WIRE_DATA, &answer, payload, (uint32_t)regions[0].bytes));
		assert_int_equal(answer.tag, i + 1);
		assert_memory_equal(payload, rude->bed.memory, regions[0].bytes);
		if (i % 20 == 0)
			others_are_served(rude);
	}
	free(payload);
	close(fd);
	rude_end(rude);
}

/* Waits for at least the server's idle limit: connects a silent client, and waits until it is closed. */
static void bear_with_silence(const struct rude *rude)
{
	int nothing = gw_fake_connect(rude->bed.address.port);
	assert_true(gw_fake_closed(nothing, 60000));
	close(nothing);
}

/* Silence inside the hello or a frame ends a connection; silence between frames does not. */
static void silent_clients(void **state)
{
	struct bed_options options = {.limits = {.idle_ms = 1000}};
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	int nothing = gw_fake_connect(rude->bed.address.port), half = gw_fake_connect(rude->bed.address.port);
	int thinking = rude_enter(rude, regions), inside = rude_enter(rude, regions);
	struct wire_header header = {.bytes = WIRE_READ_BYTES + 4, .type = WIRE_GATHER, .tag = 1};
	assert_true(gw_fake_send(half, &header, 9));
	assert_true(gw_fake_send(inside, &header, sizeof(header)));
	assert_true(gw_fake_closed(nothing, 60000));
	assert_true(gw_fake_closed(half, 60000));
	assert_true(gw_fake_closed(inside, 60000));
	bear_with_silence(rude);
	uint32_t zero = 0, first;
	struct wire_read read = {.generation = regions[0].generation, .count = 1, .length = 4, .width = 4};
	assert_true(ask(thinking, 1, read, &zero, 4));
	assert_true(gw_fake_expect(thinking, WIRE_DATA, &header, &first, 4));
	assert_memory_equal(&first, rude->bed.memory, 4);
	close(nothing);
	close(half);
	close(inside);
	close(thinking);
	rude_end(rude);
}

static void a_client_leaves_at_each_state(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	uint32_t large = 30000000;
	for (uint32_t step = 0; step < 5; step++) {
		int fd = step < 2 ? gw_fake_connect(rude->bed.address.port) : rude_enter(rude, regions);
		struct wire_hello hello = {.versions = WIRE_VERSIONS};
		uint8_t body[WIRE_REQUEST_BYTES + 4] = {0};
		struct wire_header header = {.bytes = sizeof(body), .type = WIRE_REQUEST, .op = BED_OP_LARGE, .tag = 1};
		memcpy(body + WIRE_REQUEST_BYTES, &large, 4);
		if (step == 1)
			gw_fake_frame(fd, WIRE_HELLO, 0, &hello, sizeof(hello));
		if (step >= 3)
			gw_fake_send(fd, &header, sizeof(header));
		if (step == 4) {
			gw_fake_send(fd, body, sizeof(body));
			gw_fake_receive(fd, body, 1); /* the reply is being sent */
		}
		close(fd);
		others_are_served(rude);
	}
	struct gw_service_counters counters = {0};
	for (int i = 0; i < 10000; i++) {
		gw_service_counters(rude->bed.service, &counters);
		if (counters.connections_open == 1)
			break;
		others_are_served(rude);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	assert_int_equal(counters.connections_open, 1);
	rude_end(rude);
}

/* --- Requests of scripted clients. --- */

/* The answers to a client that does not read for longer than the idle limit wait; it gets all of them. */
static void a_slow_client_of_small_replies(void **state)
{
	const uint32_t requests = 3000, bytes = 8000;
	struct bed_options options = {.limits = {.idle_ms = 1000}};
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	int fd = rude_enter(rude, regions);
	for (uint32_t i = 0; i < requests; i++)
		assert_true(rude_call(fd, BED_OP_LARGE, i + 1, &bytes, 4));
	for (int i = 0; i < 30; i++) {
		others_are_served(rude);
		if (i % 15 == 0)
			bear_with_silence(rude);
	}
	uint8_t *reply = malloc(bytes);
	for (uint32_t i = 0; i < requests; i++) {
		struct wire_header answer;
		assert_true(gw_fake_expect(fd, WIRE_REPLY, &answer, reply, bytes));
		assert_int_equal(answer.tag, i + 1);
		assert_int_equal(answer.bytes, bytes);
		assert_int_equal(reply[bytes - 1], (uint8_t)((bytes - 1) * 7));
	}
	free(reply);
	close(fd);
	rude_end(rude);
}

/* A request that exceeds the server's input buffer. It begins while earlier answers are still being sent and the server
 * is already receiving the next bytes. */
static void a_long_request_behind_reads(void **state)
{
	const uint32_t n = 500000, first = 1000, reads = 40;
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	int fd = rude_enter(rude, regions);
	uint32_t zero = 0, whole = (uint32_t)regions[0].bytes;
	uint8_t *bytes = malloc(n), *body = malloc(whole);
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i ^ (i >> 8));
	struct wire_read read = {.generation = regions[0].generation, .count = 1, .length = whole, .width = 4};
	for (uint64_t i = 0; i < reads; i++)
		assert_true(ask(fd, i + 1, read, &zero, 4));
	struct wire_header header = {
		.bytes = WIRE_REQUEST_BYTES + n, .type = WIRE_REQUEST, .op = BED_OP_ECHO, .tag = reads + 1};
	struct gw_once twice = {0};
	struct wire_header answer;
	assert_true(gw_fake_send(fd, &header, sizeof(header)) && gw_fake_send(fd, &twice, sizeof(twice)) &&
		    gw_fake_send(fd, bytes, first));
	for (uint64_t i = 0; i < reads; i++) {
		assert_true(gw_fake_expect(fd, WIRE_DATA, &answer, body, whole));
		assert_memory_equal(body, rude->bed.memory, whole);
	}
	others_are_served(rude);
	assert_true(gw_fake_send(fd, bytes + first, n - first));
	assert_true(gw_fake_expect(fd, WIRE_REPLY, &answer, body, whole));
	assert_int_equal(answer.tag, reads + 1);
	assert_int_equal(answer.bytes, n);
	assert_memory_equal(body, bytes, n);
	free(bytes);
	free(body);
	close(fd);
	rude_end(rude);
}

static bool others_are_served_in_between(void **state);

/* Many costly requests of one client do not block other clients: a read completes while most of the requests still
 * wait. If this process is delayed meanwhile, the test tries again. */
static void costly_requests_let_others_run(void **state)
{
	bool turns = false;
	for (int tries = 0; tries < 20 && !turns; tries++)
		turns = others_are_served_in_between(state);
	assert_true(turns);
}

static bool others_are_served_in_between(void **state)
{
	enum { REQUESTS = 100 };
	const uint32_t ms = 10;
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	int fd = rude_enter(rude, regions);
	for (uint32_t i = 0; i < REQUESTS; i++)
		assert_true(rude_call(fd, BED_OP_SLOW, i + 1, &ms, 4));
	struct wire_header answer;
	assert_true(gw_fake_expect(fd, WIRE_REPLY, &answer, NULL, 0)); /* all requests have arrived */
	others_are_served(rude);
	struct gw_service_counters counters;
	gw_service_counters(rude->bed.service, &counters);
	bool turns = counters.requests <= REQUESTS / 2;
	for (uint32_t i = 1; i < REQUESTS; i++) {
		assert_true(gw_fake_expect(fd, WIRE_REPLY, &answer, NULL, 0));
		assert_int_equal(answer.tag, i + 1);
	}
	close(fd);
	rude_end(rude);
	return turns;
}

/* A client that waits for a long call gets unasked PONGs, though no answer comes before the call's. */
static void a_long_call_gives_signs_of_life(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	struct wire_header answer;
	uint8_t body[8];
	int fd = rude_enter(rude, regions);
	for (uint64_t tag = 1; tag < 4; tag += 2) {
		atomic_store(&rude->bed.release, false);
		assert_true(rude_call(fd, BED_OP_DEFER, tag, "abc", 3));
		assert_true(gw_fake_frame(fd, WIRE_PING, tag + 1, NULL, 0));
		for (int signs = 0; signs < 3; signs++) {
			assert_true(gw_fake_expect(fd, WIRE_PONG, &answer, NULL, 0));
			assert_int_equal(answer.tag, 0);
		}
		atomic_store(&rude->bed.release, true);
		do
			assert_true(gw_fake_receive(fd, &answer, sizeof(answer)));
		while (answer.type == WIRE_PONG && answer.tag == 0);
		assert_int_equal(answer.type, WIRE_REPLY);
		assert_int_equal(answer.bytes, 3);
		assert_true(gw_fake_receive(fd, body, 3));
		assert_true(gw_fake_expect(fd, WIRE_PONG, &answer, NULL, 0));
		assert_int_equal(answer.tag, tag + 1);
	}
	close(fd);
	rude_end(rude);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(garbage_on_the_port)},
		{BED_TEST(malformed_frames)},
		{BED_TEST(reads_out_of_range)},
		{BED_TEST(clients_of_another_version)},
		{BED_TEST(clients_of_a_later_version)},
		{BED_TEST(clients_of_each_version_when_the_server_moves)},
		{BED_TEST(a_slow_client)},
		{BED_TEST(a_slow_client_of_small_replies)},
		{BED_TEST(silent_clients)},
		{BED_TEST(a_client_leaves_at_each_state)},
		{BED_TEST(a_long_request_behind_reads)},
		{BED_TEST(costly_requests_let_others_run)},
		{BED_TEST(a_long_call_gives_signs_of_life)},
	};
	return gw_bed_run_tcp("tcp server", tests, sizeof(tests) / sizeof(tests[0]));
}
