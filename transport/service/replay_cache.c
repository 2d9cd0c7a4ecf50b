/* The replay cache: windows of calls by client, found by hash. A window's entries are allocated by its first numbered
 * call, so a client that only reads costs a place and no more. An entry that is being applied keeps its window, even if
 * all connections end.
 *
 * A call is refused if all places belong to clients that are connected or may come back. It is also refused if memory
 * runs out. If only its reply cannot be stored, the call is applied; a repeat then learns only that it was applied. */
#include "transport/service/replay_cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "transport/service/handler.h"

#define BUCKETS 1024u

enum replay_state { REPLAY_FREE, REPLAY_RUNS, REPLAY_LEFT, REPLAY_DONE };

struct gw_replay_entry {
	struct replay_window *window;
	uint64_t sequence;
	enum replay_state state;
	gw_status status;
	uint64_t progress; /* for REPLAY_LEFT */
	bool kept;         /* the answer is kept; else only the fact that the call was applied */
	uint8_t *answer;   /* the reply's bytes, or the error's text */
	uint32_t answer_bytes;
};

/* The window of one client. */
struct replay_window {
	struct replay_window *next; /* in the bucket */
	uint8_t uuid[16];
	uint64_t number, oldest;
	uint64_t budget_ns, left_ns; /* left_ns: when the last connection ended */
	uint32_t connections, running;
	bool goodbye;
	struct gw_replay_entry *entries; /* GW_WINDOW entries, by sequence; NULL: no numbered call yet */
};

struct gw_replay_cache {
	pthread_mutex_t lock; /* never locked while a handler runs */
	uint64_t life;        /* from the incarnation: the high half of windows' numbers */
	uint32_t count, last_number;
	uint64_t bytes; /* of kept answers */
	uint64_t replays;
	struct replay_window *buckets[BUCKETS];
};

gw_status gw_replay_cache_create(uint64_t incarnation, struct gw_replay_cache **out)
{
	*out = NULL;
	struct gw_replay_cache *cache = gw_calloc(1, sizeof(*cache));
	if (!cache)
		return GW_NO_MEMORY;
	cache->life = gw_mix64(incarnation + 1) | 1ull << 32;
	cache->life &= ~(uint64_t)UINT32_MAX;
	pthread_mutex_init(&cache->lock, NULL);
	*out = cache;
	return GW_OK;
}

static void entry_clear(struct gw_replay_cache *cache, struct gw_replay_entry *entry)
{
	cache->bytes -= entry->answer_bytes;
	gw_free(entry->answer);
	entry->answer = NULL;
	entry->answer_bytes = 0;
	entry->kept = false;
	entry->state = REPLAY_FREE;
}

static void window_end(struct gw_replay_cache *cache, struct replay_window **at)
{
	struct replay_window *window = *at;
	*at = window->next;
	cache->count--;
	for (uint32_t i = 0; window->entries && i < GW_WINDOW; i++)
		entry_clear(cache, &window->entries[i]);
	gw_free(window->entries);
	gw_free(window);
}

void gw_replay_cache_destroy(struct gw_replay_cache *cache)
{
	if (!cache)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		while (cache->buckets[i])
			window_end(cache, &cache->buckets[i]);
	pthread_mutex_destroy(&cache->lock);
	gw_free(cache);
}

/* Whether the client can repeat no call of this window. */
static bool window_is_over(const struct replay_window *window, uint64_t now_ns)
{
	return window->connections == 0 && window->running == 0 &&
	       (window->goodbye || now_ns - window->left_ns > window->budget_ns);
}

/* The pointer to the client's window, or the pointer where a new one belongs. */
static struct replay_window **window_find(struct gw_replay_cache *cache, const uint8_t uuid[16])
{
	uint64_t words[2];
	memcpy(words, uuid, sizeof(words));
	struct replay_window **at = &cache->buckets[gw_mix64(words[0] ^ gw_mix64(words[1])) % BUCKETS];
	while (*at && memcmp((*at)->uuid, uuid, 16) != 0)
		at = &(*at)->next;
	return at;
}

/* Removes the windows that are over. With readers = true, also those of disconnected clients from which no numbered
 * call has arrived. If a numbered call of such a client arrives afterwards, it ends with GW_OUTCOME_UNKNOWN. */
