/* Bare one-sided reads: bare_verbs.h describes them. Both ends of every pair are in this process and on the same
 * device, whose loopback carries the packets. */
#include "bench/bare_verbs.h"

#include <errno.h>
#ifndef GRAPHWIRE_VERBS
int gw_bare_verbs_open(const uint8_t *table, uint64_t table_bytes, uint8_t *landing, uint64_t landing_bytes,
		       unsigned queues, struct gw_bare_verbs **out)
{
	(void)table, (void)table_bytes, (void)landing, (void)landing_bytes, (void)queues;
	*out = NULL;
	return ENODEV;
}
void gw_bare_verbs_close(struct gw_bare_verbs *verbs)
{
	(void)verbs;
}
int gw_bare_verbs_many(struct gw_bare_verbs *verbs, uint32_t row_bytes, unsigned depth, double seconds, double *figure)
{
	(void)verbs, (void)row_bytes, (void)depth, (void)seconds, (void)figure;
	return ENODEV;
}
int gw_bare_verbs_one(struct gw_bare_verbs *verbs, uint32_t row_bytes, uint32_t rounds, int sleeping,
		      double *microseconds)
{
	(void)verbs, (void)row_bytes, (void)rounds, (void)sleeping, (void)microseconds;
	return ENODEV;
}
#else
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "core/system/clock.h"
#include "transport/verbs/library.h"

#define QUEUES_MAX 8
#define DEPTH_MAX  512
#define LIST       32 /* reads that are posted at once */
#define SIGNAL     16

struct gw_bare_verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *far_cq;
	struct ibv_mr *table, *landing;
	struct ibv_qp *near[QUEUES_MAX], *far[QUEUES_MAX];
	unsigned queues;
	uint64_t table_bytes, landing_bytes, next;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
};

/* On Ethernet the RoCE v2 entry of an IPv4 address. */
static int choose_gid(struct gw_bare_verbs *v)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	v->gid_index = -1;
	for (uint32_t i = 0; i < (uint32_t)v->port.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		if (ibv_query_gid_ex(v->context, 1, i, &entry, 0) != 0 || entry.gid_type == IBV_GID_TYPE_ROCE_V1)
			continue;
		bool better = memcmp(entry.gid.raw, mapped, sizeof(mapped)) == 0;
		if (v->gid_index >= 0 && !better)
			continue;
		v->gid_index = (int)i;
		v->gid = entry.gid;
		if (better)
			break;
	}
	return v->gid_index < 0 ? ENODEV : 0;
}

static int open_device(struct gw_bare_verbs *v)
{
	if (gw_verbs_library() != GW_OK)
		return ENODEV;
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	if (!list)
		return errno;
	int error = ENODEV;
	for (int i = 0; i < count && error; i++) {
		v->context = ibv_open_device(list[i]);
		if (!v->context)
			continue;
		if (ibv_query_port(v->context, 1, &v->port) == 0 && v->port.state == IBV_PORT_ACTIVE)
			error = choose_gid(v);
		if (error) {
			ibv_close_device(v->context);
			v->context = NULL;
		}
	}
	ibv_free_device_list(list);
	return error;
}

static int to_ready(const struct gw_bare_verbs *v, struct ibv_qp *qp, uint32_t other, uint8_t reads)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr receive = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = v->port.active_mtu,
		.dest_qp_num = other,
		.max_dest_rd_atomic = reads,
		.ah_attr = {.is_global = 1,
			    .grh = {.dgid = v->gid, .sgid_index = (uint8_t)v->gid_index, .hop_limit = 64},
			    .dlid = v->port.lid,
			    .port_num = 1}};
	struct ibv_qp_attr send = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = reads};
	int error = ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (!error)
		error = ibv_modify_qp(qp, &receive,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!error)
		error = ibv_modify_qp(qp, &send,
				      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	return error;
}

