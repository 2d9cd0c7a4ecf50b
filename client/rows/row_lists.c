/* Lists of rows by owner: see row_lists.h. */
#include "client/rows/row_lists.h"

#include <assert.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/memory/alloc.h"

#define SEEN_SLOTS_MAX (1u << 16)
#define DUPLICATES_PAY 8 /* duplicates are removed if at least one row in this many is a duplicate */

struct copy {
	uint64_t to, from; /* rows of the output */
};

gw_status gw_row_lists_init(struct gw_row_lists *lists, uint32_t parts)
{
	memset(lists, 0, sizeof(*lists));
	lists->parts = parts;
	lists->counts = gw_calloc(parts, sizeof(*lists->counts));
	lists->cursors = gw_calloc(parts, sizeof(*lists->cursors));
	return lists->counts && lists->cursors ? GW_OK : GW_NO_MEMORY;
}

void gw_row_lists_free(struct gw_row_lists *lists)
{
	struct gw_vec *vecs[] = {&lists->remote, &lists->to, &lists->owners, &lists->seen, &lists->copies};
	for (size_t i = 0; i < sizeof(vecs) / sizeof(vecs[0]); i++)
		gw_vec_free(vecs[i]);
	gw_free(lists->counts);
	gw_free(lists->cursors);
	memset(lists, 0, sizeof(*lists));
}

/* A small hash table that overwrites on collision. A duplicate that it misses is fetched twice, which is correct
 * too. */
static gw_status clear_seen(struct gw_row_lists *lists, uint64_t n)
{
	uint64_t slots = 64;
	while (slots < 4 * n && slots < SEEN_SLOTS_MAX)
		slots *= 2;
	lists->seen_slots = n < 2 ? 0 : slots;
	if (n < 2)
		return GW_OK;
	if (gw_vec_reserve(&lists->seen, slots * 4) != GW_OK ||
	    gw_vec_reserve(&lists->copies, n * sizeof(struct copy)) != GW_OK)
		return GW_NO_MEMORY;
	memset(lists->seen.data, 0, slots * 4);
	return GW_OK;
}

gw_status gw_row_lists_begin(struct gw_row_lists *lists, uint64_t n, bool unique)
{
	if (gw_vec_reserve(&lists->owners, n * sizeof(uint32_t)) != GW_OK ||
	    gw_vec_reserve(&lists->remote, n * sizeof(uint64_t)) != GW_OK ||
	    gw_vec_reserve(&lists->to, n * sizeof(uint32_t)) != GW_OK)
		return GW_NO_MEMORY;
	lists->copy_count = lists->seen_slots = 0;
	return unique ? GW_OK : clear_seen(lists, n);
}

static inline uint64_t position_of(const struct gw_row_ids *of, uint64_t number)
{
	return of->positions ? of->positions[number] : number;
}

static gw_status find_owners(struct gw_row_lists *lists, const struct gw_row_ids *of, const struct gw_row_piece *piece)
{
	const struct gw_row_ids in = *of; /* the lists may be any memory: it would be read again for each row */
	const uint64_t *starts = in.rows->starts, count = starts[lists->parts];
	const uint32_t parts = lists->parts;
	const bool striped = in.rows->striped;
	uint32_t *owners = lists->owners.data;
	uint64_t *counts = lists->counts;
	for (uint64_t i = piece->first; i < piece->end; i++) {
		uint64_t at = position_of(&in, i), id = (uint64_t)in.ids[at];
		if (id >= count)
			return gw_fail_id("id", in.ids[at], at, count);
		uint32_t owner = striped ? (uint32_t)(id % parts) : gw_book_owner(starts, parts, id);
		owners[i] = owner;
		counts[owner]++;
	}
	return GW_OK;
}

/* Finds duplicates of ids in this piece or earlier ones. If there are enough of them, sets their owner to UINT32_MAX
 * and lists them as copies. The table contains only ids that are fetched, never duplicates. */
