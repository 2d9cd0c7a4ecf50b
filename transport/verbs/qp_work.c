/* The work in flight on a queue pair.
 *
 *   push an entry ─▶ post ─▶ [tail … head) ─▶ completion of entry e: everything up to e is done (reliable connections
 *                                             complete in order, so only one in VERBS_SIGNAL_EVERY is signalled)
 *   a completion with an error ─▶ failure is set, the owner is deferred; work in flight is never reported as done
 *
 * The window of reads in flight adapts. More reads hide the latency, until the device's own queues overflow its caches;
 * beyond that point more reads are slower. The window moves in one direction while the reads per second grow, and turns
 * round when they do not.
 */
#include <string.h>

#include "core/system/clock.h"
#include "transport/verbs/verbs.h"

#define EPOCH_READS 2048u /* reads measured before each step of the window */
#define BETTER      1.02  /* a gain below this is noise */

static uint32_t work_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void qp_fail(struct verbs_qp *qp, enum ibv_wc_status status)
{
	if (qp->failure == IBV_WC_SUCCESS)
		qp->failure = status;
	gw_verbs_defer(qp->poller->loop, qp->deferred);
}

static void verbs_qp_failed(struct verbs_qp *qp, int trouble)
{
	atomic_store(&qp->trouble, trouble);
	qp_fail(qp, IBV_WC_FATAL_ERR);
}

void gw_verbs_qp_post(struct verbs_qp *qp, struct ibv_send_wr *list, uint32_t n)
{
	struct ibv_send_wr *bad = NULL;
	if (ibv_post_send(qp->id->qp, list, &bad) == 0)
		return;
	/* Work requests from the bad one on are not in flight. */
	uint32_t posted = 0;
	for (struct ibv_send_wr *wr = list; wr && wr != bad; wr = wr->next)
		posted++;
	qp->head -= n - work_least(n, posted);
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
		return; /* the work in flight proves liveness as well */
	verbs_qp_push(qp)->work = VERBS_PROBE;
	struct ibv_send_wr wr = {.wr_id = verbs_wr_id(qp), .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
	qp->unsignalled = 0;
	gw_verbs_qp_post(qp, &wr, 1);
}

static void qp_adapt_window(struct verbs_qp *qp, uint32_t done)
{
	qp->epoch_done += done;
	if (verbs_qp_open(qp) == 0) { /* the queue pair was idle, so the elapsed time does not measure the device */
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
	most = work_least(VERBS_WINDOW_MAX, most);
	qp->window = qp->growing ? qp->window + step : qp->window - step;
	qp->window = work_least(qp->window < VERBS_WINDOW_MIN ? VERBS_WINDOW_MIN : qp->window, most);
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
			qp_adapt_window(qp, done);
	}
	gw_verbs_defer(qp->poller->loop, qp->deferred);
}

void gw_verbs_async_take(struct verbs_loop *loop)
{
	if (!atomic_exchange(&loop->troubled, false))
		return;
	loop->next_timer_ns = 0; /* the tick checks devices and ports */
	for (uint32_t p = 0; p < VERBS_POLLERS_MAX; p++) {
		struct verbs_poller *poller = loop->pollers[p];
		if (!poller)
			continue;
		/* Only this thread removes queue pairs, so the list stays valid after the unlock. */
		pthread_mutex_lock(&poller->qps_lock);
		struct verbs_qp *qp = poller->troubled;
		poller->troubled = NULL;
		pthread_mutex_unlock(&poller->qps_lock);
		for (; qp; qp = qp->next_troubled)
			verbs_qp_failed(qp, atomic_load(&qp->trouble));
	}
}

const char *gw_verbs_qp_reason(const struct verbs_qp *qp)
{
	int trouble = atomic_load(&qp->trouble);
	return trouble ? ibv_event_type_str((enum ibv_event_type)(trouble - 1)) : ibv_wc_status_str(qp->failure);
}

bool gw_verbs_bounce_take(struct verbs_qp *qp, uint32_t bytes, struct verbs_wr *wr)
{
	uint32_t at = qp->bounce_end % VERBS_BOUNCE_BYTES;
	uint32_t padding = VERBS_BOUNCE_BYTES - at < bytes ? VERBS_BOUNCE_BYTES - at : 0;
	if (padding + bytes > VERBS_BOUNCE_BYTES - (qp->bounce_end - qp->bounce_begin))
		return false;
	wr->bounce_at = padding ? 0 : at;
	wr->bounce_held = padding + bytes;
	qp->bounce_end += wr->bounce_held;
	return true;
}
