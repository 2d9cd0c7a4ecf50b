/* What an event at a server costs with many clients (fabric.h). The memory of each client is protected, so that a fault
 * tells that the server touches it; the number of touched clients must not grow with the number of clients.
 *
 *   clients connect ─▶ the server's thread pauses ─▶ clients are protected ─▶ one event ─▶ touched clients are counted
 *
 * An event touches the client that it concerns and its neighbours in lists. A deadline moves at most a client of each
 * level of the heap of deadlines.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "test/fabric/fabric.h"
#include "test/support/transport_bed.h"
#include "test/support/verbs_one.h"
#include "transport/tcp/server/server_private.h"

#define CLIENTS_MAX 256
#define FEW         8 /* clients that an event without a deadline may touch: itself, and neighbours in four lists */
#define LEVELS      9 /* of the deadlines of CLIENTS_MAX clients */

/* --- Memory whose use is seen. --- */

enum kind { OVER_RDMA, OVER_TCP, KINDS };

static struct guarded {
	_Atomic(uint8_t *) pages; /* set last; NULL: not in use */
	size_t bytes;
	enum kind kind;
	volatile sig_atomic_t armed;
} guarded[4 * CLIENTS_MAX];
static _Atomic uint32_t guarded_count;
static volatile sig_atomic_t touched[KINDS];

static struct guarded *guarded_find(const void *memory)
{
	const uint8_t *at = memory;
	for (uint32_t i = 0; i < atomic_load(&guarded_count); i++) {
		const uint8_t *pages = atomic_load(&guarded[i].pages);
		if (pages && at >= pages && at < pages + guarded[i].bytes)
			return &guarded[i];
	}
	return NULL;
}

static void *guarded_allocate(size_t bytes)
{
	enum kind kind = bytes == sizeof(struct verbs_client) ? OVER_RDMA : OVER_TCP;
	if (bytes != sizeof(struct verbs_client) && bytes != sizeof(struct tcp_server))
		return malloc(bytes);
	size_t whole = (bytes + 4095) & ~(size_t)4095;
	void *pages = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t at = atomic_fetch_add(&guarded_count, 1);
	if (pages == MAP_FAILED || at >= sizeof(guarded) / sizeof(guarded[0])) {
		fabric_end("no memory that can be guarded");
		return NULL;
	}
	guarded[at].bytes = whole;
	guarded[at].kind = kind;
	guarded[at].armed = 0;
	atomic_store(&guarded[at].pages, pages);
	return pages;
}

static void guarded_release(void *memory)
{
	struct guarded *of = memory ? guarded_find(memory) : NULL;
	if (!of) {
		free(memory);
		return;
	}
	uint8_t *pages = atomic_exchange(&of->pages, NULL);
	of->armed = 0;
	munmap(pages, of->bytes);
}

static void guarded_touched(int signal, siginfo_t *info, void *context)
{
	struct guarded *of = guarded_find(info->si_addr);
	(void)signal, (void)context;
	if (!of || !of->armed) {
		static const char text[] = "an access outside of the guarded memory\n";
		(void)!write(2, text, sizeof(text) - 1);
		abort();
	}
	of->armed = 0;
	touched[of->kind]++;
	mprotect(of->pages, of->bytes, PROT_READ | PROT_WRITE);
}

static void guard(void)
{
	touched[OVER_RDMA] = touched[OVER_TCP] = 0;
	for (uint32_t i = 0; i < atomic_load(&guarded_count); i++) {
		if (!guarded[i].pages)
			continue;
		guarded[i].armed = 1;
		mprotect(guarded[i].pages, guarded[i].bytes, PROT_NONE);
	}
}

/* Returns how many clients of a kind were touched since guard(). */
static uint32_t unguard(enum kind kind)
{
	for (uint32_t i = 0; i < atomic_load(&guarded_count); i++) {
		if (!guarded[i].pages || !guarded[i].armed)
			continue;
		mprotect(guarded[i].pages, guarded[i].bytes, PROT_READ | PROT_WRITE);
		guarded[i].armed = 0;
	}
	return (uint32_t)touched[kind];
}

/* --- A server with many clients. --- */

struct many {
	struct one one;
	struct gw_endpoint *endpoints[CLIENTS_MAX]; /* besides the first */
	uint32_t count;
	struct verbs_cm_listener *cm_listener;
	struct tcp_loop *tcp;
};

static void many_begin(struct many *many, void **state, uint32_t count)
{
	/* A long patience: no deadline is due by itself. */
	struct bed_options options = {.limits = {.idle_ms = 3600000}};
	gw_one_begin(&many->one, state, &options, 4096);
	struct gw_connect_options connect = gw_bed_options(&many->one.bed);
	connect.deadline_ns = gw_now_ns() + 600 * GW_NS_PER_SECOND;
	many->count = count;
	for (uint32_t i = 0; i + 1 < count; i++)
		assert_int_equal(gw_bed_connect(many->one.group, &connect, &many->endpoints[i]), GW_OK);
	struct verbs_listener *listener = (struct verbs_listener *)many->one.bed.listener;
	many->cm_listener = &listener->cm_listeners[0];
	many->tcp = ((struct tcp_listener *)listener->tcp)->loops[0];
	gw_one_read_works(&many->one);
	gw_one_call(&many->one, BED_OP_ECHO, 0, "x", 1);
	gw_bed_pause(&many->one.bed);
	assert_int_equal(many->cm_listener->deadlines.members, count);
	assert_int_equal(many->tcp->deadlines.members, count);
}

