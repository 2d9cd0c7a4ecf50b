/* The state of a client, which all files of client/ share.
 *
 * The client writes these fields while it opens. Afterwards they are read-only, except the state of the engines and the
 * lists of unused batches.
 */
#ifndef GW_CLIENT_STATE_CLIENT_H
#define GW_CLIENT_STATE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <graphwire/graphwire.h>

#include "client/state/recv_buffer.h"
#include "core/graph/part.h"
#include "core/memory/deadlines.h"
#include "core/memory/vec.h"
#include "core/numbers/latency.h"
#include "protocol/catalog.h"
#include "protocol/tensor_call.h"
#include "transport/transport.h"

struct gw_batch;
struct gw_job;
struct gw_link;
struct gw_disk;
struct gw_disk_rows_of_part;
struct gw_tensor_table;
struct gw_job_slice;

#define GW_KEY_BYTES_MAX 1024
#define GW_ROW_BYTES_MAX (1u << 24) /* limit for one fetched row */

/* One server, as all engines know it. The first engine sets `catalog`, `part` and `incarnation` once, while the client
 * opens. */
struct gw_remote {
	struct gw_client *client;
	struct gw_address address;
	uint8_t key[GW_KEY_BYTES_MAX]; /* from a key file */
	/* 0: on loopback, use the key that the server left in the runtime folder, if any */
	uint32_t key_bytes;
	bool known; /* the catalog has been fetched */
	uint32_t part;
	uint64_t incarnation;
	struct gw_catalog catalog;
	/* the server has proved a key once, and must prove one on every later connection */
	atomic_bool proved;
	/* the server has rows on disk: it gives its catalog to clients that say that they know such rows */
	atomic_bool wants_disk;
	_Atomic uint32_t waited_for;     /* links that have logged that they wait for the server */
	_Atomic uint64_t back_ns;        /* when a link to the server was last reopened */
	char text[GW_ADDRESS_MAX];       /* of the address; "": this process has opened the part */
	_Atomic(const char *) transport; /* the transport that an engine used last; NULL: none yet */
	struct gw_part *local;           /* standalone: the opened part behind the server inside this process */
	struct gw_service *service;
	struct gw_listener *listener;
	struct gw_tensor_table *table;
	struct gw_disk_rows_of_part *disk_rows; /* NULL: no array stays on disk */
};

/* Where an array of one part is stored. */
struct gw_place {
	uint32_t region;
	uint32_t generation;    /* of a dynamic region, which the hello does not list; else 0 */
	uint32_t element_bytes; /* offsets and ids: 4 or 8; each part may differ. Columns of edges: a row */
	uint64_t offset;
	bool on_disk; /* in no region: rows are requested, by the array's number in the catalog and its digest */
	uint32_t array;
	uint64_t digest;
};

/* The replicas of rows in one part: core/graph/replicas.h. */
struct gw_near_place {
	struct gw_place index, rows;
	uint64_t count; /* 0: none that can be read */
};

/* Rows that can be fetched: row r of part p starts at places[p].offset + r * step. */
struct gw_rows {
	const uint64_t *starts;     /* the partition book: [num_parts + 1] */
	struct gw_place *places;    /* [num_parts] */
	struct gw_near_place *near; /* [num_parts]; NULL: no part has replicas of them */
	uint64_t step, row_bytes;   /* bytes; rows overlap where row_bytes > step */
	/* Only for mutable rows, else NULL: the epochs of the shards that store the rows, [num_parts]. A place without
	 * a generation cannot be read; its rows are requested from the server. */
	const uint64_t *epochs;
	const char *name; /* mutable rows only: the tensor's name */
	/* Mutable rows only: counts of rows that were read without a request to their owner, per part:
	 * [engine_count + 1][read_stride]. Each engine's counts have their own cache lines; only the thread that runs
	 * the engine writes them. */
	_Atomic uint64_t *read;
	uint32_t read_stride;
	bool on_disk; /* the rows of some parts are */
	bool striped; /* row i is row i / num_parts of part i % num_parts */
};

struct gw_client_tensor {
	struct gw_tensor tensor; /* must be first: callers hold a pointer to it */
	char *name;
	const struct gw_array_meta *changes; /* set for a feature that is served as a tensor; else NULL */
	uint64_t *starts;                    /* row starts, where they differ from those of the type; else NULL */
	struct gw_rows rows;
};

