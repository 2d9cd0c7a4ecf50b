/* A reply under construction: one block that doubles. It keeps room in front for the backend's header, so that a large
 * reply is sent from where the handler wrote it. Fails when memory or the client's share of it is used up. */
#include <string.h>

#include "core/base/alloc.h"
#include "transport/service_inside.h"

#define FIRST_BYTES 4096

void gw_reply_begin(struct gw_reply *reply, uint32_t headroom, uint64_t bytes_max)
{
	*reply = (struct gw_reply){.headroom = headroom};
	reply->bytes_max = bytes_max < GW_REPLY_BYTES_MAX ? (uint32_t)bytes_max : GW_REPLY_BYTES_MAX;
}

void gw_reply_end(struct gw_reply *reply)
{
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
