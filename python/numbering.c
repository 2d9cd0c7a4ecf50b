/* The numbering of numbering.h: an open hash table of 5-byte slots, which hold a number and 8 bits of the hash.
 *
 * A slot's 8 bits spare most comparisons with other ids. The hash has a random key, because an input may be made to
 * collide. The key does not change the numbers. Errors: memory runs out, and the limits that numbering.h names.
 */
#include "python/numbering.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK       64u           /* ids whose slots are prefetched together */
#define SLOTS_FIRST 1024u         /* slots of a new numbering */
#define SLOTS_TWICE (16ull << 20) /* below this number of slots, they grow twofold instead of by half */
#define EMPTY       UINT32_MAX
#define GROUP_BITS  16u /* ids of a group have one base; a group's texts are shorter than 2^32 bytes */
#define TEXT_MAX    65535u

struct slot {
	uint8_t number[4]; /* uint32; EMPTY: no id */
	uint8_t tag;
};
_Static_assert(sizeof(struct slot) == 5, "slots have no padding");

struct numbering {
	bool texts;
	uint64_t count, key;
	struct slot *slots;
	uint64_t num_slots;
	int64_t *integers; /* [room] */
	uint32_t *places;  /* [room] where a text starts, from its group's base */
	uint64_t *bases;   /* [groups] */
	uint64_t room, groups_room;
	uint8_t *bytes;
	uint64_t num_bytes, bytes_room;
};

struct id {
	const uint8_t *bytes; /* of a text */
	uint64_t length;
	int64_t number;
	uint64_t hash;
};

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const uint8_t *at, uint64_t bytes)
{
	uint64_t word = 0;
	if (bytes)
		memcpy(&word, at, bytes);
	return word;
}

#define ODD_1 0x9e3779b97f4a7c15ull
#define ODD_2 0xd1b54a32d192ed03ull

static uint64_t hash_id(const struct numbering *n, const struct id *id)
{
	if (!n->texts)
		return fold(fold((uint64_t)id->number ^ n->key, ODD_1) ^ ODD_2, n->key | 1);
	uint64_t hash = n->key ^ id->length * ODD_2, left = id->length;
	const uint8_t *at = id->bytes;
	for (; left > 8; at += 8, left -= 8)
		hash = fold(load(at, 8) ^ hash, ODD_1);
	hash = fold(load(at, left) ^ hash, ODD_1);
	return fold(hash ^ ODD_2, n->key | 1);
}

static uint64_t slot_of(const struct numbering *n, uint64_t hash)
{
	return (uint64_t)((unsigned __int128)hash * n->num_slots >> 64);
}

static uint64_t text_start(const struct numbering *n, uint64_t number)
{
	return number == n->count ? n->num_bytes : n->bases[number >> GROUP_BITS] + n->places[number];
}

static struct id stored(const struct numbering *n, uint64_t number)
{
	if (!n->texts)
		return (struct id){.number = n->integers[number]};
	uint64_t start = text_start(n, number);
	return (struct id){.bytes = n->bytes + start, .length = text_start(n, number + 1) - start};
}

static bool same(const struct numbering *n, uint64_t number, const struct id *id)
{
	if (!n->texts)
		return n->integers[number] == id->number;
	struct id other = stored(n, number);
	return other.length == id->length && (!id->length || memcmp(other.bytes, id->bytes, id->length) == 0);
}

static uint32_t number_in(const struct slot *slot)
{
	uint32_t number;
	memcpy(&number, slot->number, sizeof(number));
	return number;
}

/* known: the id is in no slot. */
static struct slot *find(const struct numbering *n, const struct id *id, bool known)
{
	for (uint64_t at = slot_of(n, id->hash);; at = at + 1 == n->num_slots ? 0 : at + 1) {
		struct slot *slot = &n->slots[at];
		uint32_t number = number_in(slot);
		if (number == EMPTY || (!known && slot->tag == (uint8_t)id->hash && same(n, number, id)))
			return slot;
	}
}

static void fill(struct slot *slot, uint64_t number, uint64_t hash)
{
	uint32_t narrow = (uint32_t)number;
	memcpy(slot->number, &narrow, sizeof(narrow));
	slot->tag = (uint8_t)hash;
}

