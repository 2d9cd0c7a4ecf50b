/* The protocol over a TCP connection: frames of a 16-byte header and a body. All numbers are little-endian.
 *
 *      client                                server
 *      HELLO versions, nonce, uuid ────────▶
 *              ◀───────────────── CHALLENGE versions, nonce, incarnation, does the server want a key?
 *      PROOF hmac("client", all of the above) ▶            (zero without a key)
 *              ◀─────────────────── WELCOME hmac("server", …), graph, part, regions
 *              ◀─────────────────── MEMORY (unix sockets: the regions' places in the descriptors sent with it)
 *      GATHER, READV ──────────────────────▶
 *              ◀──────────────────────────── DATA (payload in request order) or ERROR
 *              ◀──────────────────────────── TORN (versioned regions: which ranges are torn) or ERROR
 *      REQUEST ────────────────────────────▶ handler
 *              ◀──────────────────────────── REPLY or ERROR
 *      OPEN ───────────────────────────────▶                (a dynamic region)
 *              ◀──────────────────────────── REGION (unix sockets: with its descriptor) or ERROR
 *              ◀──────────────────────────── WITHDRAWN (tag 0, at any time: to clients that pinned the region)
 *      RELEASED ───────────────────────────▶
 *      PING ───────────────────────────────▶
 *              ◀──────────────────────────── PONG (tag 0: unasked, during a long call)
 *              ◀──────────────────────────── MOVED (tag 0: a successor has the address; since version 8)
 *
 * Answers come in the order of their questions and carry the question's tag. An ERROR with tag 0 is the last frame of a
 * connection: the server refuses this client, or found a protocol error.
 *
 * Each side names the newest and the oldest version that it speaks; the connection uses the newest version that both
 * speak. What every version keeps, so that each side recognises the other: the header, and the first 12 bytes of HELLO
 * and CHALLENGE. Since version 7 also all fields of HELLO and CHALLENGE: later versions may only add bytes to the end.
 * A program speaks its own version and the one before it, so servers of a job can be replaced one by one. What a
 * version adds is in wire.c's table of frames: a frame of a later version than the connection's is unknown.
 *
 * These functions are pure: bytes in, structs out, no state, no allocation. The fuzzers start here.
 */
#ifndef GW_TRANSPORT_TCP_WIRE_H
#define GW_TRANSPORT_TCP_WIRE_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "transport/transport.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian, and so must be the host");

#ifndef WIRE_VERSION /* the programs other_protocol_* define another one */
#define WIRE_VERSION 8u
#endif
#define WIRE_RANGES_FIRST 7u /* older versions speak only their own, and name no oldest */
/* The oldest version that this program still speaks. */
#define WIRE_OLDEST        (WIRE_VERSION > WIRE_RANGES_FIRST ? WIRE_VERSION - 1 : WIRE_VERSION)
#define WIRE_MAGIC         0x3157472d54504157ull /* "WAPT-GW1" in memory */
#define WIRE_HEADER_BYTES  16u
#define WIRE_NONCE_BYTES   32u
#define WIRE_PROOF_BYTES   32u
#define WIRE_RANGES_MAX    (16u << 10)              /* ranges of one read frame */
#define WIRE_PAYLOAD_MAX   (16u << 20)              /* bytes that a read frame of several ranges may ask for */
#define WIRE_READ_BYTES    32u                      /* the part of a read's body before the offsets */
#define WIRE_KEY_WANTED    "the server wants a key" /* in a refusal; the client adds where it looked for a key */
#define WIRE_ERROR_TEXT    512u
#define WIRE_REQUEST_BYTES 24u /* struct gw_once, before a request's bytes */
#define WIRE_REGION_BYTES  32u

enum wire_type {
	WIRE_HELLO = 1,
	WIRE_CHALLENGE,
	WIRE_PROOF,
	WIRE_WELCOME,
	WIRE_GATHER,
	WIRE_READV,
	WIRE_REQUEST,
	WIRE_PING,
	WIRE_DATA,
	WIRE_REPLY,
	WIRE_ERROR,
	WIRE_PONG,
	WIRE_MEMORY,
	WIRE_TORN,
	WIRE_OPEN,
	WIRE_REGION,
	WIRE_WITHDRAWN,
	WIRE_RELEASED,
	WIRE_MOVED, /* since version 8 */
	WIRE_TYPES
};