static void windows_sweep(struct gw_replay_cache *cache, uint64_t now_ns, bool readers)
{
	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (struct replay_window **at = &cache->buckets[i]; *at;) {
			if (window_is_over(*at, now_ns) || (readers && !(*at)->connections && !(*at)->entries))
				window_end(cache, at);
			else
				at = &(*at)->next;
		}
	}
}

static struct replay_window *window_make(struct gw_replay_cache *cache, const uint8_t uuid[16], uint64_t now_ns)
{
	if (cache->count == GW_REPLAY_CLIENTS)
		windows_sweep(cache, now_ns, false);
	if (cache->count == GW_REPLAY_CLIENTS)
		windows_sweep(cache, now_ns, true);
	if (cache->count == GW_REPLAY_CLIENTS)
		return NULL;
	struct replay_window *window = gw_calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	memcpy(window->uuid, uuid, 16);
	window->number = cache->life | ++cache->last_number;
	*window_find(cache, uuid) = window;
	cache->count++;
	return window;
}

uint64_t gw_replay_join(struct gw_replay_cache *cache, const uint8_t client_uuid[16], uint64_t budget_ns)
{
	uint64_t number = 0;
	budget_ns = budget_ns ? budget_ns : GW_REPLAY_BUDGET_NS;
	pthread_mutex_lock(&cache->lock);
	uint64_t now =
		gw_now_ns(); /* read under the lock: a thread that held it before may have written a later left_ns */
	struct replay_window **at = window_find(cache, client_uuid);
	/* A client that comes back after its budget may have been suspended, so its window stays. Only a goodbye ends
	 * it. */
	if (*at && (*at)->goodbye && window_is_over(*at, now))
		window_end(cache, at);
	struct replay_window *window = *window_find(cache, client_uuid);
	if (!window)
		window = window_make(cache, client_uuid, now);
	if (window) {
		window->connections++;
		window->goodbye = false;
		window->budget_ns = budget_ns < GW_REPLAY_BUDGET_MAX ? budget_ns : GW_REPLAY_BUDGET_MAX;
		number = window->number;
	}
	pthread_mutex_unlock(&cache->lock);
	return number;
}

void gw_replay_disconnect(struct gw_replay_cache *cache, const uint8_t client_uuid[16])
{
	pthread_mutex_lock(&cache->lock);
	struct replay_window **at = window_find(cache, client_uuid);
	if (*at && --(*at)->connections == 0) {
		(*at)->left_ns = gw_now_ns();
		if (window_is_over(*at, (*at)->left_ns))
			window_end(cache, at);
	}
	pthread_mutex_unlock(&cache->lock);
}

void gw_replay_goodbye(struct gw_replay_cache *cache, const uint8_t client_uuid[16])
{
	pthread_mutex_lock(&cache->lock);
	struct replay_window *window = *window_find(cache, client_uuid);
	if (window)
		window->goodbye = true;
	pthread_mutex_unlock(&cache->lock);
}

uint32_t gw_replay_cache_clients(struct gw_replay_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	uint32_t count = cache->count;
	pthread_mutex_unlock(&cache->lock);
	return count;
}

