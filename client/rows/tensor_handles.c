/* Handles of tensors: see tensor_handles.h. Handles are allocated in blocks, each larger than all blocks before it
 * together, so a few comparisons are enough to recognise a pointer. */
#include "client/rows/tensor_handles.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/row.h"

#define FIRST_BLOCK 64u
#define BLOCKS_MAX  14u /* some million handles */
#define LINE_BYTES  64u /* of a CPU cache */

struct gw_tensor_handles {
	pthread_mutex_t lock;  /* to create a handle, or to use the counts of reported reads */
	uint32_t count;        /* in the last block */
	size_t *next_reported; /* [num_parts]: the handle to begin with in the next report of reads */
	_Atomic uint32_t block_count;
	struct gw_tensor_handle *blocks[BLOCKS_MAX];
};

static size_t block_room(uint32_t block)
{
	return (size_t)FIRST_BLOCK << block;
}

gw_status gw_tensor_handles_create(uint32_t parts, struct gw_tensor_handles **out)
{
	struct gw_tensor_handles *handles = gw_calloc(1, sizeof(*handles));
	if (handles)
		handles->next_reported = gw_calloc(parts, sizeof(*handles->next_reported));
	if (!handles || !handles->next_reported) {
		gw_free(handles);
		return GW_NO_MEMORY;
	}
	*out = handles;
	pthread_mutex_init(&(*out)->lock, NULL);
	return GW_OK;
}

static void handle_free(struct gw_tensor_handle *handle)
{
	gw_free(handle->base.name);
	gw_free(handle->epochs);
	gw_free(handle->states);
	gw_free(handle->places);
	gw_free(handle->read_memory);
	gw_free(handle->reported);
	gw_tensor_layout_free(&handle->layout);
	memset(handle, 0, sizeof(*handle));
}

void gw_tensor_handles_destroy(struct gw_tensor_handles *handles)
{
	if (!handles)
		return;
	for (uint32_t b = 0; b < handles->block_count; b++) {
		for (size_t i = 0; i < block_room(b); i++)
			handle_free(&handles->blocks[b][i]);
		gw_free(handles->blocks[b]);
	}
	pthread_mutex_destroy(&handles->lock);
	gw_free(handles->next_reported);
	gw_free(handles);
}

bool gw_tensor_handle_is(const struct gw_client *client, const struct gw_tensor *tensor)
{
	const struct gw_tensor_handles *handles = client->handles;
	uint32_t blocks = atomic_load_explicit(&handles->block_count, memory_order_acquire);
	for (uint32_t b = 0; b < blocks; b++) {
		uintptr_t offset = (uintptr_t)tensor - (uintptr_t)handles->blocks[b];
		if (offset < block_room(b) * sizeof(struct gw_tensor_handle))
			return offset % sizeof(struct gw_tensor_handle) == 0 &&
			       atomic_load(&((const struct gw_tensor_handle *)tensor)->ready);
	}
	return false;
}

/* Handle i, counted over all blocks; NULL: fewer exist. The lock must be held. */
static struct gw_tensor_handle *handle_at(struct gw_tensor_handles *handles, size_t i)
{
	for (uint32_t b = 0; b < handles->block_count; b++) {
		size_t used = b + 1 < handles->block_count ? block_room(b) : handles->count;
		if (i < used)
			return &handles->blocks[b][i];
		i -= used;
	}
	return NULL;
}

/* The lock must be held. */
static size_t handles_all(const struct gw_tensor_handles *handles)
{
	size_t all = handles->count;
	for (uint32_t b = 0; b + 1 < handles->block_count; b++)
		all += block_room(b);
	return all;
}

