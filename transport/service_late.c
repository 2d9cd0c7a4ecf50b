/* Regions that come and go while clients are connected.
 *
 *   publish ─▶ registered, where devices read ─▶ a place in the table, a generation that no region had before
 *   enter … leave            around every look at its memory by a thread that serves
 *   hold  … release          from the answer that lets a client map or address it, until the client has let go
 *   withdraw ─▶ nobody enters or holds it any more; listeners are told, so that they ask their clients to let go
 *         └──▶ the last who leaves or releases it: its place is free ─▶ taken back from devices ─▶ `freed`
 *
 * Who enters counts itself first and looks at the generation then; who withdraws takes the generation away first and
 * looks at the count then (both sequentially consistent): so one of the two sees the other. Places are used again, the
 * table stays until the service ends, and who comes late with an old generation finds another one. No thread that
 * serves takes the lock. Fails on too many regions, on memory that is no rows, and for want of memory.
 */
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "transport/service_private.h"

void gw_service_late_begin(struct gw_service *service)
{
	struct gw_service_late *late = &service->late;
	pthread_mutex_init(&late->registering, NULL);
	pthread_mutex_init(&late->lock, NULL);
	late->next_generation = (uint32_t)gw_mix64(service->identity.incarnation) | 1;
}

static struct gw_late_place *place_take(struct gw_service_late *late)
{
	if (!late->places) {
		struct gw_late_place *places = gw_calloc(GW_LATE_REGIONS_MAX, sizeof(*places));
		if (!places)
			return NULL;
		for (uint32_t i = GW_LATE_REGIONS_MAX; i-- > 0;) {
			places[i].next_free = late->free;
			late->free = &places[i];
		}
		atomic_store(&late->places, places);
	}
	struct gw_late_place *place = late->free;
	if (!place)
		gw_fail(GW_LIMIT, "this server has %u regions that came while it served; delete some",
			GW_LATE_REGIONS_MAX);
	else
		late->free = place->next_free;
	return place;
}

/* No other region's while the server lives; 0 is none. */
static uint32_t generation_next(struct gw_service_late *late)
{
	late->next_generation++;
	if (late->next_generation == 0)
		late->next_generation++;
	return late->next_generation;
}

/* Found from here on. */
static void place_publish(struct gw_service_late *late, struct gw_late_place *place,
			  const struct gw_late_region *region, struct gw_region *out)
{
	const struct gw_late_place *places = atomic_load(&late->places);
	uint32_t generation = generation_next(late);
	place->what = *region;
	place->region = (struct gw_region){
		.bytes = region->bytes,
		.id = GW_REGIONS_MAX + (uint32_t)(place - places),
		.generation = generation,
		.kind = GW_REGION_VERSIONED,
		.rows = *region->rows,
	};
	place->what.rows = NULL;
	place->published = true;
	*out = place->region;
	atomic_fetch_add(&place->users, 1);
	atomic_store(&place->generation, generation);
}

/* With `registering`. */
static void *region_register(const struct gw_service_late *late, const struct gw_late_region *region)
{
	struct gw_late_registrar *registrar = late->registrar;
	void *registered = registrar ? registrar->add(registrar, region) : NULL;
	if (registrar && !registered)
		gw_log(GW_LOG_INFO, "a region of %llu bytes is read by requests over RDMA: %s",
		       (unsigned long long)region->bytes, gw_last_error());
	return registered;
}

