/* The test bed of the row benchmarks: a server's threads and its clients' connections, in one process. */
#include "bench/row_bed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/arena_pages.h"
#include "bench/place.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

const struct gw_row_path gw_row_paths[ROW_WAYS] = {
	{"memory", "memory", "memory", NULL},   {"shm", "shm", "shm", NULL},
	{"tcp/epoll", "epoll", "tcp", "epoll"}, {"tcp/io_uring", "io_uring", "tcp", "io_uring"},
	{"verbs", "verbs", "verbs", NULL},
};

const char *const gw_row_options[] = {"memory", "shm", "epoll", "io_uring", "verbs", NULL};

gw_status gw_row_table_make(uint64_t bytes, struct gw_arena **out)
{
	const struct gw_arena_options options = {.name = "bench-rows",
						 .numa = GW_NUMA_LOCAL,
						 .shareable = true}; /* a server's part has the same options */
	gw_status status = gw_arena_create(bytes, &options, out);
	if (status != GW_OK)
		return status;
	uint64_t *words = (uint64_t *)(void *)gw_arena_base(*out);
	for (uint64_t i = 0; i < bytes / 8; i++)
		words[i] = gw_mix64(i);
	return GW_OK;
}

const char *gw_row_pages(const struct gw_arena *arena)
{
	/* Some ranges of an arena with 2 MiB pages may have small pages. */
	return gw_arena_page_level(arena) == GW_PAGES_4K || gw_pages_huge_share(gw_arena_base(arena), gw_arena_bytes(arena)) < 0.9 ? "4 KiB pages"
											     : "2 MiB pages";
}

static void *serve(void *argument)
{
	const struct gw_row_server *server = argument;
	while (!atomic_load_explicit(&server->bed->stop, memory_order_relaxed))
		gw_poll_group_poll(server->group, NULL, 0, GW_NS_PER_SECOND);
	return NULL;
}

gw_status gw_row_client_open(const struct gw_row_bed *bed, struct gw_row_client *client)
{
	struct gw_connect_options connect = {
		.address = bed->listener->address, .graph_id = 1, .deadline_ns = gw_now_ns() + 10 * GW_NS_PER_SECOND};
	*client = (struct gw_row_client){0};
	gw_status status = gw_poll_group_create(&bed->options, &client->group);
	if (status == GW_OK)
		status = gw_endpoint_connect(client->group, &connect, client, &client->endpoint);
	struct gw_completion completion;
	size_t n = 0;
	while (status == GW_OK && n == 0)
		n = gw_poll_group_poll(client->group, &completion, 1, GW_NS_PER_SECOND);
	if (status == GW_OK && completion.status)
		status = gw_fail_text(completion.status, completion.text);
	if (status != GW_OK) {
		char text[GW_ERROR_TEXT_MAX];
		snprintf(text, sizeof(text), "%s", gw_last_error());
		gw_row_client_close(client);
		return gw_fail_text(status, text);
	}
	return GW_OK;
}

void gw_row_client_close(struct gw_row_client *client)
{
	gw_endpoint_close(client->endpoint);
	gw_poll_group_destroy(client->group);
	*client = (struct gw_row_client){0};
}

static void choose_address(const char *scheme, struct gw_address *address)
{
	*address = (struct gw_address){0};
	snprintf(address->scheme, sizeof(address->scheme), "%s", scheme);
	if (gw_address_has_port(address))
		snprintf(address->host, sizeof(address->host), "127.0.0.1");
	else
		snprintf(address->host, sizeof(address->host), "bench-rows-%ld", (long)getpid());
}

static gw_status listen_and_serve(struct gw_row_bed *bed, const struct gw_address *address)
{
	struct gw_poll_group *groups[ROW_THREADS_MAX];
	gw_status status = GW_OK;
	for (unsigned i = 0; i < bed->threads && status == GW_OK; i++) {
		bed->servers[i].bed = bed;
		bed->servers[i].number = i;
		status = gw_poll_group_create(&bed->options, &bed->servers[i].group);
		groups[i] = bed->servers[i].group;
	}
	if (status == GW_OK)
		status = gw_listen(groups, bed->threads, address, bed->service, &bed->listener);
	for (unsigned i = 0; i < bed->threads && status == GW_OK; i++) {
		int error = pthread_create(&bed->servers[i].thread, NULL, serve, &bed->servers[i]);
		if (error)
			status = gw_fail_errno(GW_LIMIT, error, "cannot start a thread of the server");
		else
			bed->servers[i].serving = true;
		if (!error)
			gw_bench_pin(bed->servers[i].thread, 2 * i + 1);
	}
	return status;
}

gw_status gw_row_bed_begin(struct gw_row_bed *bed, const struct gw_arena *table, uint64_t bytes,
			   const struct gw_row_bed_changing *changing, const char *scheme,
			   const struct gw_poll_group_options *options, unsigned threads)
{
	struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1, .parts = 1};
	struct gw_address address;
	uint32_t id;
	assert(threads > 0 && threads <= ROW_THREADS_MAX);
	memset(bed, 0, sizeof(*bed));
	bed->options = *options;
	bed->threads = threads;
	choose_address(scheme, &address);
	gw_status status = gw_service_create(&identity, NULL, &bed->service);
	if (status == GW_OK)
		status = gw_service_expose(bed->service, gw_arena_base(table), bytes, gw_arena_slice_bytes(table), NULL,
					   &id);
	if (status == GW_OK && changing)
		status = gw_service_expose(bed->service, gw_arena_base(table), bytes, gw_arena_slice_bytes(table),
					   &changing->rows, &id);
	if (status == GW_OK)
		status = gw_service_memory(bed->service, gw_arena_base(table), gw_arena_bytes(table),
					   gw_arena_fd(table));
	if (status == GW_OK && changing)
		status = gw_service_expose(bed->service, gw_arena_base(changing->bare), changing->bare_bytes,
					   gw_arena_slice_bytes(changing->bare), NULL, &id);
	if (status == GW_OK && changing)
		status = gw_service_memory(bed->service, gw_arena_base(changing->bare), gw_arena_bytes(changing->bare),
					   gw_arena_fd(changing->bare));
	if (status == GW_OK)
		status = listen_and_serve(bed, &address);
	if (status != GW_OK) {
		char text[GW_ERROR_TEXT_MAX];
		snprintf(text, sizeof(text), "%s", gw_last_error());
		gw_row_bed_end(bed);
		return gw_fail_text(status, text);
	}
	return GW_OK;
}

void gw_row_bed_place(struct gw_row_bed *bed, unsigned processor)
{
	gw_bench_pin(bed->servers[0].thread, processor);
}

void gw_row_bed_end(struct gw_row_bed *bed)
{
	atomic_store(&bed->stop, true);
	for (unsigned i = 0; i < bed->threads; i++) {
		if (!bed->servers[i].serving)
			continue;
		gw_poll_group_wake(bed->servers[i].group);
		pthread_join(bed->servers[i].thread, NULL);
	}
	gw_listener_free(bed->listener);
	for (unsigned i = 0; i < bed->threads; i++)
		gw_poll_group_destroy(bed->servers[i].group);
	gw_service_destroy(bed->service);
	memset(bed, 0, sizeof(*bed));
}