void gw_tensor_handles_delete(struct gw_client *client, const char *job, const char *name)
{
	struct gw_tensor_handles *handles = client->handles;
	struct gw_tensor_handle *handle;
	pthread_mutex_lock(&handles->lock);
	for (size_t i = 0; (handle = handle_at(handles, i)); i++) {
		if (strcmp(handle->plan.job, job) == 0 && (!name || strcmp(handle->plan.name, name) == 0))
			atomic_store(&handle->deleted, true);
	}
	pthread_mutex_unlock(&handles->lock);
}

static struct gw_tensor_handle *handle_find(struct gw_tensor_handles *handles, const struct gw_tensor_plan *plan,
					    const uint64_t *epochs, uint32_t parts)
{
	struct gw_tensor_handle *handle = handle_at(handles, 0);
	for (size_t i = 1; handle && (memcmp(handle->epochs, epochs, parts * sizeof(*epochs)) != 0 ||
				      strcmp(handle->plan.name, plan->name) != 0);
	     i++)
		handle = handle_at(handles, i);
	return handle;
}

/* How many rows of a part all engines have read without a request. */
static uint64_t handle_read(const struct gw_client *client, const struct gw_tensor_handle *handle, uint32_t part)
{
	const struct gw_rows *rows = &handle->base.rows;
	uint64_t read = 0;
	for (uint32_t e = 0; e <= client->engine_count; e++)
		read += atomic_load_explicit(&rows->read[(size_t)e * rows->read_stride + part], memory_order_relaxed);
	return read;
}

uint32_t gw_tensor_handles_collect_reads(struct gw_client *client, uint32_t part, struct gw_tensor_read *reads,
					 uint32_t max)
{
	struct gw_tensor_handles *handles = client->handles;
	uint32_t count = 0;
	pthread_mutex_lock(&handles->lock);
	size_t all = handles_all(handles), first = handles->next_reported[part];
	for (size_t i = 0; i < all && count < max; i++) {
		struct gw_tensor_handle *handle = handle_at(handles, (first + i) % all);
		uint64_t rows = handle_read(client, handle, part) - handle->reported[part];
		rows = rows < GW_TENSOR_READ_ROWS_MAX ? rows : GW_TENSOR_READ_ROWS_MAX;
		if (rows == 0)
			continue;
		handle->reported[part] += rows;
		handles->next_reported[part] = (first + i + 1) % all;
		reads[count++] = (struct gw_tensor_read){.epoch = handle->epochs[part], .rows = rows};
	}
	pthread_mutex_unlock(&handles->lock);
	return count;
}

void gw_tensor_handles_return_reads(struct gw_client *client, uint32_t part, const struct gw_tensor_read *reads,
				    uint32_t count)
{
	struct gw_tensor_handle *handle;
	pthread_mutex_lock(&client->handles->lock);
	for (size_t i = 0; (handle = handle_at(client->handles, i)); i++) {
		for (uint32_t r = 0; r < count; r++) {
			if (reads[r].epoch == handle->epochs[part])
				handle->reported[part] -= reads[r].rows;
		}
	}
	pthread_mutex_unlock(&client->handles->lock);
}

/* The caller raises handles->count to keep it. */
static gw_status handle_room(struct gw_tensor_handles *handles, struct gw_tensor_handle **out)
{
	uint32_t blocks = handles->block_count;
	if (blocks > 0 && handles->count < block_room(blocks - 1)) {
		*out = &handles->blocks[blocks - 1][handles->count];
		return GW_OK;
	}
	if (blocks == BLOCKS_MAX)
		return gw_fail(GW_LIMIT, "this client has opened too many tensors: open another client");
	struct gw_tensor_handle *block = gw_calloc(block_room(blocks), sizeof(*block));
	if (!block)
		return GW_NO_MEMORY;
	handles->blocks[blocks] = *out = block;
	handles->count = 0;
	atomic_store_explicit(&handles->block_count, blocks + 1, memory_order_release);
	return GW_OK;
}

