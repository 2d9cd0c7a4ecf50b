/* The formulas of docs/SCALING.md. test_fabric_scale.c compares them with counts; test_fabric_tables.c prints
 * the page's tables.
 */
#ifndef GW_TEST_FABRIC_SCALING_H
#define GW_TEST_FABRIC_SCALING_H

#include "client/link/link_ops.h"
#include "transport/tcp/client/client_private.h"
#include "transport/tcp/server/server_private.h"
#include "transport/verbs/endpoint_private.h"
#include "transport/verbs/listener_private.h"

/* A job. Its trainers read `remote` servers each over RDMA: all of them, or all but the one on their own host. */
struct scaling {
	uint64_t servers, trainers, engines, remote;
};

/* --- Connections, queue pairs. --- */

static inline uint64_t scaling_server_connections(const struct scaling *of)
{
	return of->trainers * of->engines;
}
static inline uint64_t scaling_trainer_qps(const struct scaling *of)
{
	return VERBS_QPS_DEFAULT * of->remote * of->engines;
}
static inline uint64_t scaling_server_qps(const struct scaling *of)
{
	return scaling_trainer_qps(of) * of->trainers / of->servers;
}
/* Of a host with one card and trainers / servers trainers: theirs, and its server's. */
static inline uint64_t scaling_card_qps(const struct scaling *of)
{
	return 2 * scaling_server_qps(of);
}
/* Both ends of all connections of the job. */
static inline uint64_t scaling_all_qps(const struct scaling *of)
{
	return 2 * scaling_trainer_qps(of) * of->trainers;
}

/* --- Opening, and mini-batches. --- */

/* TCP connections that a server accepts while everything opens: a link's own, and that of its RDMA endpoint. */
static inline uint64_t scaling_server_accepts(const struct scaling *of)
{
	return 2 * scaling_server_connections(of);
}
/* The catalog, once for each trainer: the requests to a server while everything opens. */
static inline uint64_t scaling_opening_requests(const struct scaling *of)
{
	return of->trainers;
}
/* The read that compares RDMA with TCP. */
static inline uint64_t scaling_opening_reads(const struct scaling *of)
{
	return of->trainers * of->remote * of->engines;
}
/* Sample requests to a server for one mini-batch of each trainer. */
static inline uint64_t scaling_batch_requests(const struct scaling *of, uint64_t hops, uint64_t types)
{
	return of->trainers * hops * types;
}

/* Of these, the requests of a hop to a server are posted together: calls to the device for one mini-batch of each
 * trainer, whose requests are small. */
static inline uint64_t scaling_batch_posts(const struct scaling *of, uint64_t hops, uint64_t types)
{
	return of->trainers * hops * ((types + VERBS_SENDS - 1) / VERBS_SENDS);
}

/* --- Memory of a connection, on its two sides. --- */

#define SCALING_MESSAGES ((uint64_t)(VERBS_RECEIVES + VERBS_RECEIVES_SPARE + VERBS_SENDS) * VERBS_CHUNK_BYTES)

static inline uint64_t scaling_qp_bytes(uint64_t places)
{
	return sizeof(struct verbs_qp) + places * sizeof(struct verbs_wr);
}
/* The client's control connection, with its buffers. */
#define SCALING_CONTROL (sizeof(struct tcp_client) + CLIENT_STAGING_BYTES + CLIENT_OUT_FIRST)
/* What a trainer keeps of a server, whatever its engines: with the catalog, of so many bytes an array (measured by
 * test_client_catalogs). */
#define SCALING_CATALOG_ARRAY 115ull
static inline uint64_t scaling_remote_bytes(uint64_t arrays)
{
	return sizeof(struct gw_remote) + SCALING_CATALOG_ARRAY * arrays;
}
/* Allocated: without messages, and without what the device's library allocates. */
static inline uint64_t scaling_client_allocated(void)
{
	return sizeof(struct verbs_endpoint) + VERBS_QPS_DEFAULT * scaling_qp_bytes(VERBS_RING) + SCALING_CONTROL +
	       sizeof(struct gw_link);
}
static inline uint64_t scaling_server_allocated(void)
{
	return sizeof(struct verbs_client) + scaling_qp_bytes(VERBS_SENDS) + scaling_qp_bytes(1) +
	       sizeof(struct tcp_server);
}
/* The share of the driver, for mlx5: the queues of docs/SCALING.md's "Memory of a connection". */
#define SCALING_CLIENT_QUEUES (2ull * 135168)
#define SCALING_SERVER_QUEUES (2ull * 4096)
#define SCALING_CLIENT_DRIVER (2ull * 32896)
#define SCALING_SERVER_DRIVER (2ull * 384)
/* Completion entries of 64 B: the works and receives of both queue pairs. */
#define SCALING_CLIENT_ENTRIES (64ull * (2 * VERBS_RING + VERBS_RECEIVES + VERBS_RECEIVES_SPARE))
#define SCALING_SERVER_ENTRIES (64ull * (VERBS_SENDS + 1 + VERBS_RECEIVES + VERBS_RECEIVES_SPARE))

static inline uint64_t scaling_client_pinned(void)
{
	return SCALING_MESSAGES + SCALING_CLIENT_QUEUES + SCALING_CLIENT_ENTRIES;
}
static inline uint64_t scaling_server_pinned(void)
{
	return SCALING_MESSAGES + SCALING_SERVER_QUEUES + SCALING_SERVER_ENTRIES;
}
/* What is used. Of the client's control connection few pages are, so its buffers are not counted here. */
static inline uint64_t scaling_client_bytes(void)
{
	return scaling_client_allocated() - CLIENT_STAGING_BYTES - CLIENT_OUT_FIRST + scaling_client_pinned() +
	       SCALING_CLIENT_DRIVER;
}
static inline uint64_t scaling_server_bytes(void)
{
	return scaling_server_allocated() + scaling_server_pinned() + SCALING_SERVER_DRIVER;
}

#endif
