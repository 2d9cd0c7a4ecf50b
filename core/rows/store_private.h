/* What the files of the row store share: its struct, and taking one row alone. */
#ifndef GW_ROWS_STORE_PRIVATE_H
#define GW_ROWS_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/rows/store.h"

#define STORE_STRIPES 256u /* locks of rows that are one word; a power of two */

struct row_stripe {
	_Atomic uint32_t taken;
} __attribute__((aligned(64)));

/* What an optimizer remembers; made once, and never taken away while the store lives. */
struct row_state {
	enum gw_optimizer_kind kind;
	uint64_t floats; /* of a row */
	float *base;
	struct gw_arena *arena;
};

struct gw_row_store {
	struct gw_row_format format;
	gw_dtype dtype;
	uint64_t rows, columns, seed;
	uint8_t *base;
	struct gw_arena *arena;
	int numa;
	enum gw_huge_policy huge;
	struct row_stripe *stripes; /* rows without trailer: [STORE_STRIPES] */
	void *stripes_memory;
	_Atomic(struct row_state *) state; /* or NULL */
	pthread_mutex_t preparing;
};

static inline uint8_t *store_row(const struct gw_row_store *store, uint64_t number)
{
	return store->base + number * store->format.stride;
}

/* A row that the calling thread has alone, with its state. */
struct row_lock {
	uint64_t number, sequence;
	uint8_t *row;
};

/* Takes a row: for a turn, or, where that is NULL, when it can be had. False: the turn ends before it. */
bool gw_row_store_lock(struct gw_row_store *store, uint64_t number, struct gw_row_slice *turn, struct row_lock *hold);
void gw_row_store_unlock(struct gw_row_store *store, const struct row_lock *hold); /* as it was */
void gw_row_store_replace(struct gw_row_store *store, const struct row_lock *hold, const void *payload);

/* Whether a turn has some cost left, of which it pays a row's, or another. */
static inline bool store_pay(struct gw_row_slice *turn, uint64_t cost)
{
	if (!turn)
		return true;
	bool pays = turn->cost > 0;
	turn->cost -= turn->cost < cost ? turn->cost : cost;
	return pays;
}

/* Where a turn begins; and what the call returns that ends before row i. */
static inline uint64_t store_begin(const struct gw_row_slice *turn)
{
	return turn ? turn->at : 0;
}

static inline gw_status store_end_slice(struct gw_row_slice *turn, uint64_t i, uint64_t n)
{
	if (turn)
		turn->at = i;
	return i < n ? GW_AGAIN : GW_OK;
}

/* GW_RANGE names the first row that there is not; in a call's first turn. */
gw_status gw_row_store_check(const struct gw_row_store *store, struct gw_row_slice *turn, const uint64_t *rows,
			     uint64_t n);
gw_status gw_row_store_check_range(const struct gw_row_store *store, uint64_t first, uint64_t n);

/* Asks for memory that is soon written. A function that only prefetches is dropped by gcc unless inlined. */
#define ROW_PREFETCH_MAX 2048u
static inline __attribute__((always_inline)) void prefetch_bytes(const void *memory, uint64_t bytes)
{
	const uint8_t *from = memory;
	for (uint64_t at = 0; at < bytes && at < ROW_PREFETCH_MAX; at += 64)
		__builtin_prefetch(from + at, 1);
	__builtin_prefetch(from + bytes - 1, 1);
}

/* Asks for a row that is soon taken. */
static inline __attribute__((always_inline)) void store_prefetch(const struct gw_row_store *store, uint64_t number)
{
	prefetch_bytes(store_row(store, number), store->format.stride);
}

#endif
