/* A poll group's part of one device: a channel, completion queues (cq_create.c), and the table that finds the queue
 * pair of a completion. A completion names its queue pair by slot and generation. A completion that arrives after its
 * queue pair has ended therefore matches no queue pair.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "transport/verbs/verbs.h"

#define QPS_FIRST   16u
#define QPS_MAX     65536u
#define BATCH       32
#define BATCHES_MAX 64 /* in one poll: the loop must return even while peers keep the device busy */

/* Spreads the interrupts of completion queues over the processors that serve the device. Each poller takes the next
 * vector; each process starts at a different one. */
static int next_vector(struct verbs_device *device)
{
	uint32_t turn = atomic_fetch_add(&device->vector, 1) + (uint32_t)getpid();
	int count = device->context->num_comp_vectors;
	return count > 1 ? (int)(turn % (uint32_t)count) : 0;
}

static gw_status poller_create(struct verbs_loop *loop, struct verbs_device *device, struct verbs_poller **out)
{
	*out = NULL;
	struct verbs_poller *poller = gw_calloc(1, sizeof(*poller));
	if (!poller)
		return GW_NO_MEMORY;
	poller->loop = loop;
	poller->device = device;
	poller->vector = next_vector(device);
	for (uint32_t i = 0; i < VERBS_PORTS_MAX; i++) {
		poller->shares[i].port = &device->ports[i];
		gw_verbs_share_work_out(&poller->shares[i], 0);
	}
	gw_status status = GW_OK;
	poller->channel = ibv_create_comp_channel(device->context);
	if (!poller->channel) {
		status = gw_verbs_object_fail(device->context, errno, "RDMA completion channel");
		goto free_poller;
	}
	status = gw_verbs_nonblocking(poller->channel->fd);
	if (status == GW_OK)
		status = gw_verbs_watch(loop, poller->channel->fd);
	if (status != GW_OK)
		goto destroy_channel;
	pthread_mutex_init(&poller->qps_lock, NULL);
	gw_verbs_async_join(poller);
	*out = poller;
	return GW_OK;

destroy_channel:
	ibv_destroy_comp_channel(poller->channel);
free_poller:
	gw_free(poller);
	return status;
}

gw_status gw_verbs_poller_get(struct verbs_loop *loop, struct rdma_cm_id *id, struct verbs_poller **out)
{
	struct verbs_poller **place = NULL;
	struct verbs_device *device;
	*out = NULL;
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++) {
		struct verbs_poller *poller = loop->pollers[i];
		if (poller && poller->device->context == id->verbs) {
			if (atomic_load(&poller->device->dead))
				return gw_fail(GW_PEER_LOST, "the RDMA device is being removed");
			*out = poller;
			return GW_OK;
		}
		if (!poller && !place)
			place = &loop->pollers[i];
	}
	if (!place)
		return gw_fail(GW_LIMIT, "more than %u RDMA devices in one thread", VERBS_POLLERS_MAX);
	gw_status status = gw_verbs_device_get(id, &device);
	if (status != GW_OK)
		return status;
	status = poller_create(loop, device, out);
	if (status != GW_OK) {
		gw_verbs_device_put(device);
		return status;
	}
	(*out)->index = (uint32_t)(place - loop->pollers);
	*place = *out;
	loop->poller_count++;
	return GW_OK;
}

void gw_verbs_poller_destroy(struct verbs_poller *poller)
{
	assert(!poller->qp_count);
	gw_verbs_async_leave(poller);
	gw_verbs_unwatch(poller->loop, poller->channel->fd);
	for (uint32_t i = 0; i < VERBS_PORTS_MAX; i++)
		gw_verbs_share_settle(&poller->shares[i]);
	gw_verbs_cqs_end(poller);
	gw_verbs_domains_end(poller);
	ibv_destroy_comp_channel(poller->channel);
	poller->loop->pollers[poller->index] = NULL;
	poller->loop->poller_count--;
	gw_verbs_device_put(poller->device);
	pthread_mutex_destroy(&poller->qps_lock);
	gw_free(poller->qps);
	gw_free(poller->free_slots);
	gw_free(poller);
}

