/* In-degrees: the degree records of nodes, read part by part from their owners. */
#include <string.h>

#include "client/gather_call.h"
#include "core/base/alloc.h"
#include "core/graph/book.h"

/* Whether all parts store the offsets of a node type in elements of one width, so that one gather fetches them. */
static bool same_width(const struct gw_client *client, const struct gw_place *places)
{
	for (uint32_t p = 1; p < client->meta->num_parts; p++) {
		if (places[p].element_bytes != places[0].element_bytes)
			return false;
	}
	return true;
}

/* Fetches the offsets of rows ids[i] + plus of a node type, [n][columns]. The row behind a part's last one is stored
 * there too, so both rows of a record come from the owner of the first. */
static gw_status fetch_records(struct gw_client *client, uint32_t ntype, const int64_t *ids, uint64_t n,
			       uint8_t *records)
{
	const struct gw_node_places *node = &client->node_places[ntype];
	struct gw_rows rows = {
		.starts = client->meta->ntypes[ntype].starts,
		.places = node->indptr,
		.step = (uint64_t)node->columns * node->indptr[0].element_bytes,
		.row_bytes = 2ull * node->columns * node->indptr[0].element_bytes,
	};
	return gw_gather_rows(client, &rows, ids, n, records);
}

gw_status gw_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out)
{
	const struct gw_graph_meta *meta = client->meta;
	if (etype >= meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u of %u", etype, meta->num_etypes);
	const struct gw_edge_type *type = &meta->etypes[etype];
	const struct gw_node_places *node = &client->node_places[type->dst];
	if (n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu ids in one call: at most 2^32 - 1", (unsigned long long)n);
	if (!same_width(client, node->indptr))
		return gw_fail(GW_UNSUPPORTED, "the parts store offsets of %s in different widths",
			       meta->ntypes[type->dst].name);
	uint32_t width = node->indptr[0].element_bytes;
	uint64_t record_bytes = 2ull * node->columns * width;
	uint8_t *records = gw_malloc(n * record_bytes);
	if (!records)
		return GW_NO_MEMORY;
	gw_status status = fetch_records(client, type->dst, ids, n, records);
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		const uint8_t *record = records + i * record_bytes;
		uint64_t begin = gw_load_id(record, (uint8_t)width, type->column);
		uint64_t end = gw_load_id(record, (uint8_t)width, node->columns + type->column);
		if (begin > end)
			status = gw_fail(GW_PROTOCOL, "offsets of node %lld descend", (long long)ids[i]);
		out[i] = (int64_t)(end - begin);
	}
	gw_free(records);
	return status;
}
