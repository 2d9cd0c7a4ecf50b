/* Graphwire's client library samples neighbours and fetches features of a partitioned graph. The same calls read from
 * servers over the network, or from the graph's folder on this machine.
 *
 *   gw_client_open -> gw_loader_open -> { gw_loader_next -> train -> gw_minibatch_release } -> gw_loader_close
 *                  -> gw_gather, gw_sample, gw_node_texts, gw_node_ids, gw_find_edges, ... (edges.h): one call at a
 *                     time, from any thread
 *
 * Threads: any number of threads may use one client at once. Only one thread at a time may use a loader, a ticket or a
 * mini-batch.
 * Processes: a client and all objects made from it belong to the process that opened the client. After a fork the child
 * opens its own client. In the child, calls on the parent's client return GW_INVALID, and calls that close or release
 * do nothing.
 * Errors: every function that can fail returns a status. gw_last_error() then returns one line: what failed, where, and
 * what to do. Handles stay NULL on failure. After an error outputs are undefined, and the library does not write to
 * them later.
 * Time: gw_client_options has two limits.
 *   timeout_ms    Each operation (a gather, a mini-batch) has one deadline, from the call to its end, however many
 *                 requests it needs.
 *   reconnect_ms  While a server that the operation waits for is away, the deadline stands still and this budget runs
 *                 instead. A server that loads again may therefore take longer than an operation's deadline.
 * The error shows which limit expired: GW_DEADLINE for the first; for the second, the reason why the server could not
 * be reached. The client probes a server that is silent for a third of an operation's deadline. If the server does not
 * answer for as long again, the client counts it as away. Some faults end the operation within seconds, because waiting
 * does not cure them: the server has another key or another graph, or this process has no descriptors or no memory
 * left.
 * Suspension: if this process is suspended for more than a second (SIGSTOP, a frozen control group, a debugger), that
 * time counts for neither limit. The servers' lease on a job's tensors continues to run, however, and may expire during
 * the suspension.
 * Log: if the client waits for longer than a second, it logs one line, and another one when the wait ends. Lines go to
 * stderr, or to the program's own function (log.h).
 * Descriptors: gw_client_open opens /dev/null as each of the descriptors 0 to 2 that is closed. Otherwise a connection
 * could get the number, and the program's prints would end in it.
 * Ids are global: node ids count within their node type, edge ids within their edge type, both from 0.
 */
#ifndef GRAPHWIRE_H
#define GRAPHWIRE_H

#include <stdbool.h>

#include <graphwire/block.h>
#include <graphwire/checkpoint.h>
#include <graphwire/digests.h>
#include <graphwire/edges.h>
#include <graphwire/log.h>
#include <graphwire/lookahead.h>
#include <graphwire/split.h>
#include <graphwire/stats.h>
#include <graphwire/tensors.h>
#include <graphwire/trace.h>
#include <graphwire/triples.h>
#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client; /* connections, threads and the graph's description */
struct gw_loader; /* a stream of mini-batches; samples several ahead */
struct gw_ticket; /* an operation in progress */

/* --- Opening. --- */

/* Memory of the caller, into which the rows of mini-batches land: pinned memory for a GPU, for example, from which a
 * trainer copies them once.
 *
 *   acquire -> the rows of one fetch of one mini-batch land -> gw_minibatch.rows -> gw_minibatch_release -> release
 *
 * The client acquires memory for each fetch of each mini-batch that has rows, and releases it once: when the mini-batch
 * is released, or has failed; at the latest, in gw_loader_close or gw_client_close. In between the memory must stay
 * mapped at its address; after release the client does not touch it. Rows begin where the memory begins. Between the
 * two calls only transports write the memory, and the conversion and the copies of repeated ids read it; lists and
 * everything else stay in memory of the library. The bytes of a mini-batch do not depend on where it lands.
 *
 * Threads: acquire is called in the thread that samples, which is one of the client's threads or one that waits in a
 * call; release in the same threads, and in those that release mini-batches or close loaders. Both may be called by
 * several threads at once, hold none of the client's locks, and must not call functions with this client. Sampling
 * waits while acquire runs. A child process calls neither for an inherited client.
 *
 * Over RDMA a read registers memory that it does not know, for one fetch: about as long as a copy takes. Pieces of a
 * buffer of gw_buffer_alloc or gw_buffer_lend are registered once: lend a block before its first use, outside of
 * acquire, if it stays mapped. */
