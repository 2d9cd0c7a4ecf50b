/* Graphwire's client library: sample neighbours and fetch features of a partitioned graph, from servers over the
 * network, or from its folder on this machine, through the same calls.
 *
 *   gw_client_open -> gw_loader_open -> { gw_loader_next -> train -> gw_minibatch_release } -> gw_loader_close
 *                  -> gw_gather, gw_sample, gw_node_texts, gw_find_edges, ... (edges.h): one call at a time, from any
 *                     thread
 *
 * Threads: a client may be used by any number of threads at once; a loader, a ticket and a mini-batch by one at a time.
 * Processes: a client and what was made from it belong to the process that opened it. After a fork the child opens its
 * own: with its parent's, calls return GW_INVALID, and closing or releasing does nothing.
 * Errors: every function that can fail returns a status; gw_last_error() has the line that says what, where and what to
 * do. Handles stay NULL on failure. Outputs are undefined after an error, and never written to later.
 * Time: two limits, both in gw_client_options. Each operation (a gather, a mini-batch) has one deadline, from the call
 * to its end, however many servers it asks how often. While a server that it waits for is away its deadline stands
 * still, and the budget for reconnecting runs instead: a server that loads again may take longer than one operation.
 * The error says which of the two was used up: GW_DEADLINE, or why the server could not be reached. A server that is
 * silent for a third of an operation's deadline is asked whether it is there; one that does not answer for as long
 * again is away. What waiting does not help (another key, another graph, no descriptors or memory here) ends the
 * operation within seconds. The time for which this process is suspended (SIGSTOP, a frozen control group, a debugger)
 * counts for neither, once it is more than a second; only a job's tensors end when it is away for the servers' lease.
 * Log: what has to be waited for longer than a second is one line on stderr, and its end another one.
 * Ids are global: node ids within their node type, edge ids within their edge type, both from 0.
 */
#ifndef GRAPHWIRE_H
#define GRAPHWIRE_H

#include <stdbool.h>

#include <graphwire/block.h>
#include <graphwire/checkpoint.h>
#include <graphwire/edges.h>
#include <graphwire/split.h>
#include <graphwire/tensors.h>
#include <graphwire/triples.h>
#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client; /* connections, threads and the graph's description */
struct gw_loader; /* a stream of mini-batches, several ahead */
struct gw_ticket; /* an operation in progress */

/* --- Opening. --- */

/* How to reach the graph. Zero-initialize, then set what differs from the default. gw_client_open alone reads it and
 * its strings. With neither a part config nor servers a program opens as it was launched: by GRAPHWIRE_IP_CONFIG,
 * _PART_CONFIG, _KEY_FILE and _TRANSPORT of its environment, which deploy/launch.py sets; GW_NOT_FOUND says which of
 * them is missing. */
struct gw_client_options {
	/* The graph's JSON or its folder. Without servers: standalone, the parts are opened from here. With servers:
	 * checked against what they serve; may be NULL. */
	const char *part_config;
	/* "host:port", "[v6]:port" of one server per part, in any order; none: standalone. */
	const char *const *servers;
	uint32_t server_count;
	const char *key_file; /* NULL: on loopback the key that the server left in the runtime folder, else none */
	uint32_t threads;     /* that sample and do input and output; at most 64; 0: one per processor */
	int64_t timeout_ms;   /* an operation's deadline; 0: 30,000; negative: none */
	int64_t reconnect_ms; /* how long to try to reach a server that went away; 0: 300,000; negative: no limit */
	/* How remote neighbours are sampled: "reads": one-sided, by this client; "requests": by the server; NULL or
	 * "auto": by reads over RDMA, which no code of the server runs for, by requests over TCP. */
	const char *neighbours;
	const char *order;      /* fetch rows by ascending address: NULL or "auto" (where it pays), "always", "never" */
	const char *tcp_driver; /* NULL or "auto", "io_uring", "epoll" */
	/* A thread that waits for servers looks so long before it sleeps, at most 1 s; 0: it sleeps at once. */
	uint32_t spin_us;
	/* NULL or "auto": memory of servers on this host is mapped, others are read by RDMA ("verbs"), where either is
	 * to be had; else over TCP, which also steps in when RDMA is lost. "tcp", "shm", "verbs": all servers by this
	 * way, or not at all. */
	const char *transport;
	uint32_t queue_pairs;     /* RDMA: of each thread with each server, at most 8; 0: 2 */
	uint64_t dense_bytes_max; /* memory for one dense id map, of which each batch in flight has one; 0: 256 MiB */
	bool no_verify;           /* standalone: do not compare digests while loading */
	/* Without key_file: read from servers on loopback that prove no key ("serve --insecure"), behind whose address
	 * any user of this host may stand. Otherwise they are refused, and so is a server that has proved a key before
	 * and comes back without one. */
	bool insecure;
	/* Whose tensors it creates and sees: letters, digits and "._-:/", at most 63. NULL: GRAPHWIRE_JOB of the
	 * environment, which a launcher sets for all trainers of a job; without that a name of its own. */
	const char *job;
};

