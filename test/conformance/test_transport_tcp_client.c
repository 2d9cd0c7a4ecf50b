/* A TCP client and faulty servers: scripted servers that break off or answer wrongly in every state, are silent, or
 * have another type or version. Both drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"

#define REGION_BYTES 1000000u

struct script {
	int fd;
	uint32_t step;    /* where to break off */
	uint64_t tag;     /* the tag of the question that was read */
	bool say_nothing; /* after the script, stay silent instead of closing */
};

/* The fake server's actions after accept. Returns whether the script ran to its end. */
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

/* Reads once if the hello succeeds. Returns the first failure, with its text in *text. */
static gw_status meet_within(uint64_t seconds, const struct bed_kind *kind, script_play play, uint32_t step,
			     uint64_t liveness_ms, char *text)
{
	struct stage stage = {.play = play, .script = {.step = step}};
	struct gw_connect_options options = {.address = {.scheme = "tcp", .host = "127.0.0.1"},
					     .deadline_ns = gw_now_ns() + seconds * GW_NS_PER_SECOND,
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
	snprintf(text, GW_ERROR_TEXT_MAX, "%s", status != GW_OK ? gw_last_error() : "");
	if (status == GW_OK) {
		struct gw_span span = {0, 0, REGION_BYTES};
		struct gw_read_set reads = {.cookie = &reads, .deadline_ns = GW_NO_DEADLINE};
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
	assert_true(status == GW_OK || strlen(text) > 0);
	return status;
}

/* As meet_within, with ample time, so that no deadline is the cause of a failure. */
static gw_status meet(const struct bed_kind *kind, script_play play, uint32_t step, uint64_t liveness_ms, char *text)
{
	return meet_within(100, kind, play, step, liveness_ms, text);
}

static bool read_question(struct script *script)
{
	struct wire_header header;
	uint8_t body[64];
	bool good = gw_fake_expect(script->fd, WIRE_GATHER, &header, body, sizeof(body));
	script->tag = header.tag;
	return good;
}

static bool break_off(struct script *script)
{
	struct wire_header header;
	uint8_t body[256];
	struct wire_challenge challenge = {.versions = WIRE_VERSIONS};
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
	default: /* an answer without a question, after a right one */
		return gw_fake_send(script->fd, &header, sizeof(header)) &&
		       gw_fake_send(script->fd, payload, REGION_BYTES);
	}
	gw_fake_send(script->fd, &header, sizeof(header));
	gw_fake_send(script->fd, payload, 100);
	return gw_fake_closed(script->fd, 60000);
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
	struct wire_challenge challenge = {.versions = {WIRE_MAGIC, script->step, script->step}};
	return gw_fake_expect(script->fd, WIRE_HELLO, &header, &hello, sizeof(hello)) &&
	       gw_fake_frame(script->fd, WIRE_CHALLENGE, 0, &challenge, 12 + script->step % 30) &&
	       gw_fake_closed(script->fd, 60000);
}

/* The bytes by which a server of version 6 answers another version, whether it wants a key (step 1) or not. */
static bool version_6(struct script *script)
{
	struct wire_header header;
	struct wire_hello hello;
	uint8_t challenge[56] = "WAPT-GW1\x06\0\0\0";
	challenge[12] = (uint8_t)script->step;
	memset(challenge + 16, 0xa5, sizeof(challenge) - 16);
	return gw_fake_expect(script->fd, WIRE_HELLO, &header, &hello, sizeof(hello)) &&
	       gw_fake_frame(script->fd, WIRE_CHALLENGE, 0, challenge, sizeof(challenge)) &&
	       gw_fake_closed(script->fd, 60000);
}

/* A server of a later version, whose challenge has more bytes, and which speaks this version too. */
static bool later_version(struct script *script)
{
	struct wire_header header;
	struct wire_hello hello;
	static uint8_t payload[REGION_BYTES];
	uint8_t proof[WIRE_PROOF_BYTES], longer[sizeof(struct wire_challenge) + 40];
	struct wire_challenge challenge = {.versions = {WIRE_MAGIC, WIRE_VERSION + 2, WIRE_VERSION}};
	struct {
		struct wire_welcome head;
		struct wire_region region;
	} welcome = {.head = {.parts = 1, .region_count = 1, .requests_max = 8},
		     .region = {.bytes = REGION_BYTES, .generation = 1}};
	memset(longer, 0xa5, sizeof(longer));
	memcpy(longer, &challenge, sizeof(challenge));
	return gw_fake_expect(script->fd, WIRE_HELLO, &header, &hello, sizeof(hello)) &&
	       gw_fake_frame(script->fd, WIRE_CHALLENGE, 0, longer, sizeof(longer)) &&
	       gw_fake_expect(script->fd, WIRE_PROOF, &header, proof, sizeof(proof)) &&
	       gw_fake_frame(script->fd, WIRE_WELCOME, 0, &welcome, sizeof(welcome)) && read_question(script) &&
	       gw_fake_frame(script->fd, WIRE_DATA, script->tag, payload, sizeof(payload));
}

/* A server whose newest version is `step`: during a read it says that it has a successor, and then answers. */
static bool moves(struct script *script)
{
	struct wire_header header;
	struct wire_hello hello;
	static uint8_t payload[REGION_BYTES];
	uint8_t proof[WIRE_PROOF_BYTES];
	struct wire_challenge challenge = {.versions = {WIRE_MAGIC, script->step, script->step}};
	struct {
		struct wire_welcome head;
		struct wire_region region;
	} welcome = {.head = {.parts = 1, .region_count = 1, .requests_max = 8},
		     .region = {.bytes = REGION_BYTES, .generation = 1}};
	if (!gw_fake_expect(script->fd, WIRE_HELLO, &header, &hello, sizeof(hello)) ||
	    !gw_fake_frame(script->fd, WIRE_CHALLENGE, 0, &challenge, sizeof(challenge)) ||
	    !gw_fake_expect(script->fd, WIRE_PROOF, &header, proof, sizeof(proof)) ||
	    !gw_fake_frame(script->fd, WIRE_WELCOME, 0, &welcome, sizeof(welcome)) || !read_question(script))
		return false;
	if (!gw_wire_speaks(script->step, WIRE_MOVED)) /* the client ends the connection */
		return gw_fake_frame(script->fd, WIRE_MOVED, 0, NULL, 0) && gw_fake_closed(script->fd, 60000);
	return gw_fake_frame(script->fd, WIRE_MOVED, 0, NULL, 0) &&
	       gw_fake_frame(script->fd, WIRE_DATA, script->tag, payload, sizeof(payload));
}

static bool garbage(struct script *script)
{
	static const char *const texts[] = {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
					    "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
					    "\x10\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0 sixteen bytes!!"};
	const char *text = texts[script->step];
	gw_fake_send(script->fd, text, script->step == 2 ? 32 : strlen(text));
	return gw_fake_closed(script->fd, 60000);
}

static bool refuse(struct script *script)
{
	struct wire_header header = {.type = WIRE_ERROR, .status = GW_LIMIT, .bytes = 9};
	/* A close with the hello unread would reset the connection, and the client would lose these bytes. */
	return gw_fake_send(script->fd, &header, sizeof(header)) && gw_fake_send(script->fd, "too\nmany\0", 9) &&
	       gw_fake_closed(script->fd, 60000);
}

static void servers_of_other_kinds(void **state)
{
	char text[GW_ERROR_TEXT_MAX];
	assert_int_equal(meet(*state, other_version, WIRE_VERSION + 1, 0, text), GW_VERSION);
	for (uint32_t key_wanted = 0; key_wanted < 2; key_wanted++) {
		assert_int_equal(meet(*state, version_6, key_wanted, 0, text), GW_VERSION);
		assert_non_null(strstr(text, "the server speaks protocol version 6, this client version"));
	}
	assert_int_equal(meet(*state, later_version, 0, 0, text), GW_OK);
	for (uint32_t version = WIRE_OLDEST; version <= WIRE_VERSION; version++)
		assert_int_equal(meet(*state, moves, version, 0, text),
				 gw_wire_speaks(version, WIRE_MOVED) ? GW_OK : GW_PROTOCOL);
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
	       gw_fake_expect(script->fd, WIRE_PING, &header, NULL, 0) && gw_fake_closed(script->fd, 60000);
}

static bool silent(struct script *script)
{
	script->say_nothing = true;
	return gw_fake_closed(script->fd, 60000);
}

static void silent_servers(void **state)
{
	char text[GW_ERROR_TEXT_MAX];
	assert_int_equal(meet(*state, silent_after_welcome, 0, 100, text), GW_PEER_LOST);
	assert_non_null(strstr(text, "probe"));
	assert_int_equal(meet_within(1, *state, silent, 0, 0, text), GW_DEADLINE);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(a_server_breaks_off_at_each_state)},
		{BED_TEST(a_server_lies)},
		{BED_TEST(servers_of_other_kinds)},
		{BED_TEST(silent_servers)},
	};
	return gw_bed_run_tcp("tcp client", tests, sizeof(tests) / sizeof(tests[0]));
}
