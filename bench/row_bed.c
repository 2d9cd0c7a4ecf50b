/* The bed of the row benchmarks: one server thread, one client in the caller's thread. */
#include "bench/row_bed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bare_rows.h"
#include "core/base/clock.h"
#include "core/base/rng.h"

gw_status gw_row_table_make(uint64_t bytes, struct gw_arena **out)
{
	const struct gw_arena_options options = {.name = "bench-rows", .numa = GW_NUMA_LOCAL};
	gw_status status = gw_arena_create(bytes, &options, out);
	if (status)
		return status;
	uint64_t *words = (uint64_t *)(void *)gw_arena_base(*out);
	for (uint64_t i = 0; i < bytes / 8; i++)
		words[i] = gw_mix64(i);
	return GW_OK;
}

static void *serve(void *argument)
{
	struct gw_row_bed *bed = argument;
	gw_bare_pin(1);
	while (!atomic_load_explicit(&bed->stop, memory_order_relaxed))
		gw_poll_group_poll(bed->server_group, NULL, 0, GW_NS_PER_SECOND);
	return NULL;
}

static gw_status connect_client(struct gw_row_bed *bed)
{
	struct gw_connect_options connect = {
		.address = bed->listener->address, .graph_id = 1, .deadline_ns = gw_now_ns() + 10 * GW_NS_PER_SECOND};
	gw_status status = gw_endpoint_connect(bed->group, &connect, bed, &bed->endpoint);
	struct gw_completion completion;
	while (!status) {
		if (!gw_poll_group_poll(bed->group, &completion, 1, GW_NS_PER_SECOND))
			continue;
		return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
	}
	return status;
}

gw_status gw_row_bed_begin(struct gw_row_bed *bed, struct gw_arena *table, uint64_t bytes, const char *scheme,
			   const char *driver, uint64_t spin_ns)
{
	struct gw_poll_group_options options = {.tcp_driver = driver, .spin_ns = spin_ns};
	struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1, .parts = 1};
	struct gw_address address = {0};
	uint32_t id;
	memset(bed, 0, sizeof(*bed));
	bed->arena = table;
	bed->bytes = bytes;
	snprintf(address.scheme, sizeof(address.scheme), "%s", scheme);
	if (strcmp(scheme, "memory") == 0)
		snprintf(address.host, sizeof(address.host), "bench-rows");
	else
		snprintf(address.host, sizeof(address.host), "127.0.0.1");
	gw_status status = gw_service_create(&identity, NULL, &bed->service);
	if (!status)
		status = gw_service_expose(bed->service, gw_arena_base(table), bytes, gw_arena_slice_bytes(table),
					   GW_REGION_IMMUTABLE, &id);
	if (!status)
		status = gw_poll_group_create(&options, &bed->server_group);
	if (!status)
		status = gw_poll_group_create(&options, &bed->group);
	if (!status)
		status = gw_listen(&bed->server_group, 1, &address, bed->service, &bed->listener);
	if (!status && pthread_create(&bed->thread, NULL, serve, bed) != 0)
		status = gw_fail(GW_NO_MEMORY, "no thread for the server");
	else if (!status)
		bed->serving = true;
	if (!status)
		status = connect_client(bed);
	if (status)
		gw_row_bed_end(bed);
	return status;
}

void gw_row_bed_end(struct gw_row_bed *bed)
{
	gw_endpoint_close(bed->endpoint);
	gw_poll_group_destroy(bed->group);
	atomic_store(&bed->stop, true);
	if (bed->serving) {
		gw_poll_group_wake(bed->server_group);
		pthread_join(bed->thread, NULL);
	}
	gw_listener_free(bed->listener);
	gw_poll_group_destroy(bed->server_group);
	gw_service_destroy(bed->service);
	memset(bed, 0, sizeof(*bed));
}
