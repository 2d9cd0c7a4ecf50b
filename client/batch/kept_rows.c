/* Counts rows, chooses and fetches those that a loader keeps: see kept_rows.h.
 *
 * A row that stays chosen keeps its slot. New rows take the slots of rows that are no longer chosen, so that two
 * epochs' rows never need memory at once.
 */
#include "client/batch/kept_rows.h"

#include <string.h>

#include "core/memory/alloc.h"

#define FETCHED_ROWS  8192u        /* of one gather */
#define FETCHED_BYTES (4ull << 20) /* unless one row is longer */

struct gw_row_seen {
	uint32_t count;
	uint32_t last; /* batch that fetches the row, plus one */
};

void gw_kept_init(struct gw_kept *kept, struct gw_client *client, const struct gw_tensor *tensor)
{
	const struct gw_rows *rows = &((const struct gw_client_tensor *)tensor)->rows;
	*kept = (struct gw_kept){.client = client,
				 .tensor = tensor,
				 .ids = rows->starts[client->meta->num_parts],
				 .row_bytes = rows->row_bytes};
}

void gw_kept_free(struct gw_kept *kept)
{
	gw_free(kept->seen);
	gw_free(kept->blocks);
	gw_free(kept->slots);
	gw_free(kept->rows);
	*kept = (struct gw_kept){0};
}

/* --- Counts. --- */

gw_status gw_kept_count_begin(struct gw_kept *kept)
{
	kept->seen = gw_calloc(kept->ids ? kept->ids : 1, sizeof(*kept->seen));
	return kept->seen ? GW_OK : GW_NO_MEMORY;
}

uint64_t gw_kept_count(struct gw_kept *kept, const int64_t *ids, const uint32_t *positions, uint64_t n, uint32_t number,
		       uint32_t lookahead)
{
	uint64_t fetched = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct gw_row_seen *seen = &kept->seen[ids[positions[i]]];
		if (i + 16 < n)
			__builtin_prefetch(&kept->seen[ids[positions[i + 16]]], 1);
		if (seen->last && number + 1 - seen->last < lookahead)
			continue;
		seen->last = number + 1;
		seen->count++;
		fetched++;
	}
	return fetched;
}

void gw_kept_count_end(struct gw_kept *kept)
{
	gw_free(kept->seen);
	kept->seen = NULL;
}

/* --- The choice. --- */

static uint32_t most_of(const struct gw_kept *kept)
{
	uint32_t most = 0;
	for (uint64_t id = 0; id < kept->ids; id++)
		most = kept->seen[id].count > most ? kept->seen[id].count : most;
	return most;
}

/* How many rows have each count: by_count[c * n + f], for c up to `most`. */
static void count_counts(struct gw_kept *const *kept, uint32_t n, uint64_t *by_count, struct gw_kept_sums *sums)
{
	for (uint32_t f = 0; f < n; f++) {
		for (uint64_t id = 0; kept[f] && id < kept[f]->ids; id++) {
			const uint64_t count = kept[f]->seen[id].count;
			by_count[count * n + f]++;
			sums->without += count * kept[f]->row_bytes;
		}
	}
}

/* Takes of rows with one count as many as fit. */
static void choose_of(struct gw_kept *kept, uint32_t count, uint64_t rows, uint64_t *left, struct gw_kept_sums *sums)
{
	if (kept->least > 0) /* this fetch's rows do not fit any more */
		return;
	const uint64_t fit = kept->row_bytes ? *left / kept->row_bytes : rows;
	const uint64_t most = UINT32_MAX - kept->chosen; /* slots */
	uint64_t taken = rows < fit ? rows : fit;
	taken = taken < most ? taken : most;
	if (taken < rows) {
		kept->least = count;
		kept->at_least = taken;
	}
	kept->chosen += taken;
	*left -= taken * kept->row_bytes;
	sums->rows += taken;
	sums->bytes += taken * kept->row_bytes;
	sums->saved += taken * kept->row_bytes * (count - 1);
}

gw_status gw_kept_choose(struct gw_kept *const *kept, uint32_t n, uint64_t bytes, struct gw_kept_sums *sums)
{
	uint32_t most = 1;
	for (uint32_t f = 0; f < n; f++) {
		if (!kept[f])
			continue;
		const uint32_t of = most_of(kept[f]);
		most = of > most ? of : most;
		kept[f]->chosen = kept[f]->at_least = kept[f]->least = 0;
	}
	uint64_t *by_count = gw_calloc(((size_t)most + 1) * n, sizeof(*by_count));
	if (!by_count)
		return GW_NO_MEMORY;
	count_counts(kept, n, by_count, sums);
	for (uint32_t count = most; count > 1; count--) {
		for (uint32_t f = 0; f < n; f++) {
			if (kept[f] && by_count[(size_t)count * n + f])
				choose_of(kept[f], count, by_count[(size_t)count * n + f], &bytes, sums);
		}
	}
	for (uint32_t f = 0; f < n; f++) {
		if (kept[f] && kept[f]->least == 0)
			kept[f]->least = 1; /* all rows that save something */
	}
	gw_free(by_count);
	return GW_OK;
}

uint64_t gw_kept_memory(const struct gw_kept *kept)
{
	return kept->chosen * (kept->row_bytes + sizeof(*kept->slots)) +
	       gw_replica_blocks(kept->ids) * sizeof(*kept->blocks) + kept->ids * sizeof(*kept->seen);
}