/* All zero. Each engine's counts have their own cache lines. */
static gw_status handle_reads_create(const struct gw_client *client, struct gw_tensor_handle *handle)
{
	const uint32_t line = LINE_BYTES / sizeof(uint64_t);
	uint32_t stride = (client->meta->num_parts + line - 1) / line * line;
	handle->reported = gw_calloc(client->meta->num_parts, sizeof(*handle->reported));
	handle->read_memory = gw_calloc((client->engine_count + (size_t)1) * stride + line - 1, sizeof(uint64_t));
	if (!handle->reported || !handle->read_memory)
		return GW_NO_MEMORY;
	uintptr_t past = (uintptr_t)handle->read_memory % LINE_BYTES;
	handle->base.rows.read =
		(_Atomic uint64_t *)(void *)((uint8_t *)handle->read_memory + (past ? LINE_BYTES - past : 0));
	handle->base.rows.read_stride = stride;
	return GW_OK;
}

static gw_status handle_fill(struct gw_client *client, const struct gw_tensor_plan *plan, const uint64_t *epochs,
			     const struct gw_place *places, struct gw_tensor_handle *handle)
{
	uint32_t parts = client->meta->num_parts;
	struct gw_row_format format;
	gw_status status = gw_tensor_layout_make(client->meta, plan, &handle->layout);
	if (status == GW_OK)
		status = gw_row_format_init(handle->layout.row_bytes, &format);
	if (status != GW_OK)
		return status;
	handle->plan = *plan;
	handle->base.name = gw_strdup(plan->name);
	handle->epochs = gw_calloc(parts, sizeof(*epochs));
	handle->states = gw_calloc(parts, sizeof(*handle->states));
	handle->places = gw_calloc(parts, sizeof(*handle->places));
	if (!handle->base.name || !handle->epochs || !handle->states || !handle->places)
		return GW_NO_MEMORY;
	memcpy(handle->epochs, epochs, parts * sizeof(*epochs));
	memcpy(handle->places, places, parts * sizeof(*places));
	handle->base.rows = (struct gw_rows){.starts = handle->layout.starts,
					     .places = handle->places,
					     .step = format.stride,
					     .row_bytes = handle->layout.row_bytes,
					     .epochs = handle->epochs,
					     .name = handle->base.name,
					     .striped = handle->layout.striped};
	bool has_type = plan->placement <= GW_PLACE_EDGES;
	handle->base.tensor = (struct gw_tensor){.name = handle->base.name,
						 .of_edges = plan->placement == GW_PLACE_EDGES,
						 .type = has_type ? plan->type : UINT32_MAX,
						 .dtype = (gw_dtype)plan->dtype,
						 .ndim = plan->ndim,
						 .row_bytes = handle->layout.row_bytes,
						 .writable = true,
						 .placement = (enum gw_placement)plan->placement,
						 .original = (gw_dtype)plan->dtype};
	handle->base.tensor.numbers = handle->layout.row_bytes / gw_dtype_bytes((gw_dtype)plan->dtype);
	memcpy(handle->base.tensor.shape, plan->shape, sizeof(plan->shape));
	return handle_reads_create(client, handle);
}

gw_status gw_tensor_handle_make(struct gw_client *client, const struct gw_tensor_plan *plan, const uint64_t *epochs,
				const struct gw_place *places, struct gw_tensor_handle **out)
{
	struct gw_tensor_handles *handles = client->handles;
	gw_status status = GW_OK;
	pthread_mutex_lock(&handles->lock);
	struct gw_tensor_handle *handle = handle_find(handles, plan, epochs, client->meta->num_parts);
	if (handle) {
		atomic_store(&handle->deleted, false);
	} else {
		status = handle_room(handles, &handle);
		if (status == GW_OK)
			status = handle_fill(client, plan, epochs, places, handle);
		if (status == GW_OK) {
			handles->count++;
			atomic_store(&handle->ready, true);
		} else if (handle) {
			handle_free(handle);
			handle = NULL;
		}
	}
	pthread_mutex_unlock(&handles->lock);
	*out = handle;
	return status;
}