struct gw_landing_memory {
	/* Returns at least this many bytes (more than 0), aligned as malloc aligns them, whose contents do not matter;
	 * or NULL: these rows land in the client's own memory, as without this function. */
	void *(*acquire)(void *context, uint64_t bytes);
	/* Takes back what acquire returned for this many bytes. */
	void (*release)(void *context, void *memory, uint64_t bytes);
	void *context; /* passed to both; stays valid until gw_client_close has returned */
};

/* How to reach the graph. Zero-initialize, then set the fields that differ from the default. Only gw_client_open reads
 * the structure and its strings. If neither part_config nor servers is set, the client opens the graph of the
 * environment: GRAPHWIRE_IP_CONFIG, GRAPHWIRE_PART_CONFIG, GRAPHWIRE_KEY_FILE, GRAPHWIRE_TRANSPORT and
 * GRAPHWIRE_SPIN_US, which deploy/launch.py sets. GW_NOT_FOUND then names the variable that is missing. */
struct gw_client_options {
	/* The graph's JSON or its folder. Without servers the client is standalone and opens the parts from here. With
	 * servers this field may be NULL; otherwise the client compares this graph with the graph that the servers
	 * serve. */
	const char *part_config;
	/* Addresses ("host:port" or "[v6]:port") of one server for each part, in any order; NULL: standalone. */
	const char *const *servers;
	uint32_t server_count;
	const char *key_file; /* NULL: for servers on loopback, the key that the server left in the runtime folder; for
				 others, no key */
	uint32_t threads;     /* threads that sample and do input and output; at most 64; 0: one per processor */
	int64_t timeout_ms;   /* an operation's deadline; 0: 30,000; negative: none */
	int64_t reconnect_ms; /* how long to try to reach a server that is away; 0: 300,000; negative: no limit */
	/* Closes a connection that has carried nothing for so long; the next use opens it again. Connections to mapped
	 * memory stay open. 0 or negative: connections stay open. Useful with hundreds of servers, whose connections
	 * and memory are limited. */
	int64_t idle_ms;
	/* How remote neighbours are sampled. "reads": this client samples, by one-sided reads. "requests": the server
	 * samples. NULL or "auto": this client samples from mapped memory of servers on this host; over RDMA it uses
	 * reads, for which no code of the server runs; over TCP it uses requests. */
	const char *neighbours;
	const char *order; /* fetch rows by ascending address: NULL or "auto" (where it is faster), "always", "never" */
	const char *tcp_driver; /* NULL or "auto", "io_uring", "epoll" */
	/* How long a thread that waits for servers polls before it sleeps, at most 1 s; 0: it sleeps at once. */
	uint32_t spin_us;
	/* NULL or "auto": the client maps the memory of servers on this host and reads other servers by RDMA ("verbs"),
	 * where these are available. Otherwise, and when RDMA is lost, it uses TCP. "tcp", "shm" or "verbs": the client
	 * uses this transport for all servers, or opening fails. */
	const char *transport;
	uint32_t queue_pairs;     /* RDMA: queue pairs of each thread with each server, at most 8; 0: 2 */
	uint64_t dense_bytes_max; /* memory for one dense id map, 4 bytes for each node; each batch in flight has one
				     map; 0: 256 MiB */
	bool no_verify;           /* standalone: do not compare digests while loading */
	/* Without key_file: accept servers on loopback that prove no key ("serve --insecure"), although any user of
	 * this host may listen at such an address. Without this option the client refuses them. With or without it, the
	 * client refuses a server that has proved a key before and comes back without one. */
	bool insecure;
	/* The job whose tensors the client creates and sees: letters, digits and "._-:/+", at most 63. NULL:
	 * GRAPHWIRE_JOB of the environment, which a launcher sets for all trainers of a job. Without that variable the
	 * client has a job of its own. */
	const char *job;
	struct gw_landing_memory
		memory; /* without functions, rows land in the client's own memory; GW_INVALID: one function */
	/* Standalone: features ("feat" of any type, "paper/feat", or the array's key) whose rows stay in their files,
	 * and are read when they are fetched, through a cache of blocks. "lists": the neighbours, the ids and the
	 * columns of one number of all edges, which are read when they are drawn from. "offsets": where each node's
	 * list begins. Everything else is loaded. NULL: nothing stays. */
	const char *const *on_disk;
	uint32_t on_disk_count;
	uint64_t disk_cache; /* memory for blocks of these files, at least 1 MiB; 0: 256 MiB */
};

