/* Answers a read. The frame is decoded and every range is checked against the region before a byte is touched. Then the
 * ranges are gathered into the connection's output buffer. Complete ranges are prefetched and copied while they fit. A
 * range that does not fit is gathered in parts, one part each time the buffer has been emptied. The payload is copied
 * once, from the region to the buffer; one long range is not copied, but sent from the region. Fails only at the start:
 * on a malformed frame, an unknown or stale region, or a range past the region's end.
 *
 * Versioned rows: no part of a row is sent before the row is known to be complete. A row that does not fit waits for an
 * empty buffer. A row longer than the buffer is first copied into a separate block. A row counts as torn after a few
 * tries, since this thread serves other clients too. TORN names the torn rows after the payload. At that point the
 * answer may still fail: the region was withdrawn, or memory ran out. */
#include "transport/tcp/server/server_answer.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "transport/copy.h"

#define ROW_TRIES  4
#define LINE_BYTES 64u         /* of a cache line */
#define DIRECT_MIN (32u << 10) /* bytes of a range that is not copied into the output buffer */

static gw_status answer_check(const struct wire_ranges *ranges, const struct gw_region *region)
{
	gw_status status = gw_wire_ranges_check(ranges, region->bytes);
	if (status == GW_OK && region->kind == GW_REGION_VERSIONED)
		status = gw_wire_rows_check(ranges, &region->rows.format);
	return status;
}

/* A dynamic region is entered: *place. */
static gw_status answer_region(const struct tcp_answer *answer, const struct gw_region **region,
			       struct gw_dynamic_region_place **place)
{
	const struct gw_service *service = answer->service;
	const struct wire_read *read = &answer->ranges.read;
	*place = NULL;
	if (read->region >= GW_REGIONS_MAX) {
		*place = gw_dynamic_region_enter(answer->service, read->region, read->generation);
		if (!*place)
			return GW_NOT_FOUND;
		*region = &(*place)->region;
		return answer_check(&answer->ranges, *region);
	}
	if (read->region >= service->region_count)
		return gw_fail(GW_RANGE, "region %u does not exist; the server has %u regions", read->region,
			       service->region_count);
	*region = &service->regions[read->region];
	if (read->generation != (*region)->generation)
		return gw_fail(GW_STALE, "the server has reloaded region %u; connect again", read->region);
	return answer_check(&answer->ranges, *region);
}

gw_status gw_tcp_answer_begin(struct tcp_answer *answer, struct gw_service *service, uint8_t type, const uint8_t *body,
			      uint32_t n)
{
	const struct gw_region *region = NULL;
	struct gw_dynamic_region_place *place;
	gw_status status = gw_wire_ranges(type, body, n, &answer->ranges);
	if (status != GW_OK)
		return status;
	answer->service = service;
	status = answer_region(answer, &region, &place);
	if (status == GW_OK) {
		answer->from = place ? place->what.base : service->bases[region->id];
		answer->dynamic = place != NULL;
		answer->row_copy = region->rows;
		answer->rows = region->kind == GW_REGION_VERSIONED ? &answer->row_copy : NULL;
	}
	if (place)
		gw_dynamic_region_leave(service, place);
	if (status != GW_OK) {
		gw_count_alone(&answer->peer.read_errors, 1);
		return status;
	}
	gw_count_read(&answer->peer, answer->ranges.read.count, answer->ranges.bytes);
	answer->next = answer->next_done = 0;
	answer->torn_count = 0;
	answer->gathered = answer->gone = false;
	answer->failure = GW_OK;
	return GW_OK;
}

const uint8_t *gw_tcp_answer_direct(const struct tcp_answer *answer)
{
	const struct wire_ranges *ranges = &answer->ranges;
	if (answer->rows || answer->dynamic || ranges->read.count != 1 || ranges->bytes < DIRECT_MIN)
		return NULL;
	return answer->from + gw_wire_offset(ranges, 0);
}

GW_PREFETCHES void prefetch(const struct tcp_answer *answer, uint32_t i)
{
	if (i < answer->ranges.read.count)
		gw_prefetch_range(answer->from + gw_wire_offset(&answer->ranges, i),
				  gw_wire_length(&answer->ranges, i));
}

/* Prefetches the first line of a range, or all. All lines can fill the core's places for lines in flight (16 on some
 * Intel processors), and wait there; the copy itself asks for the other lines, many at once. */
GW_PREFETCHES void prefetch_alike(const struct tcp_answer *answer, uint32_t i, uint32_t bytes, bool all)
{
	if (i >= answer->ranges.read.count)
		return;
	const uint8_t *range = answer->from + gw_wire_offset(&answer->ranges, i);
	if (all)
		gw_prefetch_range(range, bytes);
	else
		__builtin_prefetch(range);
}