/* Connects to every server (or loads every part) and checks that together they are one graph. Blocks until all are
 * there, at most up to the deadline, or while parts load. GW_NOT_FOUND, GW_REFUSED, GW_WRONG_GRAPH, GW_DEADLINE,
 * GW_FORMAT, ... */
GW_API gw_status gw_client_open(const struct gw_client_options *options, struct gw_client **out);

/* Ends the client's threads and connections and frees its memory. Loaders must be closed, mini-batches released and
 * tickets ended before. NULL is allowed. */
GW_API void gw_client_close(struct gw_client *client);

/* Is this a graph's JSON, or a folder with one, that this library reads, and the text that was written? No array is
 * opened. GW_FORMAT, GW_DIGEST (it was changed), GW_VERSION (of a newer major version), GW_NOT_FOUND, ... */
GW_API gw_status gw_part_config_check(const char *part_config);

/* --- The graph. --- */

/* A node type or an edge type. */
struct gw_type_info {
	const char *name;  /* "paper", or "paper:cites:paper" */
	uint64_t count;    /* nodes or edges, over all parts */
	uint32_t src, dst; /* edge types: their node types */
	/* Edge types: the one that holds the same edges turned round, itself where each is there both ways; UINT32_MAX:
	 * the graph names none. */
	uint32_t reverse;
	bool by_source; /* edge types: stored by source too, so that there are out-edges to ask for (edges.h) */
};

struct gw_graph_info {
	const char *name;
	uint64_t graph_id; /* the digest over all arrays: equal for equal graphs with equal parts */
	uint32_t num_parts, num_ntypes, num_etypes;
	const struct gw_type_info *ntypes, *etypes;
};

/* The graph's description; the client's memory. */
GW_API const struct gw_graph_info *gw_client_graph(const struct gw_client *client);

/* Numbers of types by name; an edge type by "src:rel:dst", or "rel" alone where that is unique. GW_NOT_FOUND lists the
 * types there are, or says that several edge types have this name. */
GW_API gw_status gw_node_type(const struct gw_client *client, const char *name, uint32_t *ntype);
GW_API gw_status gw_edge_type(const struct gw_client *client, const char *name, uint32_t *etype);

/* The ids of a node type that a part owns: [*begin, *end). GW_RANGE: no such type or part. */
GW_API gw_status gw_part_range(const struct gw_client *client, uint32_t ntype, uint32_t part, int64_t *begin,
			       int64_t *end);

/* The same of an edge type: an edge lives with its destination. */
GW_API gw_status gw_part_edge_range(const struct gw_client *client, uint32_t etype, uint32_t part, int64_t *begin,
				    int64_t *end);

/* How a part is reached, by the connection that was made last: "memory" (this process has it), "shm" (mapped from a
 * server on this host), "verbs" (by RDMA), "tcp"; NULL for a part that is none of the graph's. The library's memory. */
GW_API const char *gw_part_transport(const struct gw_client *client, uint32_t part);

/* --- Tensors. --- */

/* A feature, one row per node or edge of a type; or a tensor that changes (tensors.h). Valid while the client is open;
 * the client's memory. */
struct gw_tensor {
	const char *name; /* "feat" */
	bool of_edges;
	uint32_t type; /* its node or edge type; UINT32_MAX: rows that go with none */
	gw_dtype dtype;
	uint32_t ndim;               /* 1: a scalar per row */
	uint64_t shape[GW_DIMS_MAX]; /* shape[0]: rows, over all parts */
	uint64_t row_bytes;
	bool writable; /* it changes */
	enum gw_placement placement;
};

