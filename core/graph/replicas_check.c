/* Checks the index of a part's replicas: counts, ids, and as many rows as ids. The first fault of the lowest chunk is
 * the error. */
#include <inttypes.h>
#include <string.h>

#include "core/graph/replicas.h"
#include "core/system/parallel.h"

#define GRAIN 4096u /* blocks of a chunk */

struct replica_check {
	const struct gw_graph_meta *meta;
	const struct gw_array *index;
	const struct gw_replica_block *blocks;
	uint64_t rows, ids, first, end; /* rows of the replicas; ids of the type; those that the part owns */
};

static uint64_t ones_of(const struct gw_replica_block *block)
{
	uint64_t ones = 0;
	for (uint32_t w = 0; w < GW_REPLICA_WORDS; w++)
		ones += gw_replica_ones(block->bits[w]);
	return ones;
}

static gw_status replica_check_counts(const struct replica_check *check, uint64_t b)
{
	const struct gw_replica_block *block = &check->blocks[b];
	struct gw_replica_block again = *block;
	gw_replica_count(&again, GW_REPLICA_BLOCK_IDS);
	uint64_t before = b ? check->blocks[b - 1].before + ones_of(&check->blocks[b - 1]) : 0;
	if (block->before == before && block->counts == again.counts)
		return GW_OK;
	return gw_part_bad(check->meta, GW_FORMAT, check->index,
			   "row %" PRIu64 ": its counts are not those of its bits", b);
}

static gw_status replicas_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct replica_check *check = context;
	(void)thread;
	for (uint64_t b = begin; b < end; b++) {
		gw_status status = replica_check_counts(check, b);
		if (status != GW_OK)
			return status;
		for (uint64_t i = 0, row; i < GW_REPLICA_BLOCK_IDS; i++) {
			uint64_t id = b * GW_REPLICA_BLOCK_IDS + i;
			if (!gw_replica_find(check->blocks, id, &row))
				continue;
			if (id >= check->ids || (id >= check->first && id < check->end))
				return gw_part_bad(check->meta, GW_RANGE, check->index,
						   id < check->ids ? "node %" PRIu64 ": the part owns it"
								   : "node %" PRIu64 ": the type has fewer nodes",
						   id);
		}
	}
	return GW_OK;
}

static gw_status check_row_counts(const struct replica_check *check, const struct gw_part *part)
{
	const char *key = check->index->meta->key;
	const size_t folder = (size_t)(strrchr(key, '/') - key) + 1;
	const struct gw_array *array;
	for (uint32_t i = 0; (array = gw_part_array_at(part, i)); i++) {
		const char *other = array->meta->key;
		if (strncmp(other, key, folder) == 0 && gw_name_ends_in(other, GW_REPLICA_TAIL) &&
		    array->rows != check->rows)
			return gw_part_bad(check->meta, GW_FORMAT, array,
					   "%" PRIu64 " rows, but its index has %" PRIu64 " nodes", array->rows,
					   check->rows);
	}
	return GW_OK;
}

gw_status gw_replicas_check(const struct gw_part *part, const struct gw_array *index, unsigned threads)
{
	struct replica_check check = {.meta = gw_part_meta(part), .index = index, .blocks = (const void *)index->data};
	struct gw_array_key key;
	gw_status status = gw_array_key_parse(check.meta, index->meta->key, &key);
	if (status != GW_OK)
		return status;
	const struct gw_node_type *type = &check.meta->ntypes[key.type];
	const uint64_t count = gw_replica_blocks(type->count);
	check.ids = type->count;
	check.first = type->starts[gw_part_number(part)];
	check.end = type->starts[gw_part_number(part) + 1];
	check.rows = count ? check.blocks[count - 1].before + ones_of(&check.blocks[count - 1]) : 0;
	status = gw_parallel_for(threads, count, GRAIN, replicas_body, &check);
	return status == GW_OK ? check_row_counts(&check, part) : status;
}
