/* See refine.h. */
#include "tools/partition/refine.h"

#include "core/memory/alloc.h"

gw_status gw_shares_make(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
			 struct gw_shares *out)
{
	*out = (struct gw_shares){
		.balance = balance, .lists = lists, .pieces = pieces, .quantities = balance->quantities};
	out->of = gw_calloc((uint64_t)pieces * out->quantities, sizeof(*out->of));
	out->limit = gw_calloc(out->quantities, sizeof(*out->limit));
	if (!out->of || !out->limit)
		return GW_NO_MEMORY;
	for (uint32_t c = 0; c < out->quantities; c++) {
		uint64_t slack = (uint64_t)((1 + GW_BALANCE_SLACK) * (double)lists->total[c] / pieces);
		uint64_t least = (lists->total[c] + pieces - 1) / pieces + (out->quantities > 1);
		if (lists->most[c] > least)
			least = lists->most[c];
		out->limit[c] = slack > least ? slack : least;
	}
	return GW_OK;
}

void gw_shares_free(struct gw_shares *shares)
{
	gw_free(shares->of);
	gw_free(shares->limit);
	*shares = (struct gw_shares){0};
}

double gw_shares_fill(const struct gw_shares *shares, uint32_t piece)
{
	const uint64_t *of = shares->of + (uint64_t)piece * shares->quantities;
	double sum = 0;
	for (uint32_t c = 0; c < shares->quantities; c++)
		sum += shares->lists->total[c] ? (double)of[c] / (double)shares->lists->total[c] : 0;
	return sum / shares->quantities;
}

#define MORE_PASSES    4u         /* while a share is over its limit */
#define LEAST_GAIN     1e-3       /* of a move that evens out, as a part of what leaves: rounding makes no move */
#define EXCHANGE_REACH 4096u      /* nodes that one may change places with */
#define EXCHANGE_TRIES (1u << 24) /* pairs in all, if limits cannot be kept: a second of a large graph */

struct refine {
	struct gw_shares shares;
	uint32_t *links;   /* [pieces]: the node's neighbours in each piece */
	uint32_t *touched; /* [pieces]: those with links */
	uint32_t num_touched;
	uint64_t quantity[GW_BALANCE_QUANTITIES_MAX]; /* of the node */
	uint32_t tries;                               /* pairs that may still be tried */
};

/* By how much the shares of these quantities exceed their limits, as parts of them; more: with the node. */
static double excess(const struct refine *r, uint32_t piece, int more)
{
	const uint64_t *of = r->shares.of + (uint64_t)piece * r->shares.quantities;
	double sum = 0;
	for (uint32_t c = 0; c < r->shares.quantities; c++) {
		uint64_t share = of[c] + (more > 0 ? r->quantity[c] : 0) - (more < 0 ? r->quantity[c] : 0);
		if (r->quantity[c] && share > r->shares.limit[c])
			sum += (double)(share - r->shares.limit[c]) / (double)r->shares.limit[c];
	}
	return sum;
}

/* The piece that the node should be in. */
static uint32_t refine_choose(const struct refine *r, uint32_t own)
{
	uint32_t best = own;
	for (uint32_t i = 0; i < r->num_touched; i++) {
		uint32_t piece = r->touched[i];
		if (piece == own || r->links[piece] < r->links[best] || !gw_shares_fit(&r->shares, piece, r->quantity))
			continue;
		if (r->links[piece] > r->links[best] ||
		    gw_shares_fill(&r->shares, piece) < gw_shares_fill(&r->shares, best))
			best = piece;
	}
	return best;
}

/* The piece for a node that should leave its own, at a loss of at most `loss` links: one where it fits, or where the
 * limits are exceeded by less. */