/* The table is full or empty. */
static gw_status poller_grow(struct verbs_poller *poller)
{
	uint32_t count = poller->qp_capacity, more = count ? count : QPS_FIRST;
	if (count == QPS_MAX)
		return gw_fail(GW_LIMIT, "more than %u queue pairs of one thread on one RDMA device", QPS_MAX);
	uint32_t *free_slots = gw_realloc(poller->free_slots, count + more, sizeof(*free_slots));
	if (!free_slots)
		return GW_NO_MEMORY;
	poller->free_slots = free_slots;
	pthread_mutex_lock(&poller->qps_lock);
	struct verbs_qp **qps = gw_realloc(poller->qps, count + more, sizeof(struct verbs_qp *));
	if (qps) {
		memset(qps + count, 0, more * sizeof(struct verbs_qp *));
		poller->qps = qps;
		poller->qp_capacity = count + more;
	}
	pthread_mutex_unlock(&poller->qps_lock);
	for (uint32_t slot = count + more; qps && slot-- > count;)
		free_slots[poller->free_count++] = slot; /* the lowest on top */
	return qps ? GW_OK : GW_NO_MEMORY;
}

static struct verbs_qp **number_chain(struct verbs_poller *poller, uint32_t qp_num)
{
	return &poller->by_number[qp_num % VERBS_CHAINS];
}

void gw_verbs_poller_number(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t qp_num)
{
	pthread_mutex_lock(&poller->qps_lock);
	struct verbs_qp **chain = number_chain(poller, qp_num);
	qp->qp_num = qp_num;
	qp->next_by_number = *chain;
	*chain = qp;
	pthread_mutex_unlock(&poller->qps_lock);
}

/* The queue pair is about to end: no event finds it any more. */
static void number_drop(struct verbs_poller *poller, struct verbs_qp *qp)
{
	pthread_mutex_lock(&poller->qps_lock);
	if (qp->qp_num)
		GW_SLIST_REMOVE(*number_chain(poller, qp->qp_num), qp, next_by_number);
	if (atomic_load(&qp->trouble))
		for (struct verbs_qp **at = &poller->troubled; *at; at = &(*at)->next_troubled)
			if (*at == qp) {
				*at = qp->next_troubled;
				break;
			}
	pthread_mutex_unlock(&poller->qps_lock);
}

static void slot_set(struct verbs_poller *poller, uint32_t slot, struct verbs_qp *qp)
{
	pthread_mutex_lock(&poller->qps_lock);
	poller->qps[slot] = qp;
	pthread_mutex_unlock(&poller->qps_lock);
}

gw_status gw_verbs_poller_enter(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t entries)
{
	gw_status status = poller->free_count ? GW_OK : poller_grow(poller);
	if (status != GW_OK)
		return status;
	status = gw_verbs_cq_enter(poller, entries, &qp->cq);
	if (status != GW_OK)
		return status;
	uint32_t slot = poller->free_slots[--poller->free_count];
	poller->generation++;
	poller->qp_count++;
	qp->slot = slot;
	qp->name = (uint64_t)poller->generation << 16 | slot;
	slot_set(poller, slot, qp);
	return GW_OK;
}

void gw_verbs_poller_leave(struct verbs_poller *poller, struct verbs_qp *qp, uint32_t entries)
{
	assert(poller->qps[qp->slot] == qp);
	number_drop(poller, qp);
	slot_set(poller, qp->slot, NULL);
	poller->free_slots[poller->free_count++] = qp->slot;
	poller->qp_count--;
	gw_verbs_cq_leave(qp->cq, entries);
}

static bool poll_one(struct verbs_poller *poller, struct ibv_cq *cq)
{
	struct ibv_wc batch[BATCH];
	bool worked = false;
	for (int turn = 0; turn < BATCHES_MAX; turn++) {
		int n = ibv_poll_cq(cq, BATCH, batch);
		for (int i = 0; i < n; i++) {
			uint64_t name = batch[i].wr_id >> 32;
			uint32_t slot = (uint32_t)(name & 0xffff);
			struct verbs_qp *qp = slot < poller->qp_capacity ? poller->qps[slot] : NULL;
			if (qp && qp->name == name)
				gw_verbs_qp_completed(qp, &batch[i]);
		}
		worked |= n > 0;
		if (n < BATCH)
			break;
	}
	return worked;
}

bool gw_verbs_poller_poll(struct verbs_poller *poller)
{
	bool worked = false;
	for (uint32_t i = 0; i < poller->cq_count; i++)
		worked |= poll_one(poller, poller->cqs[i]->ibv);
	return worked;
}
