/* The memory regions (MRs) of dynamic regions: those of tensors, which are published and withdrawn while clients read
 * other regions.
 *
 *   publish ─▶ the publishing thread registers every slice on every rail (device) ─▶ clients can find the region
 *   listen  ─▶ the listening thread registers the regions published before ─▶ clients can connect
 *   a client that has pinned the region asks over TCP (GW_OP_KEYS) ─▶ the region's place and the keys of one rail
 *   withdrawn, and the last client has released it ─▶ a thread deregisters ─▶ `freed`: the owner has its memory back
 *
 * So no key of a region outlives its memory, and a key becomes invalid only after each client was asked to forget it.
 * The time to register or deregister grows with the number of pages, so no serving thread does it. A thread of this
 * file deregisters; it starts with the first region. When a rail is removed, its MRs are deregistered.
 *
 * If a region cannot be registered (the locked-memory limit, no thread, no memory), it is published all the same.
 * Clients that ask for its keys get GW_UNSUPPORTED, and request rows instead.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/parallel.h"
#include "core/system/thread.h"
#include "transport/verbs/listener_private.h"

struct verbs_dynamic_mrs {
	struct verbs_dynamic_mrs *next, **previous; /* of the listener */
	struct verbs_dynamic_mrs *next_removed;
	struct gw_dynamic_region what;
	struct handshake_region place;
	struct ibv_mr **mrs; /* rail by rail; NULL on a removed rail */
	uint32_t *keys;      /* the MRs' keys, in the same order; kept on a removed rail */
};

static struct verbs_listener *dynamic_mrs_listener(struct gw_dynamic_region_registrar *registrar)
{
	return (struct verbs_listener *)(void *)((uint8_t *)registrar -
						 offsetof(struct verbs_listener, dynamic.registrar));
}

/* The caller holds rails_lock. */
static void dynamic_mrs_deregister(struct verbs_dynamic_mrs *dynamic, const struct verbs_listener *listener,
				   uint32_t rail)
{
	struct ibv_mr **mrs = dynamic->mrs + (size_t)rail * dynamic->place.slice_count;
	assert(rail < listener->rail_count);
	for (uint32_t i = 0; i < dynamic->place.slice_count; i++) {
		if (mrs[i])
			ibv_dereg_mr(mrs[i]);
		mrs[i] = NULL;
	}
}

static void dynamic_mrs_free(struct verbs_dynamic_mrs *dynamic)
{
	gw_free(dynamic->mrs);
	gw_free(dynamic->keys);
	gw_free(dynamic);
}

static void dynamic_mrs_end(struct verbs_listener *listener, struct verbs_dynamic_mrs *dynamic)
{
	pthread_mutex_lock(&listener->dynamic.rails_lock);
	for (uint32_t rail = 0; rail < listener->rail_count; rail++)
		dynamic_mrs_deregister(dynamic, listener, rail);
	GW_LIST_REMOVE(dynamic);
	pthread_mutex_unlock(&listener->dynamic.rails_lock);
	dynamic_mrs_free(dynamic);
}

/* --- The thread. --- */

static void *dynamic_mrs_run(void *argument)
{
	struct verbs_listener *listener = argument;
	pthread_mutex_lock(&listener->dynamic.lock);
	for (;;) {
		struct verbs_dynamic_mrs *dynamic = listener->dynamic.removed;
		if (!dynamic && listener->dynamic.stop)
			break;
		if (!dynamic) {
			pthread_cond_wait(&listener->dynamic.changed, &listener->dynamic.lock);
			continue;
		}
		listener->dynamic.removed = dynamic->next_removed;
		pthread_mutex_unlock(&listener->dynamic.lock);
		struct gw_dynamic_region what = dynamic->what;
		dynamic_mrs_end(listener, dynamic);
		if (what.freed)
			what.freed(what.context);
		pthread_mutex_lock(&listener->dynamic.lock);
	}
	pthread_mutex_unlock(&listener->dynamic.lock);
	return NULL;
}

/* With the first region. One thread at a time calls this. */
static gw_status dynamic_mrs_start(struct verbs_listener *listener)
{
	if (listener->dynamic.started)
		return GW_OK;
	int error = gw_thread_start(&listener->dynamic.thread, dynamic_mrs_run, listener);
	if (error)
		return gw_thread_failed(error, "cannot start the thread that deregisters memory");
	listener->dynamic.started = true;
	return GW_OK;
}

/* --- The registrar: calls by the service. --- */

struct dynamic_mrs_registering {
	struct verbs_dynamic_mrs *dynamic;
	struct ibv_pd *pd;
	uint64_t first; /* index of the rail's first MR */
};

static gw_status dynamic_mrs_register(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct dynamic_mrs_registering *work = context;
	const struct verbs_dynamic_mrs *dynamic = work->dynamic;
	for (uint64_t i = begin; i < end; i++) {
		struct ibv_mr **mr = &dynamic->mrs[work->first + i];
		gw_status status = gw_verbs_slice_register(work->pd, dynamic->what.base, dynamic->what.bytes,
							   dynamic->place.slice_shift, i, mr);
		if (status != GW_OK)
			return status;
		dynamic->keys[work->first + i] = (*mr)->rkey;
	}
	return GW_OK;
}