/* The offsets of a node type's lists in one direction. A degree record is two consecutive rows of `columns`
 * elements: offsets on disk are requested as such records. */
struct gw_node_places {
	struct gw_place *indptr; /* [num_parts]; NULL if the node type has no lists in this direction */
	uint32_t columns;
};

/* The lists of an edge type in one direction. */
struct gw_list_places {
	struct gw_place *indices; /* [num_parts]; NULL if the edge type is not stored in this direction */
	struct gw_place
		*eids;   /* [num_parts], only of out-lists: the edges' ids. An in-list's edges are numbered in order */
	uint64_t *edges; /* [num_parts]: lengths of the arrays */
};

/* The index of a node type's original ids: core/graph/id_index.h. */
struct gw_id_places {
	uint32_t form; /* enum gw_id_form */
	/* [num_parts] each, or NULL. Dense ids have nodes, other forms have entries and buckets. */
	struct gw_place *nodes, *entries, *buckets;
	uint64_t *rows, *bucket_counts;
};

enum gw_neighbour_mode { GW_NEIGHBOURS_AUTO, GW_NEIGHBOURS_READS, GW_NEIGHBOURS_REQUESTS };

/* Whether rows are fetched in the order of their addresses. */
enum gw_gather_order { GW_ADDRESS_ORDER_AUTO, GW_ADDRESS_ORDER_ALWAYS, GW_ADDRESS_ORDER_NEVER };

/* Runs operations: see engine.h. */
struct gw_engine {
	struct gw_client *client;
	uint32_t number;
	struct gw_poll_group *group;
	struct gw_link *links;             /* [server_count] */
	struct gw_link **part_links;       /* [num_parts]; only gw_engine_link reads it */
	const struct gw_adjacency **lists; /* [num_parts]: the in-lists, from gw_local_lists_of_all */
	struct gw_link *lists_link;        /* mapped, with lists of other parts; or NULL */
	struct gw_slab slab;               /* memory for replies */
	struct gw_hop *spare_hop;          /* left by the last list of in-edges, for the next one; or NULL */
	struct gw_vec buffers;             /* struct gw_buffer *: of client/rows/buffer.c, by address */
	uint32_t buffer_count;
	_Atomic(struct gw_job *) inbox; /* newest first */
	_Atomic uint32_t cancels;       /* cancel requests that the engine has not yet handled */
	struct gw_job_slice *slices;    /* of jobs that continue */
	struct gw_link *ticking;        /* links that the next run looks at: see gw_links_tick */
	struct gw_link *listening;      /* links whose ops wait for room: news of the poll group */
	struct gw_link *mapped;         /* links to mapped memory */
	uint32_t ordered_links;     /* links that are open over a transport whose reads address order makes faster */
	uint64_t news_seen;         /* gw_poll_group_news, at the last look */
	struct gw_deadlines timers; /* of links */
	struct gw_job *jobs;
	uint32_t jobs_open;
	uint32_t jobs_bounded; /* jobs that count towards GW_JOBS_MAX */
	uint64_t jobs_ended;
	uint32_t runs_to_skip;         /* how many runs need no poll if they end all jobs at once */
	_Atomic uint32_t owner;        /* 1: a thread runs the engine */
	atomic_bool watches;           /* the engine polls while it is idle: see WATCH_NS */
	bool watches_noted;            /* the engine's thread has seen `watches` */
	_Atomic uint32_t wakeups;      /* futex of the engine's thread: see engine.c */
	atomic_bool sleeps;            /* the thread sleeps, or is about to check `wakeups` and then sleep */
	_Atomic uint64_t copied_bytes; /* of rows, from memory that this process can address */
	_Atomic uint64_t ahead_bytes;  /* of rows that loaders copied from their windows instead of fetching them */
	_Atomic uint64_t cached_bytes; /* the same, of rows that they keep for an epoch */
	_Atomic uint32_t open_links;
	struct gw_job *connecting; /* lets the links connect: see gw_engine_for_call */
	bool has_thread;
	pthread_t thread;
};

