/* What libibverbs reports about this host's devices, for people. This header includes no header of libibverbs, so code
 * that only prints the report needs none. Only in builds with RDMA (GRAPHWIRE_VERBS).
 */
#ifndef GW_TRANSPORT_VERBS_REPORT_H
#define GW_TRANSPORT_VERBS_REPORT_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_VERBS_REPORTS_MAX      64 /* most devices; the rest is left out */
#define GW_VERBS_REPORT_PORTS_MAX 8

struct gw_verbs_report {
	char name[64];            /* "mlx5_0" */
	int error;                /* errno of the failed open or query, or 0; after a failure the rest is unknown */
	bool iwarp;               /* not supported: its reads need a writable key at the reader */
	uint32_t reads_as_server; /* max_qp_rd_atom: most reads that a queue pair answers at once */
	uint32_t reads_as_reader; /* max_qp_init_rd_atom: most reads that a queue pair has in flight */
	uint32_t queue_pairs, registrations;
	bool odp_known;
	bool odp, odp_implicit,
		odp_reads; /* on-demand paging: supported, implicit (all memory), for one-sided reads (RC) */
	uint32_t port_count;
	struct gw_verbs_port_report {
		bool known;
		uint32_t active_mtu, max_mtu; /* payload bytes of a packet */
	} ports[GW_VERBS_REPORT_PORTS_MAX];   /* ports[n - 1] is port n */
};

/* Opens and closes each device. GW_UNSUPPORTED: this host lacks the libraries, or its kernel has no RDMA. A host
 * without devices is not a failure: *count is 0. */
gw_status gw_verbs_report(struct gw_verbs_report *reports, uint32_t max, uint32_t *count);

#endif
