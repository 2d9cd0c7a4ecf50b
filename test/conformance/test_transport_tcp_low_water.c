/* A TCP client's low-water mark. During a long answer, only large pieces wake the client. It still wakes for the
 * answer's end, wherever the stream is cut, for the end of the connection, and by a timer for a peer that stalls. The
 * server is a script in the client's own thread, played step by step. Between steps the test checks what the client
 * would sleep on. Nothing depends on a timer, except where a comment says so. Both drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "core/system/clock.h"
#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/client/client_private.h"
#include "transport/tcp/socket.h"

#define LONG_BYTES   300000u
#define LONGER_BYTES 400000u
#define SHORT_BYTES  100u
#define READS        3u
#define REQUEST      2u /* the last one is no read */
#define STREAM_BYTES (READS * WIRE_HEADER_BYTES + LONG_BYTES + SHORT_BYTES + LONGER_BYTES)
#define LIMIT_MS     20000

static const uint32_t sizes[READS] = {LONG_BYTES, SHORT_BYTES, LONGER_BYTES};

/* A client, its server's descriptor, and three questions: a long read, a short one, a request with a long reply. */
struct scene {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct tcp_client *client;
	struct gw_buffer *buffer;
	struct gw_read_set reads[READS];
	bool done[READS];
	gw_status status[READS];
	int listener, fd;
	uint8_t *landing, *stream; /* stream: three answers, headers included */
	size_t said;
};

