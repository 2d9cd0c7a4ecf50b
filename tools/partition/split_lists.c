/* Adjacency lists of one part: gathers rows by old id, renumbers neighbours, and restores the format's list order.
 *
 *   rows' old lists -> offsets -> (new id, old edge) pairs -> sorted by new id within each run of equal keys -> arrays
 *
 * A list was sorted by (time or relation, old id), so edges of equal time or relation already form a run. In a run, the
 * new ids of each part ascend already, since a part keeps the order of old ids. So one stable pass that distributes a
 * run over the parts sorts it. Short runs use insertion sort. Runs over very many parts use qsort, with the old
 * position as tie-breaker; so do whole lists that --time sorts anew. The only failure is GW_NO_MEMORY.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"
#include "core/system/parallel.h"
#include "tools/partition/split.h"
#include "tools/partition/symmetric.h"

#define ROWS_GRAIN    2048u
#define INSERTION_MAX 24u
#define LEAVE_PARTS   64u  /* of more parts, mapping the lists again costs more than it saves */
#define DEAL_PARTS    256u /* with more parts, counting costs more than comparing */

struct entry {
	int64_t key;  /* of the time, or the relation; else 0 */
	uint64_t id;  /* new id of the neighbour */
	uint64_t tie; /* position in the old list */
};

/* A thread's memory: the list being sorted, and spare room of the same size. */
struct room {
	struct entry *entries, *spare;
	uint64_t capacity;
};

struct fill {
	const struct gw_split *split;
	struct gw_split_lists *lists;
	const struct gw_numbers *old_id; /* old ids of the rows */
	const struct gw_numbers *new_id; /* new ids of the neighbours */
	const uint64_t *starts;          /* [parts + 1]: the first new id of each part, of the neighbours' type */
	uint32_t parts;
	const uint8_t *keys; /* time or relation of each old edge, or time of each old neighbour; NULL: all equal */
	gw_dtype dtype;      /* of these */
	bool of_neighbour;
	bool anew; /* the old lists are in another order */
	struct room *rooms;
};

gw_status gw_numbers_make(struct gw_spill *spill, uint64_t count, uint64_t limit, struct gw_numbers *out)
{
	gw_status status = GW_OK;
	out->bytes = (uint8_t)gw_number_bytes(limit);
	out->data = gw_spill_take(spill, count * out->bytes, &status);
	return status;
}

void gw_split_lists_free(struct gw_split_lists *lists)
{
	gw_free(lists->offsets);
	gw_spill_give(lists->ids.data);
	gw_spill_give(lists->at.data);
	lists->offsets = NULL;
	lists->ids.data = lists->at.data = NULL;
}

gw_status gw_split_offsets(const struct gw_split *split, struct gw_split_lists *lists)
{
	const uint64_t *starts = split->schema->ntypes[lists->row_type].starts;
	lists->row_start = starts[lists->part];
	lists->rows = starts[lists->part + 1] - lists->row_start;
	lists->offsets = gw_malloc((lists->rows + 1) * sizeof(*lists->offsets));
	if (!lists->offsets)
		return GW_NO_MEMORY;
	uint64_t sum = 0, from, to;
	for (uint64_t row = 0; row < lists->rows; row++) {
		uint64_t old = gw_numbers_get(&split->old_id[lists->row_type], lists->row_start + row);
		gw_adjacency_list(lists->from, old, &from, &to);
		lists->offsets[row] = sum;
		sum += to - from;
	}
	lists->offsets[lists->rows] = sum;
	return GW_OK;
}

static int split_lists_compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->tie < y->tie ? -1 : x->tie > y->tie;
}

static void split_lists_sort_insertion(struct entry *run, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		struct entry entry = run[i];
		uint64_t to = i;
		for (; to > 0 && run[to - 1].id > entry.id; to--)
			run[to] = run[to - 1];
		run[to] = entry;
	}
}

/* Distributes the run over the parts of its ids, stably. Each part's share is in ascending order already. */
static void sort_deal(const struct fill *fill, struct entry *run, uint64_t n, struct entry *spare)
{
	uint64_t next[DEAL_PARTS] = {0}, sum = 0;
	for (uint64_t i = 0; i < n; i++)
		next[gw_book_owner(fill->starts, fill->parts, run[i].id)]++;
	for (uint32_t p = 0; p < fill->parts; p++) {
		uint64_t count = next[p];
		next[p] = sum;
		sum += count;
	}
	for (uint64_t i = 0; i < n; i++)
		spare[next[gw_book_owner(fill->starts, fill->parts, run[i].id)]++] = run[i];
	memcpy(run, spare, n * sizeof(*run));
}

static void sort_run(const struct fill *fill, struct entry *run, uint64_t n, struct entry *spare)
{
	if (n <= INSERTION_MAX)
		split_lists_sort_insertion(run, n);
	else if (fill->parts <= DEAL_PARTS)
		sort_deal(fill, run, n, spare);
	else
		qsort(run, n, sizeof(*run), split_lists_compare_entries);
}

static void split_lists_sort_list(const struct fill *fill, struct entry *list, uint64_t n, struct entry *spare)
{
	if (fill->anew) {
		qsort(list, n, sizeof(*list), split_lists_compare_entries);
		return;
	}
	for (uint64_t begin = 0, end; begin < n; begin = end) {
		for (end = begin + 1; end < n && list[end].key == list[begin].key; end++)
			continue;
		sort_run(fill, list + begin, end - begin, spare);
	}
}

