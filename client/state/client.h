/* What a client consists of: shared by the files of this folder.
 *
 * Everything here is written while the client opens, and read-only afterwards but for the engines' own state and
 * the lists of unused batches.
 */
#ifndef GW_CLIENT_STATE_CLIENT_H
#define GW_CLIENT_STATE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <graphwire/graphwire.h>

#include "client/state/recv_buffer.h"
#include "core/graph/part.h"
#include "core/memory/vec.h"
#include "protocol/catalog.h"
#include "protocol/tensor_call.h"
#include "transport/transport.h"

struct gw_batch;
struct gw_job;
struct gw_link;
struct gw_tensor_table;

#define GW_KEY_BYTES_MAX 1024
#define GW_ROW_BYTES_MAX (1u << 24) /* of one row that is fetched */

/* One server, as all engines know it. `catalog`, `part` and `incarnation` are set once, by the first engine, while the
 * client opens. */
struct gw_remote {
	struct gw_client *client;
	struct gw_address address;
	uint8_t key[GW_KEY_BYTES_MAX]; /* from a key file */
	uint32_t key_bytes;            /* 0: on loopback, what the server left in the runtime folder, if anything */
	bool known;                    /* the catalog has been fetched */
	uint32_t part;
	uint64_t incarnation;
	struct gw_catalog catalog;
	atomic_bool proved;          /* it has proved a key once, and must do so ever after */
	_Atomic uint32_t waited_for; /* links that have said that they wait for it */
	_Atomic uint64_t back_ns;    /* when a link was open again last */
	_Atomic(const char *) way;   /* the transport that an engine reached it by last; NULL: not yet */
	struct gw_part *local;       /* standalone: the opened part behind the server of this process */
	struct gw_service *service;
	struct gw_listener *listener;
	struct gw_tensor_table *table;
};

/* Where an array of one part lies. */
struct gw_place {
	uint32_t region;
	uint32_t generation;    /* of a region that the hello does not tell of; else 0 */
	uint32_t element_bytes; /* offsets and ids: 4 or 8, part by part */
	uint64_t offset;
};

/* Rows that can be fetched: row r of part p starts at places[p].offset + r * step. */
struct gw_rows {
	const uint64_t *starts;   /* the book: [num_parts + 1] */
	struct gw_place *places;  /* [num_parts] */
	uint64_t step, row_bytes; /* bytes; rows overlap where row_bytes > step */
	/* Rows that change: the births of the shards that have them, [num_parts]; a place without a generation is none,
	 * such rows are asked for. Else NULL. */
	const uint64_t *epochs;
	const char *name; /* likewise: the tensor's */
	/* Likewise: rows that were read without their owner seeing it, [engine_count][read_stride], of each part. An
	 * engine's lie in cache lines of their own, and who runs it alone writes them. */
	_Atomic uint64_t *read;
	uint32_t read_stride;
	bool striped; /* row i is row i / num_parts of part i % num_parts */
};

struct gw_client_tensor {
	struct gw_tensor tensor; /* first: what callers hold */
	char *name;
	const struct gw_array_meta *changes; /* a feature that is served as a tensor; NULL: it is not */
	uint64_t starts[2];                  /* of rows, where these are other ones than the type's */
	struct gw_rows rows;
};

/* The offsets of a node type: a degree record is two neighbouring rows of `columns` elements. */
struct gw_node_places {
	struct gw_place *indptr; /* [num_parts]; NULL where no edge type ends */
	uint32_t columns;
};

enum gw_neighbour_mode { GW_NEIGHBOURS_AUTO, GW_NEIGHBOURS_READS, GW_NEIGHBOURS_REQUESTS };

/* Whether rows are fetched in the order of their addresses. */
enum gw_gather_order { GW_ADDRESS_ORDER_AUTO, GW_ADDRESS_ORDER_ALWAYS, GW_ADDRESS_ORDER_NEVER };