uint64_t gw_replay_cache_replays(struct gw_replay_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	uint64_t replays = cache->replays;
	pthread_mutex_unlock(&cache->lock);
	return replays;
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

static void window_forget_acknowledged(struct gw_replay_cache *cache, struct replay_window *window, uint64_t oldest)
{
	if (oldest <= window->oldest)
		return;
	for (uint32_t i = 0; i < GW_WINDOW; i++) {
		struct gw_replay_entry *entry = &window->entries[i];
		if (entry->state != REPLAY_RUNS && entry->sequence < oldest)
			entry_clear(cache, entry);
	}
	window->oldest = oldest;
}

/* Whether an earlier call of this client is being applied. A connection has one task at a time, so the earlier call
 * came over another connection. The client may have given up that connection and the call. */
static bool window_runs_before(const struct replay_window *window, uint64_t sequence)
{
	for (uint32_t i = 0; window->running > 0 && i < GW_WINDOW; i++) {
		const struct gw_replay_entry *entry = &window->entries[i];
		if (entry->state == REPLAY_RUNS && entry->sequence < sequence)
			return true;
	}
	return false;
}

static gw_status window_check(const struct gw_replay_cache *cache, const struct replay_window *window,
			      const struct gw_once *once)
{
	/* A window number of another incarnation, or 0: this server has applied nothing of the call. */
	if (once->window != (window ? window->number : 0) && (once->window & ~(uint64_t)UINT32_MAX) == cache->life)
		return gw_fail(
			GW_OUTCOME_UNKNOWN,
			"call %llu may have been applied or not: this client was disconnected for longer than its "
			"reconnect budget",
			(unsigned long long)once->sequence);
	if (!window)
		return gw_fail(GW_LIMIT,
			       "the server remembers the calls of %u clients and has no place for more: "
			       "it refuses this client's calls that must not be applied twice",
			       GW_REPLAY_CLIENTS);
	if (once->oldest > once->sequence || once->sequence - once->oldest >= GW_WINDOW)
		return gw_fail(GW_INVALID, "call %llu while call %llu is open: at most %u may be open",
			       (unsigned long long)once->sequence, (unsigned long long)once->oldest, GW_WINDOW);
	if (once->sequence < window->oldest)
		return gw_fail(GW_INVALID, "call %llu, though the client has acknowledged calls up to %llu",
			       (unsigned long long)once->sequence, (unsigned long long)window->oldest - 1);
	return GW_OK;
}

static gw_status window_enter(struct gw_replay_cache *cache, struct replay_window *window, const struct gw_once *once,
			      struct gw_reply *reply, struct gw_replay_entry **out)
{
	if (!window->entries)
		window->entries = gw_calloc(GW_WINDOW, sizeof(struct gw_replay_entry));
	if (!window->entries)
		return GW_NO_MEMORY;
	window_forget_acknowledged(cache, window, once->oldest);
	struct gw_replay_entry *entry = &window->entries[once->sequence % GW_WINDOW];
	/* The entry may also belong to an older, acknowledged call: one that arrived late, over a lost connection. */
	if (entry->state == REPLAY_RUNS)
		return gw_fail(GW_AGAIN, "the call is being applied");
	if (entry->state == REPLAY_DONE && entry->sequence == once->sequence) {
		cache->replays++;
		return answer_again(entry, reply);
	}
	if (window_runs_before(window, once->sequence))
		return gw_fail(GW_AGAIN, "a call before this one is being applied");
	bool left = entry->state == REPLAY_LEFT && entry->sequence == once->sequence;
	*gw_reply_progress(reply) = left ? entry->progress : 0;
	entry_clear(cache, entry); /* frees the answer of a late call */
	*entry = (struct gw_replay_entry){.window = window, .sequence = once->sequence, .state = REPLAY_RUNS};
	window->running++;
	*out = entry;
	return GW_OK;
}

gw_status gw_replay_enter(struct gw_replay_cache *cache, const uint8_t client_uuid[16], const struct gw_once *once,
			  struct gw_reply *reply, struct gw_replay_entry **out)
{
	*out = NULL;
	pthread_mutex_lock(&cache->lock);
	struct replay_window *window = *window_find(cache, client_uuid);
	gw_status status = window_check(cache, window, once);
	if (status == GW_OK)
		status = window_enter(cache, window, once, reply, out);
	pthread_mutex_unlock(&cache->lock);
	return status;
}

static void answer_keep(struct gw_replay_cache *cache, struct gw_replay_entry *entry, gw_status status,
			struct gw_reply *reply)
{
	uint32_t bytes;
	const uint8_t *data;
	if (status != GW_OK) {
		entry->answer = (uint8_t *)gw_strdup(gw_last_error());
		return;
	}
	data = gw_reply_data(reply, &bytes);
	if (bytes > GW_REPLAY_REPLY_MAX || cache->bytes + bytes > GW_REPLAY_BYTES_MAX)
		return;
	entry->answer = gw_malloc(bytes ? bytes : 1);
	if (!entry->answer)
		return;
	if (bytes)
		memcpy(entry->answer, data, bytes);
	entry->answer_bytes = bytes;
	entry->kept = true;
	cache->bytes += bytes;
}

void gw_replay_keep(struct gw_replay_cache *cache, struct gw_replay_entry *entry, gw_status status,
		    struct gw_reply *reply)
{
	pthread_mutex_lock(&cache->lock);
	entry->state = REPLAY_DONE;
	entry->status = status;
	answer_keep(cache, entry, status, reply);
	entry->window->running--;
	pthread_mutex_unlock(&cache->lock);
}

void gw_replay_leave(struct gw_replay_cache *cache, struct gw_replay_entry *entry, uint64_t progress)
{
	pthread_mutex_lock(&cache->lock);
	entry->state = REPLAY_LEFT;
	entry->progress = progress;
	entry->window->running--;
	pthread_mutex_unlock(&cache->lock);
}

/* --- Hand-over. --- */

struct saved_head {
	uint32_t bytes, count; /* of this record; of windows */
	uint64_t life;
	uint32_t last_number, padding;
};

struct saved_window {
	uint32_t bytes, entries;
	uint8_t uuid[16];
	uint64_t number, oldest, budget_ns, left_ns; /* left_ns: how long ago the last connection ended */
	uint32_t goodbye, used;                      /* used: numbered calls have arrived */
};

struct saved_entry {
	uint32_t bytes, answer_bytes;
	uint64_t sequence, progress;
	uint32_t done, status, kept, padding;
};

/* The bytes of an error's answer are its text. */
static uint32_t entry_answer_bytes(const struct gw_replay_entry *entry)
{
	return entry->status && entry->answer ? (uint32_t)strlen((const char *)entry->answer) : entry->answer_bytes;
}

static uint32_t window_entries(const struct replay_window *window)
{
	uint32_t count = 0;
	for (uint32_t i = 0; window->entries && i < GW_WINDOW; i++)
		count += window->entries[i].state != REPLAY_FREE;
	return count;
}

/* NULL: counts the bytes only. */
static uint64_t saved_put(uint8_t *data, uint64_t at, const void *bytes, uint64_t n)
{
	if (data && n)
		memcpy(data + at, bytes, n);
	return at + n;
}

static uint64_t window_save(const struct replay_window *window, uint64_t now_ns, uint8_t *data, uint64_t at)
{
	struct saved_window head = {.bytes = sizeof(head),
				    .entries = window_entries(window),
				    .number = window->number,
				    .oldest = window->oldest,
				    .budget_ns = window->budget_ns,
				    .left_ns = now_ns - window->left_ns,
				    .goodbye = window->goodbye,
				    .used = window->entries != NULL};
	memcpy(head.uuid, window->uuid, sizeof(head.uuid));
	at = saved_put(data, at, &head, sizeof(head));
	for (uint32_t i = 0; window->entries && i < GW_WINDOW; i++) {
		const struct gw_replay_entry *entry = &window->entries[i];
		if (entry->state == REPLAY_FREE)
			continue;
		struct saved_entry saved = {.bytes = sizeof(saved),
					    .answer_bytes = entry_answer_bytes(entry),
					    .sequence = entry->sequence,
					    .progress = entry->progress,
					    .done = entry->state == REPLAY_DONE,
					    .status = entry->status,
					    .kept = entry->kept};
		at = saved_put(data, at, &saved, sizeof(saved));
		at = saved_put(data, at, entry->answer, saved.answer_bytes);
	}
	return at;
}

static uint64_t cache_save(const struct gw_replay_cache *cache, uint64_t now_ns, uint8_t *data)
{
	struct saved_head head = {
		.bytes = sizeof(head), .count = cache->count, .life = cache->life, .last_number = cache->last_number};
	uint64_t at = saved_put(data, 0, &head, sizeof(head));
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct replay_window *window = cache->buckets[i]; window; window = window->next)
			at = window_save(window, now_ns, data, at);
	return at;
}