static uint32_t choose_other(const struct refine *r, uint32_t own, uint64_t loss)
{
	uint32_t best = own;
	double most = excess(r, own, 0) - excess(r, own, -1); /* what leaving gains */
	for (uint32_t piece = 0; piece < r->shares.pieces; piece++) {
		if (piece == own || r->links[piece] + loss < r->links[own])
			continue;
		bool fits = gw_shares_fit(&r->shares, piece, r->quantity);
		double costs = fits ? 0 : excess(r, piece, 1) - excess(r, piece, 0);
		if (!fits && costs >= most)
			continue;
		bool same = best != own && costs == most;
		if (best == own || costs < most || (same && r->links[piece] > r->links[best]) ||
		    (same && r->links[piece] == r->links[best] &&
		     gw_shares_fill(&r->shares, piece) < gw_shares_fill(&r->shares, best))) {
			best = piece;
			most = costs;
		}
	}
	return best;
}

static void refine_sweep(struct refine *r, uint32_t pass, uint32_t passes, int32_t *piece)
{
	const struct gw_list_file *lists = r->shares.lists;
	uint32_t ntype = 0;
	uint64_t left = 0;
	for (uint64_t v = 0; v < lists->nodes; v++) {
		uint64_t n;
		gw_list_file_leave(lists, v, &left);
		const uint32_t *ids = gw_list_file_of(lists, v, &n);
		uint32_t own = (uint32_t)piece[v], to;
		for (uint64_t i = 0; i < n; i++) {
			uint32_t other = (uint32_t)piece[ids[i]];
			if (r->links[other]++ == 0)
				r->touched[r->num_touched++] = other;
		}
		gw_balance_of_node(r->shares.balance, lists->origin[v], &ntype, r->quantity);
		if (excess(r, own, 0) > 0)
			to = choose_other(r, own, n * pass / (passes - 1));
		else
			to = refine_choose(r, own);
		if (to != own) {
			gw_shares_add(&r->shares, own, r->quantity, true);
			gw_shares_add(&r->shares, to, r->quantity, false);
			piece[v] = (int32_t)to;
		}
		while (r->num_touched > 0)
			r->links[r->touched[--r->num_touched]] = 0;
	}
}

/* The shares of a piece that are over their limits. */
static uint32_t count_over(const struct gw_shares *shares, uint32_t piece)
{
	uint32_t count = 0;
	for (uint32_t c = 0; c < shares->quantities; c++)
		count += shares->of[(uint64_t)piece * shares->quantities + c] > shares->limit[c];
	return count;
}

static uint32_t count_all_over(const struct gw_shares *shares)
{
	uint32_t count = 0;
	for (uint32_t piece = 0; piece < shares->pieces; piece++)
		count += count_over(shares, piece);
	return count;
}

/* What the node adds to the sum of the squares of a piece's shares, as parts of their limits; own: it is there already.
 */
static double weight_in(const struct refine *r, uint32_t piece, bool own)
{
	const uint64_t *of = r->shares.of + (uint64_t)piece * r->shares.quantities;
	double sum = 0;
	for (uint32_t c = 0; c < r->shares.quantities; c++) {
		double limit = (double)(r->shares.limit[c] ? r->shares.limit[c] : 1),
		       q = (double)r->quantity[c] / limit;
		sum += q * (2 * (double)of[c] / limit + (own ? -q : q));
	}
	return sum;
}

/* Where several quantities leave no single move: nodes go where they lower the sum of the squares of all shares, until
 * no share is over its limit. Few do, as every such move evens out the pieces. */
static void even_out(struct refine *r, int32_t *piece)
{
	const struct gw_list_file *lists = r->shares.lists;
	uint32_t ntype = 0, over = count_all_over(&r->shares);
	for (uint64_t v = 0; v < lists->nodes && over > 0; v++) {
		uint32_t own = (uint32_t)piece[v], best = own;
		gw_balance_of_node(r->shares.balance, lists->origin[v], &ntype, r->quantity);
		double least = weight_in(r, own, true) * (1 - LEAST_GAIN);
		for (uint32_t to = 0; to < r->shares.pieces; to++) {
			double weight = to == own ? least : weight_in(r, to, false);
			if (weight < least) {
				least = weight;
				best = to;
			}
		}
		if (best == own)
			continue;
		over -= count_over(&r->shares, own) + count_over(&r->shares, best);
		gw_shares_add(&r->shares, own, r->quantity, true);
		gw_shares_add(&r->shares, best, r->quantity, false);
		over += count_over(&r->shares, own) + count_over(&r->shares, best);
		piece[v] = (int32_t)best;
	}
}

