/* See verify_replicas.h: parts mapped -> each array FEATURE.replica -> for each node of its index, the row of its
 * owner. */
#include "tools/verify_replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/graph/replicas.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define GRAIN   (64u << 10)
#define KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

struct replica_rows {
	const struct gw_graph_meta *meta;
	const struct gw_node_type *type;
	const struct gw_array *array; /* FEATURE.replica of one part */
	const struct gw_replica_block *blocks;
	const struct gw_array **owners; /* [parts]: FEATURE */
};

static gw_status replica_rows_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct replica_rows *r = context;
	const uint64_t bytes = r->array->row_bytes;
	(void)thread;
	for (uint64_t id = begin, row; id < end; id++) {
		if (!gw_replica_find(r->blocks, id, &row))
			continue;
		uint32_t owner = gw_book_owner(r->type->starts, r->meta->num_parts, id);
		const uint8_t *of = r->owners[owner]->data + (id - r->type->starts[owner]) * bytes;
		if (memcmp(r->array->data + row * bytes, of, bytes) != 0)
			return gw_part_bad(r->meta, GW_FORMAT, r->array,
					   "row %" PRIu64 ": not the row of node %" PRIu64 " in part %u", row, id,
					   owner);
	}
	return GW_OK;
}

static gw_status verify_replicas_of(const struct gw_graph_meta *meta, struct gw_part *const *parts, const char *key,
				    unsigned threads)
{
	char rows[KEY_MAX], index[KEY_MAX];
	struct gw_array_key parsed;
	gw_status status = gw_array_key_parse(meta, key, &parsed);
	struct replica_rows r = {.meta = meta, .owners = gw_calloc(meta->num_parts, sizeof(*r.owners))};
	if (status == GW_OK && !r.owners)
		status = GW_NO_MEMORY;
	if (status != GW_OK) {
		gw_free(r.owners);
		return status;
	}
	r.type = &meta->ntypes[parsed.type];
	snprintf(rows, sizeof(rows), "%s" GW_REPLICA_TAIL, key);
	snprintf(index, sizeof(index), "node/%s/" GW_REPLICA_INDEX_NAME, r.type->name);
	for (uint32_t p = 0; p < meta->num_parts; p++)
		r.owners[p] = gw_part_array(parts[p], key);
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++) {
		r.array = gw_part_array(parts[p], rows);
		r.blocks = (const void *)gw_part_array(parts[p], index)->data;
		status = gw_parallel_for(threads, r.type->count, GRAIN, replica_rows_body, &r);
	}
	gw_free(r.owners);
	return status;
}

gw_status gw_verify_replicas(const struct gw_graph_meta *meta, unsigned threads)
{
	const struct gw_part_options open = {
		.mapped = true, .skip_verify = true, .skip_checks = true, .load = {.verify_threads = threads}};
	if (meta->num_replicas == 0)
		return GW_OK;
	gw_status status = gw_replicas_check_origin(meta);
	struct gw_part **parts = gw_calloc(meta->num_parts, sizeof(struct gw_part *));
	if (status == GW_OK && !parts)
		status = GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++)
		status = gw_part_open(meta, p, &open, &parts[p]);
	for (uint32_t i = 0; i < meta->num_replicas && status == GW_OK; i++)
		status = verify_replicas_of(meta, parts, meta->replicas[i].key, threads);
	for (uint32_t p = 0; parts && p < meta->num_parts; p++)
		gw_part_close(parts[p]);
	gw_free(parts);
	return status;
}