struct wire_header {
	uint32_t bytes; /* the body's length */
	uint8_t type;
	uint8_t status; /* ERROR: a gw_status; else 0 */
	uint16_t op;    /* REQUEST; else 0 */
	uint64_t tag;   /* numbers the client's questions, from 1 */
};
static_assert(sizeof(struct wire_header) == WIRE_HEADER_BYTES, "no padding");

/* The versions that a side speaks: all from the oldest to the newest. */
struct wire_versions {
	uint64_t magic;
	uint32_t newest, oldest;
};
#define WIRE_VERSIONS ((struct wire_versions){.magic = WIRE_MAGIC, .newest = WIRE_VERSION, .oldest = WIRE_OLDEST})

struct wire_hello {
	struct wire_versions versions;
	uint8_t nonce[WIRE_NONCE_BYTES];
	uint8_t client_uuid[16];
	uint64_t budget_ns; /* as in gw_connect_options */
	uint32_t key_offered, zero;
};
static_assert(sizeof(struct wire_hello) == 80, "no padding, and the same in every later version");

struct wire_challenge {
	struct wire_versions versions;
	uint8_t nonce[WIRE_NONCE_BYTES];
	uint64_t incarnation;
	uint32_t key_wanted, zero;
};
static_assert(sizeof(struct wire_challenge) == 64, "no padding, and the same in every later version");

struct wire_welcome {
	uint8_t proof[WIRE_PROOF_BYTES];
	uint64_t graph_id;
	uint32_t part, parts;
	uint32_t region_count, requests_max;
	uint64_t window; /* as in gw_peer */
			 /* region_count times struct wire_region follow */
};

struct wire_region {
	uint64_t bytes;
	uint32_t id, generation, kind;
	uint32_t row_bytes; /* versioned regions: the length of a row's payload; else row_bytes and seed are 0 */
	uint64_t seed;
};
static_assert(sizeof(struct wire_region) == WIRE_REGION_BYTES, "no padding");

/* MEMORY: the places of the regions. The struct is followed by memory_count lengths of 8 bytes, one for each
 * descriptor's memory, and by region_count times struct wire_place. */
struct wire_memory {
	uint32_t memory_count, region_count;
};

struct wire_place {
	uint64_t offset;
	uint32_t memory, zero; /* an empty region has no place: offset and memory are 0 */
};

#define WIRE_PLACE_BYTES                     16u
#define WIRE_MEMORY_BYTES(memories, regions) (8u + 8u * (memories) + WIRE_PLACE_BYTES * (regions))
static_assert(sizeof(struct wire_memory) == 8 && sizeof(struct wire_place) == WIRE_PLACE_BYTES, "no padding");

/* A decoded MEMORY. */
struct wire_memories {
	uint32_t memory_count, region_count;
	uint64_t bytes[GW_MEMORIES_MAX];
	struct wire_place places[GW_REGIONS_MAX];
};

/* The dynamic region of an OPEN, WITHDRAWN or RELEASED. */
struct wire_dynamic {
	uint32_t id, generation;
	/* OPEN: 1: the client will read the memory itself, and must be notified of its withdrawal; else 0. */
	uint32_t lease;
	uint32_t zero;
};
static_assert(sizeof(struct wire_dynamic) == 16, "no padding");

/* A read. `count` offsets of `width` bytes each follow; offset i is base + (relative << shift). GATHER: every range has
 * `length` bytes. READV: count lengths of 4 bytes follow the offsets, and `length` is their sum. */
struct wire_read {
	uint32_t region, generation, count, length;
	uint64_t base;
	uint8_t shift, width; /* width: 4 or 8 */
	uint16_t zero;
	uint32_t zero2;
};
static_assert(sizeof(struct wire_read) == WIRE_READ_BYTES, "no padding");

