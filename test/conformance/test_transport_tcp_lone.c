/* A TCP client that waits for one row in its socket's own receive. Tests when it does so, and that everything that ends
 * a wait ends this one: an answer cut anywhere, the end of the connection, a wake, a deadline, an answer that does not
 * come. Nothing of an earlier answer delays the wake-up. The server is a script. It acts while the client sleeps, once
 * the kernel reports that the client sleeps. Both drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/tcp_scene.h"

#define ROW_BYTES    400u
#define ANSWER_BYTES (WIRE_HEADER_BYTES + ROW_BYTES)
#define LONG_NS      (200 * GW_NS_PER_SECOND)
#define LONG_BYTES   90000u /* an answer that sets a low-water mark at its last byte */

static void ask(struct scene *scene, uint32_t i, uint32_t bytes, uint64_t deadline_ns)
{
	struct gw_span span = {.bytes = bytes};
	scene->reads[i] = (struct gw_read_set){.cookie = &scene->reads[i], .deadline_ns = deadline_ns};
	assert_int_equal(gw_endpoint_readv(scene->endpoint, &scene->reads[i], &scene->endpoint->peer.regions[0],
					   scene->buffer, &span, 1, true),
			 1);
	gw_tcp_clients_flush(scene->client->loop);
}

static void take_question(struct scene *scene, uint8_t seed)
{
	struct wire_header header;
	uint8_t body[64];
	assert_true(gw_fake_expect(scene->fd, WIRE_GATHER, &header, body, sizeof(body)));
	header = (struct wire_header){.bytes = ROW_BYTES, .type = WIRE_DATA, .tag = header.tag};
	memcpy(scene->answer, &header, sizeof(header));
	for (uint32_t i = 0; i < ROW_BYTES; i++)
		scene->answer[WIRE_HEADER_BYTES + i] = (uint8_t)(seed + i * 7);
}

/* --- Long answers. --- */

static int mark_of(const struct scene *scene)
{
	int mark = -1;
	socklen_t bytes = sizeof(mark);
	assert_int_equal(getsockopt(scene->client->io.fd, SOL_SOCKET, SO_RCVLOWAT, &mark, &bytes), 0);
	return mark;
}

/* Sends so much of a long answer that the client sets a mark. Returns how much of the payload, which is zeros, was
 * sent. */
static size_t begin_long(struct scene *scene)
{
	static const uint8_t zeros[1];
	struct wire_header header;
	struct gw_completion completion;
	uint8_t body[64];
	size_t said = 0;
	int bytes = 4 << 20; /* a receive buffer with room for a mark */
	assert_int_equal(setsockopt(scene->client->io.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	ask(scene, 1, LONG_BYTES, GW_NO_DEADLINE);
	assert_true(gw_fake_expect(scene->fd, WIRE_GATHER, &header, body, sizeof(body)));
	header = (struct wire_header){.bytes = LONG_BYTES, .type = WIRE_DATA, .tag = header.tag};
	assert_true(gw_fake_send(scene->fd, &header, sizeof(header)));
	/* If this thread is delayed, a timer removes the mark; another byte sets it again. */
	while (mark_of(scene) == 1) {
		assert_true(said < LONG_BYTES / 2);
		assert_true(gw_fake_send(scene->fd, zeros, 1));
		said++;
		for (int looks = 0; looks < 3; looks++)
			assert_int_equal(gw_poll_group_poll(scene->group, &completion, 1, GW_NS_PER_MS), 0);
	}
	return said;
}

static void end_long(struct scene *scene, size_t said)
{
	static const uint8_t zeros[LONG_BYTES];
	struct gw_completion completion;
	assert_true(gw_fake_send(scene->fd, zeros, LONG_BYTES - said));
	while (gw_poll_group_poll(scene->group, &completion, 1, LONG_NS) == 0)
		;
	assert_ptr_equal(completion.cookie, &scene->reads[1]);
	assert_int_equal(completion.status, GW_OK);
}

/* --- Events while the client sleeps. --- */

struct meanwhile {
	struct scene *scene;
	long sleeper; /* the id of the sleeping thread */
	void (*act)(struct scene *scene, size_t step);
	size_t step;
};

/* In a system call that waits for events. Other calls may sleep too, on a lock of the kernel. */
static bool sleeps(long thread)
{
	static const long waits[] = {
		SYS_recvfrom,   SYS_recvmsg, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_io_uring_enter,
#ifdef SYS_epoll_wait
		SYS_epoll_wait,
#endif
	};
	char path[64];
	long call = -1;
	bool found = false;
	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", thread);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	bool blocked = fscanf(file, "%ld", &call) == 1; /* else "running" */
	fclose(file);
	for (size_t i = 0; blocked && i < sizeof(waits) / sizeof(*waits); i++)
		found |= call == waits[i];
	return found;
}

static void *do_meanwhile(void *argument)
{
	struct meanwhile *meanwhile = argument;
	while (!sleeps(meanwhile->sleeper))
		sched_yield();
	meanwhile->act(meanwhile->scene, meanwhile->step);
	return NULL;
}

/* Returns the status of a completion, or GW_AGAIN. */
static gw_status poll_while(struct scene *scene, void (*act)(struct scene *scene, size_t step), size_t step)
{
	struct meanwhile meanwhile = {scene, syscall(SYS_gettid), act, step};
	struct gw_completion completion;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, do_meanwhile, &meanwhile), 0);
	size_t n = gw_poll_group_poll(scene->group, &completion, 1, LONG_NS);
	pthread_join(thread, NULL);
	return n ? completion.status : GW_AGAIN;
}