static gw_status grow_slots(struct numbering *n)
{
	uint64_t wanted = n->num_slots < SLOTS_TWICE ? n->num_slots * 2 : n->num_slots + n->num_slots / 2;
	free(n->slots);
	n->num_slots = wanted ? wanted : SLOTS_FIRST;
	n->slots = malloc(n->num_slots * sizeof(*n->slots));
	if (!n->slots)
		return GW_NO_MEMORY;
	memset(n->slots, 0xff, n->num_slots * sizeof(*n->slots));
	struct id ids[BLOCK];
	for (uint64_t begin = 0; begin < n->count; begin += BLOCK) {
		uint64_t rows = n->count - begin < BLOCK ? n->count - begin : BLOCK;
		for (uint64_t i = 0; i < rows; i++) {
			ids[i] = stored(n, begin + i);
			ids[i].hash = hash_id(n, &ids[i]);
			__builtin_prefetch(&n->slots[slot_of(n, ids[i].hash)], 1);
		}
		for (uint64_t i = 0; i < rows; i++)
			fill(find(n, &ids[i], true), begin + i, ids[i].hash);
	}
	return GW_OK;
}

/* Grows memory to hold `count` elements: by half, so that little of it is unused. */
static bool reserve(void **memory, uint64_t count, uint64_t *room, size_t bytes)
{
	if (count <= *room)
		return true;
	uint64_t wanted = *room + *room / 2 > count ? *room + *room / 2 : count + 1024;
	void *grown = wanted <= SIZE_MAX / bytes ? realloc(*memory, wanted * bytes) : NULL;
	if (!grown)
		return false;
	*memory = grown;
	*room = wanted;
	return true;
}

static gw_status append(struct numbering *n, const struct id *id)
{
	if (n->count >= EMPTY - 1 || id->length > TEXT_MAX)
		return GW_LIMIT;
	uint64_t group = n->count >> GROUP_BITS;
	if (!n->texts) {
		if (!reserve((void **)&n->integers, n->count + 1, &n->room, sizeof(*n->integers)))
			return GW_NO_MEMORY;
		n->integers[n->count++] = id->number;
		return GW_OK;
	}
	if (!reserve((void **)&n->places, n->count + 1, &n->room, sizeof(*n->places)) ||
	    !reserve((void **)&n->bases, group + 1, &n->groups_room, sizeof(*n->bases)) ||
	    !reserve((void **)&n->bytes, n->num_bytes + id->length, &n->bytes_room, 1))
		return GW_NO_MEMORY;
	if (n->count == group << GROUP_BITS)
		n->bases[group] = n->num_bytes;
	n->places[n->count++] = (uint32_t)(n->num_bytes - n->bases[group]);
	if (id->length)
		memcpy(n->bytes + n->num_bytes, id->bytes, id->length);
	n->num_bytes += id->length;
	return GW_OK;
}

/* The number of an id: *out, or -1 if it is missing and not to be added. */
static gw_status take_one(struct numbering *n, const struct id *id, bool add, int64_t *out)
{
	struct slot *slot = find(n, id, false);
	*out = -1;
	if (number_in(slot) != EMPTY) {
		*out = number_in(slot);
		return GW_OK;
	}
	if (!add)
		return GW_OK;
	*out = (int64_t)n->count;
	gw_status status = append(n, id);
	if (status != GW_OK)
		return status;
	fill(slot, n->count - 1, id->hash);
	return n->count * 4 > n->num_slots * 3 ? grow_slots(n) : GW_OK;
}

static struct id given(const struct id_batch *batch, uint64_t row)
{
	if (batch->numbers)
		return (struct id){.number = batch->numbers[row]};
	uint64_t start = (uint64_t)(batch->offsets32 ? batch->offsets32[row] : batch->offsets64[row]);
	uint64_t end = (uint64_t)(batch->offsets32 ? batch->offsets32[row + 1] : batch->offsets64[row + 1]);
	return (struct id){.bytes = batch->bytes + start, .length = end - start};
}

static gw_status begin(struct held_numbering *held, bool texts)
{
	if (held->numbering)
		return held->numbering->texts == texts && held->numbering->slots ? GW_OK : GW_INVALID;
	struct numbering *n = calloc(1, sizeof(*n));
	if (!n)
		return GW_NO_MEMORY;
	n->texts = texts;
	if (getrandom(&n->key, sizeof(n->key), GRND_NONBLOCK) != (ssize_t)sizeof(n->key))
		n->key = ODD_2;
	held->numbering = n;
	return grow_slots(n);
}

