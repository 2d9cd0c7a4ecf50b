/* The row store: allocates and fills the memory, and reads and overwrites rows.
 *
 *   lock: versioned -> its sequence, by compare-and-swap; one word -> the lock of its stripe. Waits, or ends the slice
 *   unlock: unchanged, or with a new payload (and its hash)
 *
 * All rows of a call are checked before the first is touched. Fails for unsupported sizes and dtypes, for rows that do
 * not exist, and if memory runs out.
 */
#include "core/rows/store.h"

#include <sched.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"
#include "core/rows/store_private.h"
#include "core/system/parallel.h"

#define STORE_BYTES_MAX   (1ull << 46) /* the limit of an arena */
#define STORE_GRAIN_BYTES (1ull << 20) /* a thread fills this much at a time */
#define STORE_LOOKS       64u /* attempts to lock a row; then the slice ends, or the thread yields after each attempt */
#define STORE_AHEAD       4u  /* rows that are prefetched before they are locked */

gw_status gw_row_store_measure(gw_dtype dtype, uint64_t rows, uint64_t columns, struct gw_row_format *format,
			       uint64_t *bytes)
{
	uint32_t element = dtype == GW_INT8_ROW ? 0 : gw_dtype_bytes(dtype);
	if (element == 0)
		return gw_fail(GW_UNSUPPORTED, "rows that change cannot be %s", gw_dtype_name(dtype));
	gw_status status = gw_row_format_init(columns > GW_ROW_PAYLOAD_MAX ? columns : columns * element, format);
	if (status != GW_OK)
		return status;
	if (rows > STORE_BYTES_MAX / format->stride)
		return gw_fail(GW_LIMIT, "%llu rows of %u bytes are more than a process can map",
			       (unsigned long long)rows, format->stride);
	*bytes = rows * format->stride;
	return GW_OK;
}

struct fill_job {
	const struct gw_row_store *store;
	const struct gw_row_initial *initial;
	_Atomic uint64_t *filled;
};

static gw_status store_fill(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct fill_job *job = context;
	const struct gw_row_store *store = job->store;
	for (uint64_t number = begin; number < end; number++) {
		uint8_t *row = store_row(store, number);
		gw_status status = gw_row_initial_write(job->initial, store->dtype, store->columns, number, row);
		if (status != GW_OK)
			return status;
		gw_row_make(&store->format, store->seed, number, row, row);
	}
	if (job->filled)
		atomic_fetch_add_explicit(job->filled, end - begin, memory_order_relaxed);
	return GW_OK;
}

gw_status gw_row_store_make_stripes(struct gw_row_store *store)
{
	store->stripes_memory = gw_calloc(STORE_STRIPES + 1, sizeof(struct row_stripe));
	if (!store->stripes_memory)
		return GW_NO_MEMORY;
	uintptr_t at = ((uintptr_t)store->stripes_memory + 63) & ~(uintptr_t)63;
	store->stripes = (struct row_stripe *)at;
	return GW_OK;
}

static gw_status store_build(struct gw_row_store *store, const struct gw_row_store_options *options)
{
	uint64_t bytes;
	gw_status status =
		gw_row_store_measure(options->dtype, options->rows, options->columns, &store->format, &bytes);
	if (status == GW_OK)
		status = gw_row_initial_check(&options->initial, options->dtype);
	if (status == GW_OK && !store->format.versioned)
		status = gw_row_store_make_stripes(store);
	if (status != GW_OK)
		return status;
	struct gw_arena_options arena = {.name = options->name,
					 .huge = options->huge,
					 .numa = options->numa,
					 .shareable = true,
					 .populate_threads = options->threads};
	status = gw_arena_create(bytes, &arena, &store->arena);
	if (status != GW_OK)
		return status;
	store->base = gw_arena_base(store->arena);
	uint64_t grain = STORE_GRAIN_BYTES / store->format.stride + 1;
	struct fill_job job = {.store = store, .initial = &options->initial, .filled = options->filled};
	return gw_parallel_for(options->threads, options->rows, grain, store_fill, &job);
}