/* Connects to every server (or loads every part) and checks that together they are one graph. Blocks until all servers
 * are connected or all parts are loaded. Connecting takes at most the deadline; loading takes as long as it needs.
 * Errors: GW_NOT_FOUND, GW_REFUSED, GW_WRONG_GRAPH, GW_DEADLINE, GW_FORMAT, ... */
GW_API gw_status gw_client_open(const struct gw_client_options *options, struct gw_client **out);

/* Ends the client's threads and connections and frees its memory. Close its loaders, release its mini-batches and end
 * its tickets first. NULL is allowed. */
GW_API void gw_client_close(struct gw_client *client);

/* Checks that a path is a graph's JSON, or a folder that contains one; that this library can read the JSON; and that
 * its text is unchanged. Opens no array. Errors: GW_FORMAT; GW_DIGEST: the text was changed; GW_VERSION: a newer major
 * version; GW_NOT_FOUND; ... */
GW_API gw_status gw_part_config_check(const char *part_config);

/* --- The graph. --- */

/* A node type or an edge type. */
struct gw_type_info {
	const char *name;  /* "paper", or "paper:cites:paper" */
	uint64_t count;    /* nodes or edges, over all parts */
	uint32_t src, dst; /* edge types: their node types */
	/* Edge types: the edge type with the same edges in the opposite direction. A type that has each edge in both
	 * directions is its own reverse. UINT32_MAX: the graph names no reverse. */
	uint32_t reverse;
	bool by_source; /* edge types: also stored by source, so that out-edges can be listed (edges.h) */
};

struct gw_graph_info {
	const char *name;
	uint64_t graph_id; /* the digest over all arrays: equal for equal graphs with equal parts */
	uint32_t num_parts, num_ntypes, num_etypes;
	const struct gw_type_info *ntypes, *etypes;
};

/* The graph's description. The client owns it. */
GW_API const struct gw_graph_info *gw_client_graph(const struct gw_client *client);

/* Finds the number of a type by its name. An edge type's name is "src:rel:dst", or "rel" alone where that is unique.
 * GW_NOT_FOUND lists the existing types, or reports that several edge types have this name. */
GW_API gw_status gw_node_type(const struct gw_client *client, const char *name, uint32_t *ntype);
GW_API gw_status gw_edge_type(const struct gw_client *client, const char *name, uint32_t *etype);

/* The ids of a node type that a part owns: [*begin, *end). GW_RANGE: the type or the part does not exist. */
GW_API gw_status gw_part_range(const struct gw_client *client, uint32_t ntype, uint32_t part, int64_t *begin,
			       int64_t *end);

/* The ids of an edge type that a part owns: [*begin, *end). The part that owns an edge's destination owns the edge. */
GW_API gw_status gw_part_edge_range(const struct gw_client *client, uint32_t etype, uint32_t part, int64_t *begin,
				    int64_t *end);

/* The transport of the most recent connection to a part: "memory" (this process has loaded the part), "shm" (mapped
 * from a server on this host), "verbs" (RDMA) or "tcp". NULL for a part that does not exist. The library owns the
 * string. */
GW_API const char *gw_part_transport(const struct gw_client *client, uint32_t part);

/* --- Tensors. --- */

/* A feature, with one row per node or edge of a type; or a tensor that changes (tensors.h). The client owns it; it is
 * valid while the client is open. */
struct gw_tensor {
	const char *name; /* "feat" */
	bool of_edges;
	uint32_t type; /* its node or edge type; UINT32_MAX: its rows belong to no type */
	gw_dtype dtype;
	uint32_t ndim;               /* 1: a scalar per row */
	uint64_t shape[GW_DIMS_MAX]; /* shape[0]: rows, over all parts */
	uint64_t row_bytes;
	bool writable; /* it is a tensor that changes */
	enum gw_placement placement;
	const char *
		unit; /* times since 1970, in "D", "s", "ms", "us" or "ns", as NumPy names units; NULL: plain numbers */
	gw_dtype original; /* the type of the rows before they were stored narrow ("partition --store"); else dtype */
	uint64_t numbers; /* of a row: the product of shape[1:]; an int8_row's scale, offset and padding do not count */
};