/* Two passes over a block: hashes and prefetches, then the places of ids, row by row. */
static gw_status take_block(const struct id_column *columns, uint32_t count, uint64_t from, uint64_t rows, int64_t *out)
{
	struct id ids[2][BLOCK];
	for (uint32_t c = 0; c < count; c++) {
		const struct numbering *n = columns[c].held->numbering;
		for (uint64_t i = 0; i < rows; i++) {
			struct id *id = &ids[c][i];
			*id = given(&columns[c].batch, from + i);
			id->hash = hash_id(n, id);
			__builtin_prefetch(&n->slots[slot_of(n, id->hash)]);
		}
		for (uint64_t i = 0; i < rows; i++) {
			uint32_t number = number_in(&n->slots[slot_of(n, ids[c][i].hash)]);
			if (number != EMPTY)
				__builtin_prefetch(n->texts ? (const void *)&n->places[number]
							    : (const void *)&n->integers[number]);
		}
		for (uint64_t i = 0; i < rows && n->texts; i++) {
			uint32_t number = number_in(&n->slots[slot_of(n, ids[c][i].hash)]);
			if (number != EMPTY)
				__builtin_prefetch(n->bytes + text_start(n, number));
		}
	}
	for (uint64_t i = 0; i < rows; i++) {
		for (uint32_t c = 0; c < count; c++) {
			gw_status status = take_one(columns[c].held->numbering, &ids[c][i], columns[c].add,
						    &out[(from + i) * count + c]);
			if (status != GW_OK)
				return status;
		}
	}
	return GW_OK;
}

gw_status numbering_take(const struct id_column *columns, uint32_t count, uint64_t rows, int64_t *out)
{
	if (count < 1 || count > 2)
		return GW_INVALID;
	for (uint32_t c = 0; c < count; c++) {
		gw_status status = begin(columns[c].held, !columns[c].batch.numbers);
		if (status != GW_OK)
			return status;
	}
	for (uint64_t from = 0; from < rows; from += BLOCK) {
		gw_status status = take_block(columns, count, from, rows - from < BLOCK ? rows - from : BLOCK, out);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

void numbering_interleave(const struct id_batch *a, const struct id_batch *b, uint64_t rows, int64_t *offsets,
			  uint8_t *bytes)
{
	int64_t end = 0;
	offsets[0] = 0;
	for (uint64_t i = 0; i < 2 * rows; i++) {
		struct id id = given(i % 2 ? b : a, i / 2);
		if (id.length)
			memcpy(bytes + end, id.bytes, id.length);
		end += (int64_t)id.length;
		offsets[i + 1] = end;
	}
}

uint64_t numbering_count(const struct held_numbering *held)
{
	return held->numbering ? held->numbering->count : 0;
}

const int64_t *numbering_integers(const struct held_numbering *held)
{
	return held->numbering ? held->numbering->integers : NULL;
}

const uint8_t *numbering_bytes(const struct held_numbering *held, uint64_t *bytes)
{
	*bytes = held->numbering ? held->numbering->num_bytes : 0;
	return held->numbering ? held->numbering->bytes : NULL;
}

void numbering_offsets(const struct held_numbering *held, uint64_t begin, uint64_t rows, int64_t *out)
{
	for (uint64_t i = 0; i < rows; i++)
		out[i] = held->numbering ? (int64_t)text_start(held->numbering, begin + i) : 0;
}

uint64_t numbering_memory(const struct held_numbering *held)
{
	const struct numbering *n = held->numbering;
	if (!n)
		return 0;
	uint64_t of_id = n->texts ? sizeof(*n->places) : sizeof(*n->integers);
	return n->num_slots * sizeof(*n->slots) + n->room * of_id + n->groups_room * sizeof(*n->bases) + n->bytes_room;
}

void numbering_close(struct held_numbering *held)
{
	if (!held->numbering)
		return;
	free(held->numbering->slots);
	held->numbering->slots = NULL;
}

void numbering_end(struct held_numbering *held)
{
	if (!held->numbering)
		return;
	numbering_close(held);
	free(held->numbering->integers);
	free(held->numbering->places);
	free(held->numbering->bases);
	free(held->numbering->bytes);
	free(held->numbering);
	held->numbering = NULL;
}
