/* A queue pair and the work in flight on it.
 *
 *   push a place ─▶ post ─▶ [tail … head) ─▶ completion of place p: everything up to p is done (reliable connections
 *                                            complete in order, so only one in VERBS_SIGNAL_EVERY asks to be told)
 *   a completion with an error ─▶ failure is set, the owner is touched; what is in flight is never called done
 *   destroy: to the error state ─▶ flushes polled ─▶ queue pair and id destroyed: nothing is written from then on
 *
 * The window of reads in flight adapts: more of them hide the latency until the device's own queues overflow its
 * caches, from where on more are slower. It climbs as long as reads per second grow, and turns round when they do not.
 */
#include <errno.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "transport/verbs/verbs.h"

#define DRAIN_NS    (200 * GW_NS_PER_MS) /* for flushes, which no peer delays; a device that has died has none */
#define EPOCH_READS 2048u                /* looked at before the window turns or goes on */
#define BETTER      1.02                 /* a gain below this is noise */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct verbs_share *gate_share(struct verbs_port *port, uint8_t number)
{
	return &port->shares[number && number <= VERBS_GATES_MAX ? number - 1u : VERBS_GATES_MAX - 1];
}

gw_status gw_verbs_queue_create(struct verbs_port *port, struct rdma_cm_id *id, struct ibv_pd *pd,
				const struct verbs_needs *needs, struct verbs_queue **out)
{
	const struct ibv_device_attr *attr = &port->device->attr;
	*out = NULL;
	assert(needs->work && needs->work <= VERBS_RING && (needs->work & (needs->work - 1)) == 0);
	struct verbs_queue *queue = gw_calloc(1, sizeof(*queue) + needs->work * sizeof(struct verbs_wr));
	if (!queue)
		return GW_NO_MEMORY;
	queue->mask = needs->work - 1;
	queue->depth = least(needs->work, (uint32_t)attr->max_qp_wr);
	queue->window = least(VERBS_WINDOW_FIRST, queue->depth / 2);
	queue->growing = true;
	queue->port = port;
	queue->entries = queue->depth + needs->receives;
	queue->share = gate_share(port, id->port_num);
	gw_status status = gw_verbs_port_enter(port, queue, queue->entries);
	if (status)
		goto free_queue;
	struct verbs_cq *cq = queue->cq;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.cap = {.max_send_wr = queue->depth,
			.max_recv_wr = needs->receives ? needs->receives : 1,
			.max_send_sge = least(needs->sges, least((uint32_t)attr->max_sge, (uint32_t)attr->max_sge_rd)),
			.max_recv_sge = 1},
	};
	init.cap.max_send_sge = init.cap.max_send_sge ? init.cap.max_send_sge : 1;
	if (rdma_create_qp(id, gw_verbs_domain_get(port, pd, &queue->domain), &init) != 0) {
		status = gw_fail_errno(errno == ENOMEM ? GW_NO_MEMORY : GW_IO, errno, "RDMA queue pair");
		goto put_domain;
	}
	atomic_store(&queue->qp_num, id->qp->qp_num);
	queue->sges_max = least(needs->sges, init.cap.max_send_sge);
	queue->id = id;
	*out = queue;
	return GW_OK;

put_domain:
	gw_verbs_domain_put(port, queue->domain);
	gw_verbs_port_leave(port, queue, queue->entries);
free_queue:
	gw_free(queue);
	return status;
}

void gw_verbs_queue_break(struct verbs_queue *queue)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	/* Tells the peer as well, and moves the queue pair; before there is a connection, only the second is wanted. */
	if (!queue->connected || rdma_disconnect(queue->id) != 0)
		ibv_modify_qp(queue->id->qp, &error, IBV_QP_STATE);
	queue->connected = false;
	if (queue->failure == IBV_WC_SUCCESS)
		queue->failure = IBV_WC_WR_FLUSH_ERR;
}

void gw_verbs_queue_drain(struct verbs_queue *queue)
{
	struct verbs_cq *cq = queue->cq;
	uint64_t end = gw_now_ns() + DRAIN_NS;
	gw_verbs_port_poll(queue->port);
	while (verbs_queue_open(queue) && !cq->mute && !atomic_load(&cq->failed)) {
		cq->mute = gw_now_ns() >= end;
		gw_verbs_port_poll(queue->port);
	}
}

void gw_verbs_queue_destroy(struct verbs_queue *queue)
{
	if (!queue)
		return;
	gw_verbs_queue_break(queue);
	gw_verbs_queue_drain(queue);
	rdma_destroy_qp(queue->id);
	rdma_destroy_id(queue->id);
	verbs_queue_give(queue, queue->bytes_open);
	gw_verbs_domain_put(queue->port, queue->domain);
	gw_verbs_port_leave(queue->port, queue, queue->entries);
	gw_verbs_pages_destroy(&queue->bounce);
	gw_free(queue);
}