/* By how much all shares of a piece exceed their limits, if nodes of these quantities come and go. */
static double excess_after(const struct gw_shares *shares, uint32_t piece, const uint64_t *come, const uint64_t *go)
{
	const uint64_t *of = shares->of + (uint64_t)piece * shares->quantities;
	double sum = 0;
	for (uint32_t c = 0; c < shares->quantities; c++) {
		uint64_t share = of[c] + come[c] - go[c];
		if (share > shares->limit[c])
			sum += (double)(share - shares->limit[c]) / (double)(shares->limit[c] ? shares->limit[c] : 1);
	}
	return sum;
}

/* Exchanges a node of a piece over a limit for one of the next nodes, if the limits are exceeded by less then. */
static void exchange_one(struct refine *r, uint64_t v, int32_t *piece, uint32_t *over)
{
	static const uint64_t none[GW_BALANCE_QUANTITIES_MAX];
	const struct gw_list_file *lists = r->shares.lists;
	struct gw_shares *shares = &r->shares;
	uint32_t own = (uint32_t)piece[v], ntype = 0;
	uint64_t other[GW_BALANCE_QUANTITIES_MAX];
	gw_balance_of_node(shares->balance, lists->origin[v], &ntype, r->quantity);
	double before = excess_after(shares, own, none, none);
	if (excess_after(shares, own, none, r->quantity) >= before)
		return;
	for (uint64_t i = 1; i < lists->nodes && i <= EXCHANGE_REACH && r->tries > 0; i++, r->tries--) {
		uint64_t u = (v + i) % lists->nodes;
		uint32_t to = (uint32_t)piece[u];
		if (to == own)
			continue;
		ntype = 0;
		gw_balance_of_node(shares->balance, lists->origin[u], &ntype, other);
		double both = before + excess_after(shares, to, none, none),
		       after = excess_after(shares, own, other, r->quantity) +
			       excess_after(shares, to, r->quantity, other);
		if (after >= both * (1 - LEAST_GAIN))
			continue;
		*over -= count_over(shares, own) + count_over(shares, to);
		gw_shares_add(shares, own, r->quantity, true);
		gw_shares_add(shares, own, other, false);
		gw_shares_add(shares, to, other, true);
		gw_shares_add(shares, to, r->quantity, false);
		*over += count_over(shares, own) + count_over(shares, to);
		piece[v] = (int32_t)to;
		piece[u] = (int32_t)own;
		return;
	}
}

/* Where no move of one node evens out the shares, two change places. */
static void exchange(struct refine *r, int32_t *piece)
{
	uint32_t over = count_all_over(&r->shares);
	for (uint64_t v = 0; v < r->shares.lists->nodes && over > 0 && r->tries > 0; v++) {
		if (count_over(&r->shares, (uint32_t)piece[v]) > 0)
			exchange_one(r, v, piece, &over);
	}
}

gw_status gw_refine(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
		    uint32_t passes, int32_t *piece)
{
	struct refine r = {.tries = EXCHANGE_TRIES};
	uint32_t ntype = 0;
	gw_status status = gw_shares_make(balance, lists, pieces, &r.shares);
	r.links = gw_calloc(pieces, sizeof(*r.links));
	r.touched = gw_calloc(pieces, sizeof(*r.touched));
	if (!r.links || !r.touched)
		status = GW_NO_MEMORY;
	for (uint64_t v = 0; v < lists->nodes && status == GW_OK; v++) {
		gw_balance_of_node(balance, lists->origin[v], &ntype, r.quantity);
		gw_shares_add(&r.shares, (uint32_t)piece[v], r.quantity, false);
	}
	for (uint32_t pass = 0; pass < passes && status == GW_OK; pass++)
		refine_sweep(&r, pass, passes, piece);
	for (uint32_t more = 0; more < MORE_PASSES && status == GW_OK && count_all_over(&r.shares) > 0; more++) {
		refine_sweep(&r, passes - 1, passes, piece);
		even_out(&r, piece);
		exchange(&r, piece);
	}
	gw_shares_free(&r.shares);
	gw_free(r.links);
	gw_free(r.touched);
	return status;
}