/* Gathers complete ranges of one length while they fit: the innermost loop. Returns where the next byte goes. */
static inline __attribute__((always_inline)) uint8_t *gather_alike(struct tcp_answer *answer, uint8_t *to,
								   const uint8_t *end, bool all)
{
	const struct wire_ranges *ranges = &answer->ranges;
	uint32_t i = answer->next, bytes = ranges->read.length, last = ranges->read.count;
	for (uint32_t ahead = 0; i == 0 && ahead < GW_COPY_AHEAD; ahead++)
		prefetch_alike(answer, ahead, bytes, all);
	if (last - i > (size_t)(end - to) / bytes)
		last = i + (uint32_t)((size_t)(end - to) / bytes);
	for (; i < last; i++, to += bytes) {
		prefetch_alike(answer, i + GW_COPY_AHEAD, bytes, all);
		memcpy(to, answer->from + gw_wire_offset(ranges, i), bytes);
	}
	answer->next = i;
	return to;
}

static uint8_t *gather_first(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	return gather_alike(answer, to, end, false);
}

static uint8_t *gather_all_lines(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	return gather_alike(answer, to, end, true);
}

#define SHORT_BLOCK 64u /* short ranges that are prefetched at once */

/* Does the same for a length that one or two moves copy. A range's offset is decoded once. */
static inline __attribute__((always_inline)) uint8_t *gather_short(struct tcp_answer *answer, uint8_t *to,
								   const uint8_t *end, uint32_t bytes)
{
	const struct wire_ranges *ranges = &answer->ranges;
	const uint8_t *from[SHORT_BLOCK];
	uint32_t i = answer->next, last = ranges->read.count;
	if (last - i > (size_t)(end - to) / bytes)
		last = i + (uint32_t)((size_t)(end - to) / bytes);
	while (i < last) {
		uint32_t block = last - i < SHORT_BLOCK ? last - i : SHORT_BLOCK;
		for (uint32_t k = 0; k < block; k++) {
			from[k] = answer->from + gw_wire_offset(ranges, i + k);
			__builtin_prefetch(from[k]);
		}
		for (uint32_t k = 0; k < block; k++, to += bytes)
			memcpy(to, from[k], bytes);
		i += block;
	}
	answer->next = i;
	return to;
}

static uint8_t *gather_4(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	return gather_short(answer, to, end, 4);
}

static uint8_t *gather_8(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	return gather_short(answer, to, end, 8);
}

/* Does the same for ranges of different lengths, and for the lengths that have no loop of their own. */
static uint8_t *gather_ranges(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	const struct wire_ranges *ranges = &answer->ranges;
	uint32_t i = answer->next, count = ranges->read.count;
	for (uint32_t ahead = i; ahead < i + GW_COPY_AHEAD; ahead++)
		prefetch(answer, ahead);
	for (; i < count; i++) {
		uint32_t bytes = gw_wire_length(ranges, i);
		if (bytes > (size_t)(end - to))
			break;
		prefetch(answer, i + GW_COPY_AHEAD);
		if (bytes)
			gw_copy_range(to, answer->from + gw_wire_offset(ranges, i), bytes);
		to += bytes;
	}
	answer->next = i;
	return to;
}

/* --- Versioned rows. --- */

static __attribute__((cold)) void answer_torn(struct tcp_answer *answer, uint32_t number)
{
	if (answer->torn_count == answer->torn_capacity) {
		uint32_t capacity = answer->torn_capacity ? 2 * answer->torn_capacity : 64;
		uint32_t *torn = gw_realloc(answer->torn, capacity, sizeof(*torn));
		if (!torn) {
			answer->failure = GW_NO_MEMORY;
			return;
		}
		answer->torn = torn;
		answer->torn_capacity = capacity;
	}
	answer->torn[answer->torn_count++] = number;
}

/* Copies range i's row completely, or lists it as torn. */
static inline void answer_row(struct tcp_answer *answer, uint32_t i, uint8_t *to)
{
	const uint8_t *row = answer->from + gw_wire_offset(&answer->ranges, i);
	if (answer->gone) {
		memset(to, 0, answer->rows->format.payload_bytes);
		return;
	}
	for (int tries = 0; tries < ROW_TRIES; tries++)
		if (gw_row_copy(&answer->rows->format, row, to))
			return;
	answer_torn(answer, i);
}

/* Returns where the next byte goes. */
static uint8_t *answer_gather_rows(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	uint32_t i = answer->next, count = answer->ranges.read.count;
	for (uint32_t ahead = i; ahead < i + GW_COPY_AHEAD; ahead++)
		prefetch(answer, ahead);
	for (; i < count; i++) {
		uint32_t bytes = gw_wire_length(&answer->ranges, i);
		if (bytes > (size_t)(end - to))
			break;
		prefetch(answer, i + GW_COPY_AHEAD);
		if (bytes)
			answer_row(answer, i, to);
		to += bytes;
	}
	answer->next = i;
	return to;
}

