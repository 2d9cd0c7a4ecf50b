/* The heap of deadlines: see deadlines.h. A place is at most as early as the places 2 i + 1 and 2 i + 2 under it. */
#include "core/memory/deadlines.h"

#include <assert.h>

#include "core/memory/alloc.h"

#define PLACES_FIRST 16u

gw_status gw_deadlines_join(struct gw_deadlines *deadlines, struct gw_deadline *of)
{
	assert(!of->joined);
	if (deadlines->members == deadlines->capacity) {
		uint32_t capacity = deadlines->capacity ? 2 * deadlines->capacity : PLACES_FIRST;
		struct gw_deadlines_place *places = gw_realloc(deadlines->places, capacity, sizeof(*places));
		if (!places)
			return GW_NO_MEMORY;
		deadlines->places = places;
		deadlines->capacity = capacity;
	}
	deadlines->members++;
	*of = (struct gw_deadline){.joined = true};
	return GW_OK;
}

static void place_put(struct gw_deadlines *deadlines, uint32_t at, struct gw_deadlines_place place)
{
	deadlines->places[at] = place;
	place.of->at = at + 1;
}

static void place_rise(struct gw_deadlines *deadlines, uint32_t at, struct gw_deadlines_place place)
{
	while (at && place.due_ns < deadlines->places[(at - 1) / 2].due_ns) {
		place_put(deadlines, at, deadlines->places[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place_put(deadlines, at, place);
}

static void place_sink(struct gw_deadlines *deadlines, uint32_t at, struct gw_deadlines_place place)
{
	const struct gw_deadlines_place *places = deadlines->places;
	for (uint32_t under; (under = 2 * at + 1) < deadlines->count; at = under) {
		under += under + 1 < deadlines->count && places[under + 1].due_ns < places[under].due_ns;
		if (place.due_ns <= places[under].due_ns)
			break;
		place_put(deadlines, at, places[under]);
	}
	place_put(deadlines, at, place);
}

static void place_remove(struct gw_deadlines *deadlines, uint32_t at)
{
	struct gw_deadlines_place last = deadlines->places[--deadlines->count];
	deadlines->places[at].of->at = 0;
	if (at == deadlines->count)
		return;
	if (at && last.due_ns < deadlines->places[(at - 1) / 2].due_ns)
		place_rise(deadlines, at, last);
	else
		place_sink(deadlines, at, last);
}

void gw_deadlines_leave(struct gw_deadlines *deadlines, struct gw_deadline *of)
{
	if (!of->joined)
		return;
	if (of->at)
		place_remove(deadlines, of->at - 1);
	of->joined = false;
	deadlines->members--;
}

void gw_deadlines_end(struct gw_deadlines *deadlines)
{
	assert(!deadlines->members);
	gw_free(deadlines->places);
	*deadlines = (struct gw_deadlines){0};
}

void gw_deadlines_set(struct gw_deadlines *deadlines, struct gw_deadline *of, uint64_t due_ns)
{
	assert(of->joined);
	if (!of->at)
		place_rise(deadlines, deadlines->count++, (struct gw_deadlines_place){due_ns, of});
	else if (due_ns < deadlines->places[of->at - 1].due_ns)
		place_rise(deadlines, of->at - 1, (struct gw_deadlines_place){due_ns, of});
}

struct gw_deadline *gw_deadlines_take(struct gw_deadlines *deadlines, uint64_t now_ns)
{
	if (now_ns < gw_deadlines_first(deadlines) || !deadlines->count)
		return NULL;
	struct gw_deadline *of = deadlines->places[0].of;
	place_remove(deadlines, 0);
	return of;
}
