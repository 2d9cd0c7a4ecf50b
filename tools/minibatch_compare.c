/* Compares two mini-batches: first the counts, then the arrays whose sizes are the counts.
 *
 *   seeds, ends of edges -> nodes of each type, their groups -> per hop: counts, edges of each type (indptr, indices,
 * edge ids)
 *                        -> rows fetched
 *
 * The first difference ends the comparison with GW_DIGEST and a line that names its place. The file writes and keeps
 * nothing.
 */
#include "tools/minibatch_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/status.h"

#define WHERE_MAX 128 /* bytes of a text such as "hop 1, edge type 3: indices" */

struct comparison {
	const struct gw_minibatch *left, *right;
	uint64_t bytes;
};

static gw_status differ(const struct comparison *c, const char *where)
{
	return gw_fail(GW_DIGEST, "epoch %" PRIu64 ", step %" PRIu64 ": %s differ", c->left->epoch, c->left->step,
		       where);
}

static gw_status same_count(const struct comparison *c, uint64_t left, uint64_t right, const char *where)
{
	if (left == right)
		return GW_OK;
	char text[WHERE_MAX + 64];
	snprintf(text, sizeof text, "%s (%" PRIu64 " and %" PRIu64 ")", where, left, right);
	return differ(c, text);
}

static gw_status same_bytes(struct comparison *c, const void *left, const void *right, uint64_t bytes,
			    const char *where)
{
	c->bytes += bytes;
	return bytes == 0 || memcmp(left, right, bytes) == 0 ? GW_OK : differ(c, where);
}

static gw_status compare_ends(struct comparison *c, const struct gw_edge_batch *l, const struct gw_edge_batch *r)
{
	gw_status status = same_count(c, l->etype, r->etype, "edge types of the seeds");
	if (status == GW_OK)
		status = same_count(c, l->count, r->count, "numbers of edges");
	if (status == GW_OK)
		status = same_count(c, l->negatives_each, r->negatives_each, "numbers of negatives");
	if (status == GW_OK)
		status = same_count(c, l->true_edges, r->true_edges, "numbers of negatives that are edges");
	if (status == GW_OK)
		status = same_bytes(c, l->src_rows, r->src_rows, l->count * sizeof *l->src_rows, "sources");
	if (status == GW_OK)
		status = same_bytes(c, l->dst_rows, r->dst_rows, l->count * sizeof *l->dst_rows, "destinations");
	if (status == GW_OK)
		status = same_bytes(c, l->negative_rows, r->negative_rows,
				    l->count * l->negatives_each * sizeof *l->negative_rows, "negatives");
	return status;
}

static gw_status compare_seeds(struct comparison *c)
{
	const struct gw_minibatch *l = c->left, *r = c->right;
	gw_status status = same_count(c, l->seed_count, r->seed_count, "numbers of seeds");
	if (status == GW_OK)
		status = same_bytes(c, l->seeds, r->seeds, l->seed_count * sizeof *l->seeds, "seeds");
	if (status == GW_OK)
		status = same_count(c, !!l->seed_times, !!r->seed_times, "seeds with times");
	if (status == GW_OK && l->seed_times)
		status = same_bytes(c, l->seed_times, r->seed_times, l->seed_count * sizeof(int64_t),
				    "times of the seeds");
	if (status == GW_OK)
		status = same_count(c, l->edge_type_count, r->edge_type_count, "edge types of the seeds");
	for (uint32_t t = 0; status == GW_OK && t < l->edge_type_count; t++)
		status = compare_ends(c, &l->edges[t], &r->edges[t]);
	if (status == GW_OK && !l->edges)
		status = same_bytes(c, l->seed_rows, r->seed_rows, l->seed_count * sizeof *l->seed_rows,
				    "rows of the seeds");
	return status;
}

