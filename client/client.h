/* What a client consists of: shared by the files of this folder.
 *
 * Everything here is written while the client opens, and read-only afterwards but for the engines' own state and
 * the lists of unused batches.
 */
#ifndef GW_CLIENT_CLIENT_H
#define GW_CLIENT_CLIENT_H

#include <pthread.h>

#include <graphwire/graphwire.h>

#include "client/engine.h"
#include "core/graph/part.h"
#include "protocol/catalog.h"

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
};

/* Where an array of one part lies. */
struct gw_place {
	uint32_t region;
	uint32_t element_bytes; /* offsets and ids: 4 or 8, part by part */
	uint64_t offset;
};

/* Rows that can be fetched: row r of part p starts at places[p].offset + r * step. */
struct gw_rows {
	const uint64_t *starts;   /* the book: [num_parts + 1] */
	struct gw_place *places;  /* [num_parts] */
	uint64_t step, row_bytes; /* bytes; rows overlap where row_bytes > step */
};

struct gw_client_tensor {
	struct gw_tensor tensor; /* first: what callers hold */
	char *name;
	struct gw_rows rows;
};

/* The offsets of a node type: a degree record is two neighbouring rows of `columns` elements. */
struct gw_node_places {
	struct gw_place *indptr; /* [num_parts]; NULL where no edge type ends */
	uint32_t columns;
};

enum gw_neighbour_way { GW_NEIGHBOURS_AUTO, GW_NEIGHBOURS_READS, GW_NEIGHBOURS_REQUESTS };

/* Whether rows are fetched in the order of their addresses. */
enum gw_gather_order { GW_ADDRESS_ORDER_AUTO, GW_ADDRESS_ORDER_ALWAYS, GW_ADDRESS_ORDER_NEVER };

/* How servers are reached: the best that they offer, or one way alone. */
enum gw_client_transport { GW_REACH_AUTO, GW_REACH_TCP, GW_REACH_SHM, GW_REACH_VERBS };

struct gw_batch;

struct gw_client {
	uint32_t forks; /* of this process and those before it, when the client was opened */
	/* Options. */
	int64_t timeout_ms, reconnect_ms;
	const char *tcp_driver;
	enum gw_client_transport transport;
	bool insecure;
	uint64_t spin_ns;
	uint32_t queue_pairs;
	uint64_t dense_bytes_max;
	enum gw_neighbour_way neighbours;
	enum gw_gather_order order;
	uint8_t uuid[16];
	/* The graph. */
	uint64_t graph_id; /* 0 until known */
	const struct gw_graph_meta *meta;
	struct gw_graph_meta *own_meta; /* read from part_config; else meta is the first catalog's */
	struct gw_graph_info info;
	struct gw_type_info *ntypes, *etypes;
	char **etype_names;
	struct gw_client_tensor *tensors;
	uint32_t tensor_count;
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
	void *_Atomic spare_call; /* of client/call.c */
};

/* client/open.c: whether this process has the client from one that forked: its threads are not here, its connections
 * are the other's, and its locks may be held by nobody. gw_client_check makes an error of it: GW_INVALID. */
bool gw_client_is_inherited(const struct gw_client *client);
gw_status gw_client_check(const struct gw_client *client);

/* client/open.c: whether a server's catalog is the expected one; the first time it is taken over. */
gw_status gw_remote_check(struct gw_remote *server, const struct gw_endpoint *endpoint, const void *reply,
			  uint32_t reply_bytes);

/* client/standalone.c: servers of this process for all parts of a graph. */
gw_status gw_standalone_open(struct gw_client *client, bool verify);
void gw_standalone_close(struct gw_client *client);

/* client/tensors.c: what can be fetched, and where it lies, from the servers' catalogs. */
gw_status gw_tensors_build(struct gw_client *client);
void gw_tensors_free(struct gw_client *client);
/* Where an array lies in all parts: [num_parts], a new array. GW_FORMAT names a part that does not have it. */
gw_status gw_places_find(const struct gw_client *client, const char *key, struct gw_place **out);
/* Whether a tensor is one of this client's, and its rows short enough to fetch. GW_INVALID, GW_LIMIT. */
gw_status gw_tensor_check(const struct gw_client *client, const struct gw_tensor *tensor);

/* client/call.c: gw_gather by place instead of by tensor; then spare calls. client/buffer.c: the registered memory of
 * gw_buffer_alloc that holds all of this, or NULL, for who runs the engine; and what the caller has not freed, when no
 * engine has a thread any more. */
gw_status gw_gather_rows(struct gw_client *client, const struct gw_rows *rows, const int64_t *ids, uint64_t n,
			 void *out);
void gw_calls_free(struct gw_client *client);
struct gw_buffer *gw_buffer_find(const struct gw_engine *engine, const uint8_t *at, uint64_t bytes);
void gw_buffers_free(struct gw_client *client);

/* The engine for the next lone call. */
struct gw_engine *gw_client_engine(struct gw_client *client);

#endif