static void act_wake(struct scene *scene, size_t step)
{
	(void)step;
	gw_poll_group_wake(scene->group);
}

static void act_answer(struct scene *scene, size_t cut)
{
	long sleeper = getpid();
	assert_true(gw_fake_send(scene->fd, scene->answer, cut));
	while (!sleeps(sleeper))
		sched_yield();
	assert_true(gw_fake_send(scene->fd, scene->answer + cut, ANSWER_BYTES - cut));
}

static void act_close(struct scene *scene, size_t step)
{
	if (step)
		gw_fake_send(scene->fd, scene->answer, step);
	close(scene->fd);
	scene->fd = -1;
}

/* --- The tests. --- */

static void when_an_answer_is_awaited_alone(void **state)
{
	struct scene *scene = scene_begin(*state, 0);
	struct tcp_loop *loop = scene->client->loop;
	assert_null(gw_tcp_lone(loop));
	ask(scene, 0, ROW_BYTES, GW_NO_DEADLINE);
	assert_ptr_equal(gw_tcp_lone(loop), &scene->client->io);
	/* With a pending wake, or a second question, no answer is awaited alone. */
	gw_poll_group_wake(scene->group);
	assert_null(gw_tcp_lone(loop));
	struct gw_completion completion;
	assert_int_equal(gw_poll_group_poll(scene->group, &completion, 1, LONG_NS), 0);
	assert_ptr_equal(gw_tcp_lone(loop), &scene->client->io);
	ask(scene, 1, ROW_BYTES, GW_NO_DEADLINE);
	assert_null(gw_tcp_lone(loop));
	scene_end(scene);

	scene = scene_begin(*state, 0);
	loop = scene->client->loop;
	ask(scene, 0, CLIENT_LOW_WATER_MIN, GW_NO_DEADLINE);
	assert_null(gw_tcp_lone(loop)); /* a long answer's wake-ups have a mark */
	scene_end(scene);

	scene = scene_begin(*state, 0);
	loop = scene->client->loop;
	ask(scene, 0, ROW_BYTES, GW_NO_DEADLINE);
	uint32_t usual = 0;
	for (int i = 0; i < 1000; i++)
		usual += !gw_tcp_lone(loop);
	assert_in_range(usual, 1, 100); /* other connections are checked now and then */
	gw_tcp_lone_ended(loop, TCP_AWAIT_HANDLED);
	assert_int_equal(loop->lone_pause, 0);
	gw_tcp_lone_ended(loop, TCP_AWAIT_TOO_LONG);
	for (int i = 0; i < 100; i++)
		assert_null(gw_tcp_lone(loop));
	scene_end(scene);
}