/* A decoded read. The arrays are in the frame's body, at any alignment. */
struct wire_ranges {
	struct wire_read read;
	const uint8_t *relative, *lengths; /* lengths: NULL for GATHER */
	uint64_t bytes;                    /* length of the answer's payload */
};

const char *gw_wire_type_name(uint8_t type);

/* Whether a connection of this version has frames of this type. */
bool gw_wire_speaks(uint32_t version, enum wire_type type);

/* Decodes and checks a header. from_client: accepts client frames only, else server frames only. version: of the
 * connection; 0 before the hello. GW_PROTOCOL. */
gw_status gw_wire_header(const uint8_t bytes[WIRE_HEADER_BYTES], bool from_client, uint32_t version,
			 struct wire_header *out);

/* Decode a body of n bytes. GW_PROTOCOL: it is malformed. *version: the newest that both sides speak; GW_VERSION: they
 * have none in common, and the text names the versions of both. */
gw_status gw_wire_hello(const uint8_t *body, uint32_t n, struct wire_hello *out, uint32_t *version);
gw_status gw_wire_challenge(const uint8_t *body, uint32_t n, struct wire_challenge *out, uint32_t *version);
gw_status gw_wire_welcome(const uint8_t *body, uint32_t n, struct wire_welcome *out,
			  struct gw_region regions[GW_REGIONS_MAX]);
/* regions: from the WELCOME. Checks that each region is inside its memory. */
gw_status gw_wire_memory(const uint8_t *body, uint32_t n, const struct gw_region *regions, uint32_t region_count,
			 struct wire_memories *out);
gw_status gw_wire_ranges(uint8_t type, const uint8_t *body, uint32_t n, struct wire_ranges *out);

/* Checks that every range is inside a region of region_bytes; GW_RANGE names the first that is not. */
gw_status gw_wire_ranges_check(const struct wire_ranges *ranges, uint64_t region_bytes);

static inline uint64_t gw_wire_offset(const struct wire_ranges *ranges, uint32_t i)
{
	uint64_t relative = 0;
	if (ranges->read.width == 4) {
		uint32_t narrow;
		__builtin_memcpy(&narrow, ranges->relative + 4ull * i, 4);
		relative = narrow;
	} else {
		__builtin_memcpy(&relative, ranges->relative + 8ull * i, 8);
	}
	return ranges->read.base + (relative << ranges->read.shift);
}

static inline uint32_t gw_wire_length(const struct wire_ranges *ranges, uint32_t i)
{
	uint32_t length = ranges->read.length;
	if (ranges->lengths)
		__builtin_memcpy(&length, ranges->lengths + 4ull * i, 4);
	return length;
}

/* The body's length in a read frame of n ranges whose offsets need `width` bytes. */
static inline uint32_t gw_wire_read_bytes(uint8_t type, uint32_t n, uint32_t width)
{
	return WIRE_READ_BYTES + n * (width + (type == WIRE_READV ? 4 : 0));
}

/* Checks that every range is a row of a versioned region, or empty; GW_INVALID names the first that is not. */
gw_status gw_wire_rows_check(const struct wire_ranges *ranges, const struct gw_row_format *format);

/* Checks the body of a TORN for a read of `ranges` ranges: range numbers, 4 bytes each, ascending. */
gw_status gw_wire_torn(const uint8_t *body, uint32_t n, uint32_t ranges);

/* GW_PROTOCOL: not a dynamic region. */
gw_status gw_wire_dynamic(const uint8_t *body, struct wire_dynamic *out);

/* Convert a region to its form in a WELCOME or REGION, and back (GW_PROTOCOL). */
struct wire_region gw_wire_region_of(const struct gw_region *region);
gw_status gw_wire_region(const struct wire_region *encoded, struct gw_region *out);

/* The shortest code for the offsets at[0], at[step], … (step in bytes). */
struct wire_code {
	uint64_t base;
	uint8_t shift, width;
};
struct wire_code gw_wire_code(const uint64_t *at, uint32_t n, size_t step);
/* Writes n offsets with this code. */
void gw_wire_encode(const struct wire_code *code, const uint64_t *at, uint32_t n, size_t step, uint8_t *out);

#endif
