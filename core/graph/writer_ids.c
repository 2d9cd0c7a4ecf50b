/* Writes offsets, neighbour ids and strings in the narrowest type that the format allows, through a small buffer. */
#include <stdio.h>
#include <string.h>

#include "core/graph/writer.h"
#include "core/memory/alloc.h"

#define BLOCK_WORDS 8192u

/* Sends elements to a stream, narrowed to 4 bytes if wanted, one block at a time. */
struct narrow {
	struct gw_array_stream *stream;
	bool wide;
	uint32_t used; /* words in the block */
	gw_status status;
	union {
		uint64_t wide[BLOCK_WORDS];
		uint32_t narrow[BLOCK_WORDS];
	} block;
};

static void narrow_flush(struct narrow *n)
{
	if (n->status == GW_OK)
		n->status = gw_writer_append(n->stream, &n->block, (size_t)n->used * (n->wide ? 8u : 4u));
	n->used = 0;
}

static inline void narrow_put(struct narrow *n, uint64_t value)
{
	if (n->used == BLOCK_WORDS)
		narrow_flush(n);
	if (n->wide)
		n->block.wide[n->used++] = value;
	else
		n->block.narrow[n->used++] = (uint32_t)value;
}

/* dtype: GW_UINT32, or the dtype of the 8-byte elements. */
static gw_status narrow_begin(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			      const uint64_t *shape, struct narrow **out)
{
	struct narrow *n = gw_malloc(sizeof(*n));
	*out = NULL;
	if (!n)
		return GW_NO_MEMORY;
	n->wide = dtype != GW_UINT32;
	n->used = 0;
	n->status = GW_OK;
	gw_status status = gw_writer_begin(writer, part, key, dtype, ndim, shape, &n->stream);
	if (status != GW_OK) {
		gw_free(n);
		return status;
	}
	*out = n;
	return GW_OK;
}

static gw_status narrow_end(struct narrow *n)
{
	narrow_flush(n);
	gw_status status = n->status;
	if (status == GW_OK)
		status = gw_writer_end(n->stream);
	else
		gw_writer_drop(n->stream);
	gw_free(n);
	return status;
}

gw_status gw_writer_indptr(struct gw_writer *writer, uint32_t part, const char *key, uint64_t rows, uint32_t columns,
			   const uint64_t *const *offsets)
{
	uint64_t shape[2] = {rows + 1, columns};
	bool wide = false;
	for (uint32_t c = 0; c < columns; c++)
		wide |= gw_is_wide(offsets[c][rows]); /* the last offset is the largest */
	struct narrow *n;
	gw_status status = narrow_begin(writer, part, key, wide ? GW_UINT64 : GW_UINT32, 2, shape, &n);
	if (status != GW_OK)
		return status;
	for (uint64_t row = 0; row <= rows && n->status == GW_OK; row++) {
		for (uint32_t c = 0; c < columns; c++)
			narrow_put(n, offsets[c][row]);
	}
	return narrow_end(n);
}

static void put_ids(struct narrow *n, const char *key, const uint64_t *ids, uint64_t count, uint64_t id_space)
{
	for (uint64_t i = 0; i < count && n->status == GW_OK; i++) {
		if (ids[i] >= id_space) {
			n->status = gw_fail(GW_RANGE, "%s: entry %llu is %llu, but there are %llu ids", key,
					    (unsigned long long)i, (unsigned long long)ids[i],
					    (unsigned long long)id_space);
			return;
		}
		narrow_put(n, ids[i]);
	}
}

gw_status gw_writer_append_ids(struct gw_array_stream *stream, const char *key, gw_dtype dtype, const uint64_t *ids,
			       uint64_t count, uint64_t id_space)
{
	struct narrow *n = gw_malloc(sizeof(*n));
	if (!n)
		return GW_NO_MEMORY;
	n->stream = stream;
	n->wide = dtype != GW_UINT32;
	n->used = 0;
	n->status = GW_OK;
	put_ids(n, key, ids, count, id_space);
	narrow_flush(n);
	gw_status status = n->status;
	gw_free(n);
	return status;
}

static gw_status write_numbers(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype,
			       const uint64_t *ids, uint64_t count, uint64_t id_space)
{
	struct narrow *n;
	gw_status status = narrow_begin(writer, part, key, dtype, 1, &count, &n);
	if (status != GW_OK)
		return status;
	put_ids(n, key, ids, count, id_space);
	status = narrow_end(n);
	return status == GW_RANGE ? gw_context(status, "part %u", part) : status;
}

gw_status gw_writer_ids(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *ids, uint64_t count,
			uint64_t id_space)
{
	return write_numbers(writer, part, key, gw_writer_ids_dtype(id_space), ids, count, id_space);
}

gw_status gw_writer_edge_origins(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *ids,
				 uint64_t count, uint64_t id_space)
{
	gw_dtype dtype = gw_edge_origin_dtype(id_space);
	return write_numbers(writer, part, key, dtype, ids, count, id_space);
}

gw_status gw_writer_strings(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *offsets,
			    uint64_t count, const char *bytes)
{
	char name[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32];
	uint64_t shape = count + 1;
	snprintf(name, sizeof(name), "%s.offsets", key);
	gw_status status = gw_writer_array(writer, part, name, GW_UINT64, 1, &shape, offsets);
	if (status != GW_OK)
		return status;
	snprintf(name, sizeof(name), "%s.bytes", key);
	return gw_writer_array(writer, part, name, GW_UINT8, 1, &offsets[count], bytes);
}
