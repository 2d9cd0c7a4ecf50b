/* Trainable rows that a client reads over each transport. Part of graphwire bench update: see update.c.
 *
 * The ceilings are rows of the same memory that never change, and such rows at their bare stride: the same gathers of
 * one service in this process.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/row_bed.h"
#include "bench/update.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

enum paths_region { WAYS_IMMUTABLE, WAYS_VERSIONED, WAYS_BARE };

struct update_paths {
	struct gw_update *update;
	struct gw_row_bed bed;
	struct gw_row_client client;
	struct gw_buffer *buffer;
	struct gw_bench_series bare; /* reads at the bare stride, without trailers */
};

/* Gathers one batch. GW_AGAIN (a torn row) is an error here, since no client writes. */
static gw_status paths_gather(struct update_paths *ways, enum paths_region number)
{
	const struct gw_update *a = ways->update;
	const struct gw_region *region = &ways->client.endpoint->peer.regions[number];
	struct gw_read_set set = {.cookie = ways, .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND};
	struct gw_completion completion;
	size_t taken = 0, got = 0;
	while (!got) {
		struct gw_gather rest = {.remote = a->offsets + taken,
					 .local = taken * a->row_bytes,
					 .row_bytes = (uint32_t)a->row_bytes,
					 .stride = (uint32_t)a->row_bytes};
		if (taken < a->batch)
			taken += gw_endpoint_gather(ways->client.endpoint, &set, region, ways->buffer, &rest,
						    a->batch - taken, true);
		got = gw_poll_group_poll(ways->client.group, &completion, 1, GW_NS_PER_SECOND);
	}
	return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
}

static void paths_draw(struct gw_update *a, enum paths_region number)
{
	uint64_t stride = number == WAYS_BARE ? a->row_bytes : gw_row_store_format(a->store)->stride;
	for (uint64_t i = 0; i < a->batch; i++)
		a->offsets[i] = gw_bare_mix(a->next++) % a->rows * stride;
}

/* GB of payload a second. */
static gw_status paths_measure(struct update_paths *ways, enum paths_region number, double *figure)
{
	struct gw_update *a = ways->update;
	uint64_t batches = 0, begun = gw_now_ns(), elapsed;
	gw_status status;
	do {
		paths_draw(a, number);
		status = paths_gather(ways, number);
		batches++;
		elapsed = gw_now_ns() - begun;
	} while (status == GW_OK && (double)elapsed < a->seconds * 1e9);
	*figure = (double)(batches * a->batch * a->row_bytes) / (double)elapsed;
	return status;
}

static gw_status paths_measure_immutable(void *context, double *figure)
{
	struct update_paths *ways = context;
	double bare;
	gw_status status = paths_measure(ways, WAYS_BARE, &bare);
	if (status != GW_OK)
		return status;
	gw_bench_series_add(&ways->bare, bare);
	return paths_measure(ways, WAYS_IMMUTABLE, figure);
}

static gw_status paths_measure_versioned(void *context, double *figure)
{
	return paths_measure(context, WAYS_VERSIONED, figure);
}

/* Checks that each region returns the right rows. */
static gw_status paths_check(struct update_paths *ways)
{
	struct gw_update *a = ways->update;
	for (int number = WAYS_IMMUTABLE; number <= WAYS_BARE; number++) {
		const uint8_t *base = gw_arena_base(number == WAYS_BARE ? a->bare : gw_row_store_arena(a->store));
		paths_draw(a, (enum paths_region)number);
		memset(a->landing, 0, a->batch * a->row_bytes);
		gw_status status = paths_gather(ways, (enum paths_region)number);
		if (status != GW_OK)
			return status;
		for (uint64_t i = 0; i < a->batch; i++)
			if (memcmp(a->landing + i * a->row_bytes, base + a->offsets[i], a->row_bytes) != 0)
				return gw_fail(GW_DIGEST, "the row at %llu is wrong",
					       (unsigned long long)a->offsets[i]);
	}
	return GW_OK;
}

static gw_status paths_run(struct update_paths *ways, const struct gw_row_path *way)
{
	static struct gw_bench_series ceilings, values;
	struct gw_update *a = ways->update;
	ceilings = values = (struct gw_bench_series){0};
	gw_status status = gw_row_client_open(&ways->bed, &ways->client);
	if (status == GW_OK)
		status = gw_buffer_register(ways->client.group, a->landing, a->batch * a->row_bytes, &ways->buffer);
	if (status == GW_OK)
		status = paths_check(ways);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, paths_measure_immutable, paths_measure_versioned, ways,
					    &ceilings, &values);
	gw_buffer_release(ways->buffer);
	gw_row_client_close(&ways->client);
	if (status != GW_OK)
		return gw_context(status, "reads over %s", way->name);
	char title[96], note[160];
	double bare = gw_bench_series_median(&ways->bare), bare_ratio = gw_bench_series_median(&values) / bare;
	snprintf(title, sizeof(title), "reads over %s, %llu B", way->name, (unsigned long long)a->row_bytes);
	snprintf(note, sizeof(note),
		 "%llu rows of a batch; ceiling: rows that never change, at the same stride of %u; at %llu: %.4g "
		 "GB/s, ratio %.3f",
		 (unsigned long long)a->batch, gw_row_store_format(a->store)->stride, (unsigned long long)a->row_bytes,
		 bare, bare_ratio);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "GB/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"transport", 0, way->name},
			   {"row_bytes", (double)a->row_bytes, NULL},
			   {"plain_stride_gb_per_s", bare, NULL},
			   {"plain_stride_ratio", bare_ratio, NULL}},
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

gw_status gw_update_paths(struct gw_update *a)
{
	const struct gw_row_format *format = gw_row_store_format(a->store);
	const struct gw_row_bed_changing changing = {.rows = {.format = *format, .seed = gw_row_store_seed(a->store)},
						     .bare = a->bare,
						     .bare_bytes = a->rows * a->row_bytes};
	static const struct gw_poll_group_options plain;
	gw_status status = GW_OK;
	for (unsigned i = 0; i < ROW_WAYS && status == GW_OK; i++) {
		const struct gw_row_path *way = &gw_row_paths[i];
		struct gw_poll_group_options options = plain;
		struct update_paths ways = {.update = a};
		options.tcp_driver = way->tcp_driver;
		if (strcmp(way->scheme, "memory") == 0)
			continue; /* gw_update_reads measures it, without a service in between */
		if (a->transport && strcmp(way->option, a->transport) != 0)
			continue;
		status = gw_row_bed_begin(&ways.bed, gw_row_store_arena(a->store), a->rows * format->stride, &changing,
					  way->scheme, &options, 1);
		if (status == GW_UNSUPPORTED) {
			fprintf(a->bench.table, "reads over %s: not measured: %s\n", way->name, gw_last_error());
			status = GW_OK;
			continue;
		}
		if (status != GW_OK)
			return status;
		status = paths_run(&ways, way);
		gw_row_bed_end(&ways.bed);
	}
	return status;
}
