/* The memory regions (MRs) of late regions: of tensors, which come and go while clients read others.
 *
 *   publish ─▶ every slice is registered on every rail, by the thread that publishes ─▶ clients can find the region
 *   listen  ─▶ so is what was published before, by the thread that listens ─▶ clients can connect
 *   a client asks over TCP (GW_OP_KEYS), when it holds the region ─▶ its place and the keys of one rail
 *   withdrawn, and the last client has let go ─▶ our thread deregisters ─▶ `freed`: the memory is its owner's
 *
 * So no key of a region outlives its memory, and none is refused that a client was not asked to forget first. No thread
 * that serves registers or deregisters, which takes as long as pages are many; our thread begins with the first region.
 * A rail that is removed takes its MRs along.
 *
 * What cannot be registered (the locked-memory limit, no thread, no memory) is published all the same, and clients are
 * told GW_UNSUPPORTED when they ask for keys: they ask for rows.
 */
#include <errno.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/parallel.h"
#include "core/system/thread.h"
#include "transport/verbs/listener.h"

struct verbs_dynamic_mrs {
	struct verbs_dynamic_mrs *next, **previous; /* of the listener */
	struct verbs_dynamic_mrs *next_removed;
	struct gw_dynamic_region what;
	struct handshake_region place;
	struct ibv_mr **mrs; /* of a rail after the other, NULL where it is gone */
	uint32_t *keys;      /* likewise, and as they were */
};

static struct verbs_listener *dynamic_mrs_listener(struct gw_dynamic_region_registrar *registrar)
{
	return (struct verbs_listener *)(void *)((uint8_t *)registrar -
						 offsetof(struct verbs_listener, dynamic.registrar));
}

/* With rails_lock. */
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

/* Off every rail. */
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

/* With the first region; by one thread at a time. */
static gw_status dynamic_mrs_start(struct verbs_listener *listener)
{
	if (listener->dynamic.started)
		return GW_OK;
	int error = gw_thread_start(&listener->dynamic.thread, dynamic_mrs_run, listener);
	if (error)
		return gw_thread_failed(error, "cannot start a thread that deregisters");
	listener->dynamic.started = true;
	return GW_OK;
}

/* --- What the service asks for. --- */

struct dynamic_mrs_registering {
	struct verbs_dynamic_mrs *dynamic;
	struct ibv_pd *pd;
	uint64_t first; /* of the rail's MRs */
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
		if (work.pd) /* nobody is let in at one that is gone */
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

/* --- What clients ask. --- */

gw_status gw_verbs_dynamic_mrs_notify(struct verbs_listener *listener, const struct gw_call *call,
				      struct gw_reply *reply)
{
	struct gw_service *service = listener->base.service;
	struct handshake_keys_question question;
	gw_status status = gw_handshake_keys_question(call->bytes, call->byte_count, &question);
	if (status != GW_OK)
		return status;
	if (question.rail >= listener->rail_count)
		return gw_fail(GW_PROTOCOL, "keys for device %u; the server has %u", question.rail,
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