/* Rows can be fetched in another type than they are stored in: float32, float16, bfloat16, float64 and int8_row as
 * GW_FLOAT32, GW_FLOAT16, GW_BFLOAT16 or GW_FLOAT64; and uint32 as GW_INT64. Rounding is to nearest, ties to even,
 * once; numbers that are too large become infinite; NaN stays NaN. The bits are the same on every machine and over
 * every transport, and fewer bytes travel than arrive. int8_row: number i is scale * int8[i] + offset, in float32.
 *
 * Returns the bytes of a row in this type; 0: rows cannot be fetched in it. convert 0: as they are stored. */
GW_API uint64_t gw_converted_bytes(const struct gw_tensor *tensor, gw_dtype convert);

/* Finds the feature `name` of a type. GW_NOT_FOUND lists the existing features; GW_RANGE: the type does not exist.
 * Servers may serve a feature as rows that change (serve --mutable). The call then opens a kept tensor (tensors.h)
 * named "node/<type>/<name>" or "edge/<type>/<name>", with the errors of gw_tensor_open.
 *
 * An edge's id is its position in the graph. Two tensors of an edge type lead from ids to the input and back:
 *   orig_id          row i is the input's row (or id) of edge i; uint32 or int64; absent if the edges have none
 *   orig_id.inverse  row r is the first edge whose orig_id is r; uint32 or uint64; absent if an id is left out. Its
 *                    shape[0] is num_edges if no two edges share an orig_id. gw_tensor_at does not list it.
 * NAME.source is the node feature NAME of the edges' sources, if parts store it ("graphwire partition --time NAME").
 * gw_tensor_at does not list it. */
GW_API gw_status gw_node_tensor(struct gw_client *client, uint32_t ntype, const char *name,
				const struct gw_tensor **out);
GW_API gw_status gw_edge_tensor(struct gw_client *client, uint32_t etype, const char *name,
				const struct gw_tensor **out);

/* Finds the times that `name` means for the edges of a type: its feature of this name, or else NAME.source. *out: a
 * tensor whose name gw_edge_rule.time and gw_edge_rule.end take; NULL: the edges have no such times. A tensor of
 * another form than times is found too; a draw by it fails. GW_NOT_FOUND: the sources have the feature, and the parts
 * do not store it with the edges; GW_RANGE: the type does not exist. */
GW_API gw_status gw_edge_times(struct gw_client *client, uint32_t etype, const char *name,
			       const struct gw_tensor **out);

/* The number-th tensor of the client, for listing; NULL past the end. Before a writable tensor is used, find it by its
 * name. */
GW_API const struct gw_tensor *gw_tensor_at(const struct gw_client *client, uint32_t number);

/* --- One call at a time. --- */

/* Fetches rows: out[i] = tensor[ids[i]], n rows of row_bytes, contiguous. Ids may be in any order and may repeat; n = 0
 * is allowed. Errors:
 *   GW_RANGE                  names the first id that is no row
 *   GW_LIMIT                  2^32 rows or more, or rows of more than 16 MiB
 *   GW_DEADLINE, GW_PEER_LOST and others, when a server cannot answer */
GW_API gw_status gw_gather(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			   void *out);

/* Starts gw_gather in the background. ids and out belong to the library until gw_wait or gw_cancel has ended the
 * ticket. A thread of the client runs at most 16,384 operations at once, not counting writes; one more ends with
 * GW_LIMIT. */
GW_API gw_status gw_gather_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids,
				 uint64_t n, void *out, struct gw_ticket **ticket);

/* The same with rows in another type (gw_converted_bytes): n rows of that many bytes, contiguous. convert 0: gw_gather.
 * GW_UNSUPPORTED: rows cannot be fetched in this type. */
GW_API gw_status gw_gather_as(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert,
			      const int64_t *ids, uint64_t n, void *out);
GW_API gw_status gw_gather_as_start(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert,
				    const int64_t *ids, uint64_t n, void *out, struct gw_ticket **ticket);

/* Strings: string i is bytes[offsets[i]] up to bytes[offsets[i + 1]], without a terminator. The bytes are the input's,
 * so they are UTF-8 only if the input was. */
struct gw_texts {
	uint64_t count;
	const uint64_t *offsets; /* [count + 1]: the first is 0; never descending */
	const char *bytes;       /* [offsets[count]] */
};