gw_status gw_service_publish(struct gw_service *service, const struct gw_late_region *region, struct gw_region *out)
{
	struct gw_service_late *late = &service->late;
	if (!region->rows)
		return gw_fail(GW_INVALID, "a region that comes late and has no rows");
	gw_status status = gw_service_region_check(region->base, region->bytes, region->slice_bytes, region->rows);
	if (status)
		return status;
	pthread_mutex_lock(&late->registering);
	pthread_mutex_lock(&late->lock);
	struct gw_late_place *place = place_take(late);
	if (!place)
		status = late->places ? GW_LIMIT : GW_NO_MEMORY;
	pthread_mutex_unlock(&late->lock);
	if (place) {
		/* Nobody can find it yet, and no thread that serves waits for this one. */
		place->registered = region_register(late, region);
		pthread_mutex_lock(&late->lock);
		place_publish(late, place, region, out);
		pthread_mutex_unlock(&late->lock);
	}
	pthread_mutex_unlock(&late->registering);
	return status;
}

/* Nobody uses it any more: its memory is the owner's, at once or when it was taken back. */
static void place_free(struct gw_service *service, struct gw_late_place *place)
{
	struct gw_service_late *late = &service->late;
	struct gw_late_region what = place->what;
	pthread_mutex_lock(&late->lock);
	void *registered = place->registered;
	place->registered = NULL;
	place->next_free = late->free;
	late->free = place;
	if (registered)
		late->registrar->remove(late->registrar, registered);
	pthread_mutex_unlock(&late->lock);
	if (what.freed && !registered)
		what.freed(what.context);
}

void gw_late_leave(struct gw_service *service, struct gw_late_place *place)
{
	/* Late comers count themselves too, find that it is gone, and may be the last: one of all frees it. */
	if (atomic_fetch_sub(&place->users, 1) == 1 && atomic_exchange(&place->withdrawn, false))
		place_free(service, place);
}

struct gw_late_place *gw_late_enter(struct gw_service *service, uint32_t id, uint32_t generation)
{
	struct gw_late_place *places = atomic_load_explicit(&service->late.places, memory_order_acquire);
	uint32_t at = id - GW_REGIONS_MAX;
	if (places && id >= GW_REGIONS_MAX && at < GW_LATE_REGIONS_MAX && generation) {
		atomic_fetch_add(&places[at].users, 1);
		if (atomic_load(&places[at].generation) == generation)
			return &places[at];
		gw_late_leave(service, &places[at]);
	}
	gw_fail(GW_NOT_FOUND, "region %u of generation %u is not there; it was deleted", id, generation);
	return NULL;
}

void gw_service_withdraw(struct gw_service *service, const struct gw_region *region)
{
	struct gw_service_late *late = &service->late;
	struct gw_late_place *places = atomic_load(&late->places);
	uint32_t at = region->id - GW_REGIONS_MAX, generation = region->generation;
	if (!places || region->id < GW_REGIONS_MAX || at >= GW_LATE_REGIONS_MAX || !generation ||
	    !atomic_compare_exchange_strong(&places[at].generation, &generation, 0))
		return;
	places[at].published = false;
	atomic_store(&places[at].withdrawn, true);
	atomic_fetch_add(&late->withdrawals, 1);
	pthread_mutex_lock(&late->lock);
	for (struct gw_late_watcher *watcher = late->watchers; watcher; watcher = watcher->next)
		watcher->withdrawn(watcher);
	pthread_mutex_unlock(&late->lock);
	gw_late_leave(service, &places[at]);
}

/* One that was published when nobody registered. Held meanwhile: its end comes after this, and takes it back. */
static void place_register(struct gw_service *service, struct gw_late_place *place)
{
	struct gw_service_late *late = &service->late;
	uint32_t id = GW_REGIONS_MAX + (uint32_t)(place - atomic_load(&late->places));
	uint32_t generation = atomic_load(&place->generation);
	if (!generation || !gw_late_enter(service, id, generation))
		return;
	void *registered = region_register(late, &place->what);
	pthread_mutex_lock(&late->lock);
	place->registered = registered;
	pthread_mutex_unlock(&late->lock);
	gw_late_leave(service, place);
}

