/* What a client and a server tell each other before there is a queue pair: a question and its answer over the
 * authenticated TCP connection, and the ticket that a connection request carries. Pure: bytes in, structs out.
 *
 *      client                                              server
 *      REQUEST GW_OP_RAIL: question ─────────────────────▶ a token for this TCP connection, and no other
 *              ◀──────────────── REPLY: answer, addresses, regions, keys
 *      connection request with a ticket ─────────────────▶ no ticket, no queue pair
 *
 * The answer: struct rail_answer; address_count times rail_address; region_count times rail_place; then for each rail
 * the keys of all slices of all regions, 4 bytes each. Numbers are little-endian.
 */
#ifndef GW_TRANSPORT_VERBS_RAIL_H
#define GW_TRANSPORT_VERBS_RAIL_H

#include "transport/transport.h"

#define RAIL_VERSION       1u
#define RAIL_MAGIC         0x52575747u /* "GWWR" in memory */
#define RAIL_TOKEN_BYTES   16u
#define RAIL_ADDRESSES_MAX 32u

struct rail_question {
	uint32_t version;
	uint32_t queues;      /* that the client would like */
	uint32_t receives;    /* messages that it takes unseen */
	uint32_t chunk_bytes; /* of a message, at most */
};

struct rail_answer {
	uint32_t version;
	uint32_t queues; /* that it gets */
	uint8_t token[RAIL_TOKEN_BYTES];
	uint32_t receives, chunk_bytes;
	uint32_t port; /* of the connection manager */
	uint32_t requests_max;
	uint32_t rail_count, address_count, region_count, zero;
};

struct rail_address {
	uint32_t rail;
	uint8_t family; /* 4 or 6 */
	uint8_t zero[3];
	uint8_t bytes[16];
};

struct rail_place {
	uint64_t base;        /* the region's address at the server */
	uint32_t slice_shift; /* slices of 1 << slice_shift bytes, the last one shorter */
	uint32_t slice_count;
};

struct rail_ticket {
	uint32_t magic;
	uint16_t version, number; /* of the queue pair, from 0 */
	uint8_t token[RAIL_TOKEN_BYTES];
};
static_assert(sizeof(struct rail_ticket) <= 56, "fits the connection manager's private data");

/* An answer as decoded: the arrays lie in the bytes, at any alignment. */
struct rail_view {
	struct rail_answer answer;
	const uint8_t *addresses, *places, *keys;
	uint64_t keys_per_rail;
};

/* GW_PROTOCOL, or GW_VERSION. */
gw_status gw_rail_question(const uint8_t *bytes, uint32_t n, struct rail_question *out);
gw_status gw_rail_ticket(const void *bytes, uint32_t n, struct rail_ticket *out);
/* Checks an answer against the regions of the hello: every slice of every region has a key on every rail. */
gw_status gw_rail_answer(const uint8_t *bytes, uint32_t n, const struct gw_region *regions, uint32_t region_count,
			 struct rail_view *out);
/* The slices of a region. */
uint32_t gw_rail_slices(uint64_t bytes, uint32_t shift);

#endif