/* Fetches strings of nodes: string i belongs to ids[i]. The name "orig_id" selects the nodes' ids in the input, if the
 * input had text ids (if it had numbers, "orig_id" is a tensor). The name "NAME.names" selects the names of the values
 * of a feature NAME, such as categories; ids are then values. Ids may be in any order and may repeat; n = 0 is allowed.
 * The caller owns *out and frees it with gw_texts_free; *out outlives the client. Errors: those of gw_gather;
 * GW_NOT_FOUND: the type has no such strings; GW_LIMIT: more than 4 GiB of strings; GW_PROTOCOL: a server sent invalid
 * offsets. */
GW_API gw_status gw_node_texts(struct gw_client *client, uint32_t ntype, const char *name, const int64_t *ids,
			       uint64_t n, struct gw_texts **out);
/* As gw_node_texts, for an edge type, which has names of values only: "rel.names" selects the names of relations, and
 * "NAME.names" those of the values of a feature NAME. */
GW_API gw_status gw_edge_texts(struct gw_client *client, uint32_t etype, const char *name, const int64_t *ids,
			       uint64_t n, struct gw_texts **out);
GW_API void gw_texts_free(struct gw_texts *texts); /* NULL is allowed */

/* Original ids: the ids that nodes have in the input. Either numbers of dtype, or texts. */
struct gw_orig_ids {
	uint64_t count;
	gw_dtype dtype;          /* of numbers: GW_INT32, GW_INT64, GW_UINT32 or GW_UINT64 */
	const void *numbers;     /* [count], or NULL */
	const uint64_t *offsets; /* texts: [count + 1], never descending; text i is bytes[offsets[i]] up to
				    bytes[offsets[i + 1]]. NULL: the ids are numbers */
	const char *bytes;
};

/* Finds nodes of a type by their original ids: nodes[i] is the node whose original id is id i; ids may repeat. Ids are
 * compared as they are: the text "007" is not "7", and no text is a number. *missing: how many ids belong to no node;
 * their nodes[i] is -1. With missing NULL, such ids are an error. The parts of the graph divide an index of the ids
 * (docs/FORMAT.md), so each id takes part of one request to one server. Errors: those of gw_gather;
 *   GW_NOT_FOUND    missing is NULL and ids belong to no node: names the first ones
 *   GW_INVALID      an id belongs to several nodes: names it; or the graph's ids are texts and these are numbers, or
 *                   the other way round
 *   GW_UNSUPPORTED  the graph has no index, because an older version made it
 *   GW_PROTOCOL     a server answered with nodes that do not exist */
GW_API gw_status gw_node_ids(struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids, int64_t *nodes,
			     uint64_t *missing);

/* Starts gw_node_ids in the background. The arrays of ids, nodes and *missing belong to the library until gw_wait or
 * gw_cancel has ended the ticket; the structure itself does not. */
GW_API gw_status gw_node_ids_start(struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids,
				   int64_t *nodes, uint64_t *missing, struct gw_ticket **ticket);

/* Waits up to timeout_ms for a ticket. A negative timeout waits until the operation has ended, at the latest by its own
 * limits. GW_AGAIN: the operation goes on; wait again, or cancel it. Any other status is the operation's result (GW_OK
 * or its error); gw_wait has then ended and freed the ticket. */
GW_API gw_status gw_wait(struct gw_ticket *ticket, int64_t timeout_ms);

/* Ends an operation and frees its ticket. After the return no thread writes to the operation's outputs. NULL is
 * allowed. */
GW_API void gw_cancel(struct gw_ticket *ticket);

/* Allocates zeroed memory on huge pages, into which every transport writes rows without a copy. Returns NULL if memory
 * runs out. gw_client_close frees buffers that remain. */
GW_API void *gw_buffer_alloc(struct gw_client *client, uint64_t bytes);

/* The same for memory of the caller, which stays mapped at its address until gw_buffer_free or gw_client_close has
 * returned: for the blocks of a pool that gw_client_options.memory takes from, for example. The memory stays the
 * caller's. Over RDMA the first read into it registers it, once. Errors:
 *
 *   GW_INVALID    no memory, no bytes, or memory that overlaps another buffer of this client
 *   GW_NO_MEMORY  memory runs out */
GW_API gw_status gw_buffer_lend(struct gw_client *client, void *memory, uint64_t bytes);

/* Frees a buffer of gw_buffer_alloc; forgets memory of gw_buffer_lend. No operation may use it. Anything else, NULL
 * included, is ignored. */
GW_API void gw_buffer_free(struct gw_client *client, void *buffer);

/* --- Mini-batches. --- */