void gw_late_registrar_set(struct gw_service *service, struct gw_late_registrar *registrar)
{
	struct gw_service_late *late = &service->late;
	pthread_mutex_lock(&late->registering);
	pthread_mutex_lock(&late->lock);
	struct gw_late_place *places = atomic_load(&late->places);
	for (uint32_t i = 0; places && !registrar && i < GW_LATE_REGIONS_MAX; i++)
		places[i].registered = NULL;
	late->registrar = registrar;
	pthread_mutex_unlock(&late->lock);
	for (uint32_t i = 0; places && registrar && i < GW_LATE_REGIONS_MAX; i++)
		place_register(service, &places[i]);
	pthread_mutex_unlock(&late->registering);
}

void gw_late_watch(struct gw_service *service, struct gw_late_watcher *watcher)
{
	pthread_mutex_lock(&service->late.lock);
	watcher->next = service->late.watchers;
	service->late.watchers = watcher;
	pthread_mutex_unlock(&service->late.lock);
}

void gw_late_unwatch(struct gw_service *service, struct gw_late_watcher *watcher)
{
	pthread_mutex_lock(&service->late.lock);
	struct gw_late_watcher **at = &service->late.watchers;
	while (*at && *at != watcher)
		at = &(*at)->next;
	if (*at)
		*at = watcher->next;
	pthread_mutex_unlock(&service->late.lock);
}

void gw_service_late_end(struct gw_service *service)
{
	struct gw_late_place *places = atomic_load(&service->late.places);
	for (uint32_t i = 0; places && i < GW_LATE_REGIONS_MAX; i++)
		if (places[i].published)
			gw_service_withdraw(service, &places[i].region);
	gw_free(places);
	pthread_mutex_destroy(&service->late.lock);
	pthread_mutex_destroy(&service->late.registering);
}

/* --- What a connection holds. --- */

gw_status gw_late_hold(struct gw_late_holds *holds, struct gw_service *service, uint32_t id, uint32_t generation,
		       struct gw_late_place **out)
{
	*out = gw_late_enter(service, id, generation);
	if (!*out)
		return GW_NOT_FOUND;
	for (struct gw_late_hold *held = holds->first; held; held = held->next) {
		if (held->place != *out || held->generation != generation)
			continue;
		gw_late_leave(service, *out); /* asked for twice, it is let go once */
		return GW_OK;
	}
	struct gw_late_hold *hold = gw_calloc(1, sizeof(*hold));
	if (!hold) {
		gw_late_leave(service, *out);
		return GW_NO_MEMORY;
	}
	*hold = (struct gw_late_hold){.place = *out, .id = id, .generation = generation, .next = holds->first};
	holds->first = hold;
	return GW_OK;
}

static void hold_end(struct gw_late_hold **at, struct gw_service *service)
{
	struct gw_late_hold *hold = *at;
	*at = hold->next;
	gw_late_leave(service, hold->place);
	gw_free(hold);
}

void gw_late_release(struct gw_late_holds *holds, struct gw_service *service, uint32_t id, uint32_t generation)
{
	for (struct gw_late_hold **at = &holds->first; *at; at = &(*at)->next) {
		if ((*at)->id != id || (*at)->generation != generation)
			continue;
		hold_end(at, service);
		return;
	}
}

bool gw_late_withdrawn(struct gw_late_holds *holds, const struct gw_service *service, uint32_t *id,
		       uint32_t *generation)
{
	uint64_t withdrawals = atomic_load(&service->late.withdrawals);
	if (!holds->first || holds->seen == withdrawals)
		return false;
	for (struct gw_late_hold *hold = holds->first; hold; hold = hold->next) {
		if (hold->told || atomic_load(&hold->place->generation) == hold->generation)
			continue;
		hold->told = true;
		*id = hold->id;
		*generation = hold->generation;
		return true;
	}
	holds->seen = withdrawals;
	return false;
}

void gw_late_holds_end(struct gw_late_holds *holds, struct gw_service *service)
{
	while (holds->first)
		hold_end(&holds->first, service);
}
