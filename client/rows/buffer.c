/* Buffers: arenas of gw_buffer_alloc, and memory of gw_buffer_lend, that every engine's transports know until
 * gw_buffer_free. A gather into a buffer registers nothing. Over RDMA the first read into the buffer registers its
 * memory, once (transport/verbs/mr_cache.c).
 *
 *   alloc, lend, free ─▶ a job in each engine, one after another ─▶ the engine's list, by address ◀─ a gather searches
 * it
 *
 * Each engine has its own list, so a gather takes no lock. The buffers of a client do not overlap. gw_buffer_alloc and
 * gw_buffer_lend fail if memory runs out, or if an engine has no room for the job or the registration. Then no engine
 * keeps the buffer.
 */
#include "client/rows/buffer.h"

#include <string.h>

#include "client/engine/engine.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/system/clock.h"

struct gw_client_buffer {
	struct gw_client_buffer *next; /* in the client's list */
	uint8_t *base;
	uint64_t bytes;
	struct gw_arena *arena; /* NULL: the memory is the caller's */
};

/* --- In the engine. --- */

/* How many of the engine's buffers begin at or before this address. */
static uint32_t count_before(const struct gw_engine *engine, const uint8_t *at)
{
	struct gw_buffer *const *buffers = engine->buffers.data;
	uint32_t low = 0, high = engine->buffer_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (buffers[middle]->base <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct gw_buffer *gw_buffer_find(const struct gw_engine *engine, const uint8_t *at, uint64_t bytes)
{
	uint32_t before = count_before(engine, at);
	if (before == 0)
		return NULL;
	struct gw_buffer *buffer = ((struct gw_buffer *const *)engine->buffers.data)[before - 1];
	uint64_t offset = (uint64_t)(at - buffer->base);
	return offset <= buffer->bytes && bytes <= buffer->bytes - offset ? buffer : NULL;
}

static gw_status buffer_add(struct gw_engine *engine, const struct gw_client_buffer *added)
{
	struct gw_buffer *buffer;
	if (gw_vec_reserve(&engine->buffers, (engine->buffer_count + 1) * sizeof(buffer)) != GW_OK)
		return GW_NO_MEMORY;
	gw_status status = gw_buffer_register(engine->group, added->base, added->bytes, &buffer);
	if (status != GW_OK)
		return status;
	uint32_t at = count_before(engine, added->base);
	struct gw_buffer **place = (struct gw_buffer **)engine->buffers.data + at;
	memmove(place + 1, place, (engine->buffer_count - at) * sizeof(*place));
	*place = buffer;
	engine->buffer_count++;
	return GW_OK;
}

static void buffer_remove(struct gw_engine *engine, const struct gw_client_buffer *removed)
{
	uint32_t before = count_before(engine, removed->base);
	struct gw_buffer **place = (struct gw_buffer **)engine->buffers.data + before;
	if (before == 0 || place[-1]->base != removed->base)
		return;
	gw_buffer_release(place[-1]);
	memmove(place - 1, place, (engine->buffer_count - before) * sizeof(*place));
	engine->buffer_count--;
}

/* --- From a caller's thread. --- */

struct visit {
	struct gw_job job;
	const struct gw_client_buffer *buffer;
	bool removes, done;
};

static void visit_start(struct gw_job *job)
{
	struct visit *visit = (struct visit *)job;
	gw_status status = GW_OK;
	if (visit->removes)
		buffer_remove(job->engine, visit->buffer);
	else
		status = buffer_add(job->engine, visit->buffer);
	visit->done = true;
	gw_job_end(job, status);
}

static void visit_cancel(struct gw_job *job)
{
	(void)job; /* the job never waits */
}

static gw_status buffer_register(struct gw_engine *engine, const struct gw_client_buffer *buffer)
{
	struct visit visit = {.job = {.start = visit_start, .cancel = visit_cancel}, .buffer = buffer};
	gw_engine_submit(engine, &visit.job, true);
	gw_job_wait(&visit.job, GW_NO_DEADLINE);
	return visit.job.status == GW_OK ? GW_OK : gw_fail_text(visit.job.status, visit.job.text);
}

/* Repeats the job while the engine is at its limit of jobs. */
static void buffer_unregister(struct gw_engine *engine, const struct gw_client_buffer *buffer)
{
	struct visit visit = {.job = {.start = visit_start, .cancel = visit_cancel}, .buffer = buffer, .removes = true};
	while (!visit.done) {
		gw_engine_submit(engine, &visit.job, true);
		gw_job_wait(&visit.job, GW_NO_DEADLINE);
	}
}

static gw_status register_all(struct gw_client *client, const struct gw_client_buffer *buffer)
{
	for (uint32_t i = 0; i < client->engine_count; i++) {
		gw_status status = buffer_register(&client->engines[i], buffer);
		if (status == GW_OK)
			continue;
		while (i-- > 0)
			buffer_unregister(&client->engines[i], buffer);
		return status;
	}
	return GW_OK;
}

/* Takes a buffer into the client's list, unless it overlaps one there. */
static gw_status buffer_join(struct gw_client *client, struct gw_client_buffer *buffer)
{
	pthread_mutex_lock(&client->batches_lock);
	const struct gw_client_buffer *other = client->buffers;
	while (other && (other->base + other->bytes <= buffer->base || buffer->base + buffer->bytes <= other->base))
		other = other->next;
	if (!other) {
		buffer->next = client->buffers;
		client->buffers = buffer;
	}
	pthread_mutex_unlock(&client->batches_lock);
	return other ? gw_fail(GW_INVALID, "the memory overlaps a buffer of this client; free that one first") : GW_OK;
}

/* Takes the buffer that begins there out of the client's list. NULL: none does. */
static struct gw_client_buffer *buffer_part(struct gw_client *client, const void *memory)
{
	pthread_mutex_lock(&client->batches_lock);
	struct gw_client_buffer **at = &client->buffers, *found;
	while (*at && (*at)->base != memory)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&client->batches_lock);
	return found;
}

static void buffer_destroy(struct gw_client_buffer *buffer)
{
	gw_arena_destroy(buffer->arena);
	gw_free(buffer);
}

/* Owns the arena, also if it fails. arena: NULL if the memory is the caller's. */
static gw_status buffer_create(struct gw_client *client, void *base, uint64_t bytes, struct gw_arena *arena)
{
	struct gw_client_buffer *buffer = gw_malloc(sizeof(*buffer));
	if (!buffer) {
		gw_arena_destroy(arena);
		return GW_NO_MEMORY;
	}
	*buffer = (struct gw_client_buffer){.base = base, .bytes = bytes, .arena = arena};
	gw_status status = buffer_join(client, buffer);
	if (status == GW_OK) {
		status = register_all(client, buffer);
		if (status != GW_OK)
			buffer_part(client, base);
	}
	if (status != GW_OK)
		buffer_destroy(buffer);
	return status;
}

void *gw_buffer_alloc(struct gw_client *client, uint64_t bytes)
{
	struct gw_arena_options options = {.name = "graphwire-buffer", .numa = GW_NUMA_LOCAL};
	struct gw_arena *arena;
	if (gw_client_check(client) != GW_OK || gw_arena_create(bytes, &options, &arena) != GW_OK)
		return NULL;
	void *base = gw_arena_base(arena);
	return buffer_create(client, base, gw_arena_bytes(arena), arena) == GW_OK ? base : NULL;
}

gw_status gw_buffer_lend(struct gw_client *client, void *memory, uint64_t bytes)
{
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	if (!memory || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)memory)
		return gw_fail(GW_INVALID, "no memory is lent: it has no address, no bytes, or too many");
	return buffer_create(client, memory, bytes, NULL);
}

void gw_buffer_free(struct gw_client *client, void *memory)
{
	if (gw_client_is_inherited(client))
		return;
	struct gw_client_buffer *found = buffer_part(client, memory);
	if (!found)
		return;
	for (uint32_t i = 0; i < client->engine_count; i++)
		buffer_unregister(&client->engines[i], found);
	buffer_destroy(found);
}

void gw_buffers_free(struct gw_client *client)
{
	while (client->buffers) {
		struct gw_client_buffer *buffer = client->buffers;
		client->buffers = buffer->next;
		for (uint32_t i = 0; i < client->engine_count; i++)
			buffer_remove(&client->engines[i], buffer);
		buffer_destroy(buffer);
	}
}