/* Rows to fetch with each mini-batch. */
enum gw_fetch_at {
	GW_AT_INPUTS, /* for every node of the tensor's type in the batch: row i belongs to nodes[type][i] */
	GW_AT_SEEDS,  /* for every seed of the tensor's type, in the order of the seeds; labels, for example */
	GW_AT_EDGES,  /* for every edge of the tensor's edge type, hop after hop, in the order of the blocks */
};

struct gw_fetch {
	const struct gw_tensor *tensor;
	enum gw_fetch_at at;
	gw_dtype convert; /* the type of the fetched rows (gw_converted_bytes); 0: as they are stored */
};

#define GW_ALL_NEIGHBOURS (-1)

/* The destinations of a hop. */
enum gw_frontier_mode {
	GW_FRONTIER_ALL, /* all nodes of the batch so far, as DGL's blocks have them */
	GW_FRONTIER_NEW, /* the nodes that the previous hop added, as PyG samples: every node is expanded once. The
			    edges of a block then belong to nodes from dst_first on (block.h) */
};

/* The contents of a mini-batch. The caller owns the arrays; gw_sample_start and gw_loader_open copy them. */
struct gw_sample_spec {
	uint32_t ntype; /* node type of the seeds */
	uint32_t hops;  /* 1 to GW_HOPS_MAX */
	/* [hops][num_etypes]: a count up to 2^20, 0 (skip) or GW_ALL_NEIGHBOURS; hop 0 starts at the seeds. */
	const int32_t *fanouts;
	bool replace;         /* sample with replacement */
	bool wide_indices;    /* block indices as int64 instead of int32 */
	uint32_t fetch_count; /* at most 256 */
	const struct gw_fetch *fetches;
	/* Seeds that are edges of edges->etype (edges.h); ntype is then ignored. NULL: the seeds are nodes. If
	 * edge_type_count is set, edges is an array of that length, each element with another edge type, its own
	 * negatives and its own exclusions. The seeds are then lists (gw_sample_lists, gw_loader_options), one for each
	 * element, in the same order. */
	const struct gw_edge_seeds *edges;
	/* [num_etypes]: how each edge type is drawn from (edges.h); NULL: all uniformly. */
	const struct gw_edge_rule *rules;
	enum gw_frontier_mode frontier; /* the nodes for which a hop draws */
	uint32_t edge_type_count;       /* length of edges; 0: one */
	struct gw_held_out *held_out;   /* edges that no batch samples (edges.h); NULL: none */
	bool sampled_edges;             /* gw_minibatch.sampled */
	bool wide_rows; /* fetched rows of uint32 are returned as int64, without a `convert` of their own */
	/* Every seed is a group of its own: the trees of different seeds share no node, and equal seeds get independent
	 * draws. If the seeds are edges, every end and every negative is a seed. A spec whose rules have a time is
	 * always disjoint, and at every hop the time of the group's seed holds. */
	bool disjoint;
	bool real_times;   /* gw_seeds.times are double; else int64_t */
	bool strict_times; /* a seed sees the edges before its time; else those at its time too */
	/* The batch has no ids of edges: gw_block_edges.edge_ids and gw_sampled_edges.ids are NULL. Sampling is faster,
	 * and servers send half the bytes for each edge. All else has the same bytes. Not with fetches at GW_AT_EDGES.
	 * Edges that are excluded or held out are dropped all the same. */
	bool no_edge_ids;
};

/* A mini-batch. The library owns its memory, and reuses it after gw_minibatch_release; rows may be in memory of
 * gw_client_options.memory. */