static void *dynamic_mrs_add(struct gw_dynamic_region_registrar *registrar, const struct gw_dynamic_region *region)
{
	struct verbs_listener *listener = dynamic_mrs_listener(registrar);
	if (dynamic_mrs_start(listener))
		return NULL;
	struct verbs_dynamic_mrs *dynamic = gw_calloc(1, sizeof(*dynamic));
	if (!dynamic)
		return NULL;
	dynamic->what = *region;
	dynamic->what.rows = NULL;
	dynamic->place = gw_verbs_place(region->base, region->bytes, region->slice_bytes);
	uint64_t count = (uint64_t)dynamic->place.slice_count * listener->rail_count;
	dynamic->mrs = gw_calloc(count ? count : 1, sizeof(struct ibv_mr *));
	dynamic->keys = gw_calloc(count ? count : 1, sizeof(*dynamic->keys));
	gw_status status = dynamic->mrs && dynamic->keys ? GW_OK : GW_NO_MEMORY;
	pthread_mutex_lock(&listener->dynamic.rails_lock);
	GW_LIST_INSERT(listener->dynamic.first, dynamic);
	for (uint32_t rail = 0; rail < listener->rail_count && status == GW_OK; rail++) {
		struct dynamic_mrs_registering work = {dynamic, listener->rails[rail].pd,
						       (uint64_t)rail * dynamic->place.slice_count};
		unsigned threads = region->bytes >> 28 ? 0 : 1;
		if (work.pd) /* a removed rail accepts no clients */
			status = gw_parallel_for(threads, dynamic->place.slice_count, 1, dynamic_mrs_register, &work);
	}
	pthread_mutex_unlock(&listener->dynamic.rails_lock);
	if (status == GW_OK)
		return dynamic;
	dynamic_mrs_end(listener, dynamic);
	return NULL;
}

static void dynamic_mrs_remove(struct gw_dynamic_region_registrar *registrar, void *registered)
{
	struct verbs_listener *listener = dynamic_mrs_listener(registrar);
	struct verbs_dynamic_mrs *dynamic = registered;
	pthread_mutex_lock(&listener->dynamic.lock);
	dynamic->next_removed = listener->dynamic.removed;
	listener->dynamic.removed = dynamic;
	pthread_cond_signal(&listener->dynamic.changed);
	pthread_mutex_unlock(&listener->dynamic.lock);
}

/* --- Questions of clients. --- */

gw_status gw_verbs_dynamic_mrs_notify(struct verbs_listener *listener, const struct gw_call *call,
				      struct gw_reply *reply)
{
	struct gw_service *service = listener->base.service;
	struct handshake_keys_question question;
	gw_status status = gw_handshake_keys_question(call->bytes, call->byte_count, &question);
	if (status != GW_OK)
		return status;
	if (question.rail >= listener->rail_count)
		return gw_fail(GW_PROTOCOL, "keys for device %u; the server has %u devices", question.rail,
			       listener->rail_count);
	struct gw_dynamic_region_place *place = gw_dynamic_region_enter(service, question.id, question.generation);
	if (!place)
		return GW_NOT_FOUND;
	const struct verbs_dynamic_mrs *dynamic = place->registered;
	uint32_t bytes = dynamic ? 4 * dynamic->place.slice_count : 0;
	uint8_t *room = dynamic ? gw_reply_extend(reply, (uint32_t)sizeof(dynamic->place) + bytes) : NULL;
	if (room) {
		memcpy(room, &dynamic->place, sizeof(dynamic->place));
		if (bytes)
			memcpy(room + sizeof(dynamic->place),
			       dynamic->keys + (size_t)question.rail * dynamic->place.slice_count, bytes);
	} else if (dynamic) {
		status = GW_NO_MEMORY;
	} else {
		status = gw_fail(GW_UNSUPPORTED, "region %u is not registered for RDMA", question.id);
	}
	gw_dynamic_region_leave(service, place);
	return status;
}

/* --- The listener. --- */

void gw_verbs_dynamic_mrs_begin(struct verbs_listener *listener)
{
	listener->dynamic.registrar = (struct gw_dynamic_region_registrar){dynamic_mrs_add, dynamic_mrs_remove};
	gw_dynamic_region_registrar_set(listener->base.service, &listener->dynamic.registrar);
}

void gw_verbs_dynamic_mrs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail)
{
	for (struct verbs_dynamic_mrs *dynamic = listener->dynamic.first; dynamic; dynamic = dynamic->next)
		dynamic_mrs_deregister(dynamic, listener, (uint32_t)(rail - listener->rails));
}

void gw_verbs_dynamic_mrs_end(struct verbs_listener *listener)
{
	if (!listener->dynamic.registrar.add)
		return;
	gw_dynamic_region_registrar_set(listener->base.service, NULL);
	if (listener->dynamic.started) {
		pthread_mutex_lock(&listener->dynamic.lock);
		listener->dynamic.stop = true;
		pthread_cond_signal(&listener->dynamic.changed);
		pthread_mutex_unlock(&listener->dynamic.lock);
		pthread_join(listener->dynamic.thread, NULL);
	}
	while (listener->dynamic.first)
		dynamic_mrs_end(listener, listener->dynamic.first);
}
