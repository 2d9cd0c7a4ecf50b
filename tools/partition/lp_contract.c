/* The clusters of --method lp (lp.h).
 *
 *   every node its own cluster -> rounds: each node joins the cluster of most of its neighbours, if there is room
 *   -> clusters numbered, their nodes listed -> edges among clusters summed, up to a limit
 *   -> too many: clusters may have twice the nodes, and again, unless most edges stay
 *   -> METIS on the clusters -> pieces of nodes
 *
 * All passes over the lists are in ascending order of nodes or of clusters, in one thread.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/partition/lp.h"

#define CLUSTERS      20000u /* aimed at: the greatest cluster has 1 in CLUSTERS nodes */
#define SMALL_PIECE   16u    /* clusters that fit into a piece at least */
#define ROUNDS        3u
#define ROUNDS_MORE   2u
#define TRIES         3u
#define HOPELESS      6u         /* tenths of the entries that stay: larger clusters will not do */
#define SMALL_ENTRIES (1u << 20) /* that METIS gets in any case */
#define SUM_MAX       (1u << 30) /* of weights, for METIS's 32-bit sums */

struct contract {
	const struct gw_balance *balance;
	const struct gw_list_file *lists;
	uint32_t pieces;
	uint32_t *cluster; /* [nodes]: a node of it; then its number */
	uint32_t *weight;  /* [nodes]: the nodes of each cluster */
	uint32_t *links;   /* [nodes]: of the node or cluster at hand */
	uint32_t *touched; /* [nodes]: clusters with links; the nodes in the order of clusters while these are summed */
	uint64_t clusters;
	/* The graph of clusters, as METIS takes it. */
	int32_t *xadj, *adjncy, *adjwgt, *vwgt;
	uint64_t entries, most_entries;
	uint64_t ends; /* entries of the lists that have been summed */
};

static void propagate(struct contract *c, uint64_t room)
{
	const struct gw_list_file *lists = c->lists;
	for (uint64_t v = 0; v < lists->nodes; v++) {
		uint64_t n;
		const uint32_t *ids = gw_list_file_of(lists, v, &n);
		uint32_t own = c->cluster[v], count = 0;
		for (uint64_t i = 0; i < n; i++) {
			uint32_t other = c->cluster[ids[i]];
			if (c->links[other]++ == 0)
				c->touched[count++] = other;
		}
		uint32_t best = own;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t other = c->touched[i];
			if (c->links[other] > c->links[best] && c->weight[other] < room)
				best = other;
		}
		while (count > 0)
			c->links[c->touched[--count]] = 0;
		if (best == own)
			continue;
		c->weight[own]--;
		c->weight[best]++;
		c->cluster[v] = best;
	}
}

/* Appends the entries of a cluster. false: there are too many. */
static gw_status sum_cluster(struct contract *c, const uint32_t *number, const uint32_t *members, uint32_t count,
			     uint32_t self, uint32_t *seen, uint64_t *room, bool *fits)
{
	uint32_t found = 0;
	for (uint32_t m = 0; m < count; m++) {
		uint64_t n;
		const uint32_t *ids = gw_list_file_of(c->lists, members[m], &n);
		c->ends += n;
		for (uint64_t i = 0; i < n; i++) {
			uint32_t other = number[c->cluster[ids[i]]];
			if (other != self && c->links[other]++ == 0)
				seen[found++] = other;
		}
	}
	*fits = c->entries + found <= c->most_entries;
	if (*fits && c->entries + found > *room) {
		uint64_t more = 2 * (c->entries + found) < c->most_entries ? 2 * (c->entries + found) : c->most_entries;
		int32_t *ids = gw_realloc(c->adjncy, more, sizeof(*ids));
		c->adjncy = ids ? ids : c->adjncy;
		int32_t *weights = ids ? gw_realloc(c->adjwgt, more, sizeof(*weights)) : NULL;
		c->adjwgt = weights ? weights : c->adjwgt;
		if (!ids || !weights)
			return GW_NO_MEMORY;
		*room = more;
	}
	for (uint32_t i = 0; i < found; i++) {
		if (*fits) {
			c->adjncy[c->entries] = (int32_t)seen[i];
			c->adjwgt[c->entries++] =
				(int32_t)(c->links[seen[i]] < INT32_MAX ? c->links[seen[i]] : INT32_MAX);
		}
		c->links[seen[i]] = 0;
	}
	return GW_OK;
}

