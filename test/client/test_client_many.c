/* What a run of an engine costs with many servers. The memory of links and of TCP endpoints is protected, so that a
 * fault tells that the engine touches it; what a run touches must not grow with the number of servers.
 *
 *   the engine's links connect ─▶ this thread owns the engine ─▶ memory is protected ─▶ one event ─▶ faults are counted
 *
 * A link is a little shorter than a page and lies in one or two of them. A timer moves at most a link of each level of
 * the heap of timers. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "transport/tcp/client/client_private.h"

#define SERVERS_MAX 64
#define CALLS       300
#define PAGE        4096u
#define BLOCKS_MAX  (8 * SERVERS_MAX)
#define LEVELS      6 /* of the heap of timers; each timer that moves is in one page */

static_assert(sizeof(struct gw_link) <= PAGE, "a link touches at most two pages");

/* --- Memory whose use is seen. --- */

enum kind { LINK_PAGES, ENDPOINTS, KINDS };

static struct block {
	_Atomic(uint8_t *) base; /* set last; NULL: not in use */
	size_t bytes, unit;      /* a fault makes one unit accessible */
	enum kind kind;
} blocks[BLOCKS_MAX];
static _Atomic uint32_t block_count;
static uint32_t servers; /* of the client that is opened next */
static volatile sig_atomic_t touched[KINDS];

static struct block *block_find(const void *memory)
{
	const uint8_t *at = memory;
	for (uint32_t i = 0; i < atomic_load(&block_count); i++) {
		const uint8_t *base = atomic_load(&blocks[i].base);
		if (base && at >= base && at < base + blocks[i].bytes)
			return &blocks[i];
	}
	return NULL;
}

static void *block_allocate(size_t bytes)
{
	const bool links = servers && bytes == servers * sizeof(struct gw_link);
	if (!links && bytes != sizeof(struct tcp_client))
		return malloc(bytes);
	size_t whole = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	void *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t at = atomic_fetch_add(&block_count, 1);
	if (base == MAP_FAILED || at >= BLOCKS_MAX)
		return NULL;
	blocks[at].bytes = whole;
	blocks[at].unit = links ? PAGE : whole;
	blocks[at].kind = links ? LINK_PAGES : ENDPOINTS;
	atomic_store(&blocks[at].base, base);
	return base;
}

static void block_release(void *memory)
{
	struct block *of = memory ? block_find(memory) : NULL;
	if (!of) {
		free(memory);
		return;
	}
	munmap(atomic_exchange(&of->base, NULL), of->bytes);
}

static void block_touched(int signal, siginfo_t *info, void *context)
{
	const struct block *of = block_find(info->si_addr);
	(void)signal, (void)context;
	if (!of) {
		static const char text[] = "an access outside of the protected memory\n";
		(void)!write(2, text, sizeof(text) - 1);
		abort();
	}
	uint8_t *base = atomic_load(&of->base);
	size_t unit = (size_t)((uint8_t *)info->si_addr - base) / of->unit;
	touched[of->kind]++;
	mprotect(base + unit * of->unit, of->unit, PROT_READ | PROT_WRITE);
}

static void protect(int how)
{
	for (uint32_t i = 0; i < atomic_load(&block_count); i++)
		if (blocks[i].base)
			mprotect(blocks[i].base, blocks[i].bytes, how);
}

static void guard(void)
{
	touched[LINK_PAGES] = touched[ENDPOINTS] = 0;
	protect(PROT_NONE);
}

static void unguard(void)
{
	protect(PROT_READ | PROT_WRITE);
}

static void expect_touched(const char *what, int pages_most, int endpoints_most)
{
	unguard();
	print_message("%3u servers: %s touches %d pages of links, %d endpoints\n", servers, what, touched[LINK_PAGES],
		      touched[ENDPOINTS]);
	assert_in_range(touched[LINK_PAGES], 0, pages_most);
	assert_in_range(touched[ENDPOINTS], 0, endpoints_most);
}

/* --- A client of many servers. --- */

struct many {
	struct setup setup;
	struct gw_client *client;
	struct gw_engine *engine;
	const struct gw_tensor *feat;
};

static void many_begin(struct many *many, uint32_t count, const char *driver)
{
	memset(many, 0, sizeof(*many));
	servers = 0;
	setup_begin(&many->setup, 31, count, driver);
	servers = count;
	const struct gw_client_options options = {.servers = many->setup.cluster.list,
						  .server_count = count,
						  .threads = 1,
						  .tcp_driver = driver,
						  .transport = "tcp",
						  .timeout_ms = 600000,
						  .reconnect_ms = -1};
	many->client = open_client(&options);
	many->engine = &many->client->engines[0];
	many->feat = node_tensor(many->client, "paper", "feat");
}

static void many_end(struct many *many)
{
	gw_client_close(many->client);
	servers = 0;
	setup_end(&many->setup);
	atomic_store(&block_count, 0);
}

/* The engine is this thread's until it waits for a ticket. */
static void engine_take(struct gw_engine *engine)
{
	uint32_t unowned = 0;
	while (!atomic_compare_exchange_weak(&engine->owner, &unowned, 1))
		unowned = 0;
}

static void engine_settle(struct gw_engine *engine)
{
	engine_take(engine);
	for (int turn = 0; turn < 4; turn++)
		gw_engine_run_once(engine, gw_now_ns());
	atomic_store(&engine->owner, 0);
}

static void run_without_work(struct many *many)
{
	engine_settle(many->engine);
	engine_take(many->engine);
	struct tcp_loop *loop = ((struct tcp_client *)many->engine->links[0].endpoint)->loop;
	many->engine->runs_to_skip = 0;
	gw_tcp_clients_tick(loop, gw_now_ns()); /* drops endpoints whose work has ended */
	guard();
	gw_engine_run_once(many->engine, gw_now_ns());
	expect_touched("a run without work", 0, 0);
	guard();
	gw_tcp_clients_tick(loop, gw_now_ns());
	expect_touched("a look at the timers of connections", 0, 0);
	atomic_store(&many->engine->owner, 0);
}

