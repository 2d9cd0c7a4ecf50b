/* The edge request: asks the server that owns edges about them. The server looks the edges up in its lists.
 * Little-endian, 8-byte aligned, all numbers uint64.
 *
 *   call:   struct gw_edge_call, then
 *             GW_EDGE_ENDS:               CSC positions [count]
 *             GW_EDGE_COUNTS, GW_EDGE_IDS: {row of the destination, source} [count]
 *   reply:  struct gw_edge_reply, then
 *             GW_EDGE_ENDS:   {row of the destination, source} [answered]
 *             GW_EDGE_COUNTS: how many edges each pair has [answered]
 *             GW_EDGE_IDS:    the same counts [count], 0 for pairs without an answer; then CSC positions [total]
 *
 * A reply to GW_EDGE_ENDS or GW_EDGE_COUNTS answers the complete call. A reply to GW_EDGE_IDS answers a prefix of the
 * pairs, as many as fit. If `partial` is set, the reply also has some positions of the next pair, and that pair's count
 * is the number of these positions. The client asks again for the remaining pairs, with `from` after the last position
 * that it received.
 */
#ifndef GW_PROTOCOL_EDGE_CALL_H
#define GW_PROTOCOL_EDGE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/errors/status.h"

#define GW_EDGE_QUERIES_MAX 16384u /* in one call */

enum gw_edge_ask { GW_EDGE_ENDS = 1, GW_EDGE_COUNTS, GW_EDGE_IDS };

struct gw_edge_call {
	uint32_t ask; /* enum gw_edge_ask */
	uint32_t etype;
	uint32_t count, reply_bytes_max;
	uint64_t from; /* GW_EDGE_IDS: for the first pair, only positions from here on */
};

struct gw_edge_reply {
	uint32_t answered, partial; /* partial: 0 or 1 */
	uint64_t total;             /* positions */
};

/* Numbers per question in a call. */
static inline uint32_t gw_edge_call_width(uint32_t ask)
{
	return ask == GW_EDGE_ENDS ? 1 : 2;
}

/* Bytes of a complete reply to ends or counts; of a reply to ids, the bytes before its positions. */
size_t gw_edge_reply_bytes(uint32_t ask, uint32_t count);

/* Checks a call's bytes: kind, counts, lengths, and that the reply has room for its fixed part and one position.
 * *numbers points into them, at any alignment. GW_PROTOCOL, GW_RANGE. */
gw_status gw_edge_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes, struct gw_edge_call *call,
			     const uint8_t **numbers);

/* Exclusive bounds for the numbers of a reply. */
struct gw_edge_bounds {
	uint64_t rows, edges; /* of the part that answers */
	uint64_t sources;     /* over all parts */
};

/* Checks a reply's bytes against its call: lengths, sums, bounds, ascending positions, and progress. *numbers points to
 * the bytes after the head. GW_PROTOCOL. */
gw_status gw_edge_reply_parse(const void *bytes, size_t byte_count, const struct gw_edge_call *call,
			      const struct gw_edge_bounds *bounds, struct gw_edge_reply *reply,
			      const uint8_t **numbers);

/* Number i of an array at any alignment. */
uint64_t gw_edge_number(const uint8_t *numbers, uint64_t i);

#endif