/* Sums the edges among the clusters. *fits: they are few enough. number: [nodes], scratch; seen and first:
 * [clusters + 1]. */
static gw_status sum_edges(struct contract *c, uint32_t *number, uint32_t *first, uint32_t *seen, bool *fits)
{
	uint64_t room = 0;
	uint32_t *members = c->touched;
	uint64_t nodes = c->lists->nodes, next = 0;
	for (uint64_t v = 0; v < nodes; v++) {
		if (c->weight[v] > 0) {
			first[next + 1] = first[next] + c->weight[v];
			number[v] = (uint32_t)next++;
		}
	}
	for (uint64_t v = 0; v < nodes; v++)
		members[first[number[c->cluster[v]]]++] = (uint32_t)v;
	memmove(first + 1, first, c->clusters * sizeof(*first)); /* the fills have moved each begin to the end */
	first[0] = 0;
	c->entries = c->ends = 0;
	c->xadj[0] = 0;
	*fits = true;
	gw_status status = GW_OK;
	for (uint32_t at = 0; at < c->clusters && status == GW_OK && *fits; at++) {
		status = sum_cluster(c, number, members + first[at], first[at + 1] - first[at], at, seen, &room, fits);
		c->xadj[at + 1] = (int32_t)c->entries;
	}
	return status;
}

static gw_status contract_once(struct contract *c, bool *fits)
{
	uint64_t nodes = c->lists->nodes;
	c->clusters = 0;
	for (uint64_t v = 0; v < nodes; v++)
		c->clusters += c->weight[v] > 0;
	uint32_t *number = gw_malloc(nodes * sizeof(*number));
	uint32_t *first = gw_calloc(c->clusters + 1, sizeof(*first));
	uint32_t *seen = gw_malloc(c->clusters * sizeof(*seen));
	gw_free(c->xadj);
	c->xadj = gw_calloc(c->clusters + 1, sizeof(*c->xadj));
	gw_status status = GW_NO_MEMORY;
	if (number && first && seen && c->xadj)
		status = sum_edges(c, number, first, seen, fits);
	for (uint64_t v = 0; v < nodes && status == GW_OK && *fits; v++)
		c->cluster[v] = number[c->cluster[v]];
	gw_free(number);
	gw_free(first);
	gw_free(seen);
	return status;
}

/* Divides weights by a power of two so that their sum fits; weights that are not 0 stay at least `least`. */
static void scale(int32_t *weights, uint64_t count, uint32_t stride, int32_t least)
{
	uint64_t sum = 0;
	uint32_t shift = 0;
	for (uint64_t i = 0; i < count; i++)
		sum += (uint64_t)weights[i * stride];
	while (sum >> shift > SUM_MAX)
		shift++;
	for (uint64_t i = 0; i < count && shift > 0; i++) {
		int32_t *weight = &weights[i * stride];
		*weight = *weight >> shift > least || *weight == 0 ? *weight >> shift : least;
	}
}

static gw_status weigh_clusters(struct contract *c)
{
	uint32_t quantities = c->balance->quantities, ntype = 0;
	uint64_t quantity[GW_BALANCE_QUANTITIES_MAX];
	uint64_t *sum = gw_calloc(c->clusters * quantities, sizeof(*sum));
	c->vwgt = gw_calloc(c->clusters * quantities, sizeof(*c->vwgt));
	if (!sum || !c->vwgt) {
		gw_free(sum);
		return GW_NO_MEMORY;
	}
	for (uint64_t v = 0; v < c->lists->nodes; v++) {
		gw_balance_of_node(c->balance, c->lists->origin[v], &ntype, quantity);
		for (uint32_t q = 0; q < quantities; q++)
			sum[(uint64_t)c->cluster[v] * quantities + q] += quantity[q];
	}
	for (uint64_t i = 0; i < c->clusters * quantities; i++)
		c->vwgt[i] = (int32_t)(sum[i] < INT32_MAX ? sum[i] : INT32_MAX);
	for (uint32_t q = 0; q < quantities; q++)
		scale(c->vwgt + q, c->clusters, quantities, 0);
	scale(c->adjwgt, c->entries, 1, 1);
	gw_free(sum);
	return GW_OK;
}