static int64_t first_paper(const struct many *many, uint32_t part)
{
	int64_t begin, end;
	must(gw_part_range(many->client, many->feat->type, part, &begin, &end));
	assert_true(begin < end);
	return begin;
}

static void one_row(struct many *many)
{
	int64_t id = first_paper(many, servers - 1);
	float row[8];
	assert_true(many->feat->row_bytes <= sizeof(row));
	engine_settle(many->engine);
	guard();
	must(gw_gather(many->client, many->feat, &id, 1, row));
	expect_touched("a gather of one row", 2, 1);
}

static bool all_are_away(const struct many *many, uint32_t first)
{
	for (uint32_t p = first; p < servers; p++) {
		const struct gw_link *link = many->engine->part_links[p];
		if (link->state == GW_LINK_OPEN || !link->head || !link->failure)
			return false;
	}
	return true;
}

/* All servers but the first three are lost while a gather wants a row of each. */
static void servers_away(struct many *many)
{
	const uint32_t first = 3;
	const uint64_t row_bytes = many->feat->row_bytes;
	int64_t ids[SERVERS_MAX];
	uint8_t *before = calloc(2 * SERVERS_MAX, row_bytes), *after = before + SERVERS_MAX * row_bytes;
	assert_non_null(before);
	for (uint32_t p = first; p < servers; p++)
		ids[p - first] = first_paper(many, p);
	const uint64_t n = servers - first;
	must(gw_gather(many->client, many->feat, ids, n, before));
	engine_settle(many->engine);

	struct gw_ticket *ticket;
	engine_take(many->engine);
	for (uint32_t p = first; p < servers; p++)
		cluster_kill(&many->setup.cluster, p);
	must(gw_gather_start(many->client, many->feat, ids, n, after, &ticket));
	while (!all_are_away(many, first))
		gw_engine_run_once(many->engine, gw_now_ns() + GW_NS_PER_MS);
	/* Times at which no timer is due. */
	while (many->engine->ticking)
		gw_links_tick(many->engine, 1);
	guard();
	gw_links_tick(many->engine, 1);
	expect_touched("a run while most servers are away", 0, 0);
	guard();
	const struct gw_link *link = many->engine->part_links[servers - 1];
	gw_deadlines_set(&many->engine->timers, (struct gw_deadline *)&link->timer, 2);
	gw_links_tick(many->engine, 2);
	expect_touched("a timer of one of them", 2 * LEVELS, 0);
	for (uint32_t p = first; p < servers; p++)
		cluster_revive(&many->setup.cluster, p);
	atomic_store(&many->engine->owner, 0);
	must(gw_wait(ticket, -1));
	assert_memory_equal(after, before, n * row_bytes);
	free(before);
}

static void a_run_touches_few_links(void **state)
{
	(void)state;
	static struct many many;
	static const char *const drivers[] = {"epoll", "io_uring"};
	/* cmocka has its own handler of this signal, which ends the test. */
	struct sigaction action = {.sa_sigaction = block_touched, .sa_flags = SA_SIGINFO | SA_NODEFER}, before;
	sigaction(SIGSEGV, &action, &before);
	for (uint32_t count = 8; count <= SERVERS_MAX / 2; count *= 4) {
		many_begin(&many, count, drivers[count != 8]);
		run_without_work(&many);
		one_row(&many);
		servers_away(&many);
		many_end(&many);
	}
	sigaction(SIGSEGV, &before, NULL);
}

/* More requests than a connection takes at once: those that find no room are posted when there is some, without a
 * deadline or a timer. */
static void calls_wait_for_room(void **state)
{
	(void)state;
	static struct setup setup;
	static struct gw_ticket *tickets[CALLS];
	static struct gw_minibatch *batches[CALLS];
	setup_begin(&setup, 33, 2, "epoll");
	static const char *const drivers[] = {"epoll", "io_uring"};
	for (int d = 0; d < 2; d++) {
		const struct gw_client_options options = {.servers = setup.cluster.list,
							  .server_count = 2,
							  .threads = 1,
							  .neighbours = "requests",
							  .transport = "tcp",
							  .tcp_driver = drivers[d],
							  .timeout_ms = -1};
		struct gw_client *client = open_client(&options);
		struct plan plan;
		make_plan(client, &plan, false, false);
		/* All are in the inbox before the engine runs: it posts all in one run. */
		engine_take(&client->engines[0]);
		for (uint32_t c = 0; c < CALLS; c++) {
			int64_t seed = c;
			must(gw_sample_start(client, &plan.spec, 5, 6, &seed, 1, &batches[c], &tickets[c]));
		}
		atomic_store(&client->engines[0].owner, 0);
		for (uint32_t c = 0; c < CALLS; c++) {
			int64_t seed = c;
			struct gw_minibatch *alone;
			must(gw_wait(tickets[c], -1));
			must(gw_sample(client, &plan.spec, 5, 6, &seed, 1, &alone));
			assert_int_equal(gw_minibatch_digest(batches[c]), gw_minibatch_digest(alone));
			gw_minibatch_release(batches[c]);
			gw_minibatch_release(alone);
		}
		gw_client_close(client);
	}
	setup_end(&setup);
}

int main(void)
{
	static const struct gw_allocator allocator = {block_allocate, realloc, block_release};
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_touches_few_links),
					   cmocka_unit_test(calls_wait_for_room)};
	gw_allocator_set(&allocator);
	return cmocka_run_group_tests_name("many servers", tests, NULL, NULL);
}