/* False: the buffer is full. */
static bool gather_long_row(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes)
{
	uint32_t bytes = answer->rows->format.payload_bytes, room = out_bytes - *out_end;
	if (room == 0)
		return false; /* checked before the row is read, so that a torn row is listed once */
	if (!answer->long_row) {
		answer->long_row = gw_malloc(bytes);
		if (!answer->long_row)
			answer->failure = GW_NO_MEMORY;
	}
	if (answer->long_row && !answer->next_done)
		answer_row(answer, answer->next, answer->long_row);
	uint32_t part = bytes - answer->next_done < room ? bytes - answer->next_done : room;
	if (answer->long_row)
		memcpy(out + *out_end, answer->long_row + answer->next_done, part);
	else
		memset(out + *out_end, 0, part);
	*out_end += part;
	answer->next_done += part;
	if (answer->next_done < bytes)
		return false;
	answer->next++;
	answer->next_done = 0;
	return true;
}

static bool answer_gather_all(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes)
{
	while (answer->next < answer->ranges.read.count) {
		if (gw_wire_length(&answer->ranges, answer->next) <= out_bytes) {
			*out_end = (uint32_t)(answer_gather_rows(answer, out + *out_end, out + out_bytes) - out);
			if (answer->next < answer->ranges.read.count)
				return false;
		} else if (!gather_long_row(answer, out, out_end, out_bytes)) {
			return false;
		}
	}
	gw_free(answer->long_row);
	answer->long_row = NULL;
	answer->gathered = true;
	return true;
}

/* A dynamic region is entered while it is read. If it was withdrawn, zeros fill up the announced length, and an ERROR
 * follows them. */
static bool gather_versioned(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes)
{
	const struct wire_read *read = &answer->ranges.read;
	struct gw_dynamic_region_place *place = NULL;
	if (answer->dynamic && !answer->gone) {
		place = gw_dynamic_region_enter(answer->service, read->region, read->generation);
		answer->gone = !place;
	}
	bool all = answer_gather_all(answer, out, out_end, out_bytes);
	if (place)
		gw_dynamic_region_leave(answer->service, place);
	return all;
}

uint32_t gw_tcp_answer_close_bytes(const struct tcp_answer *answer)
{
	bool failed = answer->failure || answer->gone;
	return WIRE_HEADER_BYTES + (failed ? WIRE_ERROR_TEXT : 4 * answer->torn_count);
}

gw_status gw_tcp_answer_close(struct tcp_answer *answer, uint64_t tag, uint8_t *out, uint32_t *out_end,
			      uint32_t out_bytes)
{
	if (answer->gone)
		answer->failure = GW_NOT_FOUND;
	uint32_t bytes = 4 * answer->torn_count;
	struct wire_header header = {.bytes = bytes, .type = WIRE_TORN, .tag = tag};
	if (out_bytes - *out_end < gw_tcp_answer_close_bytes(answer))
		return GW_AGAIN;
	if (answer->failure)
		return gw_fail(answer->failure, answer->gone ? "the region was deleted while it was read"
							     : "no memory for a row of the read");
	memcpy(out + *out_end, &header, sizeof(header));
	if (bytes)
		memcpy(out + *out_end + WIRE_HEADER_BYTES, answer->torn, bytes);
	*out_end += WIRE_HEADER_BYTES + bytes;
	return GW_OK;
}

void gw_tcp_answer_end(struct tcp_answer *answer)
{
	gw_free(answer->long_row);
	gw_free(answer->torn);
	answer->long_row = NULL;
	answer->torn = NULL;
	answer->torn_count = answer->torn_capacity = 0;
}

bool gw_tcp_answer_gather(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes)
{
	const struct wire_ranges *ranges = &answer->ranges;
	uint32_t length = ranges->lengths ? 0 : ranges->read.length; /* 0: the lengths differ */
	uint8_t *(*gather)(struct tcp_answer *, uint8_t *, const uint8_t *) = gather_ranges;
	if (length > LINE_BYTES)
		gather = answer->service->prefetch_all ? gather_all_lines : gather_first;
	else if (length == 4 || length == 8)
		gather = length == 4 ? gather_4 : gather_8;
	if (answer->rows)
		return answer->gathered || gather_versioned(answer, out, out_end, out_bytes);
	while (answer->next < ranges->read.count) {
		if (!answer->next_done)
			*out_end = (uint32_t)(gather(answer, out + *out_end, out + out_bytes) - out);
		if (answer->next == ranges->read.count)
			break;
		uint32_t room = out_bytes - *out_end;
		if (room == 0)
			return false;
		uint32_t left = gw_wire_length(ranges, answer->next) - answer->next_done;
		uint32_t part = left < room ? left : room;
		if (part)
			memcpy(out + *out_end, answer->from + gw_wire_offset(ranges, answer->next) + answer->next_done,
			       part);
		*out_end += part;
		answer->next_done += part;
		if (part == left) {
			answer->next++;
			answer->next_done = 0;
		}
	}
	return true;
}
