/* The shm backend: a client maps the regions of a server on the same host, read-only.
 *
 *      client                                   server
 *      unix socket in the runtime folder ─────▶ same user? (SO_PEERCRED)
 *      hello, key, welcome                      as over TCP (transport/tcp/wire.h)
 *              ◀──────────────────── MEMORY     with the sealed memfds, opened again for reading (SCM_RIGHTS)
 *      seals, length? map, PROT_READ
 *      reads: copies, made inside the call
 *      requests, liveness, loss ──────────────▶ frames over the socket, as over TCP
 *
 * The address is "shm:NAME". A server without a name uses its incarnation, in 16 hexadecimal digits. A name belongs to
 * one host and one user. A client learns a server's incarnation over the network. If the client then finds a socket of
 * that name, both are on one host, whatever namespaces and containers separate them. Connections are transport/tcp's,
 * on unix sockets.
 */
#ifndef GW_TRANSPORT_SHM_H
#define GW_TRANSPORT_SHM_H

#include "transport/local_socket.h"
#include "transport/tcp/loop.h"

extern const struct gw_transport gw_transport_shm;

/* --- export.c: the server's side --- */
gw_status gw_shm_listen(struct gw_address *address, const struct gw_service *service, int *fd, void **out);
gw_status gw_shm_export_keep(void *opaque, int *fd);
void gw_shm_export_stop(void *opaque);
void gw_shm_export_free(void *opaque);
/* A descriptor of a dynamic region's memory, sealed and opened for reading; the caller closes it. GW_UNSUPPORTED: the
 * memory is not a memfd. */
gw_status gw_shm_share(const struct gw_dynamic_region *region, int *fd);
uint32_t gw_shm_describe(const void *opaque, uint8_t *body, struct tcp_fd_passing *fd_passing);

/* --- map.c: the client's side --- */
struct shm_memory; /* mapped once for all endpoints of the process */

struct shm_mapped {
	const uint8_t *bases[GW_REGIONS_MAX];
	struct shm_memory *memories[GW_MEMORIES_MAX];
	uint32_t memory_count;
};

/* Takes over the received descriptors, whatever the outcome. GW_PROTOCOL: their number differs from `announced`, or a
 * memfd is shorter than announced or not sealed. */
gw_status gw_shm_map(const struct wire_memories *announced, struct tcp_fd_passing *fd_passing, void **out);
void gw_shm_unmap(void *opaque);
/* Maps the memory of one dynamic region, from its first byte on; the descriptor stays the caller's. */
gw_status gw_shm_map_dynamic(int fd, uint64_t bytes, void **mapping, const uint8_t **base);
void gw_shm_unmap_dynamic(void *mapping);

#endif
