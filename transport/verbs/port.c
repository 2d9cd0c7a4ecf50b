/* One group's completion queue on one device. It holds every completion that its queue pairs can have at once, flushes
 * included: it grows as they join, and says no when the device's limit is reached. A completion names its queue pair by
 * place and generation, so that one that comes late, after its queue pair has gone, is nobody's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/base/alloc.h"
#include "transport/verbs/verbs.h"

#define ENTRIES_FIRST 1024u
#define QUEUES_FIRST  16u
#define QUEUES_MAX    65536u
#define BATCH         32
#define BATCHES_MAX   64 /* in one look: peers that keep the device busy do not keep us here */

static gw_status port_create(struct verbs_loop *loop, struct verbs_device *device, struct verbs_port **out)
{
	*out = NULL;
	struct verbs_port *port = gw_calloc(1, sizeof(*port));
	if (!port)
		return GW_NO_MEMORY;
	port->loop = loop;
	port->device = device;
	gw_status status = GW_OK;
	port->queues = gw_calloc(QUEUES_FIRST, sizeof(struct verbs_queue *));
	if (!port->queues) {
		status = GW_NO_MEMORY;
		goto free_port;
	}
	port->queue_capacity = QUEUES_FIRST;
	port->channel = ibv_create_comp_channel(device->context);
	if (!port->channel) {
		status = gw_fail_errno(GW_IO, errno, "RDMA completion channel");
		goto free_queues;
	}
	port->cq = ibv_create_cq(device->context, (int)ENTRIES_FIRST, NULL, port->channel, 0);
	if (!port->cq) {
		status = gw_fail_errno(GW_IO, errno, "RDMA completion queue");
		goto destroy_channel;
	}
	fcntl(port->channel->fd, F_SETFL, fcntl(port->channel->fd, F_GETFL) | O_NONBLOCK);
	status = gw_verbs_watch(loop, port->channel->fd);
	if (status)
		goto destroy_queue;
	*out = port;
	return GW_OK;

destroy_queue:
	ibv_destroy_cq(port->cq);
destroy_channel:
	ibv_destroy_comp_channel(port->channel);
free_queues:
	gw_free(port->queues);
free_port:
	gw_free(port);
	return status;
}

gw_status gw_verbs_port_get(struct verbs_loop *loop, struct rdma_cm_id *id, struct verbs_port **out)
{
	struct verbs_port **place = NULL;
	struct verbs_device *device;
	*out = NULL;
	for (uint32_t i = 0; i < VERBS_PORTS_MAX; i++) {
		struct verbs_port *port = loop->ports[i];
		if (port && port->device->context == id->verbs) {
			if (atomic_load(&port->device->dead))
				return gw_fail(GW_PEER_LOST, "the RDMA device is being removed");
			*out = port;
			return GW_OK;
		}
		if (!port && !place)
			place = &loop->ports[i];
	}
	if (!place)
		return gw_fail(GW_LIMIT, "more than %u RDMA devices in one thread", VERBS_PORTS_MAX);
	gw_status status = gw_verbs_device_get(id, &device);
	if (status)
		return status;
	status = port_create(loop, device, out);
	if (status) {
		gw_verbs_device_put(device);
		return status;
	}
	(*out)->index = (uint32_t)(place - loop->ports);
	*place = *out;
	loop->port_count++;
	return GW_OK;
}

void gw_verbs_port_destroy(struct verbs_port *port)
{
	for (uint32_t i = 0; i < port->queue_capacity; i++)
		assert(!port->queues[i]);
	gw_verbs_unwatch(port->loop, port->channel->fd);
	if (port->events)
		ibv_ack_cq_events(port->cq, port->events);
	ibv_destroy_cq(port->cq);
	ibv_destroy_comp_channel(port->channel);
	port->loop->ports[port->index] = NULL;
	port->loop->port_count--;
	gw_verbs_device_put(port->device);
	gw_free(port->queues);
	gw_free(port);
}

gw_status gw_verbs_port_enter(struct verbs_port *port, struct verbs_queue *queue, uint32_t entries)
{
	uint32_t slot = 0, needed = port->entries_used + entries;
	while (slot < port->queue_capacity && port->queues[slot])
		slot++;
	if (slot == QUEUES_MAX || needed > (uint32_t)port->device->attr.max_cqe)
		return gw_fail(GW_LIMIT, "RDMA device %s has no completion entries left for one more queue pair",
			       ibv_get_device_name(port->device->context->device));
	if (slot == port->queue_capacity) {
		struct verbs_queue **queues = gw_realloc(port->queues, 2ul * slot, sizeof(struct verbs_queue *));
		if (!queues)
			return GW_NO_MEMORY;
		memset(queues + slot, 0, slot * sizeof(struct verbs_queue *));
		port->queues = queues;
		port->queue_capacity = 2 * slot;
	}
	if (needed > (uint32_t)port->cq->cqe) {
		uint32_t wanted = 2 * needed < (uint32_t)port->device->attr.max_cqe
					  ? 2 * needed
					  : (uint32_t)port->device->attr.max_cqe;
		int error = ibv_resize_cq(port->cq, (int)wanted);
		if (error)
			return gw_fail_errno(GW_IO, error, "RDMA completion queue of %u entries", wanted);
	}
	port->entries_used = needed;
	port->queues[slot] = queue;
	port->generation++;
	queue->slot = slot;
	queue->name = (uint64_t)port->generation << 16 | slot;
	return GW_OK;
}

void gw_verbs_port_leave(struct verbs_port *port, struct verbs_queue *queue, uint32_t entries)
{
	assert(port->queues[queue->slot] == queue);
	port->queues[queue->slot] = NULL;
	port->entries_used -= entries;
}

bool gw_verbs_port_poll(struct verbs_port *port)
{
	struct ibv_wc batch[BATCH];
	bool worked = false;
	for (int turn = 0; turn < BATCHES_MAX; turn++) {
		int n = ibv_poll_cq(port->cq, BATCH, batch);
		for (int i = 0; i < n; i++) {
			uint64_t name = batch[i].wr_id >> 32;
			uint32_t slot = (uint32_t)(name & 0xffff);
			struct verbs_queue *queue = slot < port->queue_capacity ? port->queues[slot] : NULL;
			if (queue && queue->name == name)
				gw_verbs_queue_completed(queue, &batch[i]);
		}
		worked |= n > 0;
		if (n < BATCH)
			break;
	}
	return worked;
}

/* The event that woke the loop is taken from the channel here, not when it came: what it told of goes out first, and
 * this passes while the next reads are on their way. There is one for each arming at most. */
static void take_event(struct verbs_port *port)
{
	struct ibv_cq *cq;
	void *context;
	port->heard = false;
	if (ibv_get_cq_event(port->channel, &cq, &context) != 0)
		return;
	port->armed = false;
	/* Acknowledging takes a lock: not each time, but before the count could overflow. */
	if (++port->events == 1000) {
		ibv_ack_cq_events(port->cq, port->events);
		port->events = 0;
	}
}

void gw_verbs_port_arm(struct verbs_port *port)
{
	if (port->heard)
		take_event(port);
	if (!port->armed)
		port->armed = ibv_req_notify_cq(port->cq, 0) == 0;
}
