/* The slab: see recv_buffer.h. A chunk is split into halves recursively, down to units (a buddy allocator). The tree
 * `largest` has one entry per node: the order of the largest free block below the node plus one, or 0 if no block is
 * free. Node 0 is the chunk; nodes 2i + 1 and 2i + 2 are the halves of node i. */
#include "client/state/recv_buffer.h"

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/memory/vec.h"

#define CHUNK_MIN (2ull << 20) /* a huge page */
#define CHUNK_MAX (64ull << 20)
#define UNIT_MIN  256ull
#define UNITS_MAX (1ull << 16) /* per chunk: its tree takes at most a hundredth of the chunk */

struct gw_slab_chunk {
	struct gw_slab *slab;
	struct gw_slab_chunk *next, **previous;
	struct gw_vec memory;
	struct gw_buffer *buffer;
	uint64_t unit;  /* bytes */
	uint32_t order; /* the chunk has 2^order units */
	uint8_t *largest;
};

/* --- Mark unused chunk memory, so that a sanitizer reports accesses beyond a receive buffer. --- */

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define forbid(data, bytes) __asan_poison_memory_region(data, bytes)
#define allow(data, bytes)  __asan_unpoison_memory_region(data, bytes)
#else
#define forbid(data, bytes) ((void)(data), (void)(bytes))
#define allow(data, bytes)  ((void)(data), (void)(bytes))
#endif

/* --- Chunks. --- */

static uint64_t power_of_two(uint64_t bytes)
{
	uint64_t power = UNIT_MIN;
	while (power < bytes)
		power *= 2;
	return power;
}

static uint32_t order_of(const struct gw_slab_chunk *chunk, uint64_t bytes)
{
	uint32_t order = 0;
	while (chunk->unit << order < bytes)
		order++;
	return order;
}

static void chunk_destroy(struct gw_slab_chunk *chunk)
{
	gw_buffer_release(chunk->buffer);
	allow(chunk->memory.data, chunk->memory.capacity);
	gw_vec_free(&chunk->memory);
	gw_free(chunk->largest);
	gw_free(chunk);
}

static gw_status chunk_create(struct gw_slab *slab, uint64_t bytes, struct gw_slab_chunk **out)
{
	struct gw_slab_chunk *chunk = gw_calloc(1, sizeof(*chunk));
	if (!chunk)
		return GW_NO_MEMORY;
	chunk->slab = slab;
	chunk->unit = bytes / UNITS_MAX > UNIT_MIN ? bytes / UNITS_MAX : UNIT_MIN;
	chunk->order = order_of(chunk, bytes);
	chunk->largest = gw_malloc((2ull << chunk->order) - 1);
	gw_status status = chunk->largest ? gw_vec_reserve(&chunk->memory, bytes) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_buffer_register(slab->group, chunk->memory.data, bytes, &chunk->buffer);
	if (status != GW_OK) {
		chunk_destroy(chunk);
		return status;
	}
	uint64_t node = 0;
	for (uint32_t depth = 0; depth <= chunk->order; depth++)
		for (uint64_t i = 0; i < 1ull << depth; i++)
			chunk->largest[node++] = (uint8_t)(chunk->order - depth + 1);
	forbid(chunk->memory.data, bytes);
	*out = chunk;
	return GW_OK;
}

static void chunk_join(struct gw_slab *slab, struct gw_slab_chunk *chunk)
{
	GW_LIST_INSERT(slab->chunks, chunk);
	slab->bytes += chunk->memory.capacity;
}

static void chunk_part(struct gw_slab_chunk *chunk)
{
	GW_LIST_REMOVE(chunk);
	chunk->slab->bytes -= chunk->memory.capacity;
}

static bool is_free(const struct gw_slab_chunk *chunk)
{
	return chunk->largest[0] == chunk->order + 1;
}

/* order: of the changed node. */
static void update_above(struct gw_slab_chunk *chunk, uint64_t node, uint32_t order)
{
	uint8_t *largest = chunk->largest;
	while (node) {
		node = (node - 1) / 2;
		order++;
		uint8_t left = largest[2 * node + 1], right = largest[2 * node + 2];
		bool whole = left == order && right == order;
		largest[node] = whole ? (uint8_t)(order + 1) : left > right ? left : right;
	}
}