gw_status gw_row_store_create(const struct gw_row_store_options *options, struct gw_row_store **out)
{
	*out = NULL;
	struct gw_row_store *store = gw_calloc(1, sizeof(*store));
	if (!store)
		return GW_NO_MEMORY;
	store->dtype = options->dtype;
	store->rows = options->rows;
	store->columns = options->columns;
	store->seed = options->seed;
	store->numa = options->numa;
	store->huge = options->huge;
	pthread_mutex_init(&store->preparing, NULL);
	gw_status status = store_build(store, options);
	if (status != GW_OK) {
		gw_row_store_destroy(store);
		return gw_context(status, "rows of %s", options->name);
	}
	*out = store;
	return GW_OK;
}

void gw_row_store_destroy(struct gw_row_store *store)
{
	if (!store)
		return;
	struct row_state *state = atomic_load(&store->state);
	if (state)
		gw_arena_destroy(state->arena);
	gw_free(state);
	gw_arena_destroy(store->source);
	gw_arena_destroy(store->arena);
	gw_free(store->stripes_memory);
	pthread_mutex_destroy(&store->preparing);
	gw_free(store);
}

const struct gw_row_format *gw_row_store_format(const struct gw_row_store *store)
{
	return &store->format;
}

uint64_t gw_row_store_rows(const struct gw_row_store *store)
{
	return store->rows;
}

uint64_t gw_row_store_columns(const struct gw_row_store *store)
{
	return store->columns;
}

uint64_t gw_row_store_seed(const struct gw_row_store *store)
{
	return store->seed;
}

struct gw_arena *gw_row_store_arena(const struct gw_row_store *store)
{
	return store->arena;
}

static _Atomic uint32_t *store_stripe(struct gw_row_store *store, uint64_t number)
{
	return &store->stripes[gw_mix64(number) % STORE_STRIPES].taken;
}

/* False: another thread has the row. */
static bool store_try(struct gw_row_store *store, struct row_lock *lock)
{
	if (store->format.versioned)
		return gw_row_try_lock(&store->format, lock->row, &lock->sequence);
	return !atomic_exchange_explicit(store_stripe(store, lock->number), 1, memory_order_acquire);
}

bool gw_row_store_lock(struct gw_row_store *store, uint64_t number, struct gw_row_slice *slice, struct row_lock *lock)
{
	*lock = (struct row_lock){.number = number, .row = store_row(store, number)};
	if (!store_pay(slice, store->format.payload_bytes + GW_ROW_SLICE_COST))
		return false;
	for (uint32_t looks = 0; !store_try(store, lock); looks++) {
		if (looks < STORE_LOOKS)
			continue;
		if (slice) {
			slice->taken = true;
			return false;
		}
		sched_yield();
	}
	return true;
}

void gw_row_store_unlock(struct gw_row_store *store, const struct row_lock *lock)
{
	if (store->format.versioned)
		gw_row_unlock(&store->format, lock->row, lock->sequence);
	else
		atomic_store_explicit(store_stripe(store, lock->number), 0, memory_order_release);
}

void gw_row_store_replace(struct gw_row_store *store, const struct row_lock *lock, const void *payload)
{
	if (store->format.versioned) {
		gw_row_publish(&store->format, store->seed, lock->number, lock->row, lock->sequence, payload);
		return;
	}
	gw_row_store(&store->format, lock->row, payload);
	atomic_store_explicit(store_stripe(store, lock->number), 0, memory_order_release);
}

gw_status gw_row_store_check(const struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
			     uint64_t n)
{
	if (slice) {
		slice->taken = false;
		if (slice->checked)
			return GW_OK;
	}
	for (uint64_t i = 0; i < n; i++) {
		if (rows[i] >= store->rows)
			return gw_fail(GW_RANGE, "row %llu of %llu", (unsigned long long)rows[i],
				       (unsigned long long)store->rows);
	}
	if (slice)
		slice->checked = true;
	return GW_OK;
}

gw_status gw_row_store_check_range(const struct gw_row_store *store, uint64_t first, uint64_t n)
{
	if (first > store->rows || n > store->rows - first)
		return gw_fail(GW_RANGE, "rows %llu to %llu of %llu", (unsigned long long)first,
			       (unsigned long long)(first + n), (unsigned long long)store->rows);
	return GW_OK;
}

/* The i-th row: from rows[], or from `first` on if rows is NULL. */
static uint64_t store_number(const uint64_t *rows, uint64_t first, uint64_t i)
{
	return rows ? rows[i] : first + i;
}