/* --- The change. --- */

/* Makes the blocks of the chosen rows. */
static gw_status mark_kept(struct gw_kept *kept, struct gw_replica_block **out)
{
	const uint64_t blocks = gw_replica_blocks(kept->ids);
	struct gw_replica_block *made = gw_calloc(blocks ? blocks : 1, sizeof(*made));
	*out = made;
	if (!made)
		return GW_NO_MEMORY;
	uint64_t at_least = kept->at_least;
	for (uint64_t id = 0; id < kept->ids; id++) {
		const uint32_t count = kept->seen[id].count;
		const bool first = count == kept->least && at_least > 0;
		at_least -= first;
		if (count > kept->least || first)
			gw_replica_add(made, id);
	}
	gw_replica_count(made, kept->ids);
	return GW_OK;
}

static gw_status rows_room(struct gw_kept *kept, uint64_t rows)
{
	if (rows <= kept->room)
		return GW_OK;
	uint8_t *grown = gw_realloc(kept->rows, rows, kept->row_bytes ? kept->row_bytes : 1);
	if (!grown)
		return GW_NO_MEMORY;
	kept->rows = grown;
	kept->room = rows;
	return GW_OK;
}

/* Gives rows that stay their slots, and new rows those that are free. missing: the new ids; places: their slots. */
static void give_slots(const struct gw_kept *kept, const struct gw_replica_block *made, uint32_t *slots, bool *taken,
		       int64_t *missing, uint32_t *places, uint64_t *missing_count)
{
	const struct gw_replica_block *old = kept->blocks;
	uint64_t count = 0, row, before, free_slot = 0;
	for (uint64_t id = 0; id < kept->ids; id++) {
		if (!gw_replica_find(made, id, &row) || !kept->count || !gw_replica_find(old, id, &before))
			continue;
		slots[row] = kept->slots[before];
		taken[slots[row]] = true;
	}
	for (uint64_t id = 0; id < kept->ids; id++) {
		if (!gw_replica_find(made, id, &row))
			continue;
		if (kept->count && gw_replica_find(old, id, &before))
			continue;
		while (taken[free_slot])
			free_slot++;
		missing[count] = (int64_t)id;
		places[count++] = slots[row] = (uint32_t)free_slot++;
	}
	*missing_count = count;
}

static gw_status fetch_missing(struct gw_kept *kept, const int64_t *missing, const uint32_t *places, uint64_t n)
{
	const uint64_t bytes = kept->row_bytes ? kept->row_bytes : 1;
	uint64_t most = FETCHED_BYTES / bytes < FETCHED_ROWS ? FETCHED_BYTES / bytes : FETCHED_ROWS;
	most = most ? most : 1;
	uint8_t *landed = gw_malloc((n < most ? n : most) * bytes);
	gw_status status = landed ? GW_OK : GW_NO_MEMORY;
	for (uint64_t at = 0; at < n && status == GW_OK; at += most) {
		const uint64_t rows = n - at < most ? n - at : most;
		status = gw_gather(kept->client, kept->tensor, missing + at, rows, landed);
		for (uint64_t i = 0; i < rows && status == GW_OK; i++)
			memcpy(kept->rows + places[at + i] * bytes, landed + i * bytes, bytes);
		atomic_fetch_add(&kept->client->kept_rows, status == GW_OK ? rows : 0);
		atomic_fetch_add(&kept->client->kept_bytes, status == GW_OK ? rows * kept->row_bytes : 0);
	}
	gw_free(landed);
	return status;
}

/* With memory for the lists. */
static gw_status change_to(struct gw_kept *kept, struct gw_replica_block *made, uint32_t *slots,
			   struct gw_kept_sums *sums)
{
	const uint64_t room = kept->room > kept->chosen ? kept->room : kept->chosen;
	int64_t *missing = gw_malloc(kept->chosen * sizeof(*missing) + 1);
	uint32_t *places = gw_malloc(kept->chosen * sizeof(*places) + 1);
	bool *taken = gw_calloc(room + 1, sizeof(*taken));
	uint64_t count = 0;
	gw_status status = missing && places && taken ? rows_room(kept, kept->chosen) : GW_NO_MEMORY;
	if (status == GW_OK) {
		give_slots(kept, made, slots, taken, missing, places, &count);
		status = fetch_missing(kept, missing, places, count);
		sums->fetched += count;
	}
	gw_free(missing);
	gw_free(places);
	gw_free(taken);
	return status;
}

gw_status gw_kept_change(struct gw_kept *kept, struct gw_kept_sums *sums)
{
	struct gw_replica_block *made = NULL;
	uint32_t *slots = gw_malloc(kept->chosen * sizeof(*slots) + 1);
	gw_status status = slots ? mark_kept(kept, &made) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = change_to(kept, made, slots, sums);
	gw_free(kept->blocks);
	gw_free(kept->slots);
	kept->blocks = NULL;
	kept->slots = NULL;
	kept->count = 0;
	if (status != GW_OK) {
		gw_free(made);
		gw_free(slots);
		return status;
	}
	kept->blocks = made;
	kept->slots = slots;
	kept->count = kept->chosen;
	kept->view = (struct gw_kept_rows){.ids = made, .slots = slots, .rows = kept->rows};
	return GW_OK;
}
