/* A reply under construction: one block of memory that doubles. The backend's header goes in front of the reply's
 * bytes, so that a large reply is sent from where the handler wrote it. The service counts the memory of long replies
 * over all its clients, from the handler's first run until the reply is sent. Fails when memory, the client's share of
 * it, or the service's memory for replies is used up. */
#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "transport/service/service_backend.h"

#define FIRST_BYTES 4096

void gw_reply_begin(struct gw_reply *reply, struct gw_service *service, uint32_t headroom, uint64_t bytes_max)
{
	*reply = (struct gw_reply){.service = service, .headroom = headroom};
	reply->bytes_max = bytes_max < GW_REPLY_BYTES_MAX ? (uint32_t)bytes_max : GW_REPLY_BYTES_MAX;
}

static void set_short(struct gw_reply *reply, bool is_short)
{
	if (reply->short_of_room == is_short)
		return;
	reply->short_of_room = is_short;
	if (is_short)
		atomic_fetch_add(&reply->service->short_of_room, 1);
	else
		atomic_fetch_sub(&reply->service->short_of_room, 1);
}

/* False: the service has not enough left. */
static bool reply_take(struct gw_reply *reply, uint64_t bytes)
{
	struct gw_service *service = reply->service;
	if (bytes <= GW_REPLY_FREE_BYTES)
		bytes = 0;
	if (!service || bytes == reply->taken)
		return true;
	if (bytes < reply->taken) {
		atomic_fetch_sub(&service->reply_bytes, reply->taken - bytes);
	} else {
		uint64_t more = bytes - reply->taken, held = atomic_fetch_add(&service->reply_bytes, more);
		if (held + more > service->limits.reply_bytes) {
			atomic_fetch_sub(&service->reply_bytes, more);
			return false;
		}
	}
	reply->taken = bytes;
	return true;
}

gw_status gw_reply_reserve(struct gw_reply *reply, uint64_t bytes)
{
	const struct gw_service *service = reply->service;
	if (bytes > reply->bytes_max || (service && bytes > service->limits.reply_bytes))
		return gw_fail(GW_LIMIT, "a reply of %llu bytes; a client of this server may have %llu",
			       (unsigned long long)bytes,
			       (unsigned long long)(service && service->limits.reply_bytes < reply->bytes_max
							    ? service->limits.reply_bytes
							    : reply->bytes_max));
	uint64_t needed = reply->headroom + bytes;
	bool taken = needed <= reply->taken || reply_take(reply, needed);
	if (service)
		set_short(reply, !taken);
	return taken ? GW_OK
		     : gw_fail(GW_AGAIN, "other clients' replies use all %llu bytes that this server has for replies",
			       (unsigned long long)service->limits.reply_bytes);
}

void *gw_reply_work(struct gw_reply *reply, size_t bytes, void (*end)(void *work))
{
	if (!reply->work) {
		reply->work = gw_calloc(1, bytes);
		reply->work_end = end;
	}
	return reply->work;
}

uint64_t *gw_reply_progress(struct gw_reply *reply)
{
	return &reply->progress;
}

void gw_reply_wait(struct gw_reply *reply)
{
	reply->waits = true;
}

static void work_free(struct gw_reply *reply)
{
	if (reply->work && reply->work_end)
		reply->work_end(reply->work);
	gw_free(reply->work);
	reply->work = NULL;
}

void gw_reply_settle(struct gw_reply *reply)
{
	work_free(reply);
	reply_take(reply, reply->memory ? reply->capacity : 0);
}

void gw_reply_leave(struct gw_reply *reply)
{
	work_free(reply);
	if (!reply->service)
		return;
	set_short(reply, false);
	reply_take(reply, 0);
	reply->service = NULL;
}

void gw_reply_end(struct gw_reply *reply)
{
	gw_reply_leave(reply);
	gw_free(reply->memory);
	reply->memory = NULL;
	reply->bytes = reply->capacity = 0;
}

uint8_t *gw_reply_extend(struct gw_reply *reply, uint32_t bytes)
{
	if (bytes > reply->bytes_max - reply->bytes) {
		gw_fail(GW_LIMIT, "a reply of more than %u bytes; ask for less at once", reply->bytes_max);
		return NULL;
	}
	uint64_t needed = (uint64_t)reply->headroom + reply->bytes + bytes;
	if (needed > reply->capacity || !reply->memory) {
		uint64_t capacity = reply->capacity ? reply->capacity : FIRST_BYTES;
		while (capacity < needed)
			capacity *= 2;
		uint64_t most = (uint64_t)reply->headroom + reply->bytes_max;
		capacity = capacity > most ? most : capacity;
		if (needed <= reply->taken && capacity > reply->taken)
			capacity = reply->taken;
		if (capacity > reply->taken && !reply_take(reply, capacity)) {
			gw_fail(GW_LIMIT,
				"unread replies use all %llu bytes that this server has for replies; "
				"ask for less at once, or later",
				(unsigned long long)reply->service->limits.reply_bytes);
			return NULL;
		}
		uint8_t *memory = gw_realloc(reply->memory, 1, capacity);
		if (!memory)
			return NULL;
		reply->memory = memory;
		reply->capacity = (uint32_t)capacity;
	}
	uint8_t *room = reply->memory + reply->headroom + reply->bytes;
	reply->bytes += bytes;
	return room;
}

void gw_reply_shrink(struct gw_reply *reply, uint32_t bytes)
{
	assert(bytes <= reply->bytes);
	reply->bytes -= bytes;
}

uint8_t *gw_reply_data(struct gw_reply *reply, uint32_t *bytes)
{
	*bytes = reply->bytes;
	return reply->memory ? reply->memory + reply->headroom : NULL;
}
