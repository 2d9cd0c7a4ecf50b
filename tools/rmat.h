/* R-MAT graphs with Graph500's parameters: a pure function of the options, the same for any number of threads. */
#ifndef GW_TOOLS_RMAT_H
#define GW_TOOLS_RMAT_H

#include "tools/builder/builder.h"
#include "tools/weights.h"

#define GW_RMAT_SCALE_MAX 40u

struct gw_rmat_options {
	uint32_t scale;       /* 2^scale nodes */
	uint64_t edge_factor; /* edges = edge_factor * nodes; parallel edges and loops stay */
	uint64_t seed;
	uint32_t features;                         /* float32 columns of "feat"; 0: none */
	uint32_t labels;                           /* classes of "label"; 0: none */
	double train_share, val_share, test_share; /* shares of the nodes in bool masks; all 0: no masks */
	const char *weights[GW_WEIGHTS_MAX];       /* names of edge features, float32 in (0, 1], with alias tables */
	uint32_t num_weights;
	const char *time;      /* edge feature, int64 from 0 below the number of edges; NULL: none */
	const char *node_time; /* node feature, int64 from 0 below the number of nodes; NULL: none */
	bool undirected, reverse, transpose;
	unsigned threads;
};

/* Adds the node type "_N", the edge type "_N:_E:_N" and their arrays. */
gw_status gw_rmat_build(const struct gw_rmat_options *options, struct gw_builder *builder);

#endif
