/* Dynamic regions: published and withdrawn while clients are connected.
 *
 *   publish ─▶ registered with devices ─▶ a place in the table, a generation that no region had before
 *   enter … leave            around every use of the memory by a thread that serves
 *   pin   … release          from the answer that lets a client map or address the memory, until the client released it
 *   withdraw ─▶ enter and pin fail; listeners are notified, and ask their clients to release the region
 *         └──▶ the last leave or release frees the place ─▶ deregistered from devices ─▶ `freed`
 *
 * enter first increments the count of users, then checks the generation. withdraw first clears the generation, then
 * checks the count. Both are sequentially consistent, so one of the two sees the other. Places are reused, and the
 * table stays until the service ends. A late enter with an old generation finds a different generation, and fails.
 * Threads that serve take no lock in enter and pin. Fails on too many regions, on memory that is not a multiple of
 * complete rows, and if memory runs out.
 */

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "transport/service/service_private.h"

void gw_service_dynamic_begin(struct gw_service *service)
{
	struct gw_service_dynamic *dynamic = &service->dynamic;
	pthread_mutex_init(&dynamic->registering, NULL);
	pthread_mutex_init(&dynamic->lock, NULL);
	dynamic->next_generation = (uint32_t)gw_mix64(service->identity.incarnation) | 1;
}

static struct gw_dynamic_region_place *place_take(struct gw_service_dynamic *dynamic)
{
	if (!dynamic->places) {
		struct gw_dynamic_region_place *places = gw_calloc(GW_DYNAMIC_REGIONS_MAX, sizeof(*places));
		if (!places)
			return NULL;
		for (uint32_t i = GW_DYNAMIC_REGIONS_MAX; i-- > 0;) {
			places[i].next_free = dynamic->free;
			dynamic->free = &places[i];
		}
		atomic_store(&dynamic->places, places);
	}
	struct gw_dynamic_region_place *place = dynamic->free;
	if (!place)
		gw_fail(GW_LIMIT, "this server has %u dynamic regions; delete some", GW_DYNAMIC_REGIONS_MAX);
	else
		dynamic->free = place->next_free;
	return place;
}

/* A generation that no region of this server had; never 0. */
static uint32_t generation_next(struct gw_service_dynamic *dynamic)
{
	dynamic->next_generation++;
	if (dynamic->next_generation == 0)
		dynamic->next_generation++;
	return dynamic->next_generation;
}

/* Takes the place of a region that another process had published. */
static struct gw_dynamic_region_place *place_take_at(struct gw_service_dynamic *dynamic, uint32_t id)
{
	struct gw_dynamic_region_place *first = place_take(dynamic), **at = &dynamic->free;
	struct gw_dynamic_region_place *places = atomic_load(&dynamic->places);
	if (!first)
		return NULL;
	first->next_free = dynamic->free;
	dynamic->free = first;
	if (id < GW_REGIONS_MAX || id - GW_REGIONS_MAX >= GW_DYNAMIC_REGIONS_MAX) {
		gw_fail(GW_RANGE, "dynamic region %u", id);
		return NULL;
	}
	while (*at && *at != &places[id - GW_REGIONS_MAX])
		at = &(*at)->next_free;
	struct gw_dynamic_region_place *place = *at;
	if (place)
		*at = place->next_free;
	else
		gw_fail(GW_EXISTS, "dynamic region %u exists already", id);
	return place;
}