static int bare_verbs_connect_pair(struct gw_bare_verbs *v, unsigned i, uint8_t reads)
{
	struct ibv_qp_init_attr near = {
		.qp_type = IBV_QPT_RC,
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.cap = {.max_send_wr = DEPTH_MAX, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_init_attr far = near;
	far.send_cq = far.recv_cq = v->far_cq;
	v->near[i] = ibv_create_qp(v->pd, &near);
	v->far[i] = ibv_create_qp(v->pd, &far);
	if (!v->near[i] || !v->far[i])
		return errno;
	int error = to_ready(v, v->near[i], v->far[i]->qp_num, reads);
	return error ? error : to_ready(v, v->far[i], v->near[i]->qp_num, reads);
}

int gw_bare_verbs_open(const uint8_t *table, uint64_t table_bytes, uint8_t *landing, uint64_t landing_bytes,
		       unsigned queues, struct gw_bare_verbs **out)
{
	*out = NULL;
	if (queues == 0 || queues > QUEUES_MAX)
		return EINVAL;
	struct gw_bare_verbs *v = calloc(1, sizeof(*v));
	if (!v)
		return ENOMEM;
	v->table_bytes = table_bytes;
	v->landing_bytes = landing_bytes;
	struct ibv_device_attr attr;
	int error = open_device(v);
	if (!error)
		error = ibv_query_device(v->context, &attr);
	if (!error && !(v->pd = ibv_alloc_pd(v->context)))
		error = errno;
	if (!error && !(v->channel = ibv_create_comp_channel(v->context)))
		error = errno;
	if (!error && !(v->cq = ibv_create_cq(v->context, QUEUES_MAX * DEPTH_MAX, NULL, v->channel, 0)))
		error = errno;
	if (!error && !(v->far_cq = ibv_create_cq(v->context, QUEUES_MAX, NULL, NULL, 0)))
		error = errno;
	if (!error && !(v->table = ibv_reg_mr(v->pd, (void *)(uintptr_t)table, table_bytes, IBV_ACCESS_REMOTE_READ)))
		error = errno;
	if (!error && !(v->landing = ibv_reg_mr(v->pd, landing, landing_bytes, IBV_ACCESS_LOCAL_WRITE)))
		error = errno;
	for (unsigned i = 0; i < queues && !error; i++, v->queues++) {
		int reads =
			attr.max_qp_init_rd_atom < attr.max_qp_rd_atom ? attr.max_qp_init_rd_atom : attr.max_qp_rd_atom;
		error = bare_verbs_connect_pair(v, i, (uint8_t)(reads < 128 ? reads : 128));
	}
	if (error) {
		gw_bare_verbs_close(v);
		return error;
	}
	*out = v;
	return 0;
}

void gw_bare_verbs_close(struct gw_bare_verbs *v)
{
	if (!v)
		return;
	for (unsigned i = 0; i < QUEUES_MAX; i++) {
		if (v->near[i])
			ibv_destroy_qp(v->near[i]);
		if (v->far[i])
			ibv_destroy_qp(v->far[i]);
	}
	if (v->table)
		ibv_dereg_mr(v->table);
	if (v->landing)
		ibv_dereg_mr(v->landing);
	if (v->cq)
		ibv_destroy_cq(v->cq);
	if (v->far_cq)
		ibv_destroy_cq(v->far_cq);
	if (v->channel)
		ibv_destroy_comp_channel(v->channel);
	if (v->pd)
		ibv_dealloc_pd(v->pd);
	if (v->context)
		ibv_close_device(v->context);
	free(v);
}

/* Every SIGNAL-th read and the last one are signalled. */
static int bare_verbs_post(struct gw_bare_verbs *v, unsigned queue, uint32_t row_bytes, unsigned n)
{
	struct ibv_send_wr list[LIST], *bad;
	struct ibv_sge sges[LIST];
	for (unsigned i = 0; i < n; i++) {
		uint64_t number = v->next++;
		uint64_t row = gw_bare_mix(number) % (v->table_bytes / row_bytes);
		uint64_t place = number % (v->landing_bytes / row_bytes);
		bool signal = i + 1 == n || (i + 1) % SIGNAL == 0;
		/* This completion counts all reads since the previous signalled one. */
		uint64_t since = signal && i + 1 == n && n % SIGNAL ? n % SIGNAL : SIGNAL;
		sges[i] =
			(struct ibv_sge){(uintptr_t)v->landing->addr + place * row_bytes, row_bytes, v->landing->lkey};
		list[i] = (struct ibv_send_wr){.wr_id = (uint64_t)queue << 32 | since,
					       .next = i + 1 < n ? &list[i + 1] : NULL,
					       .sg_list = &sges[i],
					       .num_sge = 1,
					       .opcode = IBV_WR_RDMA_READ,
					       .send_flags = signal ? IBV_SEND_SIGNALED : 0,
					       .wr.rdma = {.remote_addr = (uintptr_t)v->table->addr + row * row_bytes,
							   .rkey = v->table->rkey}};
	}
	return ibv_post_send(v->near[queue], list, &bad);
}

int gw_bare_verbs_many(struct gw_bare_verbs *v, uint32_t row_bytes, unsigned depth, double seconds, double *figure)
{
	unsigned open[QUEUES_MAX] = {0}, all = 0;
	uint64_t done = 0, begun = gw_now_ns(), end = begun + (uint64_t)(seconds * 1e9);
	depth = depth < DEPTH_MAX ? depth : DEPTH_MAX;
	for (bool more = true; more || all;) {
		for (unsigned q = 0; q < v->queues && more; q++)
			while (depth - open[q] >= SIGNAL) {
				unsigned n = depth - open[q] < LIST ? depth - open[q] : LIST;
				int error = bare_verbs_post(v, q, row_bytes, n);
				if (error)
					return error;
				open[q] += n;
				all += n;
			}
		struct ibv_wc wcs[LIST];
		int n = ibv_poll_cq(v->cq, LIST, wcs);
		for (int i = 0; i < n; i++) {
			if (wcs[i].status != IBV_WC_SUCCESS)
				return EIO;
			open[wcs[i].wr_id >> 32] -= (unsigned)wcs[i].wr_id;
			all -= (unsigned)wcs[i].wr_id;
			done += (uint32_t)wcs[i].wr_id;
		}
		more = gw_now_ns() < end;
	}
	*figure = (double)(done * row_bytes) / ((double)(gw_now_ns() - begun) * 1e-9);
	return 0;
}

static int sleep_for_one(struct gw_bare_verbs *v, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	for (;;) {
		int n = ibv_poll_cq(v->cq, 1, wc);
		if (n)
			return n < 0 ? EIO : 0;
		int error = ibv_req_notify_cq(v->cq, 0);
		if (error)
			return error;
		n = ibv_poll_cq(v->cq, 1, wc);
		if (n)
			return n < 0 ? EIO : 0;
		if (ibv_get_cq_event(v->channel, &cq, &context) != 0)
			return errno;
		ibv_ack_cq_events(cq, 1);
	}
}

int gw_bare_verbs_one(struct gw_bare_verbs *v, uint32_t row_bytes, uint32_t rounds, int sleeping, double *microseconds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t begun = gw_now_ns();
		struct ibv_wc wc;
		int n = 0, error = bare_verbs_post(v, 0, row_bytes, 1);
		if (!error && sleeping)
			error = sleep_for_one(v, &wc);
		while (!error && !sleeping && (n = ibv_poll_cq(v->cq, 1, &wc)) == 0)
			;
		if (error || n < 0 || wc.status != IBV_WC_SUCCESS)
			return error ? error : EIO;
		microseconds[i] = (double)(gw_now_ns() - begun) * 1e-3;
	}
	return 0;
}
#endif