static gw_status compare_nodes(struct comparison *c)
{
	const struct gw_minibatch *l = c->left, *r = c->right;
	gw_status status = same_count(c, l->num_ntypes, r->num_ntypes, "numbers of node types");
	if (status == GW_OK)
		status = same_count(c, l->groups ? l->group_count : 0, r->groups ? r->group_count : 0,
				    "numbers of groups");
	for (uint32_t t = 0; status == GW_OK && t < l->num_ntypes; t++) {
		char where[WHERE_MAX];
		snprintf(where, sizeof where, "nodes of type %" PRIu32, t);
		status = same_count(c, l->node_counts[t], r->node_counts[t], where);
		if (status == GW_OK)
			status = same_bytes(c, l->nodes[t], r->nodes[t], l->node_counts[t] * sizeof **l->nodes, where);
		if (status == GW_OK && l->groups)
			status = same_bytes(c, l->groups[t], r->groups[t], l->node_counts[t] * sizeof **l->groups,
					    where);
	}
	return status;
}

static gw_status compare_edges(struct comparison *c, const struct gw_block_edges *l, const struct gw_block_edges *r,
			       uint32_t hop, uint64_t index_bytes)
{
	char where[WHERE_MAX];
	snprintf(where, sizeof where, "hop %" PRIu32 ", edge type %" PRIu32 ": edges", hop, l->etype);
	gw_status status = same_count(c, l->etype, r->etype, where);
	if (status == GW_OK)
		status = same_count(c, l->dst_count, r->dst_count, where);
	if (status == GW_OK)
		status = same_count(c, l->edge_count, r->edge_count, where);
	if (status == GW_OK)
		status = same_bytes(c, l->indptr, r->indptr, (l->dst_count + 1) * sizeof *l->indptr, where);
	if (status == GW_OK)
		status = same_bytes(c, l->indices, r->indices, l->edge_count * index_bytes, where);
	if (status == GW_OK)
		status = same_bytes(c, l->edge_ids, r->edge_ids, l->edge_count * sizeof *l->edge_ids, where);
	return status;
}

static gw_status compare_hop(struct comparison *c, uint32_t hop, uint64_t index_bytes)
{
	const struct gw_block *l = c->left->blocks[hop], *r = c->right->blocks[hop];
	uint64_t counts_bytes = c->left->num_ntypes * sizeof *l->dst_counts;
	char where[WHERE_MAX];
	snprintf(where, sizeof where, "hop %" PRIu32 ": counts", hop);
	gw_status status = same_bytes(c, l->dst_counts, r->dst_counts, counts_bytes, where);
	if (status == GW_OK)
		status = same_bytes(c, l->src_counts, r->src_counts, counts_bytes, where);
	if (status == GW_OK)
		status = same_count(c, l->edges_count, r->edges_count, where);
	for (uint32_t e = 0; status == GW_OK && e < l->edges_count; e++)
		status = compare_edges(c, &l->edges[e], &r->edges[e], hop, index_bytes);
	return status;
}

static gw_status compare_rows(struct comparison *c, const struct gw_sample_spec *spec)
{
	const struct gw_minibatch *l = c->left, *r = c->right;
	gw_status status = same_count(c, l->fetch_count, r->fetch_count, "numbers of tensors fetched");
	for (uint32_t f = 0; status == GW_OK && f < l->fetch_count; f++) {
		const struct gw_tensor *tensor = spec->fetches[f].tensor;
		char where[WHERE_MAX];
		snprintf(where, sizeof where, "rows of \"%s\"", tensor->name);
		status = same_count(c, l->row_counts[f], r->row_counts[f], where);
		if (status == GW_OK)
			status = same_bytes(c, l->rows[f], r->rows[f], l->row_counts[f] * tensor->row_bytes, where);
	}
	return status;
}

gw_status gw_minibatch_compare(const struct gw_sample_spec *spec, const struct gw_minibatch *left,
			       const struct gw_minibatch *right, uint64_t *bytes)
{
	struct comparison c = {.left = left, .right = right};
	gw_status status = same_count(&c, left->epoch, right->epoch, "epochs");
	if (status == GW_OK)
		status = same_count(&c, left->step, right->step, "steps");
	if (status == GW_OK)
		status = compare_seeds(&c);
	if (status == GW_OK)
		status = compare_nodes(&c);
	if (status == GW_OK)
		status = same_count(&c, left->hops, right->hops, "numbers of hops");
	for (uint32_t hop = 0; status == GW_OK && hop < left->hops; hop++)
		status = compare_hop(&c, hop, spec->wide_indices ? sizeof(int64_t) : sizeof(int32_t));
	if (status == GW_OK)
		status = compare_rows(&c, spec);
	if (bytes)
		*bytes += c.bytes;
	return status;
}
