/* Reads of versioned rows by a client over each transport. One service in this process serves all rows. The ceilings
 * are the same gathers of rows that never change: in the same memory at the same stride, and at the bare stride, which
 * is that of rows without trailers. A part of graphwire bench update: see update.c.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/row_bed.h"
#include "bench/update_private.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

enum paths_region { PATHS_IMMUTABLE, PATHS_VERSIONED, PATHS_BARE };

struct update_paths {
	struct gw_update *update;
	struct gw_row_bed bed;
	struct gw_row_client client;
	struct gw_buffer *buffer;
	struct gw_bench_series bare; /* GB/s of reads at the bare stride, without trailers */
};

/* Gathers one batch. A torn row (GW_AGAIN) is an error here, because no client writes. */
static gw_status paths_gather(struct update_paths *paths, enum paths_region number)
{
	const struct gw_update *a = paths->update;
	const struct gw_region *region = &paths->client.endpoint->peer.regions[number];
	struct gw_read_set set = {.cookie = paths, .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND};
	struct gw_completion completion;
	size_t taken = 0, got = 0;
	while (!got) {
		struct gw_gather rest = {.remote = a->offsets + taken,
					 .local = taken * a->row_bytes,
					 .row_bytes = (uint32_t)a->row_bytes,
					 .stride = (uint32_t)a->row_bytes};
		if (taken < a->batch)
			taken += gw_endpoint_gather(paths->client.endpoint, &set, region, paths->buffer, &rest,
						    a->batch - taken, true);
		got = gw_poll_group_poll(paths->client.group, &completion, 1, GW_NS_PER_SECOND);
	}
	return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
}

static void paths_draw(struct gw_update *a, enum paths_region number)
{
	uint64_t stride = number == PATHS_BARE ? a->row_bytes : gw_row_store_format(a->store)->stride;
	for (uint64_t i = 0; i < a->batch; i++)
		a->offsets[i] = gw_bare_mix(a->next++) % a->rows * stride;
}

/* *figure: GB of payload a second. */
static gw_status paths_measure(struct update_paths *paths, enum paths_region number, double *figure)
{
	struct gw_update *a = paths->update;
	uint64_t batches = 0, begun = gw_now_ns(), elapsed;
	gw_status status;
	do {
		paths_draw(a, number);
		status = paths_gather(paths, number);
		batches++;
		elapsed = gw_now_ns() - begun;
	} while (status == GW_OK && (double)elapsed < a->seconds * 1e9);
	*figure = (double)(batches * a->batch * a->row_bytes) / (double)elapsed;
	return status;
}

static gw_status paths_measure_immutable(void *context, double *figure)
{
	struct update_paths *paths = context;
	double bare;
	gw_status status = paths_measure(paths, PATHS_BARE, &bare);
	if (status != GW_OK)
		return status;
	gw_bench_series_add(&paths->bare, bare);
	return paths_measure(paths, PATHS_IMMUTABLE, figure);
}

static gw_status paths_measure_versioned(void *context, double *figure)
{
	return paths_measure(context, PATHS_VERSIONED, figure);
}

static gw_status paths_check(struct update_paths *paths)
{
	struct gw_update *a = paths->update;
	for (int number = PATHS_IMMUTABLE; number <= PATHS_BARE; number++) {
		const uint8_t *base = gw_arena_base(number == PATHS_BARE ? a->bare : gw_row_store_arena(a->store));
		paths_draw(a, (enum paths_region)number);
		memset(a->landing, 0, a->batch * a->row_bytes);
		gw_status status = paths_gather(paths, (enum paths_region)number);
		if (status != GW_OK)
			return status;
		for (uint64_t i = 0; i < a->batch; i++)
			if (memcmp(a->landing + i * a->row_bytes, base + a->offsets[i], a->row_bytes) != 0)
				return gw_fail(GW_DIGEST, "the row at %llu is wrong",
					       (unsigned long long)a->offsets[i]);
	}
	return GW_OK;
}

static gw_status paths_run(struct update_paths *paths, const struct gw_row_path *path)
{
	static struct gw_bench_series ceilings, values;
	struct gw_update *a = paths->update;
	ceilings = values = (struct gw_bench_series){0};
	gw_status status = gw_row_client_open(&paths->bed, &paths->client);
	if (status == GW_OK)
		status = gw_buffer_register(paths->client.group, a->landing, a->batch * a->row_bytes, &paths->buffer);
	if (status == GW_OK)
		status = paths_check(paths);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, paths_measure_immutable, paths_measure_versioned, paths,
					    &ceilings, &values);
	gw_buffer_release(paths->buffer);
	gw_row_client_close(&paths->client);
	if (status != GW_OK)
		return gw_context(status, "reads over %s", path->name);
	char title[96], note[160];
	double bare = gw_bench_series_median(&paths->bare), bare_ratio = gw_bench_series_median(&values) / bare;
	snprintf(title, sizeof(title), "reads over %s, %llu B", path->name, (unsigned long long)a->row_bytes);
	snprintf(note, sizeof(note),
		 "%llu rows of a batch; the ceiling: rows that never change, at the same stride of %u; at %llu: "
		 "%.4g GB/s, ratio %.3f",
		 (unsigned long long)a->batch, gw_row_store_format(a->store)->stride, (unsigned long long)a->row_bytes,
		 bare, bare_ratio);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "GB/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"transport", 0, path->name},
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
		const struct gw_row_path *path = &gw_row_paths[i];
		struct gw_poll_group_options options = plain;
		struct update_paths paths = {.update = a};
		options.tcp_driver = path->tcp_driver;
		if (strcmp(path->scheme, "memory") == 0)
			continue; /* gw_update_reads measures it, without a service */
		if (a->transport && strcmp(path->option, a->transport) != 0)
			continue;
		status = gw_row_bed_begin(&paths.bed, gw_row_store_arena(a->store), a->rows * format->stride, &changing,
					  path->scheme, &options, 1);
		if (status == GW_UNSUPPORTED) {
			fprintf(a->bench.table, "reads over %s: not measured: %s\n", path->name, gw_last_error());
			status = GW_OK;
			continue;
		}
		if (status != GW_OK)
			return status;
		status = paths_run(&paths, path);
		gw_row_bed_end(&paths.bed);
	}
	return status;
}