struct gw_minibatch {
	uint64_t epoch, step, stream; /* a loader's; gw_sample sets 0, 0 and its stream */
	uint64_t seed_count;
	const int64_t *seeds;      /* [seed_count]; in a batch of edges: edge ids, type after type */
	const uint32_t *seed_rows; /* [seed_count]: each seed's row in nodes[its type]; equal seeds share a row, but not
				      in a disjoint batch. NULL in a batch of edges; see edges */
	uint32_t hops, num_ntypes;
	const struct gw_block *const *blocks; /* [hops]; the destinations of blocks[0] are the seeds; in a batch of
						 edges, their ends and negatives */
	const uint64_t *node_counts;          /* [num_ntypes]: lengths of nodes[t] */
	const int64_t *const *nodes;          /* [num_ntypes][node_counts[t]]: global ids; unique, in a disjoint batch
						 within a group */
	uint64_t edge_count;                  /* over all hops */
	uint32_t fetch_count;
	const void *const *rows;    /* [fetch_count]: the rows fetched, contiguous */
	const uint64_t *row_counts; /* [fetch_count] */
	/* The seeds by type. The ids of each list are a range of `seeds`, and the same range of seed_rows has their
	 * rows. If the seeds are edges, no list exists. */
	uint32_t seed_list_count;
	const struct gw_seeds *seed_lists;
	const struct gw_edge_batch *edges; /* [edge_type_count], in the spec's order; NULL: the seeds are nodes */
	uint32_t edge_type_count;
	const struct gw_sampled_edges *sampled; /* [number of edge types], if the spec has sampled_edges, else NULL */
	/* In a disjoint batch, else NULL: [num_ntypes][node_counts[t]]: the group of each node. Groups are the seeds in
	 * their order, 0 to group_count - 1. In a batch of edges they are, type after type: the sources of the edges,
	 * their destinations, and the negatives in the order of negative_rows. */
	const uint32_t *const *groups;
	uint64_t group_count;
	/* [seed_count]: the times of the seeds, int64_t or double; NULL: they have none. */
	const void *seed_times;
};

/* Samples one mini-batch from n seeds, 0 to 2^24. Equal seeds share a row, unless the batch is disjoint. The same seed,
 * stream, seeds and spec give the same bytes over every transport, from any number of threads. While the client has a
 * loader, calls of at most 64 seeds, and gathers of at most 1,024 rows, have connections of their own. They do not wait
 * for the loader's mini-batches. Errors:
 *   GW_RANGE                names a seed that is no node
 *   GW_INVALID              names the fault in the spec
 *   GW_LIMIT                more seeds or nodes than a mini-batch may have
 *   GW_DEADLINE, GW_PEER_LOST and others, when a server cannot answer */
GW_API gw_status gw_sample(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed, uint64_t stream,
			   const int64_t *seeds, uint64_t n, struct gw_minibatch **out);

/* Starts gw_sample in the background. The library writes *out when gw_wait returns GW_OK, so out must stay valid until
 * then. The call copies seeds and spec. */
GW_API gw_status gw_sample_start(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				 uint64_t stream, const int64_t *seeds, uint64_t n, struct gw_minibatch **out,
				 struct gw_ticket **ticket);

/* Samples like gw_sample, with lists of seeds. For nodes: at most 4,096 lists, each of another node type; spec->ntype
 * is ignored. For edges: one list for each element of spec->edges. An edge that one element of spec->edges excludes is
 * excluded for all of them. */
GW_API gw_status gw_sample_lists(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				 uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				 struct gw_minibatch **out);
GW_API gw_status gw_sample_lists_start(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				       uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				       struct gw_minibatch **out, struct gw_ticket **ticket);

/* Returns the XXH3-64 over all contents of a mini-batch: seeds, nodes, blocks (with ids of edges, if it has them),
 * rows. Equal mini-batches have equal digests, so 8 bytes a batch suffice to compare two runs, transports or machines.
 */
GW_API uint64_t gw_minibatch_digest(const struct gw_minibatch *minibatch);

/* Returns a mini-batch to the library, from any thread. The library keeps its memory for the next mini-batch, and frees
 * it with the client. NULL is allowed. */
GW_API void gw_minibatch_release(struct gw_minibatch *minibatch);

/* --- The loader. --- */

enum gw_last_batch {
	/* Every rank gets ceil(seeds / world) seeds of an epoch, in equal steps; the last step may be short. If this
	 * needs more seeds than the epoch has, the first seeds of the order repeat: world * ceil(seeds / world) - seeds
	 * of them, fewer than world. With one rank no seed repeats. */
	GW_LAST_WRAP,
	GW_LAST_DROP,  /* the last step is omitted, unless every rank's batch is full */
	GW_LAST_SHORT, /* the last batch may be short; with several ranks, some may have one step fewer than others */
};

/* A loader's position: enough to continue from it in another process. */
struct gw_loader_state {
	uint64_t epoch, step;
	uint64_t plan; /* digest of everything that determines the order of the seeds: graph, seeds, their times,
			  shuffle, seed, batch size, world, last; in `start`, 0 accepts any plan */
};

