/* TCP with strangers: a client against scripted servers that break off or lie at every state, a server against scripted
 * clients that are slow, silent, rude or of another version. Both drivers. Others are served all the while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"

#define REGION_BYTES 1000000u

/* --- A client against a scripted server. --- */

struct script {
	int fd;
	uint32_t step;    /* where to break off */
	uint64_t tag;     /* of the question that was read */
	bool say_nothing; /* after the script: stay silent instead of closing */
};

/* What the fake server does after accept; returns whether the script could be played. */
typedef bool (*script_play)(struct script *script);

struct stage {
	int listener;
	script_play play;
	struct script script;
	bool good;
};

static void *run_stage(void *argument)
{
	struct stage *stage = argument;
	stage->script.fd = gw_fake_accept(stage->listener);
	stage->good = stage->script.fd >= 0 && stage->play(&stage->script);
	if (stage->script.fd >= 0 && !stage->script.say_nothing)
		close(stage->script.fd);
	return NULL;
}

/* Connects to the script, reads once if the hello goes through; returns the first failure, its text in *text. */
static gw_status meet(const struct bed_kind *kind, script_play play, uint32_t step, uint64_t liveness_ms, char *text)
{
	struct stage stage = {.play = play, .script = {.step = step}};
	struct gw_connect_options options = {.address = {.scheme = "tcp", .host = "127.0.0.1"},
					     .deadline_ns = gw_now_ns() + 2 * GW_NS_PER_SECOND,
					     .liveness_ns = liveness_ms * GW_NS_PER_MS};
	pthread_t thread;
	stage.listener = gw_fake_listen(&options.address.port);
	assert_true(stage.listener >= 0);
	assert_int_equal(pthread_create(&thread, NULL, run_stage, &stage), 0);
	struct gw_poll_group *group = gw_bed_group(kind);
	static uint8_t landing[REGION_BYTES];
	struct gw_buffer *buffer;
	struct gw_endpoint *endpoint;
	assert_int_equal(gw_buffer_register(group, landing, sizeof(landing), &buffer), GW_OK);
	gw_status status = gw_bed_connect(group, &options, &endpoint);
	snprintf(text, GW_ERROR_TEXT_MAX, "%s", status ? gw_last_error() : "");
	if (!status) {
		struct gw_span span = {0, 0, REGION_BYTES};
		struct gw_group reads = {.cookie = &reads, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(endpoint, &reads, &endpoint->peer.regions[0], buffer, &span, 1);
		struct gw_completion completion = gw_bed_wait(group, &reads);
		status = completion.status;
		snprintf(text, GW_ERROR_TEXT_MAX, "%s", completion.text);
	}
	pthread_join(thread, NULL);
	gw_endpoint_close(endpoint);
	if (stage.script.say_nothing)
		close(stage.script.fd);
	gw_buffer_release(buffer);
	gw_poll_group_destroy(group);
	close(stage.listener);
	assert_true(stage.good);
	assert_true(!status || strlen(text) > 0);
	return status;
}

static bool read_question(struct script *script)
{
	struct wire_header header;
	uint8_t body[64];
	bool good = gw_fake_expect(script->fd, WIRE_GATHER, &header, body, sizeof(body));
	script->tag = header.tag;
	return good;
}

/* Plays the hello and an answer, and closes after `step` things. */
static bool break_off(struct script *script)
{
	struct wire_header header;
	uint8_t body[256];
	struct wire_challenge challenge = {.magic = WIRE_MAGIC, .version = WIRE_VERSION};
	if (script->step == 0)
		return true;
	if (script->step == 1)
		return gw_fake_expect(script->fd, WIRE_HELLO, &header, body, sizeof(body));
	if (script->step == 2) {
		struct wire_header half = {.bytes = sizeof(challenge), .type = WIRE_CHALLENGE};
		return gw_fake_expect(script->fd, WIRE_HELLO, &header, body, sizeof(body)) &&
		       gw_fake_send(script->fd, &half, sizeof(half)) && gw_fake_send(script->fd, &challenge, 20);
	}
	if (script->step == 3)
		return gw_fake_expect(script->fd, WIRE_HELLO, &header, body, sizeof(body)) &&
		       gw_fake_frame(script->fd, WIRE_CHALLENGE, 0, &challenge, sizeof(challenge)) &&
		       gw_fake_expect(script->fd, WIRE_PROOF, &header, body, sizeof(body));
	if (!gw_fake_welcome(script->fd, REGION_BYTES))
		return false;
	if (script->step == 4)
		return true;
	if (!read_question(script))
		return false;
	struct wire_header data = {.bytes = REGION_BYTES, .type = WIRE_DATA, .tag = script->tag};
	static uint8_t payload[REGION_BYTES];
	if (script->step == 6)
		return gw_fake_send(script->fd, &data, 7);
	if (script->step >= 7 && !gw_fake_send(script->fd, &data, sizeof(data)))
		return false;
	if (script->step >= 8)
		return gw_fake_send(script->fd, payload, REGION_BYTES - (script->step == 8 ? 1 : 0));
	return true;
}

static void a_server_breaks_off_at_each_state(void **state)
{
	char text[GW_ERROR_TEXT_MAX];
	for (uint32_t step = 0; step <= 8; step++) {
		gw_status status = meet(*state, break_off, step, 0, text);
		if (status != GW_PEER_LOST)
			fail_msg("step %u: %d \"%s\"", step, status, text);
	}
	assert_int_equal(meet(*state, break_off, 9, 0, text), GW_OK);
}

/* Answers that are not what was asked for. */
static bool lie(struct script *script)
{
	static uint8_t payload[REGION_BYTES];
	struct wire_header header = {.bytes = REGION_BYTES, .type = WIRE_DATA};
	if (!gw_fake_welcome(script->fd, REGION_BYTES) || !read_question(script))
		return false;
	header.tag = script->tag;
	switch (script->step) {
	case 0:
		header.tag += 1;
		break;
	case 1:
		header.bytes -= 1;
		break;
	case 2:
		header.type = WIRE_REPLY;
		break;
	case 3:
		header.type = WIRE_PONG;
		header.bytes = 0;
		break;
	case 4:
		header.type = WIRE_GATHER;
		header.bytes = 36;
		break;
	case 5:
		header.type = 200;
		break;
	case 6:
		header.type = WIRE_ERROR;
		header.bytes = 60000;
		break;
	case 7:
		header.type = WIRE_WELCOME;
		header.bytes = sizeof(struct wire_welcome);
		break;
	case 8:
		header.op = 1;
		break;
	default: /* an answer nobody asked for, behind a right one */
		return gw_fake_send(script->fd, &header, sizeof(header)) &&
		       gw_fake_send(script->fd, payload, REGION_BYTES);
	}
	gw_fake_send(script->fd, &header, sizeof(header));
	gw_fake_send(script->fd, payload, 100);
	return gw_fake_closed(script->fd, 3000);
}

static void a_server_lies(void **state)
{
	char text[GW_ERROR_TEXT_MAX];
	for (uint32_t step = 0; step <= 8; step++) {
		gw_status status = meet(*state, lie, step, 0, text);
		if (status != GW_PROTOCOL)
			fail_msg("lie %u: %d \"%s\"", step, status, text);
	}
	assert_int_equal(meet(*state, lie, 9, 0, text), GW_OK);
}

static bool other_version(struct script *script)
{
	struct wire_header header;
	struct wire_hello hello;
	struct wire_challenge challenge = {.magic = WIRE_MAGIC, .version = script->step};
	return gw_fake_expect(script->fd, WIRE_HELLO, &header, &hello, sizeof(hello)) &&
	       gw_fake_frame(script->fd, WIRE_CHALLENGE, 0, &challenge, 12 + script->step % 30) &&
	       gw_fake_closed(script->fd, 3000);
}

static bool garbage(struct script *script)
{
	static const char *const texts[] = {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
					    "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
					    "\x10\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0 sixteen bytes!!"};
	const char *text = texts[script->step];
	gw_fake_send(script->fd, text, script->step == 2 ? 32 : strlen(text));
	return gw_fake_closed(script->fd, 3000);
}

static bool refuse(struct script *script)
{
	struct wire_header header = {.type = WIRE_ERROR, .status = GW_LIMIT, .bytes = 9};
	return gw_fake_send(script->fd, &header, sizeof(header)) && gw_fake_send(script->fd, "too\nmany\0", 9);
}

static void servers_of_other_kinds(void **state)
{
	char text[GW_ERROR_TEXT_MAX];
	assert_int_equal(meet(*state, other_version, 7, 0, text), GW_VERSION);
	assert_non_null(strstr(text, "version 7"));
	assert_int_equal(meet(*state, other_version, 2, 0, text), GW_VERSION);
	for (uint32_t step = 0; step < 3; step++)
		assert_int_equal(meet(*state, garbage, step, 0, text), GW_PROTOCOL);
	assert_int_equal(meet(*state, refuse, 0, 0, text), GW_REFUSED);
	assert_non_null(strstr(text, "too many"));
}

static bool silent_after_welcome(struct script *script)
{
	struct wire_header header;
	script->say_nothing = true;
	return gw_fake_welcome(script->fd, REGION_BYTES) && read_question(script) &&
	       gw_fake_expect(script->fd, WIRE_PING, &header, NULL, 0) && gw_fake_closed(script->fd, 3000);
}

static bool silent(struct script *script)
{
	script->say_nothing = true;
	return gw_fake_closed(script->fd, 4000);
}

static void silent_servers(void **state)
{
	char text[GW_ERROR_TEXT_MAX];
	assert_int_equal(meet(*state, silent_after_welcome, 0, 100, text), GW_PEER_LOST);
	assert_non_null(strstr(text, "probe"));
	assert_int_equal(meet(*state, silent, 0, 0, text), GW_DEADLINE);
}

/* --- A server against scripted clients. --- */

struct rude {
	struct bed bed;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint8_t landing[4096];
};

static struct rude *rude_begin(void **state, const struct bed_options *options)
{
	struct rude *rude = calloc(1, sizeof(*rude));
	gw_bed_begin(&rude->bed, *state, options);
	rude->group = gw_bed_group(rude->bed.kind);
	struct gw_connect_options connect = gw_bed_options(&rude->bed);
	assert_int_equal(gw_buffer_register(rude->group, rude->landing, 4096, &rude->buffer), GW_OK);
	assert_int_equal(gw_bed_connect(rude->group, &connect, &rude->endpoint), GW_OK);
	return rude;
}

/* The well-behaved client is served within the time of a wait. */
static void others_are_served(struct rude *rude)
{
	struct gw_span span = {4096, 0, 4096};
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	memset(rude->landing, 0, 4096);
	gw_bed_readv(rude->endpoint, &group, &rude->endpoint->peer.regions[0], rude->buffer, &span, 1);
	assert_int_equal(gw_bed_wait(rude->group, &group).status, GW_OK);
	assert_memory_equal(rude->landing, rude->bed.memory + 4096, 4096);
}

static void rude_end(struct rude *rude)
{
	others_are_served(rude);
	gw_endpoint_close(rude->endpoint);
	gw_buffer_release(rude->buffer);
	gw_poll_group_destroy(rude->group);
	gw_bed_end(&rude->bed);
	free(rude);
}

static int enter(struct rude *rude, struct wire_region *regions)
{
	struct wire_welcome welcome;
	int fd = gw_fake_connect(rude->bed.address.port);
	assert_true(fd >= 0);
	assert_true(gw_fake_enter(fd, &welcome, regions, 3));
	assert_int_equal(welcome.region_count, 3);
	return fd;
}

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

/* Each is the end of that connection, told by an ERROR frame. */
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
		int fd = enter(rude, regions);
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
	int fd = enter(rude, regions);
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
		struct wire_hello hello = {.magic = WIRE_MAGIC, .version = 9};
		struct wire_challenge challenge;
		struct wire_header answer;
		memcpy(body, &hello, 12);
		int fd = gw_fake_connect(rude->bed.address.port);
		assert_true(gw_fake_frame(fd, WIRE_HELLO, 0, body, n));
		assert_true(gw_fake_expect(fd, WIRE_CHALLENGE, &answer, &challenge, sizeof(challenge)));
		assert_int_equal(challenge.version, WIRE_VERSION);
		assert_int_equal(challenge.magic, WIRE_MAGIC);
		assert_true(gw_fake_closed(fd, 5000));
		close(fd);
	}
	rude_end(rude);
}

