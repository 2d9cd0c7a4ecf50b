/* The stream of --method lp (lp.h).
 *
 *   for each class of degrees, from 2^31 down: the lists of its nodes -> the best piece
 *   -> all lists again, twice
 *
 * Each pass goes through the lists in order. Hubs first: where hubs hold most edges, pieces form around them, in any
 * numbering of the nodes. R-MAT of scale 20 is cut half as often in 8 parts as in the order of the numbers.
 *
 * The price of a piece is the derivative of alpha * x^1.5, with x = the nodes that it would have if all its shares were
 * nodes, and alpha = sqrt(pieces) * edges / nodes^1.5. A tree over the pieces has the emptiest one at its root, so that
 * a node looks only at it and at the pieces of its neighbours.
 */
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/partition/lp.h"

#define AGAIN 2u /* passes that assign each node again */

struct stream {
	struct gw_shares shares;
	double price_unit;
	double *price;  /* [pieces] */
	uint32_t *tree; /* [2 * width]: leaves are pieces; above two nodes, the one of the lower price */
	uint32_t width; /* a power of two, at least the pieces */
	uint32_t *links, *touched, num_touched;
	int32_t *piece; /* -1: not assigned yet */
	uint64_t quantity[GW_BALANCE_QUANTITIES_MAX];
};

/* Leaves without a piece have the number of pieces, and the highest price. */
static uint32_t cheaper(const struct stream *s, uint32_t a, uint32_t b)
{
	const uint32_t first = a < b ? a : b, second = a < b ? b : a;
	return second < s->shares.pieces && s->price[second] < s->price[first] ? second : first;
}

static void set_price(struct stream *s, uint32_t piece)
{
	s->price[piece] = s->price_unit * sqrt(gw_shares_fill(&s->shares, piece));
	for (uint32_t at = (s->width + piece) / 2; at > 0; at /= 2)
		s->tree[at] = cheaper(s, s->tree[2ull * at], s->tree[2ull * at + 1]);
}

/* The emptiest piece where the node fits, or else the emptiest one. */
static uint32_t emptiest(const struct stream *s)
{
	uint32_t root = s->tree[1], best = root;
	bool found = gw_shares_fit(&s->shares, root, s->quantity);
	for (uint32_t piece = 0; piece < s->shares.pieces && !gw_shares_fit(&s->shares, root, s->quantity); piece++) {
		if ((!found || s->price[piece] < s->price[best]) && gw_shares_fit(&s->shares, piece, s->quantity)) {
			best = piece;
			found = true;
		}
	}
	return best;
}

static void assign_node(struct stream *s, uint64_t v, uint32_t *ntype)
{
	const struct gw_list_file *lists = s->shares.lists;
	uint64_t n;
	const uint32_t *ids = gw_list_file_of(lists, v, &n);
	for (uint64_t i = 0; i < n; i++) {
		int32_t other = s->piece[ids[i]];
		if (other >= 0 && s->links[other]++ == 0)
			s->touched[s->num_touched++] = (uint32_t)other;
	}
	gw_balance_of_node(s->shares.balance, lists->origin[v], ntype, s->quantity);
	if (s->piece[v] >= 0) {
		gw_shares_add(&s->shares, (uint32_t)s->piece[v], s->quantity, true);
		set_price(s, (uint32_t)s->piece[v]);
	}
	uint32_t best = emptiest(s);
	double most = (double)s->links[best] - s->price[best];
	for (uint32_t i = 0; i < s->num_touched; i++) {
		uint32_t piece = s->touched[i];
		double score = (double)s->links[piece] - s->price[piece];
		if ((score > most || (score == most && piece < best)) &&
		    gw_shares_fit(&s->shares, piece, s->quantity)) {
			best = piece;
			most = score;
		}
	}
	s->piece[v] = (int32_t)best;
	gw_shares_add(&s->shares, best, s->quantity, false);
	set_price(s, best);
	while (s->num_touched > 0)
		s->links[s->touched[--s->num_touched]] = 0;
}

static void stream_lists(struct stream *s)
{
	const struct gw_list_file *lists = s->shares.lists;
	for (uint32_t bits = 32; bits > 0; bits--) {
		uint32_t ntype = 0;
		uint64_t left = 0;
		for (uint64_t v = 0; v < lists->nodes; v++) {
			gw_list_file_leave(lists, v, &left);
			uint64_t n = (lists->offset[v + 1] - lists->offset[v]) / sizeof(uint32_t);
			if (n >> (bits - 1) == 1)
				assign_node(s, v, &ntype);
		}
	}
	for (uint32_t pass = 0; pass < AGAIN; pass++) {
		uint32_t ntype = 0;
		uint64_t left = 0;
		for (uint64_t v = 0; v < lists->nodes; v++) {
			gw_list_file_leave(lists, v, &left);
			assign_node(s, v, &ntype);
		}
	}
}

gw_status gw_lp_stream(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
		       int32_t *piece)
{
	double nodes = (double)lists->nodes, edges = (double)lists->entries / 2;
	struct stream s = {.width = 1, .piece = piece};
	gw_status status = gw_shares_make(balance, lists, pieces, &s.shares);
	while (s.width < pieces)
		s.width *= 2;
	s.price_unit = 1.5 * sqrt(pieces) * edges / (nodes * sqrt(nodes)) * sqrt(nodes);
	s.price = gw_calloc(pieces, sizeof(*s.price));
	s.tree = gw_calloc(2ull * s.width, sizeof(*s.tree));
	s.links = gw_calloc(pieces, sizeof(*s.links));
	s.touched = gw_calloc(pieces, sizeof(*s.touched));
	if (!s.price || !s.tree || !s.links || !s.touched)
		status = GW_NO_MEMORY;
	if (status == GW_OK) {
		for (uint32_t leaf = 0; leaf < s.width; leaf++)
			s.tree[s.width + leaf] = leaf < pieces ? leaf : pieces;
		for (uint32_t at = s.width - 1; at > 0; at--)
			s.tree[at] = cheaper(&s, s.tree[2ull * at], s.tree[2ull * at + 1]);
		memset(piece, 0xff, lists->nodes * sizeof(*piece));
		stream_lists(&s);
	}
	gw_shares_free(&s.shares);
	gw_free(s.price);
	gw_free(s.tree);
	gw_free(s.links);
	gw_free(s.touched);
	return status;
}