struct gw_loader_options {
	struct gw_sample_spec spec;
	/* The seeds of an epoch; copied. NULL: every node of spec.ntype, or every edge of spec.edges->etype. An empty
	 * list (ids not NULL, id_count 0) is an epoch without steps. */
	const int64_t *ids;
	uint64_t id_count;
	uint32_t batch_size; /* seeds of one rank's batch, at most 2^24; 0: 1000 */
	bool shuffle;
	uint64_t seed;        /* for the shuffle and for sampling */
	uint32_t world, rank; /* 0, 0: one trainer. Global batch g = step * world + rank */
	enum gw_last_batch last;
	uint32_t depth; /* batches sampled ahead, at most 256; 0: 4. Each takes memory */
	struct gw_loader_state start;
	/* Instead of ids: lists of seeds of several node types, which the call copies. A list whose ids are NULL has
	 * every node of its type; its times, if it has any, are one for each node. A batch may have seeds of several
	 * types, and may have none of some types. For edges of several edge types: one list for each element of
	 * spec.edges. */
	const struct gw_seeds *lists;
	uint32_t list_count;
	/* How many batches a row serves that was fetched from a server: its own and the next lookahead - 1. Those of
	 * them that need the row copy it from memory of the loader, which has the fetched rows of up to depth +
	 * lookahead - 1 batches. At most the depth; 0 or 1: each batch fetches all of its rows. No batch's bytes
	 * differ. Rows that change are fetched for each batch; rows in memory that this process can address are copied
	 * from there. */
	uint32_t lookahead;
	/* Memory for rows of servers that the loader keeps for an epoch: those that its batches use most, each of which
	 * is then fetched once. At an epoch's start, a thread samples its batches without rows and counts, which takes
	 * about the time that sampling takes; the batches of the epoch wait for their rows until then. The log says
	 * what it took and what the rows save, and gw_client_stats has the sums. 0: none. client/batch/kept_rows.h has
	 * the rule. */
	uint64_t cache_bytes;
	/* How many batches of each epoch are counted: the first ones; 0: all. Fewer cost less time, and find fewer of
	 * the rows that pay. */
	uint64_t cache_batches;
};

/* Starts sampling. The loader returns the batches in order: step 0, 1, ... of an epoch, then GW_END once, then the next
 * epoch. Errors:
 *   GW_RANGE    names a seed that is no node, a rank outside of the world, a lookahead above the depth, or a start
 *               outside of the epoch
 *   GW_INVALID  names the fault in the spec; or: too few seeds for one step of all ranks; or: the start is the state of
 *               a loader with another plan */
GW_API gw_status gw_loader_open(struct gw_client *client, const struct gw_loader_options *options,
				struct gw_loader **out);

/* The steps of one epoch, equal for all ranks. With GW_LAST_SHORT: this rank's own steps, which may be 0. */
GW_API uint64_t gw_loader_steps(const struct gw_loader *loader);

/* Waits up to timeout_ms for the next mini-batch. A negative timeout waits until the batch has come or failed, by the
 * client's limits. *out is NULL unless the status is GW_OK.
 *   GW_AGAIN       the batch is not ready; nothing is lost, call again
 *   GW_END         the epoch is over; the next call begins the next epoch
 *   GW_DEADLINE, GW_PEER_LOST, GW_REFUSED, GW_STALE, GW_WRONG_GRAPH, GW_PROTOCOL, GW_VERSION
 *                  a server did not answer as it should. The next call tries the same batch again, and the batches
 *                  after it follow in order. Once the server is back, the epoch has lost no batch and no byte differs
 *   GW_INVALID     the client belongs to the process that forked this one
 *   another error  this batch has failed and will not come again; the next call returns the batch after it
 * A batch takes memory until its release, in addition to the `depth` batches that are sampled ahead. A batch's deadline
 * runs from the start of its sampling: `depth` calls before the call that returns it. With look-ahead, it stands still
 * while the batch waits for rows that another batch fetches. */
GW_API gw_status gw_loader_next(struct gw_loader *loader, struct gw_minibatch **out, int64_t timeout_ms);

/* The position after the last batch that gw_loader_next returned. A loader opened with it as `start` continues with the
 * following batch, byte for byte. */
GW_API void gw_loader_get_state(const struct gw_loader *loader, struct gw_loader_state *state);

/* Closes the loader: cancels the batches sampled ahead, waits until no thread writes to them, and frees their memory.
 * Batches that the caller has not released stay valid until their release. NULL is allowed. */
GW_API void gw_loader_close(struct gw_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
