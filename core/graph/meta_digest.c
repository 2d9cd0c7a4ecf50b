/* The graph's id: the digest over its types, ranges, arrays, units and originals, in the order of docs/FORMAT.md. */
#include <string.h>

#include "core/graph/replicas.h"
#include "core/numbers/digest.h"

/* The bytes that the id covers: numbers as 8 bytes, little-endian, and strings with their terminators. */
struct feed {
	struct gw_digester *digester;
	gw_status status;
};

static void feed_bytes(struct feed *feed, const void *data, size_t bytes)
{
	if (feed->status == GW_OK)
		feed->status = gw_digester_add(feed->digester, data, bytes);
}

static void feed_text(struct feed *feed, const char *text)
{
	feed_bytes(feed, text, strlen(text) + 1);
}

static void feed_number(struct feed *feed, uint64_t value)
{
	uint8_t bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	feed_bytes(feed, bytes, sizeof(bytes));
}

static void feed_types(struct feed *feed, const struct gw_graph_meta *meta)
{
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		feed_text(feed, meta->ntypes[t].name);
		for (uint32_t p = 0; p <= meta->num_parts; p++)
			feed_number(feed, meta->ntypes[t].starts[p]);
	}
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_edge_type *type = &meta->etypes[t];
		feed_text(feed, type->folder);
		feed_number(feed, (uint64_t)type->src << 32 | type->dst);
		feed_number(feed, (uint64_t)type->out_column << 32 | type->reverse);
		feed_number(feed, (uint64_t)type->order << 32 | type->relations);
		feed_text(feed, type->time_name);
		for (uint32_t p = 0; p <= meta->num_parts; p++)
			feed_number(feed, type->starts[p]);
	}
}

/* Replicas are not included: the graph's data is the same with them. */
static void feed_arrays(struct feed *feed, const struct gw_graph_meta *meta, const struct gw_part_meta *part)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < part->count; i++)
		count += !gw_replica_key(meta, part->arrays[i].key);
	feed_number(feed, count);
	for (uint32_t i = 0; i < part->count; i++) {
		const struct gw_array_meta *array = &part->arrays[i];
		if (gw_replica_key(meta, array->key))
			continue;
		feed_text(feed, array->key);
		feed_text(feed, gw_dtype_name(array->dtype));
		feed_number(feed, array->ndim);
		for (uint32_t d = 0; d < array->ndim; d++)
			feed_number(feed, array->shape[d]);
		feed_number(feed, array->digest);
	}
}

/* Graphs without units have the digests of versions that knew none. */
static void feed_units(struct feed *feed, const struct gw_graph_meta *meta)
{
	if (meta->num_units)
		feed_number(feed, meta->num_units);
	for (uint32_t i = 0; i < meta->num_units; i++) {
		feed_text(feed, meta->units[i].key);
		feed_text(feed, gw_time_unit_text(meta->units[i].unit));
	}
}

/* Likewise. */
static void feed_originals(struct feed *feed, const struct gw_graph_meta *meta)
{
	if (meta->num_originals)
		feed_number(feed, meta->num_originals);
	for (uint32_t i = 0; i < meta->num_originals; i++) {
		feed_text(feed, meta->originals[i].key);
		feed_text(feed, gw_dtype_name(meta->originals[i].dtype));
		feed_number(feed, meta->originals[i].columns);
	}
}

static gw_status digest_of(const struct gw_graph_meta *meta, uint32_t parts, uint64_t *digest)
{
	struct feed feed = {0};
	const uint64_t *digests;
	uint64_t count;
	*digest = 0;
	feed.status = gw_digester_create(&feed.digester);
	feed_text(&feed, GW_FORMAT_NAME);
	feed_number(&feed, meta->num_parts);
	feed_number(&feed, (uint64_t)meta->num_ntypes << 32 | meta->num_etypes);
	feed_types(&feed, meta);
	for (uint32_t p = 0; p < parts; p++)
		feed_arrays(&feed, meta, &meta->parts[p]);
	feed_units(&feed, meta);
	feed_originals(&feed, meta);
	if (feed.status == GW_OK)
		feed.status = gw_digester_finish(feed.digester, &digests, &count);
	if (feed.status == GW_OK)
		*digest = count == 1 ? digests[0] : gw_digest(digests, count * sizeof(*digests));
	gw_digester_destroy(feed.digester);
	return feed.status;
}

gw_status gw_meta_digest(const struct gw_graph_meta *meta, uint64_t *graph_id)
{
	return digest_of(meta, meta->num_parts, graph_id);
}

gw_status gw_meta_book_digest(const struct gw_graph_meta *meta, uint64_t *digest)
{
	return digest_of(meta, 0, digest);
}

gw_status gw_meta_check_whole(const struct gw_graph_meta *meta)
{
	uint64_t id;
	gw_status status = gw_meta_check_arrays(meta);
	if (status != GW_OK || meta->minor > GW_FORMAT_MINOR)
		return status;
	status = gw_meta_digest(meta, &id);
	if (status == GW_OK && id != meta->graph_id)
		status = gw_fail(GW_DIGEST, "\"graph_id\" is %016llx, but the arrays give %016llx",
				 (unsigned long long)meta->graph_id, (unsigned long long)id);
	return status;
}