static int64_t key_at(const struct fill *fill, uint64_t i)
{
	switch (fill->dtype) {
	case GW_UINT8:
		return fill->keys[i];
	case GW_UINT16:
		return ((const uint16_t *)(const void *)fill->keys)[i];
	case GW_UINT32:
		return ((const uint32_t *)(const void *)fill->keys)[i];
	default:
		return gw_time_key(fill->dtype, fill->keys + i * gw_dtype_bytes(fill->dtype));
	}
}

static uint64_t edge_at(const struct gw_adjacency *from, uint64_t position)
{
	return from->eid ? from->eid[position] : position;
}

static gw_status split_lists_make_room(struct room *room, uint64_t entries)
{
	if (entries <= room->capacity)
		return GW_OK;
	uint64_t capacity = entries * 2;
	gw_free(room->entries);
	room->capacity = 0;
	room->entries = gw_calloc(capacity * 2, sizeof(*room->entries));
	if (!room->entries)
		return GW_NO_MEMORY;
	room->spare = room->entries + capacity;
	room->capacity = capacity;
	return GW_OK;
}

static gw_status split_lists_fill_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct fill *fill = context;
	struct gw_split_lists *lists = fill->lists;
	const struct gw_adjacency *from = lists->from;
	struct room *room = &fill->rooms[thread];
	uint64_t old = 0, old_first = begin < end ? gw_numbers_get(fill->old_id, lists->row_start + begin) : 0;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t first, last;
		old = gw_numbers_get(fill->old_id, lists->row_start + row);
		gw_adjacency_list(from, old, &first, &last);
		uint64_t n = last - first, to = lists->offsets[row];
		gw_status status = split_lists_make_room(room, n);
		if (status != GW_OK)
			return status;
		for (uint64_t i = 0; i < n; i++) {
			uint64_t neighbour = gw_load_id(from->indices, from->index_bytes, first + i);
			room->entries[i].id = gw_numbers_get(fill->new_id, neighbour);
			room->entries[i].tie = i;
			room->entries[i].key = !fill->keys          ? 0
					       : fill->of_neighbour ? key_at(fill, neighbour)
								    : key_at(fill, edge_at(from, first + i));
		}
		split_lists_sort_list(fill, room->entries, n, room->spare);
		for (uint64_t i = 0; i < n; i++) {
			gw_numbers_put(&lists->ids, to + i, room->entries[i].id);
			gw_numbers_put(&lists->at, to + i, edge_at(from, first + room->entries[i].tie));
		}
	}
	if (begin < end && (old - old_first) / LEAVE_PARTS < end - begin && !gw_part_arena(fill->split->part))
		gw_symmetric_leave(from, old_first, old);
	return GW_OK;
}

static void take_sort_keys(struct fill *fill, const char *folder, const char *name)
{
	char key[GW_KEY_MAX];
	snprintf(key, sizeof(key), "edge/%s/%s", folder, name);
	const struct gw_array *array = gw_part_array(fill->split->part, key);
	fill->keys = array ? array->data : NULL;
	fill->dtype = array ? array->meta->dtype : GW_INT64;
}

static void find_keys(struct fill *fill)
{
	const struct gw_split *split = fill->split;
	const struct gw_edge_type *type = &split->in->etypes[fill->lists->etype];
	const struct gw_time_order *order = gw_split_time_order(split, fill->lists->etype);
	if (!order && type->order == GW_ORDER_REL_SRC)
		take_sort_keys(fill, type->folder, "rel");
	else if (!order && type->order == GW_ORDER_TIME_SRC)
		take_sort_keys(fill, type->folder, type->time_name);
	if (!order)
		return;
	fill->anew = true;
	fill->dtype = order->column.dtype;
	fill->of_neighbour = order->of_source;
	/* all edges of a list of out-edges have the same source */
	fill->keys = order->of_source && fill->lists->from->eid ? NULL : order->column.data;
}

gw_status gw_split_fill(struct gw_split *split, struct gw_split_lists *lists)
{
	uint64_t edges = lists->offsets[lists->rows];
	const struct gw_node_type *neighbours = &split->schema->ntypes[lists->id_type];
	struct fill fill = {.split = split,
			    .lists = lists,
			    .old_id = &split->old_id[lists->row_type],
			    .new_id = &split->new_id[lists->id_type],
			    .starts = neighbours->starts,
			    .parts = split->plan->parts};
	find_keys(&fill);
	uint64_t widths = gw_number_bytes(neighbours->count) + gw_number_bytes(split->in->etypes[lists->etype].count);
	gw_status status = gw_spill_announce_blocks(&split->spill, edges * widths, "a part");
	if (status == GW_OK)
		status = gw_numbers_make(&split->spill, edges, neighbours->count, &lists->ids);
	if (status == GW_OK)
		status = gw_numbers_make(&split->spill, edges, split->in->etypes[lists->etype].count, &lists->at);
	if (status != GW_OK)
		return status;
	fill.rooms = gw_calloc(split->threads, sizeof(*fill.rooms));
	if (!fill.rooms)
		return GW_NO_MEMORY;
	status = gw_parallel_for(split->threads, lists->rows, ROWS_GRAIN, split_lists_fill_rows, &fill);
	for (unsigned i = 0; i < split->threads; i++)
		gw_free(fill.rooms[i].entries);
	gw_free(fill.rooms);
	return status;
}