/* What runs operations: see engine.h. */
struct gw_engine {
	struct gw_client *client;
	uint32_t number;
	struct gw_poll_group *group;
	struct gw_link *links;             /* [server_count] */
	struct gw_link **part_links;       /* [num_parts]: gw_engine_link's alone */
	const struct gw_adjacency **lists; /* [num_parts]: of gw_local_lists_of_all */
	struct gw_slab slab;               /* what replies land in */
	struct gw_hop *spare_hop;          /* of the last list of in-edges, for the next; or NULL */
	struct gw_vec buffers;             /* struct gw_buffer *: gw_buffer_alloc's, by address */
	uint32_t buffer_count;
	_Atomic(struct gw_job *) inbox; /* newest first */
	_Atomic uint32_t cancels;       /* wishes not yet told */
	struct gw_job *jobs;
	uint32_t jobs_open;
	uint32_t jobs_bounded; /* those that GW_JOBS_MAX is about */
	uint64_t jobs_ended;
	_Atomic uint32_t owner;   /* 1: somebody runs it */
	atomic_bool watches;      /* it looks while it is idle: see WATCH_NS */
	bool watches_noted;       /* its thread knows */
	_Atomic uint32_t wakeups; /* futex of the engine's thread */
	atomic_bool sleeps;       /* that thread does, or is about to look at wakeups and then to sleep */
	atomic_bool stop;
	bool has_thread;
	pthread_t thread;
};

struct gw_client {
	uint32_t forks; /* of this process and those before it, when the client was opened */
	/* Options. */
	int64_t timeout_ms, reconnect_ms;
	const char *tcp_driver;            /* until the engines have opened */
	const struct gw_scheme *transport; /* the way that servers are reached by; NULL: the best that each offers */
	bool insecure;
	uint64_t spin_ns;
	uint32_t queue_pairs;
	uint64_t dense_bytes_max;
	enum gw_neighbour_mode neighbours;
	enum gw_gather_order order;
	uint8_t uuid[16];
	/* The graph. */
	uint64_t graph_id; /* 0 until known */
	const struct gw_graph_meta *meta;
	struct gw_graph_meta *own_meta; /* read from part_config; else meta is the first catalog's */
	struct gw_graph_info info;
	struct gw_type_info *ntypes, *etypes;
	char **etype_names;
	struct gw_client_tensor *tensors; /* features, then arrays that are found by name only */
	uint32_t tensor_count, feature_count;
	struct gw_node_places *node_places; /* [num_ntypes] */
	struct gw_place **indices;          /* [num_etypes][num_parts] */
	/* Lists that this process can address, by part: [num_parts] arrays of [num_etypes], or NULL. */
	const struct gw_adjacency **adjacencies;
	/* Servers and engines. */
	struct gw_remote *servers;
	uint32_t server_count;
	struct gw_engine *engines;
	uint32_t engine_count;
	_Atomic uint32_t next_engine;
	struct gw_poll_group *local_group; /* standalone: the listeners' */
	/* Batches that are not in use, by engine. */
	pthread_mutex_t batches_lock;
	struct gw_batch **unused; /* [engine_count] */
	/* Buffers of gw_buffer_alloc. */
	struct gw_client_buffer *buffers;
	void *_Atomic spare_call; /* of gather_call.c */
	/* Tensors that change. */
	char job[GW_JOB_NAME_MAX + 1];
	bool shares_job; /* it was given: other clients may be of it */
	struct gw_tensor_handles *handles;
	struct gw_row_lanes *lanes;
	struct gw_tensor_leases *hold;
};

/* Notes which process opens the client. */
void gw_client_note_process(struct gw_client *client);
/* Whether this process has the client from one that forked: its threads are not here, its connections are the other's,
 * and its locks may be held by nobody. gw_client_check makes an error of it: GW_INVALID. */
bool gw_client_is_inherited(const struct gw_client *client);
gw_status gw_client_check(const struct gw_client *client);

/* The engine for the next lone call. */
struct gw_engine *gw_client_engine(struct gw_client *client);

/* GW_RANGE: the id at a position of what the caller gave is none of `count`. what: "id", or what it is the id of. */
gw_status gw_fail_id(const char *what, int64_t id, uint64_t position, uint64_t count) __attribute__((cold));

#endif
