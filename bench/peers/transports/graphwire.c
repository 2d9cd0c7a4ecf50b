/* The peer "Graphwire": the contract of transport/transport.h, used directly. --driver: of TCP's sockets. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/arena.h"
#include "core/system/clock.h"
#include "transport/prefetch.h"
#include "transport/transport.h"
#include "work.h"

#define SPIN_NS (100ull * 1000 * 1000)

struct work_link {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	struct gw_read_set sets[WORK_SLOTS];
	bool done[WORK_SLOTS];
};

static void ask(gw_status status, const char *what)
{
	if (status != GW_OK)
		work_fail("%s: %s", what, gw_last_error());
}

static struct gw_poll_group_options group_options(void)
{
	return (struct gw_poll_group_options){.tcp_driver = work.driver, .spin_ns = work.poll ? SPIN_NS : 0};
}

static struct gw_address own_address(void)
{
	struct gw_address address = {.scheme = "tcp", .host = "127.0.0.1", .port = (uint16_t)work.port};
	if (work.shm) {
		address = (struct gw_address){.scheme = "shm"};
		snprintf(address.host, sizeof(address.host), "bench-peers-%d", work.port);
	}
	return address;
}

static void graphwire_serve(void)
{
	const struct gw_arena_options arena_options = {.name = "bench-peers", .numa = GW_NUMA_LOCAL, .shareable = true};
	const struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1, .parts = 1};
	const struct gw_poll_group_options options = group_options();
	const struct gw_address address = own_address();
	struct gw_poll_group *group;
	struct gw_listener *listener;
	struct gw_service *service;
	struct gw_arena *arena;
	uint32_t region;
	ask(gw_arena_create(work.table_bytes, &arena_options, &arena), "arena");
	work_fill(gw_arena_base(arena));
	ask(gw_service_create(&identity, NULL, &service), "service");
	ask(gw_service_expose(service, gw_arena_base(arena), work.table_bytes, gw_arena_slice_bytes(arena), NULL,
			      &region),
	    "region");
	ask(gw_service_memory(service, gw_arena_base(arena), gw_arena_bytes(arena), gw_arena_fd(arena)), "memory");
	gw_prefetch_choose(service, GW_PREFETCH_AUTO, NULL);
	ask(gw_poll_group_create(&options, &group), "poll group");
	ask(gw_listen(&group, 1, &address, service, &listener), "listen");
	puts("ready");
	fflush(stdout);
	for (;;)
		gw_poll_group_poll(group, NULL, 0, GW_NO_DEADLINE);
}

static void graphwire_wait(struct work_link *link, const bool *done)
{
	struct gw_completion completion;
	while (!*done) {
		if (!gw_poll_group_poll(link->group, &completion, 1, GW_NO_DEADLINE))
			continue;
		if (completion.status != GW_OK)
			work_fail("status %d: %s", completion.status, completion.text ? completion.text : "");
		*(bool *)completion.cookie = true;
	}
}

static struct work_link *graphwire_open(void)
{
	struct work_link *link = calloc(1, sizeof(*link));
	const struct gw_poll_group_options options = group_options();
	const struct gw_connect_options connect = {
		.address = own_address(), .graph_id = 1, .deadline_ns = work_now_ns() + 10000000000ull};
	bool done = false;
	ask(gw_poll_group_create(&options, &link->group), "poll group");
	ask(gw_endpoint_connect(link->group, &connect, &done, &link->endpoint), "connect");
	graphwire_wait(link, &done);
	return link;
}

static void graphwire_close(struct work_link *link)
{
	void *memory = link->buffer ? link->buffer->base : NULL;
	gw_endpoint_close(link->endpoint);
	gw_buffer_release(link->buffer);
	gw_poll_group_destroy(link->group);
	free(memory);
	free(link);
}

static void *graphwire_memory(struct work_link *link, size_t bytes)
{
	ask(gw_buffer_register(link->group, work_memory(bytes), bytes, &link->buffer), "buffer");
	return link->buffer->base;
}

static void begin_set(struct work_link *link, unsigned slot)
{
	link->done[slot] = false;
	link->sets[slot] = (struct gw_read_set){.cookie = &link->done[slot], .deadline_ns = GW_NO_DEADLINE};
}

static void graphwire_read(struct work_link *link, uint64_t from, uint64_t bytes, void *to)
{
	const struct gw_span span = {from, (uint64_t)((uint8_t *)to - link->buffer->base), (uint32_t)bytes};
	begin_set(link, 0);
	if (gw_endpoint_readv(link->endpoint, &link->sets[0], &link->endpoint->peer.regions[0], link->buffer, &span, 1,
			      true) != 1)
		work_fail("no room for a read");
	graphwire_wait(link, &link->done[0]);
}

static void graphwire_gather(struct work_link *link, unsigned slot, const uint64_t *from, uint32_t row_bytes, void *to)
{
	struct gw_gather gather = {.remote = from,
				   .local = (uint64_t)((uint8_t *)to - link->buffer->base),
				   .row_bytes = row_bytes,
				   .stride = row_bytes};
	struct gw_completion completion;
	begin_set(link, slot);
	for (size_t left = WORK_ROWS; left;) {
		size_t n = gw_endpoint_gather(link->endpoint, &link->sets[slot], &link->endpoint->peer.regions[0],
					      link->buffer, &gather, left, true);
		left -= n;
		gather.remote += n;
		gather.local += n * row_bytes;
		if (n == 0 && gw_poll_group_poll(link->group, &completion, 1, GW_NO_DEADLINE))
			*(bool *)completion.cookie = true;
	}
}

static void graphwire_gather_end(struct work_link *link, unsigned slot)
{
	graphwire_wait(link, &link->done[slot]);
}

const struct work_peer work_peer = {.serve = graphwire_serve,
				    .open = graphwire_open,
				    .close = graphwire_close,
				    .memory = graphwire_memory,
				    .read = graphwire_read,
				    .gather = graphwire_gather,
				    .gather_end = graphwire_gather_end};
