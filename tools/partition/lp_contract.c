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

#define CLUSTERS      10000u /* aimed at: the greatest cluster has 1 in CLUSTERS nodes */
#define SMALL_PIECE   16u    /* clusters that fit into a piece at least */
#define ROUNDS        3u
#define ROUNDS_MORE   2u
#define TRIES         4u
#define HOPELESS      6u         /* tenths of the entries that stay: larger clusters will not do */
#define SMALL_ENTRIES (1u << 18) /* that METIS gets in any case */
#define SHARES        16u        /* of the lists: the pages of one may stay in memory while the next is summed */
#define SUM_MAX       (1u << 30) /* of weights, for METIS's 32-bit sums */

struct contract {
	const struct gw_balance *balance;
	const struct gw_list_file *lists;
	uint32_t pieces;
	uint32_t *cluster; /* [nodes]: a node of it; then its number. The caller's pieces */
	uint32_t *weight;  /* [nodes]: the nodes of each cluster; their numbers while their edges are summed */
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
	uint64_t left = 0;
	for (uint64_t v = 0; v < lists->nodes; v++) {
		uint64_t n;
		gw_list_file_leave(lists, v, &left);
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
static bool sum_cluster(struct contract *c, const uint32_t *members, uint32_t count, uint32_t self)
{
	uint64_t end = c->entries;
	for (uint32_t m = 0; m < count; m++) {
		uint64_t n;
		const uint32_t *ids = gw_list_file_of(c->lists, members[m], &n);
		c->ends += n;
		for (uint64_t i = 0; i < n; i++) {
			uint32_t other = c->weight[c->cluster[ids[i]]];
			if (other == self || c->links[other]++ > 0)
				continue;
			if (end == c->most_entries)
				return false;
			c->adjncy[end++] = (int32_t)other;
		}
	}
	for (; c->entries < end; c->entries++) {
		uint32_t *links = &c->links[c->adjncy[c->entries]];
		c->adjwgt[c->entries] = (int32_t)(*links < INT32_MAX ? *links : INT32_MAX);
		*links = 0;
	}
	return true;
}

/* Numbers the clusters, and lists their nodes in c->touched: those of cluster i begin at first[i]. first: [clusters +
 * 1], zeros. */
static void list_members(struct contract *c, uint32_t *first)
{
	uint64_t nodes = c->lists->nodes, next = 0;
	for (uint64_t v = 0; v < nodes; v++) {
		if (c->weight[v] > 0) {
			first[next + 1] = first[next] + c->weight[v];
			c->weight[v] = (uint32_t)next++;
		}
	}
	for (uint64_t v = 0; v < nodes; v++)
		c->touched[first[c->weight[c->cluster[v]]]++] = (uint32_t)v;
	memmove(first + 1, first, c->clusters * sizeof(*first)); /* the fills have moved each begin to the end */
	first[0] = 0;
}

/* Sums the edges among the clusters. *fits: they are few enough; then c->cluster has the numbers of clusters. c->weight
 * is of no use afterwards. */
static gw_status contract_once(struct contract *c, bool *fits)
{
	uint64_t nodes = c->lists->nodes;
	uint32_t begin = 0;
	uint64_t gone = 0;
	c->clusters = c->entries = c->ends = 0;
	for (uint64_t v = 0; v < nodes; v++)
		c->clusters += c->weight[v] > 0;
	gw_free(c->xadj);
	c->xadj = gw_calloc(c->clusters + 1, sizeof(*c->xadj));
	*fits = c->xadj;
	if (!c->xadj)
		return GW_NO_MEMORY;
	list_members(c, (uint32_t *)c->xadj);
	const uint64_t share = c->lists->entries / SHARES + SMALL_ENTRIES;
	for (uint32_t at = 0; at < c->clusters && *fits; at++) {
		if (c->ends - gone > share) {
			gw_list_file_leave(c->lists, nodes, &(uint64_t){0});
			gone = c->ends;
		}
		uint32_t end = (uint32_t)c->xadj[at + 1]; /* of the nodes; then of the entries */
		*fits = sum_cluster(c, c->touched + begin, end - begin, at);
		c->xadj[at + 1] = (int32_t)c->entries;
		begin = end;
	}
	for (uint64_t v = 0; v < nodes && *fits; v++)
		c->cluster[v] = c->weight[c->cluster[v]];
	if (!*fits)
		memset(c->links, 0, nodes * sizeof(*c->links));
	return GW_OK;
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

static gw_status cut_clusters(struct contract *c)
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
		c->cluster[v] = (uint32_t)of[c->cluster[v]];
	gw_free(of);
	return status;
}

static void count_members(struct contract *c)
{
	memset(c->weight, 0, c->lists->nodes * sizeof(*c->weight));
	for (uint64_t v = 0; v < c->lists->nodes; v++)
		c->weight[c->cluster[v]]++;
}

/* Clusters whose graph is small enough, if there are any. */
static gw_status find_clusters(struct contract *c, bool *found)
{
	uint64_t nodes = c->lists->nodes, room = nodes / CLUSTERS, most = nodes / c->pieces / SMALL_PIECE;
	gw_status status = GW_OK;
	for (uint64_t v = 0; v < nodes; v++)
		c->cluster[v] = (uint32_t)v;
	*found = false;
	for (uint32_t at = 0; at < TRIES && status == GW_OK && !*found && c->entries <= c->ends / 10 * HOPELESS;
	     at++, room *= 2) {
		uint64_t bounded = room < most ? room : most;
		count_members(c);
		for (uint32_t round = 0; round < (at ? ROUNDS_MORE : ROUNDS); round++)
			propagate(c, bounded < 2 ? 2 : bounded);
		status = contract_once(c, found);
	}
	return status;
}

/* The entries that METIS may get: a fifth of all, as far as the plan's memory and 32 bits allow. */
static uint64_t entries_allowed(const struct contract *c)
{
	uint64_t most = c->lists->entries / 5, of_entry = gw_metis_bytes(0, 1, 0, 0) + 2 * sizeof(int32_t);
	uint64_t allowed = 2 * gw_plan_lists_bytes(c->balance->plan) / of_entry;
	if (most < SMALL_ENTRIES)
		most = SMALL_ENTRIES;
	if (most > c->lists->entries)
		most = c->lists->entries;
	if (most > allowed)
		most = allowed;
	return most < INT32_MAX ? most : INT32_MAX - 1;
}

gw_status gw_lp_contract(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
			 int32_t *piece, bool *done)
{
	struct contract c = {.balance = balance, .lists = lists, .pieces = pieces, .cluster = (uint32_t *)piece};
	*done = false;
	if (gw_metis_check_built() != GW_OK || lists->nodes < 2 * (uint64_t)pieces)
		return GW_OK;
	c.most_entries = entries_allowed(&c);
	c.adjncy = gw_malloc(c.most_entries * sizeof(*c.adjncy)); /* what is never written takes no memory */
	c.adjwgt = gw_malloc(c.most_entries * sizeof(*c.adjwgt));
	c.weight = gw_malloc(lists->nodes * sizeof(*c.weight));
	c.links = gw_calloc(lists->nodes, sizeof(*c.links));
	c.touched = gw_malloc(lists->nodes * sizeof(*c.touched));
	gw_status status = c.adjncy && c.adjwgt && c.weight && c.links && c.touched ? GW_OK : GW_NO_MEMORY;
	bool found = false;
	if (status == GW_OK)
		status = find_clusters(&c, &found);
	gw_free(c.weight); /* METIS's process shares what is still allocated */
	gw_free(c.links);
	gw_free(c.touched);
	if (status == GW_OK && found && c.clusters > pieces) {
		status = cut_clusters(&c);
		*done = status == GW_OK;
	}
	gw_free(c.xadj);
	gw_free(c.adjncy);
	gw_free(c.adjwgt);
	gw_free(c.vwgt);
	return status;
}