static bool cache_is_quiet(const struct gw_replay_cache *cache)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct replay_window *window = cache->buckets[i]; window; window = window->next)
			if (window->connections || window->running)
				return false;
	return true;
}

gw_status gw_replay_save(struct gw_replay_cache *cache, uint8_t **out, uint64_t *bytes)
{
	*out = NULL;
	gw_status status = GW_OK;
	pthread_mutex_lock(&cache->lock);
	uint64_t now = gw_now_ns();
	if (!cache_is_quiet(cache))
		status = gw_fail(GW_BUSY, "calls of clients are still open");
	*bytes = status == GW_OK ? cache_save(cache, now, NULL) : 0;
	if (status == GW_OK && !(*out = gw_malloc(*bytes)))
		status = GW_NO_MEMORY;
	if (status == GW_OK)
		cache_save(cache, now, *out);
	pthread_mutex_unlock(&cache->lock);
	return status;
}

struct saved_reader {
	const uint8_t *data;
	uint64_t left;
};

/* A record of `bytes` or more or fewer bytes, as its first word says. */
static bool take_record(struct saved_reader *reader, void *out, uint32_t bytes)
{
	uint32_t has;
	if (reader->left < sizeof(has))
		return false;
	memcpy(&has, reader->data, sizeof(has));
	if (has < 2 * sizeof(has) || has > reader->left)
		return false;
	memset(out, 0, bytes);
	memcpy(out, reader->data, has < bytes ? has : bytes);
	reader->data += has;
	reader->left -= has;
	return true;
}

