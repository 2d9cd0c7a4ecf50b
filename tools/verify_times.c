/* See verify_times.h: parts mapped -> each array NAME.source -> for each edge, the time NAME of its source. */
#include "tools/verify_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/graph/part.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define GRAIN   (64u << 10)
#define KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

struct source_times {
	const struct gw_graph_meta *meta;
	const struct gw_array *array; /* NAME.source of one part */
	const struct gw_adjacency *lists;
	const uint64_t *starts;        /* of the sources' type */
	const struct gw_array **times; /* [parts]: NAME of the nodes */
};

static gw_status source_times_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct source_times *s = context;
	uint64_t bytes = s->array->row_bytes;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t src = gw_load_id(s->lists->indices, s->lists->index_bytes, i);
		uint32_t owner = gw_book_owner(s->starts, s->meta->num_parts, src);
		const uint8_t *time = s->times[owner]->data + (src - s->starts[owner]) * bytes;
		if (memcmp(s->array->data + i * bytes, time, bytes) != 0)
			return gw_part_bad(s->meta, GW_FORMAT, s->array,
					   "position %" PRIu64 ": not the time of its source, node %" PRIu64, i, src);
	}
	return GW_OK;
}

static gw_status verify_source_array(const struct gw_graph_meta *meta, struct gw_part *const *parts, const char *key,
				     const struct gw_array_key *parsed, unsigned threads)
{
	char of[KEY_MAX];
	uint32_t src = meta->etypes[parsed->type].src;
	struct source_times s = {.meta = meta, .starts = meta->ntypes[src].starts};
	s.times = gw_calloc(meta->num_parts, sizeof(*s.times));
	if (!s.times)
		return GW_NO_MEMORY;
	snprintf(of, sizeof(of), "node/%s/%.*s", meta->ntypes[src].name,
		 (int)(strlen(parsed->name) - strlen(GW_TIME_SOURCE_TAIL)), parsed->name);
	for (uint32_t p = 0; p < meta->num_parts; p++)
		s.times[p] = gw_part_array(parts[p], of);
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++) {
		s.array = gw_part_array(parts[p], key);
		s.lists = gw_part_adjacency(parts[p], parsed->type);
		status = gw_parallel_for(threads, s.array->rows, GRAIN, source_times_body, &s);
	}
	gw_free(s.times);
	return status;
}

static bool is_source_array(const struct gw_graph_meta *meta, const char *key, struct gw_array_key *parsed)
{
	return gw_array_key_parse(meta, key, parsed) == GW_OK && parsed->edge && !parsed->out &&
	       gw_name_ends_in(parsed->name, GW_TIME_SOURCE_TAIL);
}

static gw_status verify_source_arrays(const struct gw_graph_meta *meta, struct gw_part *const *parts, unsigned threads)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < meta->parts[0].count && status == GW_OK; i++) {
		struct gw_array_key parsed;
		const char *key = meta->parts[0].arrays[i].key;
		if (is_source_array(meta, key, &parsed))
			status = verify_source_array(meta, parts, key, &parsed, threads);
	}
	return status;
}

gw_status gw_verify_source_times(const struct gw_graph_meta *meta, unsigned threads)
{
	struct gw_part_options open = {
		.mapped = true, .skip_verify = true, .skip_checks = true, .load = {.verify_threads = threads}};
	struct gw_array_key parsed;
	bool any = false;
	for (uint32_t i = 0; meta->minor >= GW_FORMAT_MINOR_TIMES && i < meta->parts[0].count; i++)
		any |= is_source_array(meta, meta->parts[0].arrays[i].key, &parsed);
	if (!any)
		return GW_OK;
	struct gw_part **parts = gw_calloc(meta->num_parts, sizeof(struct gw_part *));
	gw_status status = parts ? GW_OK : GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++)
		status = gw_part_open(meta, p, &open, &parts[p]);
	if (status == GW_OK)
		status = verify_source_arrays(meta, parts, threads);
	for (uint32_t p = 0; parts && p < meta->num_parts; p++)
		gw_part_close(parts[p]);
	gw_free(parts);
	return status;
}
