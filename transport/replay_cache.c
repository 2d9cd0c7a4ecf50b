/* Calls that must not be applied twice.
 *
 *   find the client's place (or the place longest unheard) -> same sequence? the kept answer : apply, keep
 *
 * The place is taken while the call is under way, over all its runs: a repeat that arrives by a new connection
 * meanwhile is deferred until that one is over. Only sequenced calls come here, reads never.
 * The kept answer of a failed call is its failure: a client that wants another try uses a new sequence. Failing for
 * want of memory before `apply` leaves nothing applied; after it, the answer is still given but not kept.
 */
#include "transport/replay_cache.h"

#include <pthread.h>
#include <string.h>

#include "core/base/alloc.h"
#include "transport/service_inside.h"

struct gw_repeat_place {
	bool taken;     /* by a call under way */
	uint64_t heard; /* order of use; 0: free */
	uint8_t uuid[16];
	uint64_t sequence;
	gw_status status;
	bool kept;       /* the reply is there */
	uint8_t *answer; /* the reply's bytes, or the error's text */
	uint32_t answer_bytes;
};

struct gw_replay_cache {
	pthread_mutex_t lock; /* never held while a handler runs */
	uint64_t clock;
	struct gw_repeat_place places[GW_REPLAY_CLIENTS];
};

gw_status gw_replay_cache_create(struct gw_replay_cache **out)
{
	*out = NULL;
	struct gw_replay_cache *replay_cache = gw_calloc(1, sizeof(*replay_cache));
	if (!replay_cache)
		return GW_NO_MEMORY;
	pthread_mutex_init(&replay_cache->lock, NULL);
	*out = replay_cache;
	return GW_OK;
}

void gw_replay_cache_destroy(struct gw_replay_cache *replay_cache)
{
	if (!replay_cache)
		return;
	for (size_t i = 0; i < GW_REPLAY_CLIENTS; i++)
		gw_free(replay_cache->places[i].answer);
	pthread_mutex_destroy(&replay_cache->lock);
	gw_free(replay_cache);
}

/* The client's place, which another call may have taken; NULL when all are taken. A linear search: sequenced calls move
 * rows and take longer than it. */
static struct gw_repeat_place *place_find(struct gw_replay_cache *replay_cache, const uint8_t uuid[16])
{
	struct gw_repeat_place *oldest = NULL;
	for (size_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		struct gw_repeat_place *place = &replay_cache->places[i];
		if (place->heard && memcmp(place->uuid, uuid, 16) == 0)
			return place;
		if (!place->taken && (!oldest || place->heard < oldest->heard))
			oldest = place;
	}
	if (oldest) {
		gw_free(oldest->answer);
		*oldest = (struct gw_repeat_place){0};
		memcpy(oldest->uuid, uuid, 16);
	}
	return oldest;
}

static gw_status answer_again(const struct gw_repeat_place *place, struct gw_reply *reply)
{
	if (place->status)
		return gw_fail_text(place->status,
				    place->answer ? (const char *)place->answer : gw_status_text(place->status));
	if (!place->kept)
		return gw_fail(GW_LIMIT, "call %llu was applied, but its reply is no longer kept",
			       (unsigned long long)place->sequence);
	uint8_t *room = gw_reply_extend(reply, place->answer_bytes);
	if (!room)
		return GW_NO_MEMORY;
	if (place->answer_bytes)
		memcpy(room, place->answer, place->answer_bytes);
	return GW_OK;
}

static void replay_cache_keep(struct gw_repeat_place *place, uint64_t sequence, gw_status status,
			      struct gw_reply *reply)
{
	gw_free(place->answer);
	place->answer = NULL;
	place->answer_bytes = 0;
	place->sequence = sequence;
	place->status = status;
	place->kept = false;
	if (status) {
		place->answer = (uint8_t *)gw_strdup(gw_last_error());
		return;
	}
	uint32_t bytes;
	const uint8_t *data = gw_reply_data(reply, &bytes);
	if (bytes > GW_REPLAY_REPLY_MAX)
		return;
	place->answer = gw_malloc(bytes);
	if (!place->answer)
		return;
	if (bytes)
		memcpy(place->answer, data, bytes);
	place->answer_bytes = bytes;
	place->kept = true;
}

gw_status gw_repeats_enter(struct gw_replay_cache *replay_cache, const uint8_t client_uuid[16], uint64_t sequence,
			   struct gw_reply *reply, struct gw_repeat_place **out)
{
	gw_status status = GW_OK;
	*out = NULL;
	pthread_mutex_lock(&replay_cache->lock);
	struct gw_repeat_place *place = place_find(replay_cache, client_uuid);
	if (!place || place->taken) {
		status = gw_fail(GW_AGAIN, "another sequenced call is under way");
	} else {
		place->heard = ++replay_cache->clock;
		if (sequence == place->sequence) {
			status = answer_again(place, reply);
		} else if (sequence < place->sequence) {
			status = gw_fail(GW_INVALID, "call %llu comes after call %llu of the same client",
					 (unsigned long long)sequence, (unsigned long long)place->sequence);
		} else {
			place->taken = true;
			*out = place;
		}
	}
	pthread_mutex_unlock(&replay_cache->lock);
	return status;
}

void gw_repeats_keep(struct gw_replay_cache *replay_cache, struct gw_repeat_place *place, uint64_t sequence,
		     gw_status status, struct gw_reply *reply)
{
	pthread_mutex_lock(&replay_cache->lock);
	replay_cache_keep(place, sequence, status, reply);
	place->taken = false;
	pthread_mutex_unlock(&replay_cache->lock);
}

void gw_repeats_leave(struct gw_replay_cache *replay_cache, struct gw_repeat_place *place)
{
	pthread_mutex_lock(&replay_cache->lock);
	place->taken = false;
	pthread_mutex_unlock(&replay_cache->lock);
}
