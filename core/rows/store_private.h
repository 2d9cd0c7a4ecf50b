/* Shared by the files of the row store: its struct, and locking one row. */
#ifndef GW_ROWS_STORE_PRIVATE_H
#define GW_ROWS_STORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/rows/store.h"

#define STORE_STRIPES 256u /* locks of rows that are one word; a power of two */

struct row_stripe {
	_Atomic uint32_t taken;
} __attribute__((aligned(64)));

/* An optimizer's state; allocated once, and kept while the store lives. */
struct row_state {
	enum gw_optimizer_kind kind;
	uint64_t floats; /* of each row */
	float *base;
	struct gw_arena *arena;
};

struct gw_row_store {
	struct gw_row_format format;
	gw_dtype dtype;
	uint64_t rows, columns, seed;
	uint8_t *base;
	struct gw_arena *arena;
	struct gw_arena *source; /* the rows in another process's memory, until they are copied; else NULL */
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

/* A row that the calling thread has locked, with its state. */
struct row_lock {
	uint64_t number, sequence;
	uint8_t *row;
};

/* Locks a row. Without a slice it waits for the row. Returns false if the slice ends before the row. */
bool gw_row_store_lock(struct gw_row_store *store, uint64_t number, struct gw_row_slice *slice, struct row_lock *lock);
void gw_row_store_unlock(struct gw_row_store *store, const struct row_lock *lock); /* unchanged */
void gw_row_store_replace(struct gw_row_store *store, const struct row_lock *lock, const void *payload);

/* Subtracts a cost from what remains of the slice, down to 0. Returns false if nothing remained before. Without a slice
 * it returns true. */
static inline bool store_pay(struct gw_row_slice *slice, uint64_t cost)
{
	if (!slice)
		return true;
	bool pays = slice->cost > 0;
	slice->cost -= slice->cost < cost ? slice->cost : cost;
	return pays;
}

/* The row at which a slice begins. store_end_slice: the result of a call that ends before row i. */
static inline uint64_t store_begin(const struct gw_row_slice *slice)
{
	return slice ? slice->at : 0;
}

static inline gw_status store_end_slice(struct gw_row_slice *slice, uint64_t i, uint64_t n)
{
	if (slice)
		slice->at = i;
	return i < n ? GW_AGAIN : GW_OK;
}

gw_status gw_row_store_make_stripes(struct gw_row_store *store);

/* GW_RANGE names the first row that does not exist; checks only in a call's first slice. */
gw_status gw_row_store_check(const struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
			     uint64_t n);
gw_status gw_row_store_check_range(const struct gw_row_store *store, uint64_t first, uint64_t n);

/* Prefetches memory that will be written soon. gcc drops a function that only prefetches, unless it is inlined. */
#define ROW_PREFETCH_MAX 2048u
static inline __attribute__((always_inline)) void prefetch_bytes(const void *memory, uint64_t bytes)
{
	const uint8_t *from = memory;
	for (uint64_t at = 0; at < bytes && at < ROW_PREFETCH_MAX; at += 64)
		__builtin_prefetch(from + at, 1);
	__builtin_prefetch(from + bytes - 1, 1);
}

/* Prefetches a row that will be locked soon. */
static inline __attribute__((always_inline)) void store_prefetch(const struct gw_row_store *store, uint64_t number)
{
	prefetch_bytes(store_row(store, number), store->format.stride);
}

#endif