static void fail(struct verbs_queue *queue, enum ibv_wc_status status)
{
	if (queue->failure == IBV_WC_SUCCESS)
		queue->failure = status;
	gw_verbs_touch(queue->port->loop, queue->touch);
}

void gw_verbs_queue_failed(struct verbs_queue *queue, int trouble)
{
	atomic_store(&queue->trouble, trouble);
	fail(queue, IBV_WC_FATAL_ERR);
}

void gw_verbs_queue_post(struct verbs_queue *queue, struct ibv_send_wr *list, uint32_t n)
{
	struct ibv_send_wr *bad = NULL;
	if (ibv_post_send(queue->id->qp, list, &bad) == 0)
		return;
	/* From the bad one on they are not in flight. */
	uint32_t posted = 0;
	for (struct ibv_send_wr *wr = list; wr && wr != bad; wr = wr->next)
		posted++;
	queue->head -= n - least(n, posted);
	fail(queue, IBV_WC_GENERAL_ERR);
}

gw_status gw_verbs_queue_receive(struct verbs_queue *queue, uint32_t slot, void *memory, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = bytes, .lkey = lkey};
	struct ibv_recv_wr wr = {.wr_id = queue->name << 32 | VERBS_RECEIVE_FLAG | slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(queue->id->qp, &wr, &bad);
	return error ? gw_fail_errno(GW_IO, error, "RDMA receive") : GW_OK;
}

void gw_verbs_queue_probe(struct verbs_queue *queue)
{
	if (verbs_queue_open(queue) >= queue->depth)
		return; /* so much in flight tells as well */
	verbs_queue_push(queue)->work = VERBS_PROBE;
	struct ibv_send_wr wr = {
		.wr_id = verbs_wr_id(queue), .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
	queue->unsignalled = 0;
	gw_verbs_queue_post(queue, &wr, 1);
}

/* The window after some more reads are done. */
static void adapt(struct verbs_queue *queue, uint32_t done)
{
	queue->epoch_done += done;
	if (verbs_queue_open(queue) == 0) { /* idle: how long says nothing about the device */
		queue->epoch_done = 0;
		return;
	}
	if (queue->epoch_done == done)
		queue->epoch_begun_ns = gw_now_ns();
	if (queue->epoch_done < EPOCH_READS)
		return;
	uint64_t took = gw_now_ns() - queue->epoch_begun_ns;
	double rate = (double)queue->epoch_done / (double)(took ? took : 1);
	if (rate < queue->epoch_rate * BETTER)
		queue->growing = !queue->growing;
	uint32_t step = queue->window / 4, most = queue->depth - queue->depth / 4;
	most = least(VERBS_WINDOW_MAX, most);
	queue->window = queue->growing ? queue->window + step : queue->window - step;
	queue->window = least(queue->window < VERBS_WINDOW_MIN ? VERBS_WINDOW_MIN : queue->window, most);
	queue->epoch_rate = rate;
	queue->epoch_done = 0;
}

static void work_done(struct verbs_queue *queue, struct verbs_wr *wr)
{
	verbs_queue_give(queue, wr->bytes);
	if (wr->bounce_to) {
		memcpy(wr->bounce_to, queue->bounce.base + wr->bounce_at, wr->bytes);
		queue->bounce_begin += wr->bounce_held;
	}
	if (wr->work == VERBS_READ)
		queue->read_done(queue, wr);
	else if (wr->work == VERBS_SEND)
		queue->sent(queue);
}

void gw_verbs_queue_completed(struct verbs_queue *queue, const struct ibv_wc *wc)
{
	uint32_t at = (uint32_t)wc->wr_id;
	if (wc->status != IBV_WC_SUCCESS)
		fail(queue, wc->status);
	if (at & VERBS_RECEIVE_FLAG) {
		if (queue->failure == IBV_WC_SUCCESS)
			queue->received(queue, at & VERBS_AT_MASK, wc->byte_len);
	} else {
		uint32_t done = ((at - queue->tail) & VERBS_AT_MASK) + 1;
		assert(done <= verbs_queue_open(queue));
		for (uint32_t i = 0; i < done; i++, queue->tail++)
			if (queue->failure == IBV_WC_SUCCESS)
				work_done(queue, &queue->ring[queue->tail & queue->mask]);
		if (queue->failure == IBV_WC_SUCCESS)
			adapt(queue, done);
	}
	gw_verbs_touch(queue->port->loop, queue->touch);
}
