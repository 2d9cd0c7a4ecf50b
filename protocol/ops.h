/* The two-sided calls between client and server: their numbers. Reads need none; these are the rest. */
#ifndef GW_PROTOCOL_OPS_H
#define GW_PROTOCOL_OPS_H

enum gw_op {
	GW_OP_CATALOG = 1, /* -> JSON: the graph and where its arrays lie (protocol/catalog.h) */
	GW_OP_SAMPLE = 2,  /* vertices -> picks (protocol/sample_call.h) */
	GW_OP_STATS = 3,   /* -> JSON: what the server is and has done */
	GW_OP_EDGES = 4,   /* edges or pairs -> ends, counts, positions (protocol/edge_call.h) */
};

#endif
