/* The messages of a client and a server before a queue pair exists: a question and its answer over the authenticated
 * TCP connection, and the token in a connection request. Pure: bytes in, structs out.
 *
 *      client                                           server
 *      REQUEST GW_OP_UPGRADE: question ─────────────────▶ a token for this TCP connection only
 *              ◀────────── REPLY: answer, addresses, regions, keys
 *      connection request with a token ─────────────────▶ no token, no queue pair
 *
 *      REQUEST GW_OP_KEYS: which dynamic region ────────▶ one that this TCP connection has pinned
 *              ◀────────── REPLY: its place, a key for each slice on the client's rail
 *
 * The answer consists of struct handshake_answer, then address_count times handshake_address, then region_count times
 * handshake_region. The keys follow: for each rail (a device of the server) the keys of all slices of all regions, 4
 * bytes each. Numbers are little-endian.
 *
 * A question names the newest and the oldest version that the client speaks; the answer has the version that both sides
 * use. What every version keeps: the first 4 bytes of question and answer. Version 3 has a question without the oldest
 * version, so its server refuses a newer question (GW_VERSION), and the client asks again in the oldest version that it
 * speaks. Since version 4 all fields of a question stay: later versions may only add bytes to the end.
 */
#ifndef GW_TRANSPORT_VERBS_HANDSHAKE_H
#define GW_TRANSPORT_VERBS_HANDSHAKE_H

#include "transport/transport.h"

#ifndef HANDSHAKE_VERSION /* the programs other_protocol_* define another one */
#define HANDSHAKE_VERSION 4u
#endif
#define HANDSHAKE_FIRST         3u /* the oldest version that any program still speaks */
#define HANDSHAKE_RANGES_FIRST  4u /* older questions name no oldest version */
#define HANDSHAKE_OLDEST        (HANDSHAKE_VERSION > HANDSHAKE_FIRST ? HANDSHAKE_VERSION - 1 : HANDSHAKE_VERSION)
#define HANDSHAKE_MAGIC         0x52575747u /* "GWWR" in memory */
#define HANDSHAKE_TOKEN_BYTES   16u
#define HANDSHAKE_ADDRESSES_MAX 32u
/* Why a connection request is rejected whose token is not valid any more; the client gets a new token. */
#define HANDSHAKE_TOKEN_OVER "this token is used up or out of date"

struct handshake_question {
	uint32_t version;     /* the newest that the client speaks; once decoded: the one that both sides use */
	uint32_t qps;         /* the number that the client wants */
	uint32_t receives;    /* messages that the client can receive before it looks at the first */
	uint32_t chunk_bytes; /* largest message */
	uint32_t oldest;      /* since version 4: the oldest version that the client speaks */
	uint32_t zero;
};

struct handshake_answer {
	uint32_t version;
	uint32_t qps; /* the number that the client gets */
	uint8_t token[HANDSHAKE_TOKEN_BYTES];
	uint32_t receives, chunk_bytes;
	uint32_t port; /* the connection manager's port */
	uint32_t requests_max;
	uint32_t rail_count, address_count, region_count;
	uint32_t whole_words; /* bit r: the device of rail r reads an aligned word of 8 bytes in one access */
};

struct handshake_address {
	uint32_t rail;
	uint8_t family; /* 4 or 6 */
	uint8_t zero[3];
	uint8_t bytes[16];
};

struct handshake_region {
	uint64_t base;        /* the region's address at the server */
	uint32_t slice_shift; /* slices of 1 << slice_shift bytes; the last slice may be shorter */
	uint32_t slice_count;
};

/* A dynamic region by id and generation, and the rail that the client reads through. */
struct handshake_keys_question {
	uint32_t version, rail, id, generation;
};

struct handshake_token {
	uint32_t magic;
	uint16_t version, number; /* number: of the queue pair, from 0 */
	uint8_t token[HANDSHAKE_TOKEN_BYTES];
};
static_assert(sizeof(struct handshake_token) <= 56, "fits the connection manager's private data");

/* A decoded answer. The pointers refer to the caller's bytes, at any alignment. */
struct handshake_view {
	struct handshake_answer answer;
	const uint8_t *addresses, *places, *keys;
	uint64_t keys_per_rail;
};

/* A question in the newest version of this program, or in the oldest; and its length. */
uint32_t gw_handshake_ask(bool in_oldest, uint32_t qps, struct handshake_question *out);
/* All of these fail with GW_PROTOCOL, or with GW_VERSION. */
gw_status gw_handshake_question(const uint8_t *bytes, uint32_t n, struct handshake_question *out);
gw_status gw_handshake_token(const void *bytes, uint32_t n, struct handshake_token *out);
/* Checks an answer against the regions of the hello: every slice of every region has a key on every rail. */
gw_status gw_handshake_answer(const uint8_t *bytes, uint32_t n, const struct gw_region *regions, uint32_t region_count,
			      struct handshake_view *out);
gw_status gw_handshake_keys_question(const uint8_t *bytes, uint32_t n, struct handshake_keys_question *out);
/* Checks the answer for a dynamic region against `region`, which a hello or an OPEN described. *keys points into bytes:
 * a key of 4 bytes for each slice. */
gw_status gw_handshake_keys(const uint8_t *bytes, uint32_t n, const struct gw_region *region,
			    struct handshake_region *place, const uint8_t **keys);
/* The number of slices of a region. */
uint32_t gw_handshake_slices(uint64_t bytes, uint32_t shift);

#endif
