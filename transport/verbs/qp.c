/* A queue pair: created on a poller's device, and silenced.
 *
 *   destroy: to the error state ─▶ flushes polled ─▶ queue pair and id destroyed: from then on nothing is written
 */
#include <errno.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/verbs/verbs.h"

#define DRAIN_NS                                                                                                       \
	(200 * GW_NS_PER_MS) /* time limit for flushes: no peer delays them, and a dead device delivers none           \
			      */

static uint32_t qp_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct verbs_share *port_share(struct verbs_poller *poller, uint8_t number)
{
	return &poller->shares[number && number <= VERBS_PORTS_MAX ? number - 1u : VERBS_PORTS_MAX - 1];
}

gw_status gw_verbs_qp_create(struct verbs_poller *poller, struct rdma_cm_id *id, struct ibv_pd *pd,
			     const struct verbs_needs *needs, struct verbs_qp **out)
{
	const struct ibv_device_attr *attr = &poller->device->attr;
	*out = NULL;
	assert(needs->work && needs->work <= VERBS_RING && (needs->work & (needs->work - 1)) == 0);
	struct verbs_qp *qp = gw_calloc(1, sizeof(*qp) + needs->work * sizeof(struct verbs_wr));
	if (!qp)
		return GW_NO_MEMORY;
	qp->mask = needs->work - 1;
	qp->depth = qp_least(needs->work, (uint32_t)attr->max_qp_wr);
	qp->window = qp_least(VERBS_WINDOW_FIRST, qp->depth / 2);
	qp->growing = true;
	qp->poller = poller;
	qp->entries = qp->depth + needs->receives;
	qp->share = port_share(poller, id->port_num);
	gw_status status = gw_verbs_poller_enter(poller, qp, qp->entries);
	if (status != GW_OK)
		goto free_qp;
	struct verbs_cq *cq = qp->cq;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq->ibv,
		.recv_cq = cq->ibv,
		.cap = {.max_send_wr = qp->depth,
			.max_recv_wr = needs->receives ? needs->receives : 1,
			.max_send_sge =
				qp_least(needs->sges, qp_least((uint32_t)attr->max_sge, (uint32_t)attr->max_sge_rd)),
			.max_recv_sge = 1},
	};
	init.cap.max_send_sge = init.cap.max_send_sge ? init.cap.max_send_sge : 1;
	if (rdma_create_qp(id, gw_verbs_domain_get(poller, pd, &qp->domain), &init) != 0) {
		status = gw_verbs_object_fail(id->verbs, errno, "RDMA queue pair");
		goto put_domain;
	}
	gw_verbs_poller_number(poller, qp, id->qp->qp_num);
	qp->sges_max = qp_least(needs->sges, init.cap.max_send_sge);
	qp->id = id;
	*out = qp;
	return GW_OK;

put_domain:
	gw_verbs_domain_put(poller, qp->domain);
	gw_verbs_poller_leave(poller, qp, qp->entries);
free_qp:
	gw_free(qp);
	return status;
}

void gw_verbs_qp_break(struct verbs_qp *qp)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	/* rdma_disconnect notifies the peer and moves the queue pair to the error state. Without a connection only the
	 * move is needed. */
	if (!qp->connected || rdma_disconnect(qp->id) != 0)
		ibv_modify_qp(qp->id->qp, &error, IBV_QP_STATE);
	qp->connected = false;
	if (qp->failure == IBV_WC_SUCCESS)
		qp->failure = IBV_WC_WR_FLUSH_ERR;
}

static void verbs_qp_drain(struct verbs_qp *qp)
{
	struct verbs_cq *cq = qp->cq;
	uint64_t end = gw_now_ns() + DRAIN_NS;
	gw_verbs_poller_poll(qp->poller);
	while (verbs_qp_open(qp) && !cq->mute && !atomic_load(&cq->failed)) {
		cq->mute = gw_now_ns() >= end;
		gw_verbs_poller_poll(qp->poller);
	}
}

void gw_verbs_qp_destroy(struct verbs_qp *qp)
{
	if (!qp)
		return;
	gw_verbs_qp_break(qp);
	verbs_qp_drain(qp);
	rdma_destroy_qp(qp->id);
	rdma_destroy_id(qp->id);
	verbs_qp_release(qp, qp->bytes_open);
	gw_verbs_domain_put(qp->poller, qp->domain);
	gw_verbs_poller_leave(qp->poller, qp, qp->entries);
	gw_verbs_pages_destroy(&qp->bounce);
	gw_free(qp);
}