/* Finds the feature `name` of a type. GW_NOT_FOUND lists the features there are; GW_RANGE: no such type. A feature that
 * servers serve as rows that change (serve --mutable) is opened: it is a kept tensor (tensors.h) by the name of
 * "node/<type>/<name>" or "edge/<type>/<name>", and fails as gw_tensor_open does.
 *
 * An edge's id is its position in the graph. "orig_id" of an edge type (uint32 or int64; absent where edges have none)
 * has the row of the input that each edge was. "orig_id.inverse" (uint32 or uint64; only of a graph in one part) leads
 * back: row r has the first edge whose orig_id is r; its shape[0] is num_edges where no two edges share an id.
 * gw_tensor_at does not list it. */
GW_API gw_status gw_node_tensor(struct gw_client *client, uint32_t ntype, const char *name,
				const struct gw_tensor **out);
GW_API gw_status gw_edge_tensor(struct gw_client *client, uint32_t etype, const char *name,
				const struct gw_tensor **out);

/* The number-th tensor of the client, for listing; NULL past the end. One that is writable is to be found by its name
 * before it is used. */
GW_API const struct gw_tensor *gw_tensor_at(const struct gw_client *client, uint32_t number);

/* --- One call at a time. --- */

/* Fetches rows: out[i] = tensor[ids[i]], n rows of row_bytes, contiguous. Ids in any order, duplicates too; n = 0 is
 * allowed. GW_RANGE names the first id that is no row; GW_LIMIT: 2^32 rows or more, or rows of more than 16 MiB;
 * GW_DEADLINE, GW_PEER_LOST and others when a server cannot be asked. */
GW_API gw_status gw_gather(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			   void *out);

/* The same in the background. ids and out are the library's until gw_wait or gw_cancel has ended the ticket. A thread
 * of the client has at most 16,384 operations at once, writes apart: one more ends with GW_LIMIT. */
GW_API gw_status gw_gather_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids,
				 uint64_t n, void *out, struct gw_ticket **ticket);

/* Strings: string i is bytes[offsets[i]] up to bytes[offsets[i + 1]], without a terminator; byte for byte what the
 * input had, which is UTF-8 only if that was. */
struct gw_texts {
	uint64_t count;
	const uint64_t *offsets; /* [count + 1]: from 0, never descending */
	const char *bytes;       /* [offsets[count]] */
};

/* Strings of nodes: name is "orig_id" for the ids that they had in the input, where these were text (where they were
 * numbers, "orig_id" is a tensor). String i is that of ids[i]; ids in any order, duplicates too; n = 0 is allowed. *out
 * is the caller's, to be ended with gw_texts_free, and outlives the client. Errors as gw_gather; GW_NOT_FOUND: the type
 * has no such strings; GW_LIMIT: they have more than 4 GiB together; GW_PROTOCOL: a server's offsets make no sense. */
GW_API gw_status gw_node_texts(struct gw_client *client, uint32_t ntype, const char *name, const int64_t *ids,
			       uint64_t n, struct gw_texts **out);
GW_API void gw_texts_free(struct gw_texts *texts); /* NULL is allowed */

/* Waits up to timeout_ms for a ticket (negative: until the operation has ended, by its own limits at the latest).
 * GW_AGAIN: not done yet, it goes on; wait again, or cancel. All else is the operation's own status, GW_OK or its
 * error: the ticket is ended and freed. */
GW_API gw_status gw_wait(struct gw_ticket *ticket, int64_t timeout_ms);

/* Ends an operation and frees its ticket: when it returns, nothing writes to its outputs any more. NULL is allowed. */
GW_API void gw_cancel(struct gw_ticket *ticket);

/* Memory on huge pages that every transport can land rows in without a copy. Zeroed. NULL when out of memory. Freed
 * with the client at the latest. */
GW_API void *gw_buffer_alloc(struct gw_client *client, uint64_t bytes);
GW_API void gw_buffer_free(struct gw_client *client, void *buffer);

/* --- Mini-batches. --- */

/* Rows to fetch with each mini-batch. */
enum gw_fetch_at {
	GW_AT_INPUTS, /* for every node of the tensor's type that the batch holds: row i belongs to nodes[type][i] */
	GW_AT_SEEDS,  /* for every seed of the tensor's type, in the order of the seeds: labels */
	GW_AT_EDGES,  /* for every edge of the tensor's edge type, hop after hop, in the order of the blocks */
};