/* A client that asks for much and reads nothing is not read from any more; one that reads later gets all of it. */
static void a_slow_client(void **state)
{
	struct rude *rude = rude_begin(state, NULL);
	struct wire_region regions[3];
	int fd = enter(rude, regions);
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
	/* 200 MiB were asked for; what was begun is what fits the sockets. */
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

/* Silence inside the hello or a frame ends a connection; silence between frames does not. */
static void silent_clients(void **state)
{
	struct bed_options options = {.limits = {.idle_ms = 150}};
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	int nothing = gw_fake_connect(rude->bed.address.port), half = gw_fake_connect(rude->bed.address.port);
	int thinking = enter(rude, regions), inside = enter(rude, regions);
	struct wire_header header = {.bytes = WIRE_READ_BYTES + 4, .type = WIRE_GATHER, .tag = 1};
	assert_true(gw_fake_send(half, &header, 9));
	assert_true(gw_fake_send(inside, &header, sizeof(header)));
	assert_true(gw_fake_closed(nothing, 5000));
	assert_true(gw_fake_closed(half, 5000));
	assert_true(gw_fake_closed(inside, 5000));
	assert_false(gw_fake_closed(thinking, 400));
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
		int fd = step < 2 ? gw_fake_connect(rude->bed.address.port) : enter(rude, regions);
		struct wire_hello hello = {.magic = WIRE_MAGIC, .version = WIRE_VERSION};
		struct wire_header header = {.bytes = 12, .type = WIRE_REQUEST, .op = BED_OP_LARGE, .tag = 1};
		uint8_t body[12] = {0};
		memcpy(body + 8, &large, 4);
		if (step == 1)
			gw_fake_frame(fd, WIRE_HELLO, 0, &hello, sizeof(hello));
		if (step >= 3)
			gw_fake_send(fd, &header, sizeof(header));
		if (step == 4) {
			gw_fake_send(fd, body, sizeof(body));
			gw_fake_receive(fd, body, 1); /* the reply is under way */
		}
		close(fd);
		others_are_served(rude);
	}
	struct gw_service_counters counters = {0};
	for (int i = 0; i < 500; i++) {
		gw_service_counters(rude->bed.service, &counters);
		if (counters.connections_open == 1)
			break;
		others_are_served(rude);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	assert_int_equal(counters.connections_open, 1);
	rude_end(rude);
}

static void a_taken_port(void **state)
{
	struct bed bed;
	gw_bed_begin(&bed, *state, NULL);
	struct gw_poll_group *group = gw_bed_group(*state);
	struct gw_listener *listener;
	assert_int_equal(gw_listen(&group, 1, &bed.address, bed.service, &listener), GW_BUSY);
	assert_null(listener);
	char self[32];
	snprintf(self, sizeof(self), "process %d (", getpid());
	assert_non_null(strstr(gw_last_error(), self));
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

static void ipv6_and_names(void **state)
{
	struct bed bed;
	gw_bed_begin(&bed, *state, NULL);
	struct gw_poll_group *group = gw_bed_group(*state);
	struct gw_connect_options connect = gw_bed_options(&bed);
	struct gw_endpoint *endpoint;
	/* "localhost" may be ::1 first, where nobody listens: the next address is tried. */
	strcpy(connect.address.host, "localhost");
	assert_int_equal(gw_bed_connect(group, &connect, &endpoint), GW_OK);
	gw_endpoint_close(endpoint);
	strcpy(connect.address.host, "no-such-host.invalid");
	gw_status status = gw_bed_connect(group, &connect, &endpoint);
	assert_int_equal(status, GW_NOT_FOUND);
	gw_endpoint_close(endpoint);
	struct gw_address six = {.scheme = "tcp", .host = "::1"};
	struct gw_poll_group *server = gw_bed_group(*state);
	struct gw_listener *listener;
	if (gw_listen(&server, 1, &six, bed.service, &listener) == GW_OK) {
		connect.address = listener->address;
		assert_int_equal(gw_endpoint_connect(group, &connect, &connect, &endpoint), GW_OK);
		struct gw_completion completion;
		size_t n = 0;
		for (int i = 0; i < 1000 && !n; i++) {
			gw_poll_group_poll(server, NULL, 0, GW_NS_PER_MS);
			n = gw_poll_group_poll(group, &completion, 1, GW_NS_PER_MS);
		}
		assert_int_equal(n, 1);
		assert_int_equal(completion.status, GW_OK);
		gw_endpoint_close(endpoint);
		gw_listener_free(listener);
	} else {
		print_message("no IPv6 here: %s\n", gw_last_error());
	}
	gw_poll_group_destroy(server);
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

/* clang-format off: one test a line */
#define EACH(X)                                                                                                        \
	X(a_server_breaks_off_at_each_state)                                                                           \
	X(a_server_lies)                                                                                               \
	X(servers_of_other_kinds)                                                                                      \
	X(silent_servers)                                                                                              \
	X(garbage_on_the_port)                                                                                         \
	X(malformed_frames)                                                                                            \
	X(reads_out_of_range)                                                                                          \
	X(clients_of_another_version)                                                                                  \
	X(a_slow_client)                                                                                               \
	X(silent_clients)                                                                                              \
	X(a_client_leaves_at_each_state)                                                                               \
	X(a_taken_port)                                                                                                \
	X(ipv6_and_names)
/* clang-format on */

int main(void)
{
	static char names[100][80];
	static struct CMUnitTest tests[100];
	size_t n = 0;
	for (size_t b = 0; b < gw_bed_count; b++) {
		if (!gw_beds[b].network || !gw_bed_possible(&gw_beds[b]))
			continue;
#define ROW(function)                                                                                                  \
	snprintf(names[n], sizeof(names[n]), "%s: %s", gw_beds[b].name, #function);                                    \
	tests[n] = (struct CMUnitTest){names[n], function, NULL, NULL, (void *)(uintptr_t)&gw_beds[b]};                \
	n++;
		EACH(ROW)
	}
	return _cmocka_run_group_tests("transport over tcp", tests, n, NULL, NULL);
}
