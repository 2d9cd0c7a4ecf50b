/* A queue pair and the work in flight on it.
 *
 *   push an entry ─▶ post ─▶ [tail … head) ─▶ completion of entry e: everything up to e is done (reliable connections
 *                                             complete in order, so only one in VERBS_SIGNAL_EVERY asks to be told)
 *   a completion with an error ─▶ failure is set, the owner is deferred; what is in flight is never called done
 *   destroy: to the error state ─▶ flushes polled ─▶ queue pair and id destroyed: nothing is written from then on
 *
 * The window of reads in flight adapts: more of them hide the latency until the device's own queues overflow its
 * caches, from where on more are slower. It climbs as long as reads per second grow, and turns round when they do not.
 */
#include <errno.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/verbs/verbs.h"

#define DRAIN_NS    (200 * GW_NS_PER_MS) /* for flushes, which no peer delays; a device that has died has none */
#define EPOCH_READS 2048u                /* looked at before the window turns or goes on */
#define BETTER      1.02                 /* a gain below this is noise */

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
	atomic_store(&qp->qp_num, id->qp->qp_num);
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
	/* Tells the peer as well, and moves the queue pair; before there is a connection, only the second is wanted. */
	if (!qp->connected || rdma_disconnect(qp->id) != 0)
		ibv_modify_qp(qp->id->qp, &error, IBV_QP_STATE);
	qp->connected = false;
	if (qp->failure == IBV_WC_SUCCESS)
		qp->failure = IBV_WC_WR_FLUSH_ERR;
}

void gw_verbs_qp_drain(struct verbs_qp *qp)
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
	gw_verbs_qp_drain(qp);
	rdma_destroy_qp(qp->id);
	rdma_destroy_id(qp->id);
	verbs_qp_release(qp, qp->bytes_open);
	gw_verbs_domain_put(qp->poller, qp->domain);
	gw_verbs_poller_leave(qp->poller, qp, qp->entries);
	gw_verbs_pages_destroy(&qp->bounce);
	gw_free(qp);
}

static void qp_fail(struct verbs_qp *qp, enum ibv_wc_status status)
{
	if (qp->failure == IBV_WC_SUCCESS)
		qp->failure = status;
	gw_verbs_defer(qp->poller->loop, qp->deferred);
}

void gw_verbs_qp_failed(struct verbs_qp *qp, int trouble)
{
	atomic_store(&qp->trouble, trouble);
	qp_fail(qp, IBV_WC_FATAL_ERR);
}

void gw_verbs_qp_post(struct verbs_qp *qp, struct ibv_send_wr *list, uint32_t n)
{
	struct ibv_send_wr *bad = NULL;
	if (ibv_post_send(qp->id->qp, list, &bad) == 0)
		return;
	/* From the bad one on they are not in flight. */
	uint32_t posted = 0;
	for (struct ibv_send_wr *wr = list; wr && wr != bad; wr = wr->next)
		posted++;
	qp->head -= n - qp_least(n, posted);
	qp_fail(qp, IBV_WC_GENERAL_ERR);
}

gw_status gw_verbs_qp_receive(struct verbs_qp *qp, uint32_t slot, void *memory, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = bytes, .lkey = lkey};
	struct ibv_recv_wr wr = {.wr_id = qp->name << 32 | VERBS_RECEIVE_FLAG | slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(qp->id->qp, &wr, &bad);
	return error ? gw_fail_errno(GW_IO, error, "RDMA receive") : GW_OK;
}

void gw_verbs_qp_probe(struct verbs_qp *qp)
{
	if (verbs_qp_open(qp) >= qp->depth)
		return; /* so much in flight tells as well */
	verbs_qp_push(qp)->work = VERBS_PROBE;
	struct ibv_send_wr wr = {.wr_id = verbs_wr_id(qp), .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
	qp->unsignalled = 0;
	gw_verbs_qp_post(qp, &wr, 1);
}

/* The window after some more reads are done. */
static void qp_adapt(struct verbs_qp *qp, uint32_t done)
{
	qp->epoch_done += done;
	if (verbs_qp_open(qp) == 0) { /* idle: how long says nothing about the device */
		qp->epoch_done = 0;
		return;
	}
	if (qp->epoch_done == done)
		qp->epoch_begun_ns = gw_now_ns();
	if (qp->epoch_done < EPOCH_READS)
		return;
	uint64_t took = gw_now_ns() - qp->epoch_begun_ns;
	double rate = (double)qp->epoch_done / (double)(took ? took : 1);
	if (rate < qp->epoch_rate * BETTER)
		qp->growing = !qp->growing;
	uint32_t step = qp->window / 4, most = qp->depth - qp->depth / 4;
	most = qp_least(VERBS_WINDOW_MAX, most);
	qp->window = qp->growing ? qp->window + step : qp->window - step;
	qp->window = qp_least(qp->window < VERBS_WINDOW_MIN ? VERBS_WINDOW_MIN : qp->window, most);
	qp->epoch_rate = rate;
	qp->epoch_done = 0;
}

static void work_done(struct verbs_qp *qp, struct verbs_wr *wr)
{
	verbs_qp_release(qp, wr->bytes);
	if (wr->bounce_to) {
		memcpy(wr->bounce_to, qp->bounce.base + wr->bounce_at, wr->bytes - wr->apart);
		qp->bounce_begin += wr->bounce_held;
	}
	if (wr->work == VERBS_READ)
		qp->read_done(qp, wr);
	else if (wr->work == VERBS_SEND)
		qp->sent(qp);
}

void gw_verbs_qp_completed(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	uint32_t at = (uint32_t)wc->wr_id;
	if (wc->status != IBV_WC_SUCCESS)
		qp_fail(qp, wc->status);
	if (at & VERBS_RECEIVE_FLAG) {
		if (qp->failure == IBV_WC_SUCCESS)
			qp->received(qp, at & VERBS_AT_MASK, wc->byte_len);
	} else {
		uint32_t done = ((at - qp->tail) & VERBS_AT_MASK) + 1;
		assert(done <= verbs_qp_open(qp));
		for (uint32_t i = 0; i < done; i++, qp->tail++)
			if (qp->failure == IBV_WC_SUCCESS)
				work_done(qp, &qp->ring[qp->tail & qp->mask]);
		if (qp->failure == IBV_WC_SUCCESS)
			qp_adapt(qp, done);
	}
	gw_verbs_defer(qp->poller->loop, qp->deferred);
}