/* The chunk must have room for the block. If both halves have room, the search descends into the one with less. */
static uint8_t *chunk_acquire(struct gw_slab_chunk *chunk, uint32_t order)
{
	uint8_t *largest = chunk->largest;
	uint64_t node = 0;
	for (uint32_t at = chunk->order; at > order; at--) {
		uint64_t left = 2 * node + 1, right = left + 1;
		bool fits_left = largest[left] > order, fits_right = largest[right] > order;
		node = fits_left && (!fits_right || largest[left] <= largest[right]) ? left : right;
	}
	largest[node] = 0;
	update_above(chunk, node, order);
	uint64_t first = 1ull << (chunk->order - order); /* number of nodes in the levels above, plus one */
	return (uint8_t *)chunk->memory.data + (node + 1 - first) * (chunk->unit << order);
}

static void chunk_release(struct gw_slab_chunk *chunk, const uint8_t *data, uint32_t order)
{
	uint64_t first = 1ull << (chunk->order - order);
	uint64_t number = (uint64_t)(data - (uint8_t *)chunk->memory.data) / (chunk->unit << order);
	uint64_t node = number + first - 1;
	chunk->largest[node] = (uint8_t)(order + 1);
	update_above(chunk, node, order);
}

/* --- The slab. --- */

void gw_slab_open(struct gw_slab *slab, struct gw_poll_group *group)
{
	*slab = (struct gw_slab){.group = group};
}

void gw_slab_close(struct gw_slab *slab)
{
	struct gw_slab_chunk *next;
	for (struct gw_slab_chunk *chunk = slab->chunks; chunk; chunk = next) {
		next = chunk->next;
		if (is_free(chunk))
			chunk_destroy(chunk);
	}
	*slab = (struct gw_slab){0};
}

/* Returns the fullest chunk that has room, or a new chunk. */
static gw_status chunk_for(struct gw_slab *slab, uint64_t bytes, struct gw_slab_chunk **out)
{
	struct gw_slab_chunk *found = NULL;
	for (struct gw_slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next) {
		bool fits = chunk->largest[0] > order_of(chunk, bytes);
		if (fits && (!found || chunk->unit << chunk->largest[0] < found->unit << found->largest[0]))
			found = chunk;
	}
	*out = found;
	if (found)
		return GW_OK;
	uint64_t grown = slab->bytes < CHUNK_MAX ? slab->bytes : CHUNK_MAX;
	grown = grown > CHUNK_MIN ? grown : CHUNK_MIN;
	gw_status status = chunk_create(slab, power_of_two(bytes > grown ? bytes : grown), out);
	if (status == GW_OK)
		chunk_join(slab, *out);
	return status;
}

gw_status gw_recv_buffer_reserve(struct gw_recv_buffer *recv, struct gw_slab *slab, size_t bytes)
{
	if (bytes <= recv->capacity)
		return GW_OK;
	gw_recv_buffer_free(recv);
	if (bytes > SIZE_MAX / 4)
		return gw_fail(GW_NO_MEMORY, "no memory for %zu bytes", bytes);
	struct gw_slab_chunk *chunk;
	gw_status status = chunk_for(slab, power_of_two(bytes), &chunk);
	if (status != GW_OK)
		return status;
	uint32_t order = order_of(chunk, bytes);
	recv->data = chunk_acquire(chunk, order);
	recv->capacity = chunk->unit << order;
	recv->buffer = chunk->buffer;
	recv->chunk = chunk;
	allow(recv->data, recv->capacity);
	return GW_OK;
}

void gw_recv_buffer_free(struct gw_recv_buffer *recv)
{
	struct gw_slab_chunk *chunk = recv->chunk;
	if (!chunk)
		return;
	forbid(recv->data, recv->capacity);
	chunk_release(chunk, recv->data, order_of(chunk, recv->capacity));
	*recv = (struct gw_recv_buffer){0};
	bool first = chunk->memory.capacity == CHUNK_MIN && chunk->slab->bytes == CHUNK_MIN;
	if (!is_free(chunk) || first)
		return;
	chunk_part(chunk);
	chunk_destroy(chunk);
}