struct gw_fetch {
	const struct gw_tensor *tensor;
	enum gw_fetch_at at;
};

#define GW_ALL_NEIGHBOURS (-1)

/* What a mini-batch consists of. The arrays stay the caller's and are copied by gw_sample_start and gw_loader_open. */
struct gw_sample_spec {
	uint32_t ntype; /* of the seeds */
	uint32_t hops;  /* 1 to 16 */
	/* [hops][num_etypes]: a count up to 2^20, 0 (skip) or GW_ALL_NEIGHBOURS; hop 0 starts at the seeds. */
	const int32_t *fanouts;
	bool replace;         /* sample with replacement */
	bool wide_indices;    /* block indices as int64 instead of int32 */
	uint32_t fetch_count; /* at most 256 */
	const struct gw_fetch *fetches;
	/* The seeds are edges of edges->etype, and ntype means nothing (edges.h). NULL: they are nodes. With
	 * edge_type_count, edges is so many of them, each of another edge type: what each type's negatives are and what
	 * it excludes; the seeds are lists then (gw_sample_lists, gw_loader_options), one of each, in this order. */
	const struct gw_edge_seeds *edges;
	/* Of kinds of sampling that are to come: GW_UNSUPPORTED unless zero. */
	const char *const *weights;  /* [num_etypes]: features that draw in proportion; NULL: uniform */
	const char *const *masks;    /* [num_etypes]: features that allow an edge; NULL: all */
	const int64_t *times;        /* [n]: of the seeds; later edges do not count */
	enum gw_direction direction; /* GW_OUT: along edges instead of against them */
	uint32_t edge_type_count;    /* of edges; 0: one */
};

/* A mini-batch: everything in memory that the library owns and reuses after gw_minibatch_release. */
struct gw_minibatch {
	uint64_t epoch, step, stream; /* the loader's; gw_sample: 0, 0, its stream */
	uint64_t seed_count;
	const int64_t *seeds;      /* [seed_count]; of a batch of edges: their ids, type after type */
	const uint32_t *seed_rows; /* [seed_count]: each seed's row in nodes[its type]; equal seeds share one. Of a
				      batch of edges: NULL, see edges */
	uint32_t hops, num_ntypes;
	const struct gw_block *const *blocks; /* [hops]; blocks[0] ends at the seeds */
	const uint64_t *node_counts;          /* [num_ntypes] */
	const int64_t *const *nodes;          /* [num_ntypes][node_counts[t]]: global ids, unique */
	uint64_t edge_count;                  /* over all hops */
	uint32_t fetch_count;
	const void *const *rows;    /* [fetch_count]: the rows fetched, contiguous */
	const uint64_t *row_counts; /* [fetch_count] */
	/* The seeds by type: each list is a part of seeds, its rows the same part of seed_rows. Empty for edges. */
	uint32_t seed_list_count;
	const struct gw_seeds *seed_lists;
	const struct gw_edge_batch *edges; /* [edge_type_count]: of edges, in the order of the spec; NULL: of nodes */
	uint32_t edge_type_count;
};

/* Samples one mini-batch from n seeds, at most 2^24; none is allowed. Equal seeds share a row. The same (seed, stream,
 * seeds) and spec give the same bytes over every transport, from any number of threads. GW_RANGE names a seed that is
 * no node; GW_INVALID says what is wrong with the spec; GW_LIMIT: more seeds or nodes than a mini-batch may have;
 * GW_DEADLINE, GW_PEER_LOST and others when a server cannot be asked. */
GW_API gw_status gw_sample(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed, uint64_t stream,
			   const int64_t *seeds, uint64_t n, struct gw_minibatch **out);

/* The same in the background; *out is set when gw_wait returns GW_OK, and must be there until then. seeds and spec are
 * copied. */
GW_API gw_status gw_sample_start(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				 uint64_t stream, const int64_t *seeds, uint64_t n, struct gw_minibatch **out,
				 struct gw_ticket **ticket);

/* gw_sample with seeds of several node types: at most 4,096 lists, each of another type; spec->ntype means nothing. Or
 * with edges of several edge types: a list for each of spec->edges. What one type's edges exclude is excluded for all.
 */
