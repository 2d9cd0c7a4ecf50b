/* The hub: the services of this process by name, and the clients linked to each.
 *
 * A client enters its link around each use of the service's memory. The thread that closes a listener marks the
 * listener closed, waits until no client is inside, and then removes the service from the links. Each side stores its
 * own flag before it checks the other's (sequentially consistent), so one of the two sees the other. A draining
 * listener removes the service at once from links without a deferred request, and from the other links after their last
 * deferred request. In a forked child, clients reach only services that the child has created. Fails on a name that is
 * taken or unknown, and on a full service.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/fork.h"
#include "transport/memory/memory.h"
#include "transport/service/replay_cache.h"

struct memory_listener {
	struct gw_listener base;
	struct memory_listener *next; /* in the hub's list, while accepting */
	bool accepting;
	_Atomic bool closed, draining;
	uint32_t references; /* owner, and one for each link; under the hub's lock */
	struct memory_link *links;
	uint32_t group_count, turn;
	pthread_mutex_t *group_locks;
};

static struct {
	pthread_mutex_t lock;
	struct memory_listener *listeners;
} hub = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* In a forked child the services are copies, which the parent's threads may have been using at the fork. So no client
 * may connect to them here. The child may close such a service; that close does not wait for the parent's threads. */
static void hub_forget(void)
{
	for (struct memory_listener *listener = hub.listeners; listener; listener = listener->next) {
		listener->accepting = false;
		for (struct memory_link *link = listener->links; link; link = link->next)
			atomic_store(&link->inside, false);
	}
	hub.listeners = NULL;
}

static struct gw_fork_guard guard = {.lock = &hub.lock, .in_child = hub_forget};

static struct memory_listener *hub_find(const char *name)
{
	struct memory_listener *listener = hub.listeners;
	while (listener && strcmp(listener->base.address.host, name) != 0)
		listener = listener->next;
	return listener;
}

/* The caller has locked the hub. */
static void hub_release(struct memory_listener *listener)
{
	if (--listener->references)
		return;
	for (uint32_t i = 0; i < listener->group_count; i++)
		pthread_mutex_destroy(&listener->group_locks[i]);
	gw_free(listener->group_locks);
	gw_free(listener);
}

gw_status gw_memory_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			   struct gw_service *service, int socket, struct gw_listener **out)
{
	(void)socket;
	(void)groups;
	*out = NULL;
	gw_fork_guard(&guard);
	struct memory_listener *listener = gw_calloc(1, sizeof(*listener));
	if (!listener)
		return GW_NO_MEMORY;
	listener->group_locks = gw_calloc(group_count, sizeof(*listener->group_locks));
	if (!listener->group_locks) {
		gw_free(listener);
		return GW_NO_MEMORY;
	}
	for (uint32_t i = 0; i < group_count; i++)
		pthread_mutex_init(&listener->group_locks[i], NULL);
	listener->base =
		(struct gw_listener){.transport = &gw_transport_memory, .address = *address, .service = service};
	listener->references = 1;
	listener->group_count = group_count;
	gw_status status = GW_OK;
	pthread_mutex_lock(&hub.lock);
	if (hub_find(address->host)) {
		status = gw_fail(GW_BUSY, "memory:%s is taken by this process", address->host);
		hub_release(listener);
	} else {
		listener->accepting = true;
		listener->next = hub.listeners;
		hub.listeners = listener;
		*out = &listener->base;
	}
	pthread_mutex_unlock(&hub.lock);
	return status;
}

/* The caller has locked the hub, also for all functions below that have a link as parameter. */
static void hub_stop_accepting(struct memory_listener *listener)
{
	if (!listener->accepting)
		return;
	GW_SLIST_REMOVE(hub.listeners, listener, next);
	listener->accepting = false;
}

