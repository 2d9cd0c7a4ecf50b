/* Calls that must not be applied twice.
 *
 *   find the client's place (or the place longest unheard) -> lock it -> same sequence? the kept answer : apply, keep
 *
 * The place stays locked while the call runs: a repeat that arrives by a new connection on another thread while the
 * first still runs waits for it, for as long as that one handler runs. Only sequenced calls come here, reads never.
 * The kept answer of a failed call is its failure: a client that wants another try uses a new sequence. Failing for
 * want of memory before `apply` leaves nothing applied; after it, the answer is still given but not kept.
 */
#include "transport/repeat.h"

#include <pthread.h>
#include <string.h>

#include "core/base/alloc.h"
#include "transport/service_inside.h"

struct place {
	pthread_mutex_t lock; /* held while a call of this client runs */
	uint32_t users;       /* threads at or in front of the lock; under the table's lock */
	uint64_t heard;       /* order of use; 0: free */
	uint8_t uuid[16];
	uint64_t sequence;
	gw_status status;
	bool kept;       /* the reply is there */
	uint8_t *answer; /* the reply's bytes, or the error's text */
	uint32_t answer_bytes;
};

struct gw_repeats {
	pthread_mutex_t lock;
	uint64_t clock;
	struct place places[GW_REPEAT_CLIENTS];
};

gw_status gw_repeats_create(struct gw_repeats **out)
{
	*out = NULL;
	struct gw_repeats *repeats = gw_calloc(1, sizeof(*repeats));
	if (!repeats)
		return GW_NO_MEMORY;
	pthread_mutex_init(&repeats->lock, NULL);
	for (size_t i = 0; i < GW_REPEAT_CLIENTS; i++)
		pthread_mutex_init(&repeats->places[i].lock, NULL);
	*out = repeats;
	return GW_OK;
}

void gw_repeats_destroy(struct gw_repeats *repeats)
{
	if (!repeats)
		return;
	for (size_t i = 0; i < GW_REPEAT_CLIENTS; i++) {
		pthread_mutex_destroy(&repeats->places[i].lock);
		gw_free(repeats->places[i].answer);
	}
	pthread_mutex_destroy(&repeats->lock);
	gw_free(repeats);
}

/* The client's place, entered; NULL when all are taken by calls in progress. A linear search: sequenced calls move
 * rows and take longer than it. */
static struct place *place_enter(struct gw_repeats *repeats, const uint8_t uuid[16])
{
	struct place *found = NULL, *oldest = NULL;
	pthread_mutex_lock(&repeats->lock);
	for (size_t i = 0; i < GW_REPEAT_CLIENTS && !found; i++) {
		struct place *place = &repeats->places[i];
		if (place->heard && memcmp(place->uuid, uuid, 16) == 0)
			found = place;
		else if (!place->users && (!oldest || place->heard < oldest->heard))
			oldest = place;
	}
	if (!found && oldest) {
		found = oldest;
		gw_free(found->answer);
		memcpy(found->uuid, uuid, 16);
		found->answer = NULL;
		found->answer_bytes = 0;
		found->sequence = 0;
		found->kept = false;
	}
	if (found) {
		found->users++;
		found->heard = ++repeats->clock;
	}
	pthread_mutex_unlock(&repeats->lock);
	return found;
}

static void place_leave(struct gw_repeats *repeats, struct place *place)
{
	pthread_mutex_lock(&repeats->lock);
	place->users--;
	pthread_mutex_unlock(&repeats->lock);
}

static gw_status answer_again(const struct place *place, struct gw_reply *reply)
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

static void keep(struct place *place, uint64_t sequence, gw_status status, struct gw_reply *reply)
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
	if (bytes > GW_REPEAT_REPLY_MAX)
		return;
	place->answer = gw_malloc(bytes);
	if (!place->answer)
		return;
	if (bytes)
		memcpy(place->answer, data, bytes);
	place->answer_bytes = bytes;
	place->kept = true;
}

gw_status gw_repeats_call(struct gw_repeats *repeats, const uint8_t client_uuid[16], uint64_t sequence,
			  gw_status (*apply)(void *context, struct gw_reply *reply), void *context,
			  struct gw_reply *reply)
{
	struct place *place = place_enter(repeats, client_uuid);
	if (!place)
		return gw_fail(GW_LIMIT, "%d sequenced calls run at once; try again", GW_REPEAT_CLIENTS);
	pthread_mutex_lock(&place->lock);
	gw_status status;
	if (sequence == place->sequence) {
		status = answer_again(place, reply);
	} else if (sequence < place->sequence) {
		status = gw_fail(GW_INVALID, "call %llu comes after call %llu of the same client",
				 (unsigned long long)sequence, (unsigned long long)place->sequence);
	} else {
		status = apply(context, reply);
		keep(place, sequence, status, reply);
	}
	pthread_mutex_unlock(&place->lock);
	place_leave(repeats, place);
	return status;
}