static void answers_cut_everywhere(void **state)
{
	struct scene *scene = scene_begin(*state, 0);
	for (size_t cut = 1; cut <= ANSWER_BYTES; cut += cut < 32 ? 1 : 61) {
		ask(scene, 0, ROW_BYTES, GW_NO_DEADLINE);
		take_question(scene, (uint8_t)cut);
		assert_int_equal(poll_while(scene, act_answer, cut), GW_OK);
		assert_memory_equal(scene->landing, scene->answer + WIRE_HEADER_BYTES, ROW_BYTES);
	}
	assert_true(scene->client->io.awaited);
	scene_end(scene);
}

static void a_wake_ends_it(void **state)
{
	for (int round = 0; round < 5; round++) {
		struct scene *scene = scene_begin(*state, 0);
		struct gw_completion completion;
		ask(scene, 0, ROW_BYTES, GW_NO_DEADLINE);
		take_question(scene, 1);
		assert_int_equal(poll_while(scene, act_wake, 0), GW_AGAIN);
		assert_true(scene->client->io.awaited);
		assert_true(scene->client->loop->lone_pause > 0);
		/* The wake may end another poll; the answer still arrives, by a normal wait. */
		assert_int_equal(gw_poll_group_poll(scene->group, &completion, 1, 0), 0);
		assert_int_equal(poll_while(scene, act_answer, 20), GW_OK);
		assert_memory_equal(scene->landing, scene->answer + WIRE_HEADER_BYTES, ROW_BYTES);
		scene_end(scene);
	}
}

static void an_end_ends_it(void **state)
{
	for (size_t said = 0; said < ANSWER_BYTES; said += 100) {
		struct scene *scene = scene_begin(*state, 0);
		ask(scene, 0, ROW_BYTES, GW_NO_DEADLINE);
		take_question(scene, 1);
		assert_int_equal(poll_while(scene, act_close, said), GW_PEER_LOST);
		assert_true(scene->client->io.awaited);
		scene_end(scene);
	}
}

static void a_deadline_ends_it(void **state)
{
	struct scene *scene = scene_begin(*state, 0);
	struct gw_completion completion;
	size_t n = 0;
	ask(scene, 0, ROW_BYTES, gw_now_ns() + 50 * GW_NS_PER_MS);
	while (!n)
		n = gw_poll_group_poll(scene->group, &completion, 1, LONG_NS);
	assert_int_equal(completion.status, GW_DEADLINE);
	/* After a wait that was too long, the next waits are normal ones. */
	assert_true(scene->client->loop->lone_pause > 0);
	scene_end(scene);
}

/* The low-water mark of a long answer is removed before a short answer is awaited, whose few bytes would not reach the
 * mark. */
static void a_mark_ends_with_its_answer(void **state)
{
	struct scene *scene = scene_begin(*state, 0);
	struct gw_completion completion;
	const struct bed_kind *kind = *state;
	bool uring = kind->driver && strcmp(kind->driver, "io_uring") == 0 && !kind->spin_ns, marked = false;
	/* If this thread is delayed, the mark is removed before the answer's end. */
	for (int round = 0; round < 100 && !marked; round++) {
		end_long(scene, begin_long(scene));
		marked = scene->client->io.low_water_set > 1;
		ask(scene, 0, ROW_BYTES, GW_NO_DEADLINE);
		take_question(scene, (uint8_t)round);
		scene->client->io.awaited = false;
		scene->client->loop->next_timer_ns = GW_NO_DEADLINE; /* the mark's timer, which is due by then */
		assert_true(gw_fake_send(scene->fd, scene->answer, ANSWER_BYTES));
		while (gw_poll_group_poll(scene->group, &completion, 1, LONG_NS) == 0)
			;
		assert_int_equal(completion.status, GW_OK);
		assert_memory_equal(scene->landing, scene->answer + WIRE_HEADER_BYTES, ROW_BYTES);
		marked &= scene->client->io.awaited; /* not one of the few normal waits */
		assert_int_equal(mark_of(scene), 1);
	}
	assert_true(marked || !uring); /* epoll, and a spinning io_uring, take it back with the last byte */
	scene_end(scene);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(when_an_answer_is_awaited_alone)},
		{BED_TEST(answers_cut_everywhere)},
		{BED_TEST(a_wake_ends_it)},
		{BED_TEST(an_end_ends_it)},
		{BED_TEST(a_deadline_ends_it)},
		{BED_TEST(a_mark_ends_with_its_answer)},
	};
	return gw_bed_run_tcp("tcp lone row", tests, sizeof(tests) / sizeof(tests[0]));
}
