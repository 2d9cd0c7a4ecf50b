/* What devices say about themselves.
 *
 *   event ─▶ which queue pairs: one, a completion queue's, a port's, the device's ─▶ noted ─▶ their loops are woken
 *                                                                                    └─▶ failed by their threads
 *
 * Any thread may be the one that reads an event, and queue pairs belong to others: what it tells is noted beside the
 * queue pair, and its own thread acts on it. What an event names cannot be destroyed until the event is acknowledged
 * (ibv_get_async_event(3)), and that is after it was noted. librdmacm opens a device once for the whole process, so
 * events of other libraries' queue pairs come here, too: those are nobody's of ours.
 */
#include <string.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/verbs/verbs.h"

static void async_wake(struct verbs_loop *loop)
{
	uint64_t one = 1;
	(void)!write(loop->wake_fd, &one, sizeof(one));
}

/* false: it was told before. A device may say the same for every completion that it drops. */
static bool async_notify(struct verbs_qp *qp, enum ibv_event_type type)
{
	int none = 0;
	return atomic_compare_exchange_strong(&qp->trouble, &none, 1 + (int)type);
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

enum concern { CONCERNS_NOBODY, CONCERNS_AGAIN, CONCERNS_SOMEBODY };

/* Notes it beside the queue pairs of this poller that it concerns. Those of a completion queue are all of its, which
 * takes no more. */
static enum concern port_concerned(struct verbs_poller *poller, const struct ibv_async_event *event)
{
	bool of_cq = event->event_type == IBV_EVENT_CQ_ERR;
	enum concern found = CONCERNS_NOBODY;
	const struct verbs_cq *cq = NULL;
	pthread_mutex_lock(&poller->qps_lock);
	for (uint32_t i = 0; i < poller->cq_count && of_cq; i++)
		if (poller->cqs[i]->ibv == event->element.cq) {
			found = atomic_exchange(&poller->cqs[i]->failed, true) ? CONCERNS_AGAIN : CONCERNS_SOMEBODY;
			cq = poller->cqs[i];
		}
	for (uint32_t i = 0; i < poller->qp_capacity; i++) {
		struct verbs_qp *qp = poller->qps[i];
		if (!qp || (of_cq ? qp->cq != cq : atomic_load(&qp->qp_num) != event->element.qp->qp_num))
			continue;
		bool first = async_notify(qp, event->event_type);
		found = first || found == CONCERNS_SOMEBODY ? CONCERNS_SOMEBODY : CONCERNS_AGAIN;
	}
	pthread_mutex_unlock(&poller->qps_lock);
	if (found == CONCERNS_SOMEBODY) {
		atomic_store(&poller->loop->troubled, true);
		async_wake(poller->loop);
	}
	return found;
}

static void async_concern(struct verbs_device *device, const struct ibv_async_event *event, const char *name)
{
	enum concern found = CONCERNS_NOBODY;
	for (struct verbs_poller *poller = device->pollers; poller && !found; poller = poller->next)
		found = port_concerned(poller, event);
	if (found == CONCERNS_SOMEBODY)
		gw_log(GW_LOG_WARN, "RDMA device %s: %s: its connections are ended", name,
		       ibv_event_type_str(event->event_type));
	else if (found == CONCERNS_NOBODY)
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

/* Its connections wait for a while: a port that comes back soon has cost nothing, since devices send again. */
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
		gw_log(GW_LOG_WARN, "RDMA device %s: %s: it is given up", name, ibv_event_type_str(event->event_type));
		gw_verbs_device_dead(device);
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		gw_log(event->event_type == IBV_EVENT_PORT_ERR ? GW_LOG_WARN : GW_LOG_INFO,
		       "RDMA device %s, port %d: %s", name, event->element.port_num,
		       ibv_event_type_str(event->event_type));
		port_state(device, event->element.port_num, event->event_type == IBV_EVENT_PORT_ERR);
		break;
	case IBV_EVENT_SRQ_ERR: /* we make neither of these: they are somebody else's in this process */
	case IBV_EVENT_WQ_FATAL:
		gw_log(GW_LOG_INFO, "RDMA device %s: %s, of another user of the device", name,
		       ibv_event_type_str(event->event_type));
		break;
	default: /* established, drained, migrated; addresses, keys and managers that change: connections go on */
		gw_log(GW_LOG_DEBUG, "RDMA device %s: %s", name, ibv_event_type_str(event->event_type));
		break;
	}
}

void gw_verbs_async_take(struct verbs_loop *loop)
{
	if (!atomic_exchange(&loop->troubled, false))
		return;
	loop->next_timer_ns = 0; /* devices and ports are looked at there */
	for (uint32_t p = 0; p < VERBS_POLLERS_MAX; p++) {
		struct verbs_poller *poller = loop->pollers[p];
		for (uint32_t i = 0; poller && i < poller->qp_capacity; i++) {
			struct verbs_qp *qp = poller->qps[i];
			int trouble = qp ? atomic_load(&qp->trouble) : 0;
			if (trouble)
				gw_verbs_qp_failed(qp, trouble);
		}
	}
}

const char *gw_verbs_qp_reason(const struct verbs_qp *qp)
{
	int trouble = atomic_load(&qp->trouble);
	return trouble ? ibv_event_type_str((enum ibv_event_type)(trouble - 1)) : ibv_wc_status_str(qp->failure);
}