static gw_status replay_damaged(void)
{
	return gw_fail(GW_FORMAT, "the calls of clients came damaged");
}

static gw_status entry_load(struct gw_replay_cache *cache, struct replay_window *window, struct saved_reader *reader)
{
	struct saved_entry saved;
	if (!take_record(reader, &saved, sizeof(saved)) || saved.answer_bytes > reader->left ||
	    saved.answer_bytes > GW_REPLAY_REPLY_MAX || !window->entries)
		return replay_damaged();
	struct gw_replay_entry *entry = &window->entries[saved.sequence % GW_WINDOW];
	if (entry->state != REPLAY_FREE || cache->bytes + saved.answer_bytes > GW_REPLAY_BYTES_MAX)
		return replay_damaged();
	*entry = (struct gw_replay_entry){.window = window,
					  .sequence = saved.sequence,
					  .state = saved.done ? REPLAY_DONE : REPLAY_LEFT,
					  .status = (gw_status)saved.status,
					  .progress = saved.progress,
					  .kept = saved.kept};
	if (saved.kept || saved.answer_bytes) {
		entry->answer = gw_malloc(saved.answer_bytes + 1ull);
		if (!entry->answer)
			return GW_NO_MEMORY;
		if (saved.answer_bytes)
			memcpy(entry->answer, reader->data, saved.answer_bytes);
		entry->answer[saved.answer_bytes] = 0;
	}
	if (!saved.status) {
		entry->answer_bytes = saved.answer_bytes;
		cache->bytes += saved.answer_bytes;
	}
	reader->data += saved.answer_bytes;
	reader->left -= saved.answer_bytes;
	return GW_OK;
}

static gw_status window_load(struct gw_replay_cache *cache, struct saved_reader *reader, uint64_t now_ns)
{
	struct saved_window saved;
	if (!take_record(reader, &saved, sizeof(saved)) || saved.entries > GW_WINDOW ||
	    (saved.number & ~(uint64_t)UINT32_MAX) != cache->life || *window_find(cache, saved.uuid))
		return replay_damaged();
	struct replay_window *window = window_make(cache, saved.uuid, now_ns);
	if (!window)
		return GW_NO_MEMORY;
	window->number = saved.number;
	window->oldest = saved.oldest;
	window->budget_ns = saved.budget_ns < GW_REPLAY_BUDGET_MAX ? saved.budget_ns : GW_REPLAY_BUDGET_MAX;
	window->left_ns = saved.left_ns < now_ns ? now_ns - saved.left_ns : 0;
	window->goodbye = saved.goodbye;
	if (saved.used && !(window->entries = gw_calloc(GW_WINDOW, sizeof(struct gw_replay_entry))))
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < saved.entries && status == GW_OK; i++)
		status = entry_load(cache, window, reader);
	return status;
}

gw_status gw_replay_load(struct gw_replay_cache *cache, const uint8_t *data, uint64_t bytes)
{
	struct saved_reader reader = {data, bytes};
	struct saved_head head;
	if (!take_record(&reader, &head, sizeof(head)) || head.life != cache->life || head.count > GW_REPLAY_CLIENTS ||
	    cache->count)
		return replay_damaged();
	uint64_t now = gw_now_ns();
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < head.count && status == GW_OK; i++)
		status = window_load(cache, &reader, now);
	cache->last_number = head.last_number;
	return status == GW_OK && reader.left ? replay_damaged() : status;
}