struct gw_client {
	uint32_t forks; /* number of forks up to the process that opened the client */
	/* Options. */
	int64_t timeout_ms, reconnect_ms;
	uint64_t idle_ns;                  /* after so long without use a connection is closed; 0: never */
	const char *tcp_driver;            /* valid until the engines have opened */
	const struct gw_scheme *transport; /* the requested transport; NULL: the best that each server offers */
	bool insecure;
	struct gw_landing_memory memory; /* both functions, or none */
	uint64_t spin_ns;
	uint32_t queue_pairs;
	uint64_t dense_bytes_max;
	enum gw_neighbour_mode neighbours;
	enum gw_gather_order order;
	uint8_t uuid[16];
	/* The graph. */
	uint64_t graph_id; /* 0 until known */
	const struct gw_graph_meta *meta;
	/* read from part_config, or put together from the servers' catalogs; NULL until then */
	struct gw_graph_meta *own_meta;
	struct gw_graph_info info;
	struct gw_type_info *ntypes, *etypes;
	char **etype_names;
	struct gw_client_tensor *tensors; /* features first, then arrays that are found only by name */
	uint32_t tensor_count, feature_count;
	struct gw_node_places *node_places[2]; /* by direction: [num_ntypes] */
	struct gw_list_places *list_places[2]; /* by direction: [num_etypes] */
	struct gw_id_places *id_places;        /* [num_ntypes] */
	struct gw_edge_columns *edge_columns;  /* those looked up so far, newest first: client/batch/edge_columns.h */
	struct gw_node_times *node_times;      /* likewise: client/batch/node_times.h */
	pthread_mutex_t lookups_lock;          /* of both lists */
	bool standalone;                       /* this process has the parts: servers[p].local */
	bool lists_only;                       /* their features are not loaded: gw_client_open_lists */
	/* Servers and engines. */
	struct gw_remote *servers;
	uint32_t server_count;
	struct gw_remote **parts;  /* [num_parts]: the server of each part; set by gw_remotes_check */
	struct gw_engine *engines; /* [engine_count + 1]: the last is that of short calls (gw_engine_for_call) */
	uint32_t engine_count;
	_Atomic uint32_t loaders;               /* open ones */
	_Atomic uint64_t count_ns;              /* spent by loaders on counting epochs: client/batch/ahead.h */
	_Atomic uint64_t kept_rows, kept_bytes; /* that loaders fetched to keep them: client/batch/kept_rows.h */
	pthread_mutex_t short_lock;
	struct gw_job *short_connect; /* opens the links of the short calls' engine; this and the next under the lock */
	uint64_t short_retry_ns;      /* when to try that again; 0: never tried */
	_Atomic uint32_t next_engine;
	struct gw_poll_group *local_group; /* standalone: poll group of the listeners */
	struct gw_disk *disk;              /* standalone: of features on disk; or NULL */
	/* Unused batches, by engine. */
	pthread_mutex_t batches_lock;
	struct gw_batch **unused; /* [engine_count + 1] */
	/* Buffers of gw_buffer_alloc and gw_buffer_lend. */
	struct gw_client_buffer *buffers;
	void *_Atomic spare_calls[2]; /* kept by gather_call.c; [1]: of the short calls' engine */
	/* Mutable tensors. */
	char job[GW_JOB_NAME_MAX + 1];
	bool shares_job; /* the caller named the job: other clients may belong to it */
	struct gw_tensor_handles *handles;
	struct gw_row_lanes *lanes;
	struct gw_tensor_leases *leases;
	/* Mini-batches that callers got, by how long they waited. */
	struct gw_latency_counts batch_waits;
	bool scraped; /* by client/metrics.c */
};

/* Records which process opens the client. */
void gw_client_note_process(struct gw_client *client);
/* Whether this process inherited the client through a fork. The client's threads then do not exist here, its
 * connections belong to the parent, and its locks may stay locked for ever. gw_client_check fails with GW_INVALID for
 * such a client. */
bool gw_client_is_inherited(const struct gw_client *client);
gw_status gw_client_check(const struct gw_client *client);

/* The engine for the next call that is not bound to an engine: in turn, and preferably one that no thread runs, so that
 * the caller runs it. */
struct gw_engine *gw_client_engine(struct gw_client *client);

/* Fails with GW_RANGE: the id at this position of the caller's list is not below `count`. what: "id", or the kind of
 * id. */
gw_status gw_fail_id(const char *what, int64_t id, uint64_t position, uint64_t count) __attribute__((cold));

#endif
