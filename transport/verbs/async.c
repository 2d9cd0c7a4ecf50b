/* What devices say about themselves.
 *
 *   event ─▶ whom it concerns: a queue pair, a completion queue's, a port's, everybody's ─▶ noted ─▶ their loops are
 * woken └─▶ lost by their threads
 *
 * Any thread may be the one that reads an event, and queue pairs belong to others: what it tells is noted beside the
 * queue pair, and its own thread acts on it. What an event names cannot be destroyed until the event is acknowledged
 * (ibv_get_async_event(3)), and that is after it was noted. librdmacm opens a device once for the whole process, so
 * events of other libraries' queue pairs come here, too: those are nobody's of ours.
 */
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/verbs/verbs.h"

static void wake(struct verbs_loop *loop)
{
	uint64_t one = 1;
	(void)!write(loop->wake_fd, &one, sizeof(one));
}

/* false: it was told before. A device may say the same for every completion that it drops. */
static bool tell(struct verbs_queue *queue, enum ibv_event_type type)
{
	int none = 0;
	return atomic_compare_exchange_strong(&queue->trouble, &none, 1 + (int)type);
}

void gw_verbs_async_join(struct verbs_port *port)
{
	pthread_mutex_lock(&gw_verbs_lock);
	port->next = port->device->ports;
	port->device->ports = port;
	pthread_mutex_unlock(&gw_verbs_lock);
}

void gw_verbs_async_leave(struct verbs_port *port)
{
	pthread_mutex_lock(&gw_verbs_lock);
	struct verbs_port **at = &port->device->ports;
	while (*at != port)
		at = &(*at)->next;
	*at = port->next;
	pthread_mutex_unlock(&gw_verbs_lock);
}

enum concern { CONCERNS_NOBODY, CONCERNS_AGAIN, CONCERNS_SOMEBODY };

/* Notes it beside the queue pairs of this port that it concerns. Those of a completion queue are all of its, which
 * takes no more. */
static enum concern port_concerned(struct verbs_port *port, const struct ibv_async_event *event)
{
	bool of_cq = event->event_type == IBV_EVENT_CQ_ERR;
	enum concern found = CONCERNS_NOBODY;
	const struct verbs_cq *cq = NULL;
	pthread_mutex_lock(&port->queues_lock);
	for (uint32_t i = 0; i < port->cq_count && of_cq; i++)
		if (port->cqs[i]->cq == event->element.cq) {
			found = atomic_exchange(&port->cqs[i]->failed, true) ? CONCERNS_AGAIN : CONCERNS_SOMEBODY;
			cq = port->cqs[i];
		}
	for (uint32_t i = 0; i < port->queue_capacity; i++) {
		struct verbs_queue *queue = port->queues[i];
		if (!queue || (of_cq ? queue->cq != cq : atomic_load(&queue->qp_num) != event->element.qp->qp_num))
			continue;
		bool first = tell(queue, event->event_type);
		found = first || found == CONCERNS_SOMEBODY ? CONCERNS_SOMEBODY : CONCERNS_AGAIN;
	}
	pthread_mutex_unlock(&port->queues_lock);
	if (found == CONCERNS_SOMEBODY) {
		atomic_store(&port->loop->troubled, true);
		wake(port->loop);
	}
	return found;
}

static void concern(struct verbs_device *device, const struct ibv_async_event *event, const char *name)
{
	enum concern found = CONCERNS_NOBODY;
	for (struct verbs_port *port = device->ports; port && !found; port = port->next)
		found = port_concerned(port, event);
	if (found == CONCERNS_SOMEBODY)
		gw_log(GW_LOG_WARN, "RDMA device %s: %s: its connections are ended", name,
		       ibv_event_type_str(event->event_type));
	else if (found == CONCERNS_NOBODY)
		gw_log(GW_LOG_INFO, "RDMA device %s: %s, of nobody's here", name,
		       ibv_event_type_str(event->event_type));
}

void gw_verbs_device_dead(struct verbs_device *device)
{
	atomic_store(&device->dead, true);
	for (struct verbs_port *port = device->ports; port; port = port->next) {
		atomic_store(&port->loop->troubled, true);
		wake(port->loop);
	}
}

/* Its connections wait for a while: a port that comes back soon has cost nothing, since devices send again. */
static void port_state(struct verbs_device *device, int number, bool down)
{
	uint32_t place = number > 0 && number <= (int)VERBS_GATES_MAX ? (uint32_t)number - 1 : VERBS_GATES_MAX - 1;
	atomic_store(&device->gates[place].down_ns, down ? gw_now_ns() : 0);
	for (struct verbs_port *port = device->ports; port && down; port = port->next) {
		atomic_store(&port->loop->troubled, true);
		wake(port->loop);
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
		concern(device, event, name);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		gw_log(GW_LOG_WARN, "RDMA device %s: %s: everybody lets go of it", name,
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
	case IBV_EVENT_SRQ_ERR: /* we make neither of these: they are somebody else's in this process */
	case IBV_EVENT_WQ_FATAL:
		gw_log(GW_LOG_INFO, "RDMA device %s: %s, of nobody's here", name,
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
	for (uint32_t p = 0; p < VERBS_PORTS_MAX; p++) {
		struct verbs_port *port = loop->ports[p];
		for (uint32_t i = 0; port && i < port->queue_capacity; i++) {
			struct verbs_queue *queue = port->queues[i];
			int trouble = queue ? atomic_load(&queue->trouble) : 0;
			if (trouble)
				gw_verbs_queue_failed(queue, trouble);
		}
	}
}

const char *gw_verbs_queue_reason(const struct verbs_queue *queue)
{
	int trouble = atomic_load(&queue->trouble);
	return trouble ? ibv_event_type_str((enum ibv_event_type)(trouble - 1)) : ibv_wc_status_str(queue->failure);
}
