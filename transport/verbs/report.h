/* What libibverbs says of this host's devices, for people: without its headers, so that those who only tell it need
 * none. Only of builds with RDMA (GRAPHWIRE_VERBS). */
#ifndef GW_TRANSPORT_VERBS_REPORT_H
#define GW_TRANSPORT_VERBS_REPORT_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_VERBS_REPORTS_MAX      64 /* devices; more are left out */
#define GW_VERBS_REPORT_PORTS_MAX 8

struct gw_verbs_report {
	char name[64]; /* "mlx5_0" */
	int error;     /* the errno value of the open or the question that failed; then the rest is not known */
	bool iwarp;    /* reads need a writable key at the reader: not supported */
	uint32_t reads_as_server; /* max_qp_rd_atom: reads in flight that a queue pair answers */
	uint32_t reads_as_reader; /* max_qp_init_rd_atom: reads in flight that it asks for */
	uint32_t queue_pairs, registrations;
	bool odp_known;
	bool odp, odp_implicit, odp_reads; /* on-demand paging: at all, of everything, of one-sided reads (RC) */
	uint32_t port_count;
	struct gw_verbs_port_report {
		bool known;
		uint32_t active_mtu, max_mtu; /* bytes of payload of a packet */
		uint64_t message_bytes_max;
	} ports[GW_VERBS_REPORT_PORTS_MAX]; /* port n is number n - 1 */
};

/* Opens and closes each device. GW_UNSUPPORTED: this host lacks the libraries, or its kernel has no RDMA. No devices is
 * no failure. */
gw_status gw_verbs_report(struct gw_verbs_report *reports, uint32_t max, uint32_t *count);

#endif