static gw_status cut_clusters(struct contract *c, int32_t *piece)
{
	int32_t *of = gw_malloc(c->clusters * sizeof(*of));
	gw_status status = of ? weigh_clusters(c) : GW_NO_MEMORY;
	struct gw_metis_job job = {.nodes = (int32_t)c->clusters,
				   .constraints = (int32_t)c->balance->quantities,
				   .pieces = (int32_t)c->pieces,
				   .xadj = c->xadj,
				   .adjncy = c->adjncy,
				   .adjwgt = c->adjwgt,
				   .vwgt = c->vwgt,
				   .seed = c->balance->plan->seed,
				   .piece = of};
	if (status == GW_OK)
		status = gw_metis_run(&job);
	for (uint64_t v = 0; v < c->lists->nodes && status == GW_OK; v++)
		piece[v] = of[c->cluster[v]];
	gw_free(of);
	return status;
}

/* Clusters whose graph is small enough, if there are any. */
static gw_status find_clusters(struct contract *c, bool *found)
{
	uint64_t nodes = c->lists->nodes, room = nodes / CLUSTERS, most = nodes / c->pieces / SMALL_PIECE;
	gw_status status = GW_OK;
	for (uint64_t v = 0; v < nodes; v++) {
		c->cluster[v] = (uint32_t)v;
		c->weight[v] = 1;
	}
	*found = false;
	for (uint32_t at = 0; at < TRIES && status == GW_OK && !*found && c->entries <= c->ends / 10 * HOPELESS;
	     at++, room *= 2) {
		uint64_t bounded = room < most ? room : most;
		for (uint32_t round = 0; round < (at ? ROUNDS_MORE : ROUNDS); round++)
			propagate(c, bounded < 2 ? 2 : bounded);
		status = contract_once(c, found);
	}
	return status;
}

gw_status gw_lp_contract(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
			 int32_t *piece, bool *done)
{
	struct contract c = {.balance = balance, .lists = lists, .pieces = pieces};
	uint64_t bytes = gw_metis_bytes(0, 1, 0, 0), allowed = 2 * gw_plan_lists_bytes(balance->plan);
	*done = false;
	if (gw_metis_check_built() != GW_OK || lists->nodes < 2 * (uint64_t)pieces)
		return GW_OK;
	c.most_entries = lists->entries / 10 * 3 > SMALL_ENTRIES ? lists->entries / 10 * 3 : SMALL_ENTRIES;
	if (c.most_entries > allowed / (bytes + 8))
		c.most_entries = allowed / (bytes + 8);
	if (c.most_entries > INT32_MAX - 1)
		c.most_entries = INT32_MAX - 1;
	c.cluster = gw_malloc(lists->nodes * sizeof(*c.cluster));
	c.weight = gw_malloc(lists->nodes * sizeof(*c.weight));
	c.links = gw_calloc(lists->nodes, sizeof(*c.links));
	c.touched = gw_malloc(lists->nodes * sizeof(*c.touched));
	gw_status status = c.cluster && c.weight && c.links && c.touched ? GW_OK : GW_NO_MEMORY;
	bool found = false;
	if (status == GW_OK)
		status = find_clusters(&c, &found);
	gw_free(c.weight); /* METIS's process shares what is still allocated */
	gw_free(c.links);
	gw_free(c.touched);
	if (status == GW_OK && found && c.clusters > pieces) {
		status = cut_clusters(&c, piece);
		*done = status == GW_OK;
	}
	gw_free(c.cluster);
	gw_free(c.xadj);
	gw_free(c.adjncy);
	gw_free(c.adjwgt);
	gw_free(c.vwgt);
	return status;
}
