/* R-MAT (Chakrabarti, Zhan, Faloutsos: "R-MAT: a recursive model for graph mining", SDM 2004) with the probabilities of
 * the Graph500 benchmark (.57, .19, .19, .05). A keyed bijection scatters the vertices (core/numbers/scatter.h).
 *
 * Edge i, feature j of node v, the label of v and so on are draws of a counter-based generator at (key, i): the result
 * does not depend on threads or their order. Probabilities are 32-bit thresholds and features exact multiples of 2^-23:
 * the arithmetic is integer only.
 */
#include "tools/rmat.h"

#include <string.h>

#include "core/memory/memory.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/numbers/scatter.h"
#include "core/system/parallel.h"

#define GRAIN (32u << 10)

/* The purpose of a draw. It is the hop in the keys of the kind GW_DRAW_GENERATE. */
enum { DRAW_EDGE, DRAW_FEATURE, DRAW_CENTRE, DRAW_LABEL, DRAW_SPLIT, DRAW_WEIGHT, DRAW_TIME, DRAW_NODE_TIME };

#define SHARE_A   0x91eb851eu /* .57 * 2^32 */
#define SHARE_AB  0xc28f5c28u /* .76 */
#define SHARE_ABC 0xf3333333u /* .95 */

struct generating {
	const struct gw_rmat_options *options;
	struct gw_scatter scatter;
	uint64_t *src, *dst;
	int64_t *labels;
	float *features;
	uint8_t *train, *val, *test;
	uint32_t train_below, val_below, test_below; /* thresholds of one draw */
};

static uint64_t rmat_key_of(const struct gw_rmat_options *options, uint32_t what)
{
	return gw_draw_key(options->seed, 0, GW_DRAW_GENERATE, what, 0);
}

static gw_status rmat_make_edges(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct generating *g = context;
	uint64_t key = rmat_key_of(g->options, DRAW_EDGE);
	for (uint64_t i = begin; i < end; i++) {
		uint64_t src = 0, dst = 0;
		struct gw_words words = {0};
		for (uint32_t bit = 0; bit < g->options->scale; bit++) {
			if (bit % 4 == 0)
				words = gw_philox(key, i, bit / 4);
			uint32_t u = words.word[bit % 4];
			/* Sums of comparisons instead of branches, which no processor could predict here. */
			uint32_t a = u >= SHARE_A, ab = u >= SHARE_AB, abc = u >= SHARE_ABC;
			src = src << 1 | ab;
			dst = dst << 1 | (a ^ ab ^ abc);
		}
		g->src[i] = gw_scatter_at(&g->scatter, src);
		g->dst[i] = gw_scatter_at(&g->scatter, dst);
	}
	return GW_OK;
}

struct weighing {
	uint64_t key;
	float *weights;
};

static gw_status make_weights(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct weighing *w = context;
	for (uint64_t i = begin; i < end; i++)
		w->weights[i] = (float)((gw_philox(w->key, i / 4, 0).word[i % 4] >> 8) + 1) * 0x1p-24f;
	return GW_OK;
}

/* Each name has draws of its own, whatever other weights exist. "weight" has those of the plain key. */
static uint64_t weight_key(const struct gw_rmat_options *options, const char *name)
{
	uint64_t key = rmat_key_of(options, DRAW_WEIGHT);
	return strcmp(name, "weight") == 0 ? key : gw_mix64(key ^ gw_digest(name, strlen(name)));
}

static gw_status add_weights(const struct gw_rmat_options *options, struct gw_builder *builder, uint32_t etype,
			     uint64_t count)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < options->num_weights && status == GW_OK; i++) {
		struct weighing weighing = {weight_key(options, options->weights[i]),
					    gw_builder_take(builder, count, sizeof(float), &status)};
		if (status != GW_OK)
			return status;
		gw_parallel_for(options->threads, count, GRAIN, make_weights, &weighing);
		struct gw_builder_array weight = {.name = options->weights[i],
						  .dtype = GW_FLOAT32,
						  .ndim = 1,
						  .shape = {count},
						  .data = weighing.weights,
						  .weight = true};
		status = gw_builder_edge_array(builder, etype, &weight);
	}
	return status;
}

