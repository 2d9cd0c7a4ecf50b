/* What the files of the row store share: its struct, and taking one row alone. */
#ifndef GW_ROWS_STORE_INSIDE_H
#define GW_ROWS_STORE_INSIDE_H

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
struct row_hold {
	uint64_t number, sequence;
	uint8_t *row;
};

struct row_hold gw_row_store_take(struct gw_row_store *store, uint64_t number);
void gw_row_store_give(struct gw_row_store *store, const struct row_hold *hold); /* as it was */
void gw_row_store_give_new(struct gw_row_store *store, const struct row_hold *hold, const void *payload);

/* GW_RANGE names the first row that there is not. */
gw_status gw_row_store_check(const struct gw_row_store *store, const uint64_t *rows, uint64_t n);
gw_status gw_row_store_check_range(const struct gw_row_store *store, uint64_t first, uint64_t n);

/* Asks for the memory of a row that is soon taken. A function that only prefetches is dropped by gcc unless inlined. */
#define ROW_PREFETCH_MAX 2048u
static inline __attribute__((always_inline)) void store_prefetch(const struct gw_row_store *store, uint64_t number)
{
	const uint8_t *row = store_row(store, number);
	uint32_t bytes = store->format.stride < ROW_PREFETCH_MAX ? store->format.stride : ROW_PREFETCH_MAX;
	for (uint32_t at = 0; at < bytes; at += 64)
		__builtin_prefetch(row + at, 1);
	__builtin_prefetch(row + store->format.stride - 1, 1);
}

#endif
