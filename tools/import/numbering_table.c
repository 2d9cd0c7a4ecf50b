/* Finds the places of a run's values: a hash table of its different values, in the order of their first appearance.
 *
 * A block of values at a time takes three passes over the table, so that what one pass prefetches is there in the next.
 * Fails if memory runs out, and for 2^31 different values.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/import/numbering_private.h"

#define SLOTS_FIRST 1024u
#define BLOCK       32u /* values whose slots are prefetched together */
#define EMPTY       UINT32_MAX

struct run_table {
	const struct gw_numbering_work *work;
	uint32_t *slots; /* [mask + 1] places, or EMPTY */
	uint8_t *tags;   /* [mask + 1] bits of the hash, which spare most comparisons */
	uint64_t mask;
	uint64_t *first; /* [room] where the copy of each place's first value is */
	uint64_t count, room;
};

struct run_value {
	uint64_t at; /* of its copy */
	uint64_t hash;
};

static uint64_t bytes_at(const struct gw_numbering_work *work, uint64_t at)
{
	uint16_t length = sizeof(uint64_t);
	if (work->text)
		memcpy(&length, work->copies + at, sizeof(length));
	return work->text ? sizeof(length) + (uint64_t)length : length;
}

static uint64_t hash_at(const struct gw_numbering_work *work, uint64_t at)
{
	uint64_t value;
	if (work->text) {
		const uint8_t *text = work->copies + at + sizeof(uint16_t);
		return gw_digest(text, bytes_at(work, at) - sizeof(uint16_t));
	}
	memcpy(&value, work->copies + at, sizeof(value));
	return gw_numbering_hash(&work->columns[0], value);
}

/* A text's length is in front of it, so texts of other lengths differ in the first bytes. */
static bool same_copies(const struct gw_numbering_work *work, uint64_t a, uint64_t b)
{
	uint64_t bytes = bytes_at(work, a);
	return bytes == bytes_at(work, b) && memcmp(work->copies + a, work->copies + b, bytes) == 0;
}

static uint8_t tag_of(uint64_t hash)
{
	return (uint8_t)(hash >> 40); /* the bits below choose the slot, those above the run */
}

/* The slot of a value, or the empty one for it. known: the table does not have it. */
static uint64_t table_slot(const struct run_table *table, const struct run_value *value, bool known)
{
	uint64_t slot = value->hash & table->mask;
	while (table->slots[slot] != EMPTY && (known || table->tags[slot] != tag_of(value->hash) ||
					       !same_copies(table->work, table->first[table->slots[slot]], value->at)))
		slot = (slot + 1) & table->mask;
	return slot;
}

static gw_status reserve_slots(struct run_table *table)
{
	if (table->slots && (table->count + BLOCK) * 2 <= table->mask + 1)
		return GW_OK;
	uint64_t room = table->slots ? (table->mask + 1) * 2 : SLOTS_FIRST;
	gw_free(table->slots);
	table->slots = gw_malloc(room * (sizeof(*table->slots) + sizeof(*table->tags)));
	if (!table->slots)
		return GW_NO_MEMORY;
	memset(table->slots, 0xff, room * sizeof(*table->slots));
	table->tags = (uint8_t *)(table->slots + room);
	table->mask = room - 1;
	for (uint64_t place = 0; place < table->count; place++) {
		struct run_value value = {table->first[place], hash_at(table->work, table->first[place])};
		uint64_t slot = table_slot(table, &value, true);
		table->slots[slot] = (uint32_t)place;
		table->tags[slot] = tag_of(value.hash);
	}
	return GW_OK;
}

static gw_status reserve_firsts(struct run_table *table)
{
	if (table->count + BLOCK <= table->room)
		return GW_OK;
	uint64_t room = table->room + table->room / 2 + SLOTS_FIRST;
	uint64_t *grown = gw_realloc(table->first, room, sizeof(*grown));
	if (!grown)
		return GW_NO_MEMORY;
	table->first = grown;
	table->room = room;
	return table->count + BLOCK < GW_NUMBERING_FIRST
		       ? GW_OK
		       : gw_fail(GW_LIMIT, "more than 2^31 ids in one of %u runs", table->work->count);
}

static uint32_t place_of(struct run_table *table, const struct run_value *value)
{
	uint64_t slot = table_slot(table, value, false);
	if (table->slots[slot] != EMPTY)
		return table->slots[slot];
	uint32_t place = (uint32_t)table->count;
	table->slots[slot] = place;
	table->tags[slot] = tag_of(value->hash);
	table->first[table->count++] = value->at;
	return place | GW_NUMBERING_FIRST;
}

/* Three passes over a block: hashes and slots, the values that the slots lead to, and the places. */
static void place_block(struct run_table *table, uint64_t *at, uint32_t count, uint32_t *places)
{
	const struct gw_numbering_work *work = table->work;
	struct run_value values[BLOCK];
	for (uint32_t i = 0; i < count; i++) {
		values[i] = (struct run_value){*at, hash_at(work, *at)};
		*at += bytes_at(work, *at);
		__builtin_prefetch(&table->slots[values[i].hash & table->mask]);
		__builtin_prefetch(&table->tags[values[i].hash & table->mask]);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = table->slots[values[i].hash & table->mask];
		if (place != EMPTY)
			__builtin_prefetch(&table->first[place]);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = table->slots[values[i].hash & table->mask];
		if (place != EMPTY)
			__builtin_prefetch(work->copies + table->first[place]);
	}
	for (uint32_t i = 0; i < count; i++)
		places[i] = place_of(table, &values[i]);
}

/* Counts the first values in each piece. *p: the piece of value i of the run. */
static void count_firsts_of(struct gw_numbering_work *work, uint32_t run, uint64_t i, uint32_t count, uint64_t *p)
{
	for (uint64_t last = i + count; i < last; i++) {
		while (*p + 1 < work->num_pieces && work->values[(*p + 1) * work->count + run] <= i)
			++*p;
		if (work->places[i] & GW_NUMBERING_FIRST)
			atomic_fetch_add_explicit(&work->firsts[*p], 1, memory_order_relaxed);
	}
}

gw_status gw_numbering_place_run(struct gw_numbering_work *work, uint32_t run)
{
	struct run_table table = {.work = work};
	uint64_t at = work->byte_starts[run], last = work->value_starts[run + 1], p = 0;
	gw_status status = GW_OK;
	for (uint64_t i = work->value_starts[run]; i < last && status == GW_OK; i += BLOCK) {
		uint32_t count = last - i < BLOCK ? (uint32_t)(last - i) : BLOCK;
		status = reserve_firsts(&table);
		if (status == GW_OK)
			status = reserve_slots(&table);
		if (status != GW_OK)
			break;
		place_block(&table, &at, count, work->places + i);
		count_firsts_of(work, run, i, count, &p);
	}
	work->number_starts[run] = table.count;
	gw_spill_drop(work->copies, work->byte_starts[run], work->byte_starts[run + 1] - work->byte_starts[run]);
	gw_free(table.slots);
	gw_free(table.first);
	return status;
}