static void many_end(struct many *many)
{
	gw_bed_resume(&many->one.bed);
	for (uint32_t i = 0; i + 1 < many->count; i++)
		gw_endpoint_close(many->endpoints[i]);
	gw_one_end(&many->one);
}

static struct verbs_client *nth(const struct many *many, uint32_t n)
{
	struct verbs_client *client = many->cm_listener->clients;
	for (uint32_t i = 0; i < n; i++)
		client = client->next;
	return client;
}

/* --- Events. --- */

static uint32_t tick_without_work(struct many *many)
{
	guard();
	gw_verbs_cm_listeners_tick(many->cm_listener->loop, gw_now_ns());
	return unguard(OVER_RDMA);
}

static uint32_t tcp_tick_without_work(struct many *many)
{
	guard();
	gw_tcp_servers_tick(many->tcp, gw_now_ns());
	return unguard(OVER_TCP);
}

static uint32_t deadline_of_one(struct many *many)
{
	struct verbs_client *client = nth(many, many->count / 2);
	guard();
	gw_deadlines_set(&many->cm_listener->deadlines, &client->deadline, gw_now_ns());
	gw_verbs_cm_listeners_tick(many->cm_listener->loop, gw_now_ns());
	return unguard(OVER_RDMA);
}

static uint32_t tcp_deadline_of_one(struct many *many)
{
	struct tcp_server *server = many->tcp->servers->next;
	guard();
	gw_deadlines_set(&many->tcp->deadlines, &server->deadline, gw_now_ns());
	gw_tcp_servers_tick(many->tcp, gw_now_ns());
	return unguard(OVER_TCP);
}

static uint32_t request_of_one(struct many *many)
{
	guard();
	gw_bed_resume(&many->one.bed);
	gw_one_call(&many->one, BED_OP_ECHO, 0, "x", 1);
	gw_bed_pause(&many->one.bed);
	return unguard(OVER_RDMA);
}

static uint32_t failure_of_one(struct many *many)
{
	struct verbs_client *client = nth(many, many->count / 3);
	struct verbs_device *device = client->rail->device;
	struct ibv_async_event event = {{.qp = client->conns[0].qp->id->qp}, IBV_EVENT_QP_FATAL};
	guard();
	pthread_mutex_lock(&gw_verbs_lock);
	gw_verbs_async(device, &event);
	pthread_mutex_unlock(&gw_verbs_lock);
	gw_verbs_async_take(many->cm_listener->loop);
	gw_verbs_run_deferred(many->cm_listener->loop);
	uint32_t count = unguard(OVER_RDMA);
	assert_int_equal(many->cm_listener->deadlines.members, many->count - 1);
	return count;
}

static uint32_t end_of_one(struct many *many)
{
	uint64_t connection = nth(many, many->count / 4)->connection;
	guard();
	gw_verbs_client_left(many->cm_listener, connection);
	uint32_t count = unguard(OVER_RDMA);
	assert_int_equal(many->cm_listener->deadlines.members, many->count - 2);
	return count;
}

static void an_event_touches_few_clients(void **state)
{
	static const struct {
		const char *name;
		uint32_t (*run)(struct many *many);
		uint32_t least, most;
	} events[] = {
		{"a tick without work, over RDMA", tick_without_work, 0, 0},
		{"a tick without work, over TCP", tcp_tick_without_work, 0, 0},
		{"a deadline, over RDMA", deadline_of_one, 1, 2 * LEVELS},
		{"a deadline, over TCP", tcp_deadline_of_one, 1, 2 * LEVELS},
		{"a request", request_of_one, 1, 1},
		{"a failed queue pair", failure_of_one, 1, FEW + LEVELS},
		{"the end of a connection", end_of_one, 1, FEW + LEVELS},
	};
	static struct many many;
	/* cmocka has its own handler of this signal, which ends the test. */
	struct sigaction action = {.sa_sigaction = guarded_touched, .sa_flags = SA_SIGINFO | SA_NODEFER}, before;
	sigaction(SIGSEGV, &action, &before);
	for (uint32_t count = 16; count <= CLIENTS_MAX; count *= 4) {
		atomic_store(&guarded_count, 0);
		many_begin(&many, state, count);
		for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
			uint32_t seen = events[i].run(&many);
			print_message("%3u clients: %s touches %u\n", count, events[i].name, seen);
			assert_in_range(seen, events[i].least, events[i].most);
		}
		many_end(&many);
	}
	sigaction(SIGSEGV, &before, NULL);
}

int main(void)
{
	static const struct gw_allocator allocator = {guarded_allocate, realloc, guarded_release};
	void *state = (void *)(uintptr_t)verbs_kind();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(an_event_touches_few_clients, state),
	};
	if (!gw_bed_possible(verbs_kind()))
		return 0;
	gw_allocator_set(&allocator);
	return cmocka_run_group_tests_name("many clients", tests, NULL, NULL);
}
