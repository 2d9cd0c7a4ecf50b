/* Gathers of rows from one mapped server by the transport alone: the ceiling of the client's gathers over shm. */
#ifndef GW_BENCH_MAPPED_GATHER_H
#define GW_BENCH_MAPPED_GATHER_H

#include <graphwire/graphwire.h>

/* Reads row ids[i] of one part to out + i * row_bytes, by one gather of the transport, in an engine of the
 * client that has read from the part before. The offsets of the rows are computed before the clock starts. out: from
 * gw_buffer_alloc. *ns: how long it took. GW_UNSUPPORTED: the part is not mapped. */
gw_status gw_bench_mapped_gather(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				 const int64_t *ids, uint32_t n, void *out, uint64_t *ns);

#endif