static void leave_service(struct memory_link *link)
{
	for (struct memory_request *request = link->requests; request; request = request->next)
		gw_task_leave(&request->task);
	if (!link->service)
		return;
	gw_service_peer_end(link->service, &link->peer);
	if (link->window)
		gw_replay_disconnect(link->service->replay_cache, link->client_uuid);
	link->window = 0;
	gw_service_disconnect(link->service);
	link->service = NULL;
}

void gw_memory_listener_stop(struct gw_listener *base, bool close)
{
	struct memory_listener *listener = (struct memory_listener *)base;
	pthread_mutex_lock(&hub.lock);
	hub_stop_accepting(listener);
	if (close) {
		atomic_store(&listener->closed, true);
		for (struct memory_link *link = listener->links; link; link = link->next) {
			while (atomic_load(&link->inside))
				sched_yield();
			leave_service(link);
		}
	}
	pthread_mutex_unlock(&hub.lock);
}

void gw_memory_listener_drain(struct gw_listener *base)
{
	struct memory_listener *listener = (struct memory_listener *)base;
	pthread_mutex_lock(&hub.lock);
	hub_stop_accepting(listener);
	atomic_store(&listener->draining, true);
	for (struct memory_link *link = listener->links; link; link = link->next) {
		while (atomic_load(&link->inside))
			sched_yield();
		if (!link->requests)
			leave_service(link);
	}
	pthread_mutex_unlock(&hub.lock);
}

void gw_memory_idle(struct memory_link *link)
{
	pthread_mutex_lock(&hub.lock);
	if (atomic_load(&link->listener->draining))
		leave_service(link);
	pthread_mutex_unlock(&hub.lock);
}

void gw_memory_listener_free(struct gw_listener *base)
{
	struct memory_listener *listener = (struct memory_listener *)base;
	gw_memory_listener_stop(base, true);
	pthread_mutex_lock(&hub.lock);
	hub_release(listener);
	pthread_mutex_unlock(&hub.lock);
}

gw_status gw_memory_join(const char *name, struct memory_link *link)
{
	gw_fork_guard(&guard);
	pthread_mutex_lock(&hub.lock);
	struct memory_listener *listener = hub_find(name);
	gw_status status = listener ? gw_service_enter(listener->base.service)
				    : gw_fail(GW_PEER_LOST, "memory:%s: this process has no such service", name);
	if (status == GW_OK) {
		listener->references++;
		link->listener = listener;
		link->service = listener->base.service;
		gw_service_peer_begin(link->service, &link->peer);
		link->thread = listener->turn++ % listener->group_count;
		link->requests_end = &link->requests;
		GW_LIST_INSERT(listener->links, link);
	}
	pthread_mutex_unlock(&hub.lock);
	return status;
}

void gw_memory_part(struct memory_link *link)
{
	if (!link->listener)
		return;
	pthread_mutex_lock(&hub.lock);
	GW_LIST_REMOVE(link);
	leave_service(link);
	hub_release(link->listener);
	link->listener = NULL;
	pthread_mutex_unlock(&hub.lock);
}

bool gw_memory_enter(struct memory_link *link)
{
	if (!link->listener)
		return false;
	const struct memory_listener *listener = link->listener;
	atomic_store(&link->inside, true);
	if (!atomic_load(&listener->closed) && (!atomic_load(&listener->draining) || link->requests))
		return true;
	atomic_store(&link->inside, false);
	return false;
}

bool gw_memory_moved(const struct memory_link *link)
{
	return link->listener && atomic_load(&link->listener->base.moved);
}

void gw_memory_await_stop(void)
{
	pthread_mutex_lock(&hub.lock);
	pthread_mutex_unlock(&hub.lock);
}

void gw_memory_disconnect(struct memory_link *link)
{
	atomic_store_explicit(&link->inside, false, memory_order_release);
}

gw_status gw_memory_run(struct memory_link *link, struct gw_task *task)
{
	pthread_mutex_t *lock = &link->listener->group_locks[link->thread];
	pthread_mutex_lock(lock);
	gw_status status = gw_task_run(task);
	pthread_mutex_unlock(lock);
	return status;
}
