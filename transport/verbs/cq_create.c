/* The completion queues of a poller: created, resized, armed. cq_poller.c polls them.
 *
 *   a queue pair enters ─▶ a queue with room, else ─▶ the newest queue is resized, else ─▶ another queue is created
 *
 * A completion queue that overflows loses all its completions. It therefore has an entry for everything that its queue
 * pairs can have in flight at once, flushes included. The number of queue pairs is not known beforehand. Most drivers
 * resize a completion queue. Where a driver does not, or not with work in flight, the poller creates another queue on
 * the same channel. Each queue is twice as large as the one before, so a poller has only a few queues to poll. Fails
 * when the device's limits are reached.
 */
#include <errno.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "transport/verbs/verbs.h"

#define ENTRIES_FIRST 1024u

static uint32_t cq_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct verbs_cq *with_room(const struct verbs_poller *poller, uint32_t entries)
{
	for (uint32_t i = 0; i < poller->cq_count; i++) {
		struct verbs_cq *cq = poller->cqs[i];
		if (!atomic_load(&cq->failed) && cq->used + entries <= (uint32_t)cq->ibv->cqe)
			return cq;
	}
	return NULL;
}

/* NULL: it cannot be resized. */
static struct verbs_cq *cq_resized(const struct verbs_poller *poller, uint32_t entries)
{
	uint32_t most = (uint32_t)poller->device->attr.max_cqe;
	struct verbs_cq *cq = poller->cq_count ? poller->cqs[poller->cq_count - 1] : NULL;
	if (!cq || atomic_load(&cq->failed) || cq->used + entries > most)
		return NULL;
	int error = ibv_resize_cq(cq->ibv, (int)cq_least(2 * (cq->used + entries), most));
	if (error)
		gw_log(GW_LOG_INFO, "RDMA device %s does not resize a completion queue (%s): another one is created",
		       ibv_get_device_name(poller->device->context->device), strerror(error));
	return !error && cq->used + entries <= (uint32_t)cq->ibv->cqe ? cq : NULL;
}

static gw_status cq_another(struct verbs_poller *poller, uint32_t entries, struct verbs_cq **out)
{
	uint32_t most = (uint32_t)poller->device->attr.max_cqe;
	uint32_t wanted = poller->cq_count ? 2 * (uint32_t)poller->cqs[poller->cq_count - 1]->ibv->cqe : ENTRIES_FIRST;
	wanted = cq_least(wanted < entries ? 2 * entries : wanted, most);
	if (poller->cq_count == VERBS_CQS_MAX || wanted < entries)
		return gw_fail(GW_LIMIT, "RDMA device %s has no completion entries left for one more queue pair",
			       ibv_get_device_name(poller->device->context->device));
	struct verbs_cq *cq = gw_calloc(1, sizeof(*cq));
	if (!cq)
		return GW_NO_MEMORY;
	cq->poller = poller;
	cq->ibv = ibv_create_cq(poller->device->context, (int)wanted, cq, poller->channel, poller->vector);
	if (!cq->ibv) {
		int error = errno;
		gw_free(cq);
		return gw_verbs_object_fail(poller->device->context, error, "RDMA completion queue");
	}
	/* The threads that read asynchronous events search this table. */
	pthread_mutex_lock(&poller->qps_lock);
	poller->cqs[poller->cq_count++] = cq;
	pthread_mutex_unlock(&poller->qps_lock);
	*out = cq;
	return GW_OK;
}

gw_status gw_verbs_cq_enter(struct verbs_poller *poller, uint32_t entries, struct verbs_cq **out)
{
	gw_status status = GW_OK;
	*out = with_room(poller, entries);
	if (!*out)
		*out = cq_resized(poller, entries);
	if (!*out)
		status = cq_another(poller, entries, out);
	if (status == GW_OK)
		(*out)->used += entries;
	return status;
}

static void cq_destroy(struct verbs_cq *cq)
{
	if (cq->events)
		ibv_ack_cq_events(cq->ibv, cq->events);
	ibv_destroy_cq(cq->ibv);
	gw_free(cq);
}

/* A failed completion queue ends with its last queue pair. Other completion queues stay for later queue pairs. */
void gw_verbs_cq_leave(struct verbs_cq *cq, uint32_t entries)
{
	struct verbs_poller *poller = cq->poller;
	uint32_t i = 0;
	cq->used -= entries;
	if (cq->used || !atomic_load(&cq->failed))
		return;
	while (poller->cqs[i] != cq)
		i++;
	pthread_mutex_lock(&poller->qps_lock);
	poller->cq_count--;
	for (; i < poller->cq_count; i++)
		poller->cqs[i] = poller->cqs[i + 1];
	pthread_mutex_unlock(&poller->qps_lock);
	cq_destroy(cq);
}

void gw_verbs_cqs_end(struct verbs_poller *poller)
{
	while (poller->cq_count)
		cq_destroy(poller->cqs[--poller->cq_count]);
}

/* Reads the events that woke the loop from the channel. The loop does this before its next sleep and not at the
 * wake-up: completions come first, and this work runs while the next reads are in flight. Each arming causes one event
 * at most. */
static void take_events(struct verbs_poller *poller)
{
	struct ibv_cq *raw;
	void *context;
	poller->heard = false;
	while (ibv_get_cq_event(poller->channel, &raw, &context) == 0) {
		struct verbs_cq *cq = context;
		cq->armed = false;
		/* Acknowledging takes a lock, so acknowledge many events at once, before the count could overflow. */
		if (++cq->events == 1000) {
			ibv_ack_cq_events(raw, cq->events);
			cq->events = 0;
		}
		if (poller->cq_count == 1)
			return; /* no other queue has an event: save the system call that would find none */
	}
}

void gw_verbs_cqs_arm(struct verbs_poller *poller)
{
	if (poller->heard)
		take_events(poller);
	for (uint32_t i = 0; i < poller->cq_count; i++)
		if (!poller->cqs[i]->armed)
			poller->cqs[i]->armed = ibv_req_notify_cq(poller->cqs[i]->ibv, 0) == 0;
}
