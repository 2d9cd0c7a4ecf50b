/* Asynchronous events of devices.
 *
 *   event ─▶ marked: the queue pair, all of the completion queue, the port or the device ─▶ the loops are woken
 *                                                                                              └─▶ their threads act
 *
 * Any thread may read an event, but a queue pair belongs to its loop's thread. The reader therefore only sets a mark,
 * and the loop's thread acts on it. The object that an event names cannot be destroyed until the event is acknowledged
 * (ibv_get_async_event(3)), and the reader acknowledges the event after marking. librdmacm opens a device once for the
 * whole process, so events of other libraries' queue pairs arrive here too. They match no queue pair of ours.
 */
#include <sys/eventfd.h>

#include "core/errors/log.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/verbs/verbs.h"

static void async_wake(struct verbs_loop *loop)
{
	eventfd_write(loop->wake_fd, 1);
}

/* Marks the queue pair; false: it was marked already. A device may repeat an event for every completion that it
 * drops. The caller holds the poller's qps_lock. */
static bool async_notify(struct verbs_qp *qp, enum ibv_event_type type)
{
	int none = 0;
	if (!atomic_compare_exchange_strong(&qp->trouble, &none, 1 + (int)type))
		return false;
	qp->next_troubled = qp->poller->troubled;
	qp->poller->troubled = qp;
	return true;
}

void gw_verbs_async_join(struct verbs_poller *poller)
{
	pthread_mutex_lock(&gw_verbs_lock);
	poller->next = poller->device->pollers;
	poller->device->pollers = poller;
	pthread_mutex_unlock(&gw_verbs_lock);
}

void gw_verbs_async_leave(struct verbs_poller *poller)
{
	pthread_mutex_lock(&gw_verbs_lock);
	GW_SLIST_REMOVE(poller->device->pollers, poller, next);
	pthread_mutex_unlock(&gw_verbs_lock);
}

enum concern { CONCERNS_NONE, CONCERNS_AGAIN, CONCERNS_NEW };

static enum concern concern_of(bool first)
{
	return first ? CONCERNS_NEW : CONCERNS_AGAIN;
}

/* Marks a completion queue, which takes no new queue pairs, and all of its queue pairs. */
static enum concern cq_concerned(struct verbs_poller *poller, const struct ibv_async_event *event)
{
	enum concern found = CONCERNS_NONE;
	const struct verbs_cq *cq = NULL;
	for (uint32_t i = 0; i < poller->cq_count; i++)
		if (poller->cqs[i]->ibv == event->element.cq) {
			found = concern_of(!atomic_exchange(&poller->cqs[i]->failed, true));
			cq = poller->cqs[i];
		}
	for (uint32_t i = 0; i < poller->qp_capacity && cq; i++)
		if (poller->qps[i] && poller->qps[i]->cq == cq && async_notify(poller->qps[i], event->event_type))
			found = CONCERNS_NEW;
	return found;
}

static enum concern qp_concerned(struct verbs_poller *poller, const struct ibv_async_event *event)
{
	uint32_t qp_num = event->element.qp->qp_num;
	struct verbs_qp *qp = poller->by_number[qp_num % VERBS_CHAINS];
	while (qp && qp->qp_num != qp_num)
		qp = qp->next_by_number;
	return qp ? concern_of(async_notify(qp, event->event_type)) : CONCERNS_NONE;
}

static enum concern port_concerned(struct verbs_poller *poller, const struct ibv_async_event *event)
{
	pthread_mutex_lock(&poller->qps_lock);
	enum concern found =
		event->event_type == IBV_EVENT_CQ_ERR ? cq_concerned(poller, event) : qp_concerned(poller, event);
	pthread_mutex_unlock(&poller->qps_lock);
	if (found == CONCERNS_NEW) {
		atomic_store(&poller->loop->troubled, true);
		async_wake(poller->loop);
	}
	return found;
}

static void async_concern(struct verbs_device *device, const struct ibv_async_event *event, const char *name)
{
	enum concern found = CONCERNS_NONE;
	for (struct verbs_poller *poller = device->pollers; poller && !found; poller = poller->next)
		found = port_concerned(poller, event);
	if (found == CONCERNS_NEW)
		gw_log(GW_LOG_WARN, "RDMA device %s: %s: its connections are ended", name,
		       ibv_event_type_str(event->event_type));
	else if (found == CONCERNS_NONE)
		gw_log(GW_LOG_INFO, "RDMA device %s: %s, of another user of the device", name,
		       ibv_event_type_str(event->event_type));
}

void gw_verbs_device_dead(struct verbs_device *device)
{
	atomic_store(&device->dead, true);
	for (struct verbs_poller *poller = device->pollers; poller; poller = poller->next) {
		atomic_store(&poller->loop->troubled, true);
		async_wake(poller->loop);
	}
}

/* Connections outlive a port that is down for a short time, because devices retransmit. */
static void port_state(struct verbs_device *device, int number, bool down)
{
	uint32_t place = number > 0 && number <= (int)VERBS_PORTS_MAX ? (uint32_t)number - 1 : VERBS_PORTS_MAX - 1;
	atomic_store(&device->ports[place].down_ns, down ? gw_now_ns() : 0);
	for (struct verbs_poller *poller = device->pollers; poller && down; poller = poller->next) {
		atomic_store(&poller->loop->troubled, true);
		async_wake(poller->loop);
	}
}

void gw_verbs_async(struct verbs_device *device, const struct ibv_async_event *event)
{
	const char *name = ibv_get_device_name(device->context->device);
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		async_concern(device, event, name);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		gw_log(GW_LOG_WARN, "RDMA device %s: %s: the device is not used any more", name,
		       ibv_event_type_str(event->event_type));
		gw_verbs_device_dead(device);
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		gw_log(event->event_type == IBV_EVENT_PORT_ERR ? GW_LOG_WARN : GW_LOG_INFO,
		       "RDMA device %s, port %d: %s", name, event->element.port_num,
		       ibv_event_type_str(event->event_type));
		port_state(device, event->element.port_num, event->event_type == IBV_EVENT_PORT_ERR);
		break;
	case IBV_EVENT_SRQ_ERR: /* Graphwire creates no SRQ and no WQ: these events belong to other code of this process
				 */
	case IBV_EVENT_WQ_FATAL:
		gw_log(GW_LOG_INFO, "RDMA device %s: %s, of another user of the device", name,
		       ibv_event_type_str(event->event_type));
		break;
	default: /* established, drained, migrated, changes of addresses, keys or managers: connections go on */
		gw_log(GW_LOG_DEBUG, "RDMA device %s: %s", name, ibv_event_type_str(event->event_type));
		break;
	}
}