struct timing {
	uint64_t key, below;
	int64_t *times;
};

static gw_status rmat_make_times(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct timing *t = context;
	for (uint64_t i = begin; i < end; i++) {
		struct gw_words words = gw_philox(t->key, i, 0);
		uint64_t word = (uint64_t)words.word[0] << 32 | words.word[1];
		t->times[i] = (int64_t)(uint64_t)(((unsigned __int128)word * t->below) >> 64);
	}
	return GW_OK;
}

/* Times of rows: uniform from 0 below the number of rows. */
static gw_status rmat_take_times(const struct gw_rmat_options *options, struct gw_builder *builder, uint32_t what,
				 const char *name, uint64_t rows, struct gw_builder_array *out)
{
	gw_status status = GW_OK;
	struct timing timing = {rmat_key_of(options, what), rows, gw_builder_take(builder, rows, 8, &status)};
	if (status != GW_OK)
		return status;
	gw_parallel_for(options->threads, rows, GRAIN, rmat_make_times, &timing);
	*out = (struct gw_builder_array){
		.name = name, .dtype = GW_INT64, .ndim = 1, .shape = {rows}, .data = timing.times};
	return GW_OK;
}

/* A label's centre is +1/2 or -1/2 in each column. Features thus separate the labels, with noise twice as wide. */
static void make_features(const struct generating *g, uint64_t node, float *row)
{
	uint64_t noise_key = rmat_key_of(g->options, DRAW_FEATURE), centre_key = rmat_key_of(g->options, DRAW_CENTRE);
	struct gw_words noise = {0}, centre = {0};
	for (uint32_t d = 0; d < g->options->features; d++) {
		if (d % 4 == 0) {
			noise = gw_philox(noise_key, node, d / 4);
			centre = gw_philox(centre_key, g->labels ? (uint64_t)g->labels[node] : 0, d / 4);
		}
		int32_t value = (int32_t)(noise.word[d % 4] >> 8) - (1 << 23);
		if (g->labels)
			value += centre.word[d % 4] & 1 ? 1 << 22 : -(1 << 22);
		row[d] = (float)value * 0x1p-23f;
	}
}

static gw_status make_nodes(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct generating *g = context;
	const struct gw_rmat_options *options = g->options;
	uint64_t label_key = rmat_key_of(options, DRAW_LABEL), split_key = rmat_key_of(options, DRAW_SPLIT);
	for (uint64_t v = begin; v < end; v++) {
		if (g->labels) {
			struct gw_draws draws = gw_draws_begin(label_key, v);
			g->labels[v] = gw_draw_below(&draws, options->labels);
		}
		if (g->features)
			make_features(g, v, g->features + v * options->features);
		if (!g->train)
			continue;
		uint32_t u = gw_philox(split_key, v, 0).word[0];
		g->train[v] = u < g->train_below;
		g->val[v] = u >= g->train_below && u < g->val_below;
		g->test[v] = u >= g->val_below && u < g->test_below;
	}
	return GW_OK;
}

static uint32_t share_threshold(double share)
{
	double scaled = share * 4294967296.0;
	return scaled >= 4294967295.0 ? UINT32_MAX : (uint32_t)scaled;
}

