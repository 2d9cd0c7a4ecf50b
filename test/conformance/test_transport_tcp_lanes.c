/* The lanes of a driver's queue: a short question is answered after one turn of a bulk connection at most, however many
 * there are, and bulk connections go on, however many short questions come. The connections are scripts on socket
 * pairs. Both drivers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "transport/tcp/driver/driver.h"

#define BULKS    8u
#define PIECE    (64u << 10)
#define QUESTION 8u
#define ROUNDS   50u
#define RUNS_MAX 10000u

struct scene;

struct script {
	struct tcp_io io;
	struct scene *scene;
	int peer;
	bool bulk;
	uint8_t question[QUESTION];
	uint32_t asked;  /* short: bytes of a question that has come in part */
	bool answers;    /* short: an answer is to be sent */
	uint32_t turns;  /* bulk: so often after another connection */
	uint32_t served; /* short: answers sent */
	bool gone;
};

struct scene {
	struct tcp_driver *driver;
	struct script scripts[BULKS + 1]; /* the last is the short one */
	const struct script *last;        /* asked most recently */
	uint32_t turns;                   /* of bulk connections */
};

static uint8_t piece[PIECE];

static size_t script_target(struct tcp_io *io, struct iovec *iov)
{
	struct script *script = (struct script *)(void *)io;
	iov[0] = (struct iovec){script->question + script->asked, QUESTION - script->asked};
	return 1;
}

static size_t script_source(struct tcp_io *io, struct iovec *iov)
{
	struct script *script = (struct script *)(void *)io;
	struct scene *scene = script->scene;
	bool again = scene->last == script;
	scene->last = script;
	io->bulk = script->bulk;
	if (script->bulk) {
		scene->turns += !again;
		script->turns += !again;
		iov[0] = (struct iovec){piece, PIECE};
		return 1;
	}
	iov[0] = (struct iovec){piece, QUESTION};
	return script->answers;
}

static void script_received(struct tcp_io *io, ssize_t n)
{
	struct script *script = (struct script *)(void *)io;
	assert_true(n > 0 || n == -ECANCELED);
	script->asked += n > 0 ? (uint32_t)n : 0;
	if (script->asked == QUESTION) {
		script->asked = 0;
		script->answers = true;
	}
}

static void script_sent(struct tcp_io *io, ssize_t n)
{
	struct script *script = (struct script *)(void *)io;
	assert_true(n > 0);
	if (script->bulk)
		return;
	script->answers = false;
	script->served++;
}

static void script_gone(struct tcp_io *io)
{
	((struct script *)(void *)io)->gone = true;
}

static const struct tcp_io_events events = {.target = script_target,
					    .source = script_source,
					    .received = script_received,
					    .sent = script_sent,
					    .gone = script_gone};

static void scene_begin(struct scene *scene, const char *driver)
{
	memset(scene, 0, sizeof(*scene));
	gw_status status = gw_tcp_driver_open(driver, false, &scene->driver);
	if (status == GW_UNSUPPORTED || status == GW_LOCKED_MEMORY)
		skip();
	assert_int_equal(status, GW_OK);
	for (uint32_t i = 0; i <= BULKS; i++) {
		struct script *script = &scene->scripts[i];
		int ends[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
		*script = (struct script){
			.io = {.events = &events, .fd = ends[0]}, .scene = scene, .peer = ends[1], .bulk = i < BULKS};
		assert_int_equal(scene->driver->ops->add(scene->driver, &script->io), GW_OK);
		scene->driver->ops->kick(scene->driver, &script->io);
	}
}

static void scene_run(struct scene *scene)
{
	bool woken = false;
	scene->driver->ops->run(scene->driver, 0, &woken);
	scene->last = NULL; /* a turn ends with the run */
}

/* The peers of bulk connections read all that has come, so each connection has room for the next turn. */
static void scene_drain(struct scene *scene)
{
	static uint8_t taken[PIECE];
	for (uint32_t i = 0; i < BULKS; i++) {
		while (read(scene->scripts[i].peer, taken, sizeof(taken)) > 0)
			;
	}
}

/* Runs until the short question is answered. Returns how many turns bulk connections had meanwhile. */
static uint32_t scene_ask(struct scene *scene)
{
	struct script *asked = &scene->scripts[BULKS];
	uint32_t served = asked->served, turns = scene->turns;
	uint8_t question[QUESTION] = {0};
	assert_int_equal(write(asked->peer, question, QUESTION), QUESTION);
	for (uint32_t runs = 0; asked->served == served && runs < RUNS_MAX; runs++) {
		scene_run(scene);
		scene_drain(scene);
	}
	assert_int_equal(asked->served, served + 1);
	assert_int_equal(read(asked->peer, question, QUESTION), QUESTION);
	return scene->turns - turns;
}

static void scene_end(struct scene *scene)
{
	bool woken = false;
	for (uint32_t i = 0; i <= BULKS; i++)
		scene->driver->ops->remove(scene->driver, &scene->scripts[i].io);
	for (uint32_t i = 0; i <= BULKS; i++) {
		while (!scene->scripts[i].gone)
			scene->driver->ops->run(scene->driver, gw_now_ns() + GW_NS_PER_MS, &woken);
		close(scene->scripts[i].peer);
	}
	scene->driver->ops->shut(scene->driver);
}

static void short_questions_come_first(const char *driver)
{
	struct scene scene;
	scene_begin(&scene, driver);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		/* Once, for the driver to hear that they are bulk connections. */
		for (uint32_t runs = 0; runs < 1 + i % BULKS; runs++) {
			scene_run(&scene);
			scene_drain(&scene);
		}
		/* With io_uring one turn while the question is received, and perhaps one until the kernel tells it. */
		assert_in_range(scene_ask(&scene), 0, 3);
	}
	scene_end(&scene);
}

static void bulk_connections_go_on(const char *driver)
{
	struct scene scene;
	scene_begin(&scene, driver);
	for (uint32_t i = 0; i < ROUNDS * BULKS; i++)
		scene_ask(&scene);
	/* In turn. */
	for (uint32_t i = 0; i < BULKS; i++)
		assert_in_range(scene.scripts[i].turns, ROUNDS / 4, UINT32_MAX);
	scene_end(&scene);
}

static void epoll_short_first(void **state)
{
	(void)state;
	short_questions_come_first("epoll");
}

static void epoll_bulk_goes_on(void **state)
{
	(void)state;
	bulk_connections_go_on("epoll");
}

static void uring_short_first(void **state)
{
	(void)state;
	short_questions_come_first("io_uring");
}

static void uring_bulk_goes_on(void **state)
{
	(void)state;
	bulk_connections_go_on("io_uring");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epoll_short_first),
		cmocka_unit_test(epoll_bulk_goes_on),
		cmocka_unit_test(uring_short_first),
		cmocka_unit_test(uring_bulk_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
