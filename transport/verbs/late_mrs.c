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

struct verbs_late_mrs {
	struct verbs_late_mrs *next, **previous; /* of the listener */
	struct verbs_late_mrs *next_removed;
	struct gw_late_region what;
	struct handshake_region place;
	struct ibv_mr **mrs; /* of a rail after the other, NULL where it is gone */
	uint32_t *keys;      /* likewise, and as they were */
};

static struct verbs_listener *late_mrs_listener(struct gw_late_registrar *registrar)
{
	return (struct verbs_listener *)(void *)((uint8_t *)registrar -
						 offsetof(struct verbs_listener, late.registrar));
}

/* With rails_lock. */
static void late_mrs_deregister(struct verbs_late_mrs *late, const struct verbs_listener *listener, uint32_t rail)
{
	struct ibv_mr **mrs = late->mrs + (size_t)rail * late->place.slice_count;
	assert(rail < listener->rail_count);
	for (uint32_t i = 0; i < late->place.slice_count; i++) {
		if (mrs[i])
			ibv_dereg_mr(mrs[i]);
		mrs[i] = NULL;
	}
}

static void late_mrs_free(struct verbs_late_mrs *late)
{
	gw_free(late->mrs);
	gw_free(late->keys);
	gw_free(late);
}

/* Off every rail. */
static void late_mrs_end(struct verbs_listener *listener, struct verbs_late_mrs *late)
{
	pthread_mutex_lock(&listener->late.rails_lock);
	for (uint32_t rail = 0; rail < listener->rail_count; rail++)
		late_mrs_deregister(late, listener, rail);
	GW_LIST_REMOVE(late);
	pthread_mutex_unlock(&listener->late.rails_lock);
	late_mrs_free(late);
}

/* --- The thread. --- */

static void *late_mrs_run(void *argument)
{
	struct verbs_listener *listener = argument;
	pthread_mutex_lock(&listener->late.lock);
	for (;;) {
		struct verbs_late_mrs *late = listener->late.removed;
		if (!late && listener->late.stop)
			break;
		if (!late) {
			pthread_cond_wait(&listener->late.changed, &listener->late.lock);
			continue;
		}
		listener->late.removed = late->next_removed;
		pthread_mutex_unlock(&listener->late.lock);
		struct gw_late_region what = late->what;
		late_mrs_end(listener, late);
		if (what.freed)
			what.freed(what.context);
		pthread_mutex_lock(&listener->late.lock);
	}
	pthread_mutex_unlock(&listener->late.lock);
	return NULL;
}

/* With the first region; by one thread at a time. */
static gw_status late_mrs_start(struct verbs_listener *listener)
{
	if (listener->late.started)
		return GW_OK;
	int error = gw_thread_start(&listener->late.thread, late_mrs_run, listener);
	if (error)
		return gw_thread_failed(error, "cannot start a thread that deregisters");
	listener->late.started = true;
	return GW_OK;
}

/* --- What the service asks for. --- */

struct late_mrs_registering {
	struct verbs_late_mrs *late;
	struct ibv_pd *pd;
	uint64_t first; /* of the rail's MRs */
};

static gw_status late_mrs_register(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct late_mrs_registering *work = context;
	const struct verbs_late_mrs *late = work->late;
	for (uint64_t i = begin; i < end; i++) {
		struct ibv_mr **mr = &late->mrs[work->first + i];
		gw_status status = gw_verbs_slice_register(work->pd, late->what.base, late->what.bytes,
							   late->place.slice_shift, i, mr);
		if (status)
			return status;
		late->keys[work->first + i] = (*mr)->rkey;
	}
	return GW_OK;
}

