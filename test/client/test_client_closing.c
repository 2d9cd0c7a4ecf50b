/* What closing leaves: no use of freed memory, and the error text from before.
 *
 * The RDMA of this program is scripted: it is TCP under RDMA's name, because the tests concern the time of a close,
 * not the transfer. So the search for a better transport than TCP (client/link/upgrade.h) gets as far as its first
 * read. */
#include <assert.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "test/support/line.h"
#include "transport/tcp/client/client.h"
#include "transport/tcp/server/server.h"
#include "transport/tcp/tcp.h"

/* --- The script. --- */

extern const struct gw_transport gw_transport_verbs;

static struct relay *silenced; /* falls silent when the first read over RDMA begins */

static gw_status scripted_open(struct gw_poll_group *group, void **out)
{
	struct tcp_loop *loop;
	gw_status status = gw_tcp_loop_open(group, &gw_transport_verbs, NULL, &loop);
	*out = loop;
	return status;
}

static size_t scripted_read(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
			    struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	if (silenced && !reads->gather)
		relay_hold_after(silenced, 0);
	return gw_tcp_read(endpoint, set, region, buffer, reads, last);
}

static const uint8_t *scripted_map(struct gw_endpoint *endpoint, const struct gw_region *region)
{
	(void)endpoint;
	(void)region;
	return NULL;
}

const struct gw_transport gw_transport_verbs = {
	.scheme = &gw_schemes[GW_SCHEME_VERBS],
	.number = GW_SCHEME_VERBS,
	.range_cost_bytes = 310,
	.open = scripted_open,
	.shut = gw_tcp_shut,
	.connect = gw_tcp_connect,
	.close = gw_tcp_close,
	.buffer_register = gw_tcp_buffer_register,
	.buffer_release = gw_tcp_buffer_release,
	.read = scripted_read,
	.request = gw_tcp_request,
	.cancel = gw_tcp_cancel,
	.request_cancel = gw_tcp_request_cancel,
	.region_open = gw_tcp_region_open,
	.map = scripted_map,
	.poll = gw_tcp_poll,
	.busy = gw_tcp_busy,
	.wait_fd = gw_tcp_wait_fd,
	.wake = gw_tcp_wake,
	.listen = gw_tcp_listen,
	.listener_stop = gw_tcp_listener_stop,
	.listener_drain = gw_tcp_listener_drain,
	.listener_free = gw_tcp_listener_free,
};

/* --- Memory. --- */

#define FREED_MAX 100000

/* Makes uses of freed memory visible without a sanitizer: freed blocks are filled, and none is allocated again before
 * the program ends. */
static void *freed[FREED_MAX];
static _Atomic uint32_t freed_count;

static void filling_release(void *memory)
{
	uint32_t at;
	if (!memory)
		return;
	memset(memory, 0xdd, malloc_usable_size(memory));
	at = atomic_fetch_add(&freed_count, 1);
	assert(at < FREED_MAX);
	freed[at] = memory;
}

static const struct gw_allocator filling = {.allocate = malloc, .reallocate = realloc, .release = filling_release};

static int fill_what_is_freed(void **state)
{
	(void)state;
	gw_allocator_set(&filling);
	return 0;
}

static int free_it(void **state)
{
	(void)state;
	gw_allocator_set(NULL);
	for (uint32_t i = 0; i < freed_count; i++)
		free(freed[i]);
	return 0;
}

static bool rdma_is_scripted(void)
{
	const struct gw_transport *found;
	return gw_transport_find("verbs", &found) == GW_OK && found == &gw_transport_verbs;
}

/* The server falls silent while reads over both transports are in flight. Opening ends in time. Closing the client
 * leaves two reads, which are freed when their backends end. */
static void open_fails_while_rdma_is_tried(void **state)
{
	(void)state;
	struct setup setup;
	struct relay relay;
	if (!rdma_is_scripted() || cluster_is_rdma())
		skip();
	setup_begin_open(&setup, 71, 1, SETUP_SCALE);
	relay_begin(&relay, &setup.cluster.addresses[0]);
	const char *list[] = {relay.text};
	struct gw_client_options options = {
		.servers = list, .server_count = 1, .threads = 1, .timeout_ms = 2 * SHORT_MS, .insecure = true};
	struct gw_client *client;
	silenced = &relay;
	/* Again, if this process was delayed before it came so far. */
	for (int tries = 0; tries < 100 && atomic_load(&relay.answer_bytes_max) != 0; tries++) {
		expect(gw_client_open(&options, &client), GW_DEADLINE, relay.text);
		assert_null(client);
	}
	silenced = NULL;
	assert_int_equal(atomic_load(&relay.answer_bytes_max), 0);
	relay_end(&relay);
	setup_end(&setup);
}

/* --- Errors. --- */

static const char error[] = "what went wrong, and was to be told";

static void expect_error_kept(const char *what)
{
	if (strcmp(gw_last_error(), error) != 0)
		fail_msg("%s: the error is now \"%s\"", what, gw_last_error());
}

static void closing_a_client_keeps_the_error(void **state)
{
	(void)state;
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = LONG_MS, .transport = "tcp"});
	struct plan plan;
	struct gw_ticket *ticket;
	make_plan(line.client, &plan, false, false);
	relay_hold_after(&line.relay, 0);
	struct gw_loader *loader = open_loader(line.client, &plan, (struct gw_loader_state){0});
	assert_int_equal(gw_gather_start(line.client, line.feat, line.ids, line.n, line.out, &ticket), GW_OK);
	gw_fail(GW_FORMAT, "%s", error);
	gw_cancel(ticket);
	expect_error_kept("gw_cancel");
	gw_loader_close(loader);
	expect_error_kept("gw_loader_close");
	gw_client_close(line.client);
	expect_error_kept("gw_client_close");
	line.client = NULL;
	line_end(&line);
}

static void closing_an_endpoint_keeps_the_error(void **state)
{
	(void)state;
	struct setup setup;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoints[2];
	setup_begin_open(&setup, 72, 1, SETUP_SCALE);
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	struct gw_connect_options options = {.address = setup.cluster.addresses[0]};
	for (int i = 0; i < 2; i++)
		assert_int_equal(gw_endpoint_connect(group, &options, NULL, &endpoints[i]), GW_OK);
	gw_fail(GW_FORMAT, "%s", error);
	gw_endpoint_close(endpoints[0]);
	expect_error_kept("gw_endpoint_close");
	gw_poll_group_destroy(group); /* with the other */
	expect_error_kept("gw_poll_group_destroy");
	setup_end(&setup);
	expect_error_kept("gw_server_end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_fails_while_rdma_is_tried),
		cmocka_unit_test(closing_a_client_keeps_the_error),
		cmocka_unit_test(closing_an_endpoint_keeps_the_error),
	};
	return cmocka_run_group_tests(tests, fill_what_is_freed, free_it);
}