GW_API gw_status gw_sample_lists(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				 uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				 struct gw_minibatch **out);
GW_API gw_status gw_sample_lists_start(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				       uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				       struct gw_minibatch **out, struct gw_ticket **ticket);

/* XXH3-64 over everything that a mini-batch holds: seeds, nodes, blocks, rows. Equal mini-batches have equal digests,
 * so two runs, transports or machines are compared by 8 bytes a batch. */
GW_API uint64_t gw_minibatch_digest(const struct gw_minibatch *minibatch);

/* Hands a mini-batch back, from any thread. Its memory is kept for the next one and freed with the client. NULL is
 * allowed. */
GW_API void gw_minibatch_release(struct gw_minibatch *minibatch);

/* --- The loader. --- */

enum gw_last_batch {
	/* Every rank gets ceil(seeds / world) seeds of an epoch in equal steps, the last of which may be short. The
	 * world * ceil(seeds / world) - seeds that are missing, less than world, are repeated from the start of the
	 * order. With one rank nothing is repeated. */
	GW_LAST_WRAP,
	GW_LAST_DROP,  /* the last step is left out, unless every rank's batch is full */
	GW_LAST_SHORT, /* the last batch may be short; with several ranks, some may have one step less than others */
};

/* Where a loader is: enough to go on from there in another process. */
struct gw_loader_state {
	uint64_t epoch, step;
	uint64_t plan; /* digest of what orders the seeds: graph, seeds, shuffle, seed, batch size, world, last; 0 as a
			  start: whatever it is */
};

struct gw_loader_options {
	struct gw_sample_spec spec;
	/* The seeds of an epoch; copied. NULL: every node of spec.ntype, or every edge of spec.edges->etype. An empty
	 * list (ids not NULL, id_count 0) is an epoch without steps. */
	const int64_t *ids;
	uint64_t id_count;
	uint32_t batch_size; /* seeds of one rank's batch, at most 2^24; 0: 1000 */
	bool shuffle;
	uint64_t seed;        /* of the shuffle and of sampling */
	uint32_t world, rank; /* 0, 0: one trainer. Global batch g = step * world + rank */
	enum gw_last_batch last;
	uint32_t depth; /* batches sampled ahead, at most 256; 0: 4. Each holds its memory */
	struct gw_loader_state start;
	/* Instead of ids: seeds of several node types, copied; a list's ids may be NULL: every node of its type. A
	 * batch has of each type what falls to it, perhaps nothing. So, too, edges of several edge types: a list for
	 * each of spec.edges. */
	const struct gw_seeds *lists;
	uint32_t list_count;
};

/* Starts sampling. The loader's batches come in order: step 0, 1, ... of an epoch, then GW_END once, then the next
 * epoch. GW_RANGE names a seed that is no node, a rank outside of the world, or a start outside of the epoch;
 * GW_INVALID says what is wrong with the spec, that there are too few seeds for one step (of all ranks), or that the
 * start is the state of a loader with another plan. */
GW_API gw_status gw_loader_open(struct gw_client *client, const struct gw_loader_options *options,
				struct gw_loader **out);

/* Steps of one epoch: the same for every rank, but with GW_LAST_SHORT this rank's own, perhaps none. */
GW_API uint64_t gw_loader_steps(const struct gw_loader *loader);

/* The next mini-batch, waiting for it up to timeout_ms (negative: until it has come or failed, by the client's limits).
 * GW_AGAIN: not there yet; nothing is lost, call again. GW_END: the epoch is over; the next call begins the next one.
 * Another error, GW_DEADLINE too, belongs to this batch, which will not come again; the next call goes on with the next
 * one. *out is NULL unless GW_OK. A batch that is held takes its memory until released, besides the `depth` that are
 * sampled ahead. A batch's deadline runs from when its sampling starts: `depth` calls before the one that returns it.
 */
GW_API gw_status gw_loader_next(struct gw_loader *loader, struct gw_minibatch **out, int64_t timeout_ms);

/* The state after the last batch that gw_loader_next returned: a loader opened with it as `start` goes on with the
 * batch after that one, byte for byte. */
GW_API void gw_loader_get_state(const struct gw_loader *loader, struct gw_loader_state *state);

/* Ends the loader: cancels the batches that it has sampled ahead, waits until nothing writes to them, and frees their
 * memory. Batches still held stay valid until released. NULL is allowed. */
GW_API void gw_loader_close(struct gw_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