static gw_status store_read_all(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				uint64_t first, uint64_t n, uint8_t *out)
{
	uint32_t bytes = store->format.payload_bytes;
	uint64_t i = store_begin(slice);
	for (; i < n; i++) {
		struct row_lock lock;
		if (i + STORE_AHEAD < n)
			store_prefetch(store, store_number(rows, first, i + STORE_AHEAD));
		uint64_t number = store_number(rows, first, i);
		if (!store->format.versioned) {
			if (!store_pay(slice, bytes + GW_ROW_SLICE_COST))
				break;
			gw_row_copy(&store->format, store_row(store, number), out + i * bytes);
			continue;
		}
		if (!gw_row_store_lock(store, number, slice, &lock))
			break;
		memcpy(out + i * bytes, lock.row, bytes);
		gw_row_store_unlock(store, &lock);
	}
	return store_end_slice(slice, i, n);
}

gw_status gw_row_store_read_slice(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				  uint64_t n, void *out)
{
	gw_status status = gw_row_store_check(store, slice, rows, n);
	return status != GW_OK ? status : store_read_all(store, slice, rows, 0, n, out);
}

gw_status gw_row_store_read(struct gw_row_store *store, const uint64_t *rows, uint64_t n, void *out)
{
	return gw_row_store_read_slice(store, NULL, rows, n, out);
}

gw_status gw_row_store_read_range(struct gw_row_store *store, uint64_t first, uint64_t n, void *out)
{
	gw_status status = gw_row_store_check_range(store, first, n);
	return status != GW_OK ? status : store_read_all(store, NULL, NULL, first, n, out);
}

gw_status gw_row_store_write_slice(struct gw_row_store *store, struct gw_row_slice *slice, const uint64_t *rows,
				   uint64_t n, const void *values)
{
	gw_status status = gw_row_store_check(store, slice, rows, n);
	if (status != GW_OK)
		return status;
	uint64_t i = store_begin(slice);
	for (; i < n; i++) {
		struct row_lock lock;
		if (i + STORE_AHEAD < n)
			store_prefetch(store, rows[i + STORE_AHEAD]);
		if (!gw_row_store_lock(store, rows[i], slice, &lock))
			break;
		gw_row_store_replace(store, &lock, (const uint8_t *)values + i * store->format.payload_bytes);
	}
	return store_end_slice(slice, i, n);
}

/* Counts elements that are not zero; the sign of a floating-point zero does not count. */
static uint64_t store_count_elements(gw_dtype dtype, uint64_t columns, const uint8_t *payload)
{
	bool is_float = dtype == GW_FLOAT32 || dtype == GW_FLOAT64 || dtype == GW_FLOAT16 || dtype == GW_BFLOAT16;
	uint32_t bytes = gw_dtype_bytes(dtype);
	uint64_t mask = is_float ? ~(1ull << (8 * bytes - 1)) : ~0ull, count = 0;
	for (uint64_t i = 0; i < columns; i++) {
		uint64_t element = 0;
		memcpy(&element, payload + i * bytes, bytes);
		count += (element & mask) != 0;
	}
	return count;
}

/* Copies a row as readers do; locks a row that is being written. */
static gw_status store_count(struct gw_row_store *store, struct gw_row_slice *slice, uint64_t first, uint64_t n,
			     uint64_t *out)
{
	uint8_t *payload = gw_malloc(store->format.payload_bytes);
	if (!payload)
		return GW_NO_MEMORY;
	*out = 0;
	uint64_t i = store_begin(slice);
	for (; i < n; i++) {
		struct row_lock lock;
		if (!store_pay(slice, store->format.payload_bytes + GW_ROW_SLICE_COST))
			break;
		if (!gw_row_copy(&store->format, store_row(store, first + i), payload)) {
			if (!gw_row_store_lock(store, first + i, slice, &lock))
				break;
			memcpy(payload, lock.row, store->format.payload_bytes);
			gw_row_store_unlock(store, &lock);
		}
		*out += store_count_elements(store->dtype, store->columns, payload);
	}
	gw_free(payload);
	return store_end_slice(slice, i, n);
}

gw_status gw_row_store_count_slice(struct gw_row_store *store, struct gw_row_slice *slice, uint64_t first, uint64_t n,
				   uint64_t *out)
{
	gw_status status = gw_row_store_check_range(store, first, n);
	if (slice)
		slice->taken = false;
	return status != GW_OK ? status : store_count(store, slice, first, n, out);
}
