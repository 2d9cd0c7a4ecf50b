/* Rows that move to another process: the successor of a server on the same host.
 *
 *   successor: adopt, while the other process serves ─▶ the rows' memory is its own, or memory for a copy is there
 *   the other process stops ─▶ successor: take_rows ─▶ the other process: retire ─▶ successor serves
 *
 * Rows that clients map are in sealed memory (transport/shm/export.c), which no process can map for writing any more.
 * So these rows are copied, by several threads. Retired rows keep a client that still maps them from reading old
 * values. The state of an optimizer is never sealed, because no client maps it.
 */
#include <string.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/rows/store.h"
#include "core/rows/store_private.h"
#include "core/system/parallel.h"

#define MOVE_GRAIN_BYTES (4ull << 20)

void gw_row_store_memory(const struct gw_row_store *store, struct gw_row_memory *out)
{
	struct row_state *state = atomic_load(&((struct gw_row_store *)(uintptr_t)store)->state);
	*out = (struct gw_row_memory){.rows_fd = gw_arena_fd(store->arena), .state_fd = -1};
	gw_arena_shape(store->arena, &out->rows);
	if (!state)
		return;
	out->state_fd = gw_arena_fd(state->arena);
	out->kind = state->kind;
	gw_arena_shape(state->arena, &out->state);
}

gw_status gw_row_store_adopt_state(struct gw_row_store *store, const struct gw_row_memory *memory)
{
	struct gw_arena *arena = NULL;
	struct row_state *state = NULL;
	uint64_t bytes = gw_row_store_state_bytes(memory->kind, store->rows, store->columns);
	gw_status status = gw_row_store_trainable(store);
	if (status == GW_OK && (atomic_load(&store->state) || !bytes || memory->state.bytes < bytes))
		status = gw_fail(GW_INVALID, "a state of %llu bytes for rows whose state has %llu",
				 (unsigned long long)memory->state.bytes, (unsigned long long)bytes);
	if (status == GW_OK)
		status = gw_arena_adopt(memory->state_fd, "state", &memory->state, true, &arena);
	if (status == GW_OK && !(state = gw_calloc(1, sizeof(*state)))) {
		gw_arena_destroy(arena);
		return GW_NO_MEMORY;
	}
	if (status != GW_OK) {
		close(memory->state_fd);
		return status;
	}
	*state = (struct row_state){.kind = memory->kind,
				    .floats = gw_optimizer_state_floats(memory->kind, store->columns),
				    .base = (float *)(void *)gw_arena_base(arena),
				    .arena = arena};
	atomic_store(&store->state, state);
	return GW_OK;
}

/* Sealed memory is kept as the source of a copy. */
static gw_status adopt_rows(struct gw_row_store *store, const struct gw_row_store_options *options,
			    const struct gw_row_memory *memory, uint64_t bytes)
{
	const struct gw_arena_options arena = {.name = options->name,
					       .huge = options->huge,
					       .numa = options->numa,
					       .shareable = true,
					       .populate_threads = options->threads};
	if (memory->rows.bytes < bytes) {
		close(memory->rows_fd);
		return gw_fail(GW_INVALID, "memory of %llu bytes for rows of %llu",
			       (unsigned long long)memory->rows.bytes, (unsigned long long)bytes);
	}
	gw_status status = gw_arena_adopt(memory->rows_fd, options->name, &memory->rows, true, &store->arena);
	if (status != GW_UNSUPPORTED) {
		if (status != GW_OK)
			close(memory->rows_fd);
		return status;
	}
	status = gw_arena_adopt(memory->rows_fd, options->name, &memory->rows, false, &store->source);
	if (status != GW_OK) {
		close(memory->rows_fd);
		return status;
	}
	return gw_arena_create(bytes, &arena, &store->arena);
}

gw_status gw_row_store_adopt(const struct gw_row_store_options *options, const struct gw_row_memory *memory,
			     struct gw_row_store **out)
{
	uint64_t bytes = 0;
	*out = NULL;
	struct gw_row_store *store = gw_calloc(1, sizeof(*store));
	gw_status status = store ? GW_OK : GW_NO_MEMORY;
	if (store) {
		store->dtype = options->dtype;
		store->rows = options->rows;
		store->columns = options->columns;
		store->seed = options->seed;
		store->numa = options->numa;
		store->huge = options->huge;
		pthread_mutex_init(&store->preparing, NULL);
		status = gw_row_store_measure(options->dtype, options->rows, options->columns, &store->format, &bytes);
	}
	if (status == GW_OK && !store->format.versioned)
		status = gw_row_store_make_stripes(store);
	if (status == GW_OK)
		status = adopt_rows(store, options, memory, bytes);
	else
		close(memory->rows_fd);
	if (status == GW_OK) {
		store->base = gw_arena_base(store->arena);
		if (memory->state_fd >= 0)
			status = gw_row_store_adopt_state(store, memory);
	} else if (memory->state_fd >= 0) {
		close(memory->state_fd);
	}
	if (status != GW_OK) {
		gw_row_store_destroy(store);
		return gw_context(status, "rows of %s", options->name);
	}
	*out = store;
	return GW_OK;
}

static gw_status copy_range(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct gw_row_store *store = context;
	(void)thread;
	memcpy(store->base + begin, gw_arena_base(store->source) + begin, end - begin);
	return GW_OK;
}

bool gw_row_store_take_rows(struct gw_row_store *store)
{
	if (!store->source)
		return false;
	gw_parallel_for(0, store->rows * store->format.stride, MOVE_GRAIN_BYTES, copy_range, store);
	gw_arena_destroy(store->source);
	store->source = NULL;
	return true;
}

struct retire_job {
	struct gw_row_store *store;
	bool retired;
};

static gw_status retire_range(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct retire_job *job = context;
	(void)thread;
	for (uint64_t number = begin; number < end; number++) {
		struct gw_row_trailer *trailer =
			(void *)(store_row(job->store, number) + gw_row_trailer_at(&job->store->format));
		uint64_t sequence;
		if (job->retired)
			gw_row_try_lock(&job->store->format, store_row(job->store, number), &sequence);
		else
			gw_row_unlock(&job->store->format, store_row(job->store, number), trailer->sequence - 1);
	}
	return GW_OK;
}

void gw_row_store_retire(struct gw_row_store *store, bool retired)
{
	struct retire_job job = {store, retired};
	if (store->format.versioned)
		gw_parallel_for(0, store->rows, MOVE_GRAIN_BYTES / store->format.stride + 1, retire_range, &job);
}