static gw_status add_nodes(struct generating *g, struct gw_builder *builder, uint32_t ntype, uint64_t nodes)
{
	const struct gw_rmat_options *options = g->options;
	gw_status status = GW_OK;
	if (options->labels)
		g->labels = gw_builder_take(builder, nodes, sizeof(*g->labels), &status);
	if (options->features)
		g->features = gw_builder_take(builder, nodes * options->features, sizeof(*g->features), &status);
	if (options->train_share + options->val_share + options->test_share > 0) {
		g->train = gw_builder_take(builder, nodes, 1, &status);
		g->val = gw_builder_take(builder, nodes, 1, &status);
		g->test = gw_builder_take(builder, nodes, 1, &status);
		g->train_below = share_threshold(options->train_share);
		g->val_below = share_threshold(options->train_share + options->val_share);
		g->test_below = share_threshold(options->train_share + options->val_share + options->test_share);
	}
	if (status != GW_OK)
		return status;
	gw_parallel_for(options->threads, nodes, GRAIN, make_nodes, g);
	const struct gw_builder_array arrays[] = {
		{.name = "feat",
		 .dtype = GW_FLOAT32,
		 .ndim = 2,
		 .shape = {nodes, options->features},
		 .data = g->features},
		{.name = "label", .dtype = GW_INT64, .ndim = 1, .shape = {nodes}, .data = g->labels},
		{.name = "train_mask", .dtype = GW_BOOL, .ndim = 1, .shape = {nodes}, .data = g->train},
		{.name = "val_mask", .dtype = GW_BOOL, .ndim = 1, .shape = {nodes}, .data = g->val},
		{.name = "test_mask", .dtype = GW_BOOL, .ndim = 1, .shape = {nodes}, .data = g->test},
	};
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]) && status == GW_OK; i++) {
		if (arrays[i].data)
			status = gw_builder_node_array(builder, ntype, &arrays[i]);
	}
	struct gw_builder_array times;
	if (status == GW_OK && options->node_time)
		status = rmat_take_times(options, builder, DRAW_NODE_TIME, options->node_time, nodes, &times);
	if (status == GW_OK && options->node_time)
		status = gw_builder_node_array(builder, ntype, &times);
	return status;
}

static gw_status add_edges(struct generating *g, struct gw_builder *builder, uint32_t ntype, uint64_t count)
{
	const struct gw_rmat_options *options = g->options;
	gw_status status = GW_OK;
	g->src = gw_builder_take(builder, count, sizeof(*g->src), &status);
	g->dst = gw_builder_take(builder, count, sizeof(*g->dst), &status);
	if (status != GW_OK)
		return status;
	gw_parallel_for(options->threads, count, GRAIN, rmat_make_edges, g);
	struct gw_builder_edges edges = {.count = count,
					 .src = g->src,
					 .dst = g->dst,
					 .reverse = options->reverse,
					 .transpose = options->transpose};
	uint32_t etype = 0;
	status = options->undirected ? gw_builder_mirror(builder, &edges) : GW_OK;
	if (status == GW_OK)
		status = gw_builder_etype(builder, ntype, "_E", ntype, &edges, &etype);
	struct gw_builder_array times;
	if (status == GW_OK && options->time)
		status = rmat_take_times(options, builder, DRAW_TIME, options->time, count, &times);
	if (status == GW_OK && options->time)
		status = gw_builder_edge_array(builder, etype, &times);
	return status != GW_OK ? status : add_weights(options, builder, etype, count);
}

gw_status gw_rmat_build(const struct gw_rmat_options *options, struct gw_builder *builder)
{
	struct generating g = {.options = options};
	uint64_t nodes = 1ull << options->scale, edges, bytes;
	uint32_t ntype;
	/* Edges beyond the builder's limit are in files. */
	if (__builtin_mul_overflow(nodes, options->edge_factor, &edges) ||
	    __builtin_mul_overflow(
		    edges, 56 + 4ull * options->num_weights + (options->time ? 16 : 0) + (options->node_time ? 8 : 0),
		    &bytes) ||
	    __builtin_add_overflow(bytes, nodes * (options->features * 4ull + 32), &bytes))
		return gw_fail(GW_LIMIT, "scale %u with %llu edges per node: too big", options->scale,
			       (unsigned long long)options->edge_factor);
	gw_status status = gw_memory_check(nodes * (options->features * 4ull + 32), -1,
					   "generating the graph: a smaller --scale takes less;");
	if (status == GW_OK)
		status = gw_builder_ntype(builder, "_N", &ntype);
	if (status != GW_OK)
		return status;
	gw_builder_ntype_count(builder, ntype, nodes);
	g.scatter = gw_scatter_begin(gw_draw_key(options->seed, 0, GW_DRAW_SHUFFLE, 0, 0), nodes);
	status = add_nodes(&g, builder, ntype, nodes);
	return status != GW_OK ? status : add_edges(&g, builder, ntype, edges);
}
