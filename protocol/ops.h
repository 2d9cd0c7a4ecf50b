/* Numbers of the two-sided calls between client and server. Reads need no call. */
#ifndef GW_PROTOCOL_OPS_H
#define GW_PROTOCOL_OPS_H

enum gw_op {
	GW_OP_CATALOG = 1,      /* form -> JSON: the server's arrays, their positions, the book (protocol/catalog.h) */
	GW_OP_SAMPLE = 2,       /* vertices -> picks (protocol/sample_call.h) */
	GW_OP_STATS = 3,        /* -> JSON: the server's configuration and counters */
#define GW_STATS_WITH_CLIENTS 1 /* the request's byte that asks for the list of clients; without a byte no list */
	GW_OP_EDGES = 4,        /* edges or pairs -> ends, counts, positions (protocol/edge_call.h) */
	GW_OP_IDS = 5,          /* keys of original ids -> nodes (protocol/id_call.h) */
	GW_OP_SUBGRAPH = 6,     /* destinations, sources -> the edges between them (protocol/subgraph_call.h) */
	GW_OP_DISK_ROWS = 7,    /* rows of an array on disk -> their bytes (protocol/disk_call.h) */
	GW_OP_SAVED = 8,        /* what the server's memory has saved a client -> nothing (protocol/saved_call.h) */
	/* Tensors: protocol/tensor_call.h. */
	GW_OP_TENSOR_CREATE = 16,
	GW_OP_TENSOR_COMPLETE = 17,
	GW_OP_TENSOR_LIST = 18,
	GW_OP_TENSOR_DELETE = 19,
	GW_OP_TENSOR_PULL = 20,
	GW_OP_TENSOR_UPDATE = 21,
	GW_OP_TENSOR_PUSH = 22,
	GW_OP_TENSOR_COUNT = 23,
	GW_OP_TENSOR_LEASE = 24,
	GW_OP_TENSOR_SAVE = 25,
	GW_OP_TENSOR_RESTORE = 26,
	GW_OP_TENSOR_END_JOB = 27,
	GW_OP_TENSOR_READS = 28,
};

/* Its name, for people and labels: "sample", "tensor_pull"; NULL: no operation has this number. */
const char *gw_op_name(unsigned op);

#endif