static void *late_mrs_add(struct gw_late_registrar *registrar, const struct gw_late_region *region)
{
	struct verbs_listener *listener = late_mrs_listener(registrar);
	if (late_mrs_start(listener))
		return NULL;
	struct verbs_late_mrs *late = gw_calloc(1, sizeof(*late));
	if (!late)
		return NULL;
	late->what = *region;
	late->what.rows = NULL;
	late->place = gw_verbs_place(region->base, region->bytes, region->slice_bytes);
	uint64_t count = (uint64_t)late->place.slice_count * listener->rail_count;
	late->mrs = gw_calloc(count ? count : 1, sizeof(struct ibv_mr *));
	late->keys = gw_calloc(count ? count : 1, sizeof(*late->keys));
	gw_status status = late->mrs && late->keys ? GW_OK : GW_NO_MEMORY;
	pthread_mutex_lock(&listener->late.rails_lock);
	GW_LIST_INSERT(listener->late.first, late);
	for (uint32_t rail = 0; rail < listener->rail_count && !status; rail++) {
		struct late_mrs_registering work = {late, listener->rails[rail].pd,
						    (uint64_t)rail * late->place.slice_count};
		unsigned threads = region->bytes >> 28 ? 0 : 1;
		if (work.pd) /* nobody is let in at one that is gone */
			status = gw_parallel_for(threads, late->place.slice_count, 1, late_mrs_register, &work);
	}
	pthread_mutex_unlock(&listener->late.rails_lock);
	if (!status)
		return late;
	late_mrs_end(listener, late);
	return NULL;
}

static void late_mrs_remove(struct gw_late_registrar *registrar, void *registered)
{
	struct verbs_listener *listener = late_mrs_listener(registrar);
	struct verbs_late_mrs *late = registered;
	pthread_mutex_lock(&listener->late.lock);
	late->next_removed = listener->late.removed;
	listener->late.removed = late;
	pthread_cond_signal(&listener->late.changed);
	pthread_mutex_unlock(&listener->late.lock);
}

/* --- What clients ask. --- */

gw_status gw_verbs_late_mrs_tell(struct verbs_listener *listener, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_service *service = listener->base.service;
	struct handshake_keys_question question;
	gw_status status = gw_handshake_keys_question(call->bytes, call->byte_count, &question);
	if (status)
		return status;
	if (question.rail >= listener->rail_count)
		return gw_fail(GW_PROTOCOL, "keys for device %u; the server has %u", question.rail,
			       listener->rail_count);
	struct gw_late_place *place = gw_late_enter(service, question.id, question.generation);
	if (!place)
		return GW_NOT_FOUND;
	const struct verbs_late_mrs *late = place->registered;
	uint32_t bytes = late ? 4 * late->place.slice_count : 0;
	uint8_t *room = late ? gw_reply_extend(reply, (uint32_t)sizeof(late->place) + bytes) : NULL;
	if (room) {
		memcpy(room, &late->place, sizeof(late->place));
		if (bytes)
			memcpy(room + sizeof(late->place), late->keys + (size_t)question.rail * late->place.slice_count,
			       bytes);
	} else if (late) {
		status = GW_NO_MEMORY;
	} else {
		status = gw_fail(GW_UNSUPPORTED, "region %u is not registered for RDMA", question.id);
	}
	gw_late_leave(service, place);
	return status;
}

/* --- The listener. --- */

void gw_verbs_late_mrs_begin(struct verbs_listener *listener)
{
	listener->late.registrar = (struct gw_late_registrar){late_mrs_add, late_mrs_remove};
	gw_late_registrar_set(listener->base.service, &listener->late.registrar);
}

void gw_verbs_late_mrs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail)
{
	for (struct verbs_late_mrs *late = listener->late.first; late; late = late->next)
		late_mrs_deregister(late, listener, (uint32_t)(rail - listener->rails));
}

void gw_verbs_late_mrs_end(struct verbs_listener *listener)
{
	if (!listener->late.registrar.add)
		return;
	gw_late_registrar_set(listener->base.service, NULL);
	if (listener->late.started) {
		pthread_mutex_lock(&listener->late.lock);
		listener->late.stop = true;
		pthread_cond_signal(&listener->late.changed);
		pthread_mutex_unlock(&listener->late.lock);
		pthread_join(listener->late.thread, NULL);
	}
	while (listener->late.first)
		late_mrs_end(listener, listener->late.first);
}