/* From here on clients can find the region. */
static void place_publish(struct gw_service_dynamic *dynamic, struct gw_dynamic_region_place *place,
			  const struct gw_dynamic_region *region, uint32_t generation, struct gw_region *out)
{
	const struct gw_dynamic_region_place *places = atomic_load(&dynamic->places);
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

/* The caller has locked `registering`. */
static void *region_register(const struct gw_service_dynamic *dynamic, const struct gw_dynamic_region *region)
{
	struct gw_dynamic_region_registrar *registrar = dynamic->registrar;
	void *registered = registrar ? registrar->add(registrar, region) : NULL;
	if (registrar && !registered)
		gw_log(GW_LOG_INFO, "a region of %llu bytes is served by requests to RDMA clients: %s",
		       (unsigned long long)region->bytes, gw_last_error());
	return registered;
}

/* generation 0: a new region, at any place. */
static gw_status dynamic_publish(struct gw_service *service, const struct gw_dynamic_region *region, uint32_t id,
				 uint32_t generation, struct gw_region *out)
{
	struct gw_service_dynamic *dynamic = &service->dynamic;
	if (!region->rows)
		return gw_fail(GW_INVALID, "a dynamic region without rows");
	gw_status status = gw_service_region_check(region->base, region->bytes, region->slice_bytes, region->rows);
	if (status != GW_OK)
		return status;
	pthread_mutex_lock(&dynamic->registering);
	pthread_mutex_lock(&dynamic->lock);
	struct gw_dynamic_region_place *place = generation ? place_take_at(dynamic, id) : place_take(dynamic);
	if (!place)
		status = !dynamic->places ? GW_NO_MEMORY : generation ? GW_EXISTS : GW_LIMIT;
	pthread_mutex_unlock(&dynamic->lock);
	if (place) {
		/* No client can find the region yet, and no serving thread waits for this lock. */
		place->registered = region_register(dynamic, region);
		pthread_mutex_lock(&dynamic->lock);
		place_publish(dynamic, place, region, generation ? generation : generation_next(dynamic), out);
		pthread_mutex_unlock(&dynamic->lock);
	}
	pthread_mutex_unlock(&dynamic->registering);
	return status;
}

gw_status gw_service_publish(struct gw_service *service, const struct gw_dynamic_region *region, struct gw_region *out)
{
	return dynamic_publish(service, region, 0, 0, out);
}

gw_status gw_service_publish_as(struct gw_service *service, const struct gw_dynamic_region *region, uint32_t id,
				uint32_t generation, struct gw_region *out)
{
	if (!generation)
		return gw_fail(GW_INVALID, "a region without a generation");
	return dynamic_publish(service, region, id, generation, out);
}

/* The last user has left. The owner gets the memory back: at once, or after its deregistration. */
static void place_free(struct gw_service *service, struct gw_dynamic_region_place *place)
{
	struct gw_service_dynamic *dynamic = &service->dynamic;
	struct gw_dynamic_region what = place->what;
	pthread_mutex_lock(&dynamic->lock);
	void *registered = place->registered;
	place->registered = NULL;
	place->next_free = dynamic->free;
	dynamic->free = place;
	if (registered)
		dynamic->registrar->remove(dynamic->registrar, registered);
	pthread_mutex_unlock(&dynamic->lock);
	if (what.freed && !registered)
		what.freed(what.context);
}

void gw_dynamic_region_leave(struct gw_service *service, struct gw_dynamic_region_place *place)
{
	/* A late enter also increments, finds the region withdrawn, and may leave last. Exactly one leave frees. */
	if (atomic_fetch_sub(&place->users, 1) == 1 && atomic_exchange(&place->withdrawn, false))
		place_free(service, place);
}

struct gw_dynamic_region_place *gw_dynamic_region_enter(struct gw_service *service, uint32_t id, uint32_t generation)
{
	struct gw_dynamic_region_place *places = atomic_load_explicit(&service->dynamic.places, memory_order_acquire);
	uint32_t at = id - GW_REGIONS_MAX;
	if (places && id >= GW_REGIONS_MAX && at < GW_DYNAMIC_REGIONS_MAX && generation) {
		atomic_fetch_add(&places[at].users, 1);
		if (atomic_load(&places[at].generation) == generation)
			return &places[at];
		gw_dynamic_region_leave(service, &places[at]);
	}
	gw_fail(GW_NOT_FOUND, "region %u of generation %u does not exist; it was deleted", id, generation);
	return NULL;
}

void gw_service_withdraw(struct gw_service *service, const struct gw_region *region)
{
	struct gw_service_dynamic *dynamic = &service->dynamic;
	struct gw_dynamic_region_place *places = atomic_load(&dynamic->places);
	uint32_t at = region->id - GW_REGIONS_MAX, generation = region->generation;
	if (!places || region->id < GW_REGIONS_MAX || at >= GW_DYNAMIC_REGIONS_MAX || !generation ||
	    !atomic_compare_exchange_strong(&places[at].generation, &generation, 0))
		return;
	places[at].published = false;
	atomic_store(&places[at].withdrawn, true);
	atomic_fetch_add(&dynamic->withdrawals, 1);
	pthread_mutex_lock(&dynamic->lock);
	for (struct gw_dynamic_region_watcher *watcher = dynamic->watchers; watcher; watcher = watcher->next)
		watcher->withdrawn(watcher);
	pthread_mutex_unlock(&dynamic->lock);
	gw_dynamic_region_leave(service, &places[at]);
}

/* Registers a region that was published without a registrar. The caller has a reference, so the region stays. */
static void place_register(struct gw_service *service, struct gw_dynamic_region_place *place)
{
	struct gw_service_dynamic *dynamic = &service->dynamic;
	uint32_t id = GW_REGIONS_MAX + (uint32_t)(place - atomic_load(&dynamic->places));
	uint32_t generation = atomic_load(&place->generation);
	if (!generation || !gw_dynamic_region_enter(service, id, generation))
		return;
	void *registered = region_register(dynamic, &place->what);
	pthread_mutex_lock(&dynamic->lock);
	place->registered = registered;
	pthread_mutex_unlock(&dynamic->lock);
	gw_dynamic_region_leave(service, place);
}

void gw_dynamic_region_registrar_set(struct gw_service *service, struct gw_dynamic_region_registrar *registrar)
{
	struct gw_service_dynamic *dynamic = &service->dynamic;
	pthread_mutex_lock(&dynamic->registering);
	pthread_mutex_lock(&dynamic->lock);
	struct gw_dynamic_region_place *places = atomic_load(&dynamic->places);
	for (uint32_t i = 0; places && !registrar && i < GW_DYNAMIC_REGIONS_MAX; i++)
		places[i].registered = NULL;
	dynamic->registrar = registrar;
	pthread_mutex_unlock(&dynamic->lock);
	for (uint32_t i = 0; places && registrar && i < GW_DYNAMIC_REGIONS_MAX; i++)
		place_register(service, &places[i]);
	pthread_mutex_unlock(&dynamic->registering);
}

void gw_dynamic_region_watch(struct gw_service *service, struct gw_dynamic_region_watcher *watcher)
{
	pthread_mutex_lock(&service->dynamic.lock);
	watcher->next = service->dynamic.watchers;
	service->dynamic.watchers = watcher;
	pthread_mutex_unlock(&service->dynamic.lock);
}

void gw_dynamic_region_unwatch(struct gw_service *service, struct gw_dynamic_region_watcher *watcher)
{
	pthread_mutex_lock(&service->dynamic.lock);
	struct gw_dynamic_region_watcher **at = &service->dynamic.watchers;
	while (*at && *at != watcher)
		at = &(*at)->next;
	if (*at)
		*at = watcher->next;
	pthread_mutex_unlock(&service->dynamic.lock);
}

void gw_service_dynamic_end(struct gw_service *service)
{
	struct gw_dynamic_region_place *places = atomic_load(&service->dynamic.places);
	for (uint32_t i = 0; places && i < GW_DYNAMIC_REGIONS_MAX; i++)
		if (places[i].published)
			gw_service_withdraw(service, &places[i].region);
	gw_free(places);
	pthread_mutex_destroy(&service->dynamic.lock);
	pthread_mutex_destroy(&service->dynamic.registering);
}

/* --- A connection's pins. --- */

gw_status gw_dynamic_pin(struct gw_dynamic_pins *pins, struct gw_service *service, uint32_t id, uint32_t generation,
			 struct gw_dynamic_region_place **out)
{
	*out = gw_dynamic_region_enter(service, id, generation);
	if (!*out)
		return GW_NOT_FOUND;
	for (struct gw_dynamic_pin *pin = pins->first; pin; pin = pin->next) {
		if (pin->place != *out || pin->generation != generation)
			continue;
		gw_dynamic_region_leave(service,
					*out); /* already pinned: the client sends one release, so keep one reference */
		return GW_OK;
	}
	struct gw_dynamic_pin *pin = gw_calloc(1, sizeof(*pin));
	if (!pin) {
		gw_dynamic_region_leave(service, *out);
		return GW_NO_MEMORY;
	}
	*pin = (struct gw_dynamic_pin){.place = *out, .id = id, .generation = generation, .next = pins->first};
	pins->first = pin;
	return GW_OK;
}

static void pin_end(struct gw_dynamic_pin **at, struct gw_service *service)
{
	struct gw_dynamic_pin *pin = *at;
	*at = pin->next;
	gw_dynamic_region_leave(service, pin->place);
	gw_free(pin);
}

void gw_dynamic_region_release(struct gw_dynamic_pins *pins, struct gw_service *service, uint32_t id,
			       uint32_t generation)
{
	for (struct gw_dynamic_pin **at = &pins->first; *at; at = &(*at)->next) {
		if ((*at)->id != id || (*at)->generation != generation)
			continue;
		pin_end(at, service);
		return;
	}
}

bool gw_dynamic_region_withdrawn(struct gw_dynamic_pins *pins, const struct gw_service *service, uint32_t *id,
				 uint32_t *generation)
{
	uint64_t withdrawals = atomic_load(&service->dynamic.withdrawals);
	if (!pins->first || pins->seen == withdrawals)
		return false;
	for (struct gw_dynamic_pin *pin = pins->first; pin; pin = pin->next) {
		if (pin->notified || atomic_load(&pin->place->generation) == pin->generation)
			continue;
		pin->notified = true;
		*id = pin->id;
		*generation = pin->generation;
		return true;
	}
	pins->seen = withdrawals;
	return false;
}

void gw_dynamic_pins_end(struct gw_dynamic_pins *pins, struct gw_service *service)
{
	while (pins->first)
		pin_end(&pins->first, service);
}