static void *say_hello(void *argument)
{
	struct scene *scene = argument;
	int on = 1;
	scene->fd = gw_fake_accept(scene->listener);
	setsockopt(scene->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* the kernel sends each piece at once */
	return scene->fd >= 0 && gw_fake_welcome(scene->fd, STREAM_BYTES) ? scene : NULL;
}

/* Sets a receive buffer with room for a mark from the start; the kernel's default grows with the stream. */
static void widen(const struct tcp_client *client)
{
	int bytes = 4 << 20;
	assert_int_equal(setsockopt(client->io.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	assert_true(gw_socket_receive_buffer(client->io.fd) / 4 >= CLIENT_LOW_WATER_MIN);
}

static int mark_of(const struct scene *scene)
{
	int mark = -1;
	socklen_t bytes = sizeof(mark);
	assert_int_equal(getsockopt(scene->client->io.fd, SOL_SOCKET, SO_RCVLOWAT, &mark, &bytes), 0);
	return mark;
}

/* The rest of the current answer: the largest allowed mark. */
static uint64_t left(const struct scene *scene)
{
	const struct tcp_client *client = scene->client;
	return client->in_body && client->phase == CLIENT_OPEN ? client->body_left : 1;
}

/* The descriptor that it sleeps on is readable. */
static bool would_wake(const struct scene *scene)
{
	struct tcp_driver *driver = scene->client->loop->driver;
	struct pollfd pollfd = {.fd = driver->ops->wait_fd(driver), .events = POLLIN};
	if (pollfd.fd < 0)
		return true;
	if (scene->client->phase == CLIENT_OPEN)
		assert_true(mark_of(scene) == 1 || (uint64_t)mark_of(scene) <= left(scene));
	return poll(&pollfd, 1, LIMIT_MS) == 1;
}

static void look(struct scene *scene, uint64_t timeout_ns)
{
	struct gw_completion completion;
	while (gw_poll_group_poll(scene->group, &completion, 1, timeout_ns) == 1) {
		size_t i = (size_t)((struct gw_read_set *)completion.cookie - scene->reads);
		assert_true(i < READS && !scene->done[i]);
		scene->done[i] = true;
		scene->status[i] = completion.status;
		timeout_ns = 0;
		if (i == REQUEST && completion.status == GW_OK) {
			assert_int_equal(completion.reply_bytes, sizes[i]);
			memcpy(scene->landing + LONG_BYTES + SHORT_BYTES, completion.reply, sizes[i]);
		}
	}
}

static void ask(struct scene *scene)
{
	struct gw_span span = {0};
	for (uint32_t i = 0; i < REQUEST; i++) {
		span.bytes = sizes[i];
		scene->reads[i] = (struct gw_read_set){.cookie = &scene->reads[i], .deadline_ns = GW_NO_DEADLINE};
		assert_int_equal(gw_endpoint_readv(scene->endpoint, &scene->reads[i], &scene->endpoint->peer.regions[0],
						   scene->buffer, &span, 1, true),
				 1);
		span.local += sizes[i];
	}
	assert_int_equal(gw_endpoint_request(scene->endpoint, 1, NULL, "?", 1, 0, &scene->reads[REQUEST]), GW_OK);
	for (look(scene, 0); scene->client->out_begin != scene->client->out_end; look(scene, 0))
		assert_true(would_wake(scene));
	uint8_t *to = scene->stream;
	for (uint32_t i = 0, at = 0; i < READS; i++) {
		struct wire_header header;
		uint8_t body[64];
		assert_true(gw_fake_expect(scene->fd, i == REQUEST ? WIRE_REQUEST : WIRE_GATHER, &header, body,
					   sizeof(body)));
		header = (struct wire_header){
			.bytes = sizes[i], .type = i == REQUEST ? WIRE_REPLY : WIRE_DATA, .tag = header.tag};
		memcpy(to, &header, sizeof(header));
		to += sizeof(header);
		for (uint32_t j = 0; j < sizes[i]; j++)
			*to++ = (uint8_t)((at + j) * 13 >> 3);
		at += sizes[i];
	}
}

static void begin(struct scene *scene, const struct bed_kind *kind, uint64_t liveness_ms)
{
	pthread_t thread;
	void *welcomed;
	struct gw_connect_options options = {.address = {.scheme = "tcp", .host = "127.0.0.1"},
					     .deadline_ns = gw_now_ns() + 20 * GW_NS_PER_SECOND,
					     .liveness_ns = liveness_ms * GW_NS_PER_MS};
	*scene = (struct scene){.landing = calloc(1, STREAM_BYTES), .stream = malloc(STREAM_BYTES)};
	assert_true(scene->landing && scene->stream);
	scene->listener = gw_fake_listen(&options.address.port);
	assert_true(scene->listener >= 0);
	assert_int_equal(pthread_create(&thread, NULL, say_hello, scene), 0);
	scene->group = gw_bed_group(kind);
	assert_int_equal(gw_buffer_register(scene->group, scene->landing, STREAM_BYTES, &scene->buffer), GW_OK);
	assert_int_equal(gw_bed_connect(scene->group, &options, &scene->endpoint), GW_OK);
	pthread_join(thread, &welcomed);
	assert_non_null(welcomed);
	scene->client = (struct tcp_client *)scene->endpoint;
	widen(scene->client);
	ask(scene);
}

static void end(struct scene *scene)
{
	if (scene->endpoint)
		gw_endpoint_close(scene->endpoint);
	gw_buffer_release(scene->buffer);
	gw_poll_group_destroy(scene->group);
	if (scene->fd >= 0)
		close(scene->fd);
	close(scene->listener);
	free(scene->landing);
	free(scene->stream);
}

static void say(struct scene *scene, size_t cut)
{
	assert_true(gw_fake_send(scene->fd, scene->stream + scene->said, cut - scene->said));
	scene->said = cut;
}

static void wait_done_by_the_socket(struct scene *scene, uint32_t i)
{
	for (look(scene, 0); !scene->done[i]; look(scene, 0))
		assert_true(would_wake(scene));
}

/* Where the i-th answer's payload begins and ends in the stream. */
static size_t begin_of(uint32_t i)
{
	size_t at = WIRE_HEADER_BYTES;
	for (uint32_t j = 0; j < i; j++)
		at += sizes[j] + WIRE_HEADER_BYTES;
	return at;
}

static size_t end_of(uint32_t i)
{
	return begin_of(i) + sizes[i];
}

/* Polls until at most bytes_left bytes of the current answer are left. Bytes below the mark are received by a timer. */
static void take(struct scene *scene, uint64_t bytes_left)
{
	uint64_t end_ns = gw_now_ns() + LIMIT_MS * GW_NS_PER_MS;
	for (look(scene, 0); !scene->client->in_body || scene->client->body_left > bytes_left;
	     look(scene, 10 * GW_NS_PER_MS))
		assert_true(gw_now_ns() < end_ns);
}

/* Receives a little of the first answer, so that the mark is set. If this thread is delayed, a timer removes the mark,
 * and another byte sets it again. */
static void begin_marked(struct scene *scene, const struct bed_kind *kind, uint64_t liveness_ms)
{
	begin(scene, kind, liveness_ms);
	assert_int_equal(mark_of(scene), 1);
	say(scene, begin_of(0));
	for (look(scene, 0); mark_of(scene) == 1; look(scene, 0)) {
		if (scene->client->io.low_water == 1)
			say(scene, scene->said + 1);
		assert_true(scene->said < begin_of(0) + 1000);
		assert_true(would_wake(scene));
	}
	assert_true(mark_of(scene) >= (int)CLIENT_LOW_WATER_MIN);
	assert_true((uint64_t)mark_of(scene) <= left(scene));
}

static void check_rows(struct scene *scene)
{
	for (uint32_t i = 0, at = 0; i < READS; at += sizes[i++]) {
		assert_true(scene->done[i]);
		assert_int_equal(scene->status[i], GW_OK);
		assert_memory_equal(scene->landing + at, scene->stream + begin_of(i), sizes[i]);
	}
}

static void the_mark_follows_the_answer(void **state)
{
	struct scene scene;
	begin_marked(&scene, *state, 0);
	/* Each byte of the tail wakes the client, and so does whatever follows the answer. */
	say(&scene, end_of(0) - 1000);
	take(&scene, 1000);
	look(&scene, 0);
	look(&scene, 0);
	assert_int_equal(mark_of(&scene), 1);
	say(&scene, end_of(1));
	wait_done_by_the_socket(&scene, 1);
	look(&scene, 0);
	look(&scene, 0);
	assert_int_equal(mark_of(&scene), 1);
	say(&scene, begin_of(REQUEST));
	for (look(&scene, 0); mark_of(&scene) == 1; look(&scene, 0)) {
		if (scene.client->io.low_water == 1)
			say(&scene, scene.said + 1);
		assert_true(scene.said < begin_of(REQUEST) + 1000);
		assert_true(would_wake(&scene));
	}
	assert_true((uint64_t)mark_of(&scene) <= left(&scene));
	say(&scene, end_of(REQUEST));
	wait_done_by_the_socket(&scene, REQUEST);
	check_rows(&scene);
	end(&scene);
}

/* Every place where a cut could cause trouble: around headers, marks, halves, ends. */
static size_t cuts_of(size_t *cuts)
{
	static const int32_t around[] = {-70000, -65537, -65536, -65535, -8193, -8192, -17,  -16,   -15,   -1,
					 0,      1,      7,      15,     16,    17,    8192, 65535, 65536, 65537};
	size_t n = 0;
	for (uint32_t i = 0; i < READS; i++) {
		for (size_t j = 0; j < sizeof(around) / sizeof(around[0]); j++) {
			cuts[n++] = (size_t)((int64_t)begin_of(i) + around[j]);
			cuts[n++] = (size_t)((int64_t)end_of(i) + around[j]);
			cuts[n++] = (size_t)((int64_t)(begin_of(i) + sizes[i] / 2) + around[j]);
		}
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return (x > y) - (x < y);
}

/* The stream pauses at each cut of the list and goes on. Complete answers arrive by their own wake-ups. */
static void dribble(const struct bed_kind *kind, const size_t *cuts, size_t n)
{
	struct scene scene;
	begin(&scene, kind, 0);
	for (size_t i = 0; i <= n; i++) {
		size_t cut = i < n ? cuts[i] : STREAM_BYTES;
		if (cut <= scene.said || cut > STREAM_BYTES)
			continue;
		say(&scene, cut);
		for (uint32_t read = 0; read < READS; read++)
			if (scene.said >= end_of(read))
				wait_done_by_the_socket(&scene, read);
		look(&scene, 0);
	}
	check_rows(&scene);
	end(&scene);
}

static void answers_cut_everywhere(void **state)
{
	size_t cuts[READS * 3 * 20];
	size_t n = cuts_of(cuts);
	qsort(cuts, n, sizeof(cuts[0]), compare);
	/* All pauses in one stream, then each pause alone. */
	dribble(*state, cuts, n);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || cuts[i] != cuts[i - 1])
			dribble(*state, &cuts[i], 1);
}

/* Bytes below the mark are received in the end, even if nothing follows. */
static void a_stalled_answer_is_taken(void **state)
{
	struct scene scene;
	begin_marked(&scene, *state, 0);
	say(&scene, scene.said + 1000);
	take(&scene, end_of(0) - scene.said);
	say(&scene, STREAM_BYTES);
	wait_done_by_the_socket(&scene, 2);
	check_rows(&scene);
	end(&scene);
}

static void a_silent_server_is_given_up(void **state)
{
	struct scene scene;
	struct wire_header header;
	begin_marked(&scene, *state, 1000);
	say(&scene, scene.said + 1000);
	take(&scene, end_of(0) - scene.said);
	uint64_t end_ns = gw_now_ns() + LIMIT_MS * GW_NS_PER_MS;
	while (!scene.done[0] && gw_now_ns() < end_ns)
		look(&scene, 100 * GW_NS_PER_MS);
	assert_true(gw_fake_expect(scene.fd, WIRE_PING, &header, NULL, 0));
	assert_int_equal(scene.status[0], GW_PEER_LOST);
	end(&scene);
}

/* The end of the stream, and a reset, wake the client whatever the mark is. */
static void the_connection_ends_below_the_mark(void **state)
{
	for (int reset = 0; reset < 2; reset++) {
		struct scene scene;
		begin_marked(&scene, *state, 0);
		say(&scene, scene.said + 1000);
		struct linger linger = {.l_onoff = reset};
		setsockopt(scene.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		close(scene.fd);
		scene.fd = -1;
		for (uint32_t i = 0; i < READS; i++) {
			wait_done_by_the_socket(&scene, i);
			assert_int_equal(scene.status[i], GW_PEER_LOST);
		}
		end(&scene);
	}
}

/* A read that is cancelled below the mark ends, and the answer to the next question arrives. */
static void a_read_is_cancelled_below_the_mark(void **state)
{
	struct scene scene;
	begin_marked(&scene, *state, 0);
	say(&scene, scene.said + 1000);
	gw_endpoint_cancel(scene.endpoint, &scene.reads[0]);
	wait_done_by_the_socket(&scene, 0);
	assert_int_equal(scene.status[0], GW_CANCELLED);
	say(&scene, STREAM_BYTES);
	wait_done_by_the_socket(&scene, 2);
	assert_int_equal(scene.status[1], GW_OK);
	assert_int_equal(scene.status[2], GW_OK);
	end(&scene);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(the_mark_follows_the_answer)},        {BED_TEST(answers_cut_everywhere)},
		{BED_TEST(a_stalled_answer_is_taken)},          {BED_TEST(a_silent_server_is_given_up)},
		{BED_TEST(the_connection_ends_below_the_mark)}, {BED_TEST(a_read_is_cancelled_below_the_mark)},
	};
	return gw_bed_run_tcp("tcp low-water mark", tests, sizeof(tests) / sizeof(tests[0]));
}
