/* The completion queues of a poller: made, resized, armed. They are polled in cq_poller.c.
 *
 *   a queue pair enters ─▶ room in one that is there, else ─▶ the newest is made larger, else ─▶ another one is made
 *
 * A completion queue that overflows is lost with all that it had to tell, so it has an entry for everything that its
 * queue pairs can have in flight at once, flushes included. How many enter is not known beforehand. Most drivers resize
 * a completion queue; some do not, or not with work in flight, and for those another one is made, on the same channel,
 * twice as large: few are ever polled. Fails when the device's limits are reached.
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

/* The newest is made larger; NULL: it cannot be. */
static struct verbs_cq *cq_resized(const struct verbs_poller *poller, uint32_t entries)
{
	uint32_t most = (uint32_t)poller->device->attr.max_cqe;
	struct verbs_cq *cq = poller->cq_count ? poller->cqs[poller->cq_count - 1] : NULL;
	if (!cq || atomic_load(&cq->failed) || cq->used + entries > most)
		return NULL;
	int error = ibv_resize_cq(cq->ibv, (int)cq_least(2 * (cq->used + entries), most));
	if (error)
		gw_log(GW_LOG_INFO, "RDMA device %s does not resize a completion queue (%s): another one is made",
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
	/* Others look for it there when an event tells of it. */
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

/* A failed one goes with its last queue pair; the others stay for the next. */
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

/* The events that woke the loop are taken from the channel here, not when they came: what they told of goes out first,
 * and this passes while the next reads are on their way. There is one for each arming at most. */
static void take_events(struct verbs_poller *poller)
{
	struct ibv_cq *raw;
	void *context;
	poller->heard = false;
	while (ibv_get_cq_event(poller->channel, &raw, &context) == 0) {
		struct verbs_cq *cq = context;
		cq->armed = false;
		/* Acknowledging takes a lock: not each time, but before the count could overflow. */
		if (++cq->events == 1000) {
			ibv_ack_cq_events(raw, cq->events);
			cq->events = 0;
		}
		if (poller->cq_count == 1)
			return; /* there is no other: a look that finds nothing costs a system call */
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