static void find_duplicates(struct gw_row_lists *lists, const struct gw_row_ids *of, const struct gw_row_piece *piece)
{
	uint32_t *seen = lists->seen.data;
	struct copy *copies = (struct copy *)lists->copies.data + lists->copy_count;
	uint64_t found = 0;
	for (uint64_t i = piece->first; i < piece->end && i < UINT32_MAX; i++) {
		int64_t id = of->ids[position_of(of, i)];
		uint64_t slot = ((uint64_t)id * 0x9e3779b97f4a7c15ull) >> 40 & (lists->seen_slots - 1);
		uint32_t earlier = seen[slot];
		if (earlier && of->ids[position_of(of, earlier - 1)] == id)
			copies[found++] = (struct copy){.to = i, .from = earlier - 1};
		else
			seen[slot] = (uint32_t)i + 1;
	}
	if (found * DUPLICATES_PAY < piece->end - piece->first)
		return;
	uint32_t *owners = lists->owners.data;
	for (uint64_t i = 0; i < found; i++) {
		lists->counts[owners[copies[i].to]]--;
		owners[copies[i].to] = UINT32_MAX;
		copies[i] = (struct copy){.to = position_of(of, copies[i].to), .from = position_of(of, copies[i].from)};
	}
	lists->copy_count += found;
}

static void list_by_owner(struct gw_row_lists *lists, const struct gw_row_ids *of, const struct gw_row_piece *piece)
{
	const struct gw_rows *rows = of->rows;
	const uint32_t parts = lists->parts;
	assert(parts > 0);
	uint64_t start = piece->first;
	for (uint32_t p = 0; p < parts; p++) {
		lists->cursors[p] = start;
		start += lists->counts[p];
	}
	const uint32_t *owners = lists->owners.data;
	uint64_t *remote = lists->remote.data;
	uint32_t *to = lists->to.data;
	for (uint64_t i = piece->first; i < piece->end; i++) {
		uint32_t p = owners[i];
		if (p == UINT32_MAX)
			continue;
		uint64_t position = position_of(of, i), id = (uint64_t)of->ids[position];
		uint64_t at = lists->cursors[p]++, row = rows->striped ? id / parts : id - rows->starts[p];
		remote[at] = rows->places[p].offset + row * rows->step;
		to[at] = (uint32_t)position;
	}
}

/* Whether the ids are of rows that the only part owns. */
static bool one_owns_all(const struct gw_row_ids *of, const struct gw_row_piece *piece)
{
	const struct gw_row_ids in = *of; /* as in find_owners */
	uint64_t largest = 0;
	if (in.rows->striped)
		return false;
	for (uint64_t i = piece->first; i < piece->end; i++) {
		uint64_t id = (uint64_t)in.ids[position_of(&in, i)];
		largest = id > largest ? id : largest;
	}
	return piece->first == piece->end || largest < in.rows->starts[1];
}

/* The ids are checked. */
static void list_of_one(struct gw_row_lists *lists, const struct gw_row_ids *of, const struct gw_row_piece *piece)
{
	const struct gw_row_ids in = *of; /* as in find_owners */
	const uint64_t step = in.rows->step, start = in.rows->starts[in.owner];
	const uint64_t offset = in.rows->places[in.owner].offset;
	uint64_t *remote = lists->remote.data;
	uint32_t *to = lists->to.data;
	for (uint64_t i = piece->first; i < piece->end; i++) {
		uint64_t position = position_of(&in, i);
		remote[i] = offset + ((uint64_t)in.ids[position] - start) * step;
		to[i] = (uint32_t)position;
	}
	lists->counts[in.owner] = piece->end - piece->first;
}

gw_status gw_row_lists_add(struct gw_row_lists *lists, const struct gw_row_ids *of, const struct gw_row_piece *piece)
{
	memset(lists->counts, 0, lists->parts * sizeof(*lists->counts));
	struct gw_row_ids known = *of;
	if (lists->parts == 1 && known.owner > 0 && !lists->seen_slots && one_owns_all(of, piece))
		known.owner = 0;
	if (known.owner < lists->parts && !lists->seen_slots) {
		list_of_one(lists, &known, piece);
		return GW_OK;
	}
	gw_status status = find_owners(lists, of, piece);
	if (status != GW_OK)
		return status;
	if (lists->seen_slots)
		find_duplicates(lists, of, piece);
	list_by_owner(lists, of, piece);
	return GW_OK;
}

void gw_row_lists_copy_duplicates(const struct gw_row_lists *lists, uint8_t *out, uint64_t row_bytes)
{
	const struct copy *copies = lists->copies.data;
	for (uint64_t i = 0; i < lists->copy_count; i++)
		memcpy(out + copies[i].to * row_bytes, out + copies[i].from * row_bytes, row_bytes);
}
