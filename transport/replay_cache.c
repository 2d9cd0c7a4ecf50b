/* Calls that must not be applied twice.
 *
 *   find the client's entry (or the least recently used) -> same sequence? the kept answer : apply, keep
 *
 * The entry is taken while the call is under way, over all its runs: a repeat that arrives by a new connection
 * meanwhile is deferred until that one is over. Only sequenced calls come here, reads never.
 * The kept answer of a failed call is its failure: a client that wants another try uses a new sequence. Failing for
 * want of memory before `apply` leaves nothing applied; after it, the answer is still given but not kept.
 */
#include "transport/replay_cache.h"

#include <pthread.h>
#include <string.h>

#include "core/base/alloc.h"
#include "transport/service_inside.h"

struct gw_replay_entry {
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
	struct gw_replay_entry entries[GW_REPLAY_CLIENTS];
};

gw_status gw_replay_cache_create(struct gw_replay_cache **out)
{
	*out = NULL;
	struct gw_replay_cache *cache = gw_calloc(1, sizeof(*cache));
	if (!cache)
		return GW_NO_MEMORY;
	pthread_mutex_init(&cache->lock, NULL);
	*out = cache;
	return GW_OK;
}

void gw_replay_cache_destroy(struct gw_replay_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < GW_REPLAY_CLIENTS; i++)
		gw_free(cache->entries[i].answer);
	pthread_mutex_destroy(&cache->lock);
	gw_free(cache);
}

/* The client's entry, which another call may have taken; NULL when all are taken. A linear search: sequenced calls move
 * rows and take longer than it. */
static struct gw_replay_entry *replay_entry_find(struct gw_replay_cache *cache, const uint8_t uuid[16])
{
	struct gw_replay_entry *oldest = NULL;
	for (size_t i = 0; i < GW_REPLAY_CLIENTS; i++) {
		struct gw_replay_entry *entry = &cache->entries[i];
		if (entry->heard && memcmp(entry->uuid, uuid, 16) == 0)
			return entry;
		if (!entry->taken && (!oldest || entry->heard < oldest->heard))
			oldest = entry;
	}
	if (oldest) {
		gw_free(oldest->answer);
		*oldest = (struct gw_replay_entry){0};
		memcpy(oldest->uuid, uuid, 16);
	}
	return oldest;
}

static gw_status answer_again(const struct gw_replay_entry *entry, struct gw_reply *reply)
{
	if (entry->status)
		return gw_fail_text(entry->status,
				    entry->answer ? (const char *)entry->answer : gw_status_text(entry->status));
	if (!entry->kept)
		return gw_fail(GW_LIMIT, "call %llu was applied, but its reply is no longer kept",
			       (unsigned long long)entry->sequence);
	uint8_t *room = gw_reply_extend(reply, entry->answer_bytes);
	if (!room)
		return GW_NO_MEMORY;
	if (entry->answer_bytes)
		memcpy(room, entry->answer, entry->answer_bytes);
	return GW_OK;
}

static void replay_cache_keep(struct gw_replay_entry *entry, uint64_t sequence, gw_status status,
			      struct gw_reply *reply)
{
	gw_free(entry->answer);
	entry->answer = NULL;
	entry->answer_bytes = 0;
	entry->sequence = sequence;
	entry->status = status;
	entry->kept = false;
	if (status) {
		entry->answer = (uint8_t *)gw_strdup(gw_last_error());
		return;
	}
	uint32_t bytes;
	const uint8_t *data = gw_reply_data(reply, &bytes);
	if (bytes > GW_REPLAY_REPLY_MAX)
		return;
	entry->answer = gw_malloc(bytes);
	if (!entry->answer)
		return;
	if (bytes)
		memcpy(entry->answer, data, bytes);
	entry->answer_bytes = bytes;
	entry->kept = true;
}

gw_status gw_replay_enter(struct gw_replay_cache *cache, const uint8_t client_uuid[16], uint64_t sequence,
			  struct gw_reply *reply, struct gw_replay_entry **out)
{
	gw_status status = GW_OK;
	*out = NULL;
	pthread_mutex_lock(&cache->lock);
	struct gw_replay_entry *entry = replay_entry_find(cache, client_uuid);
	if (!entry || entry->taken) {
		status = gw_fail(GW_AGAIN, "another sequenced call is under way");
	} else {
		entry->heard = ++cache->clock;
		if (sequence == entry->sequence) {
			status = answer_again(entry, reply);
		} else if (sequence < entry->sequence) {
			status = gw_fail(GW_INVALID, "call %llu comes after call %llu of the same client",
					 (unsigned long long)sequence, (unsigned long long)entry->sequence);
		} else {
			entry->taken = true;
			*out = entry;
		}
	}
	pthread_mutex_unlock(&cache->lock);
	return status;
}

void gw_replay_keep(struct gw_replay_cache *cache, struct gw_replay_entry *entry, uint64_t sequence, gw_status status,
		    struct gw_reply *reply)
{
	pthread_mutex_lock(&cache->lock);
	replay_cache_keep(entry, sequence, status, reply);
	entry->taken = false;
	pthread_mutex_unlock(&cache->lock);
}

void gw_replay_leave(struct gw_replay_cache *cache, struct gw_replay_entry *entry)
{
	pthread_mutex_lock(&cache->lock);
	entry->taken = false;
	pthread_mutex_unlock(&cache->lock);
}
