/* One group's part of one device: a channel, completion queues (completion.c), and whose their completions are. A
 * completion names its queue pair by place and generation, so that one that comes late, after its queue pair has gone,
 * is nobody's.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "transport/verbs/verbs.h"

#define QUEUES_FIRST 16u
#define QUEUES_MAX   65536u
#define BATCH        32
#define BATCHES_MAX  64 /* in one look: peers that keep the device busy do not keep us here */

/* Interrupts of completion queues are spread over the processors that serve the device: each port takes the next
 * vector, beginning elsewhere in each process. */
static int next_vector(struct verbs_device *device)
{
	uint32_t turn = atomic_fetch_add(&device->vector, 1) + (uint32_t)getpid();
	int count = device->context->num_comp_vectors;
	return count > 1 ? (int)(turn % (uint32_t)count) : 0;
}

static gw_status port_create(struct verbs_loop *loop, struct verbs_device *device, struct verbs_port **out)
{
	*out = NULL;
	struct verbs_port *port = gw_calloc(1, sizeof(*port));
	if (!port)
		return GW_NO_MEMORY;
	port->loop = loop;
	port->device = device;
	port->vector = next_vector(device);
	for (uint32_t i = 0; i < VERBS_GATES_MAX; i++) {
		port->shares[i].gate = &device->gates[i];
		gw_verbs_share_work_out(&port->shares[i], 0);
	}
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
	status = gw_verbs_nonblocking(port->channel->fd);
	if (!status)
		status = gw_verbs_watch(loop, port->channel->fd);
	if (status)
		goto destroy_channel;
	pthread_mutex_init(&port->queues_lock, NULL);
	gw_verbs_async_join(port);
	*out = port;
	return GW_OK;

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
	assert(!port->queue_count);
	gw_verbs_async_leave(port);
	gw_verbs_unwatch(port->loop, port->channel->fd);
	for (uint32_t i = 0; i < VERBS_GATES_MAX; i++)
		gw_verbs_share_settle(&port->shares[i]);
	gw_verbs_cqs_end(port);
	gw_verbs_domains_end(port);
	ibv_destroy_comp_channel(port->channel);
	port->loop->ports[port->index] = NULL;
	port->loop->port_count--;
	gw_verbs_device_put(port->device);
	pthread_mutex_destroy(&port->queues_lock);
	gw_free(port->queues);
	gw_free(port);
}

/* A free place, if need be in a larger table. */
static gw_status find_place(struct verbs_port *port, uint32_t *place)
{
	uint32_t slot = 0;
	while (slot < port->queue_capacity && port->queues[slot])
		slot++;
	*place = slot;
	if (slot == QUEUES_MAX)
		return gw_fail(GW_LIMIT, "more than %u queue pairs of one thread on one RDMA device", QUEUES_MAX);
	if (slot < port->queue_capacity)
		return GW_OK;
	pthread_mutex_lock(&port->queues_lock);
	struct verbs_queue **queues = gw_realloc(port->queues, 2ul * slot, sizeof(struct verbs_queue *));
	if (queues) {
		memset(queues + slot, 0, slot * sizeof(struct verbs_queue *));
		port->queues = queues;
		port->queue_capacity = 2 * slot;
	}
	pthread_mutex_unlock(&port->queues_lock);
	return queues ? GW_OK : GW_NO_MEMORY;
}

static void place_set(struct verbs_port *port, uint32_t slot, struct verbs_queue *queue)
{
	pthread_mutex_lock(&port->queues_lock);
	port->queues[slot] = queue;
	pthread_mutex_unlock(&port->queues_lock);
}

gw_status gw_verbs_port_enter(struct verbs_port *port, struct verbs_queue *queue, uint32_t entries)
{
	uint32_t slot;
	gw_status status = find_place(port, &slot);
	if (status)
		return status;
	status = gw_verbs_cq_enter(port, entries, &queue->cq);
	if (status)
		return status;
	port->generation++;
	port->queue_count++;
	queue->slot = slot;
	queue->name = (uint64_t)port->generation << 16 | slot;
	place_set(port, slot, queue);
	return GW_OK;
}

void gw_verbs_port_leave(struct verbs_port *port, struct verbs_queue *queue, uint32_t entries)
{
	assert(port->queues[queue->slot] == queue);
	place_set(port, queue->slot, NULL);
	port->queue_count--;
	gw_verbs_cq_leave(queue->cq, entries);
}

static bool poll_one(struct verbs_port *port, struct ibv_cq *cq)
{
	struct ibv_wc batch[BATCH];
	bool worked = false;
	for (int turn = 0; turn < BATCHES_MAX; turn++) {
		int n = ibv_poll_cq(cq, BATCH, batch);
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

bool gw_verbs_port_poll(struct verbs_port *port)
{
	bool worked = false;
	for (uint32_t i = 0; i < port->cq_count; i++)
		worked |= poll_one(port, port->cqs[i]->cq);
	return worked;
}
