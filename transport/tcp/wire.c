/* Frames: checked decoding and compact encoding. A decoder trusts no input. It checks lengths against the type's limit,
 * counts against the body, reserved bytes against zero, and shifts against overflow. */
#include "transport/tcp/wire.h"

#include <string.h>

#include "transport/row_ranges.h"
#include "transport/versions.h"

static const struct {
	const char *name;
	uint32_t body_min, body_max;
	bool from_client;
	uint32_t since; /* the first version that has the frame; 0: every version */
} types[WIRE_TYPES] = {
	/* The length of a first frame may change with the version, so any length that holds the version is decoded. */
	[WIRE_HELLO] = {"HELLO", 12, 4096, true, 0},
	[WIRE_CHALLENGE] = {"CHALLENGE", 12, 4096, false, 0},
	[WIRE_PROOF] = {"PROOF", WIRE_PROOF_BYTES, WIRE_PROOF_BYTES, true, 0},
	[WIRE_WELCOME] = {"WELCOME", sizeof(struct wire_welcome),
			  sizeof(struct wire_welcome) + (size_t)GW_REGIONS_MAX *WIRE_REGION_BYTES, false, 0},
	[WIRE_GATHER] = {"GATHER", WIRE_READ_BYTES, WIRE_READ_BYTES + WIRE_RANGES_MAX * 8, true, 0},
	[WIRE_READV] = {"READV", WIRE_READ_BYTES, WIRE_READ_BYTES + WIRE_RANGES_MAX * 12, true, 0},
	[WIRE_REQUEST] = {"REQUEST", WIRE_REQUEST_BYTES, WIRE_REQUEST_BYTES + GW_REQUEST_BYTES_MAX, true, 0},
	[WIRE_PING] = {"PING", 0, 0, true, 0},
	[WIRE_DATA] = {"DATA", 0, UINT32_MAX, false, 0},
	[WIRE_REPLY] = {"REPLY", 0, GW_REPLY_BYTES_MAX, false, 0},
	[WIRE_ERROR] = {"ERROR", 0, WIRE_ERROR_TEXT, false, 0},
	[WIRE_PONG] = {"PONG", 0, 0, false, 0},
	[WIRE_MEMORY] = {"MEMORY", WIRE_MEMORY_BYTES(0, 0), WIRE_MEMORY_BYTES(GW_MEMORIES_MAX, GW_REGIONS_MAX), false,
			 0},
	[WIRE_TORN] = {"TORN", 0, WIRE_RANGES_MAX * 4, false, 0},
	[WIRE_OPEN] = {"OPEN", sizeof(struct wire_dynamic), sizeof(struct wire_dynamic), true, 0},
	[WIRE_REGION] = {"REGION", WIRE_REGION_BYTES, WIRE_REGION_BYTES, false, 0},
	[WIRE_WITHDRAWN] = {"WITHDRAWN", sizeof(struct wire_dynamic), sizeof(struct wire_dynamic), false, 0},
	[WIRE_RELEASED] = {"RELEASED", sizeof(struct wire_dynamic), sizeof(struct wire_dynamic), true, 0},
	[WIRE_MOVED] = {"MOVED", 0, 0, false, .since = 8},
};

const char *gw_wire_type_name(uint8_t type)
{
	return type < WIRE_TYPES && types[type].name ? types[type].name : "unknown";
}

bool gw_wire_speaks(uint32_t version, enum wire_type type)
{
	return version >= types[type].since;
}

gw_status gw_wire_header(const uint8_t bytes[WIRE_HEADER_BYTES], bool from_client, uint32_t version,
			 struct wire_header *out)
{
	memcpy(out, bytes, WIRE_HEADER_BYTES);
	if (out->type >= WIRE_TYPES || !types[out->type].name || types[out->type].from_client != from_client ||
	    !gw_wire_speaks(version, out->type))
		return gw_fail(GW_PROTOCOL, "a frame of unknown type %u", out->type);
	if (out->bytes < types[out->type].body_min || out->bytes > types[out->type].body_max)
		return gw_fail(GW_PROTOCOL, "a %s frame of %u bytes; the protocol allows %u to %u",
			       types[out->type].name, out->bytes, types[out->type].body_min, types[out->type].body_max);
	if ((out->type != WIRE_ERROR && out->status) || (out->type != WIRE_REQUEST && out->op))
		return gw_fail(GW_PROTOCOL, "a %s frame with reserved bits set", types[out->type].name);
	return GW_OK;
}

/* Checks the versions at the head of a HELLO or CHALLENGE, and that the body has the length of one. */
static gw_status wire_check_versions(const uint8_t *body, uint32_t n, uint32_t length, const char *self,
				     const char *other, uint32_t *version)
{
	const struct gw_versions own = {WIRE_VERSION, WIRE_OLDEST};
	struct wire_versions peer = {0};
	memcpy(&peer, body, n < sizeof(peer) ? n : sizeof(peer));
	if (peer.magic != WIRE_MAGIC)
		return gw_fail(GW_PROTOCOL, "the other side does not speak Graphwire");
	if (peer.newest < WIRE_RANGES_FIRST || n < sizeof(peer))
		peer.oldest = peer.newest;
	else if (!peer.oldest || peer.oldest > peer.newest)
		return gw_fail(GW_PROTOCOL, "the %s speaks protocol versions %u to %u", other, peer.oldest,
			       peer.newest);
	gw_status status = gw_versions_common("protocol", own, self, (struct gw_versions){peer.newest, peer.oldest},
					      other, version);
	if (status != GW_OK)
		return status;
	if (peer.newest > own.newest ? n < length : n != length)
		return gw_fail(GW_PROTOCOL, "the first frame of the %s has %u bytes", other, n);
	return GW_OK;
}

gw_status gw_wire_hello(const uint8_t *body, uint32_t n, struct wire_hello *out, uint32_t *version)
{
	gw_status status = wire_check_versions(body, n, sizeof(*out), "server", "client", version);
	if (status != GW_OK)
		return status;
	memcpy(out, body, sizeof(*out));
	if (out->key_offered > 1 || out->zero)
		return gw_fail(GW_PROTOCOL, "a HELLO with unknown flags");
	return GW_OK;
}

gw_status gw_wire_challenge(const uint8_t *body, uint32_t n, struct wire_challenge *out, uint32_t *version)
{
	gw_status status = wire_check_versions(body, n, sizeof(*out), "client", "server", version);
	if (status != GW_OK)
		return status;
	memcpy(out, body, sizeof(*out));
	if (out->key_wanted > 1 || out->zero)
		return gw_fail(GW_PROTOCOL, "a CHALLENGE with unknown flags");
	return GW_OK;
}

struct wire_region gw_wire_region_of(const struct gw_region *region)
{
	return (struct wire_region){.bytes = region->bytes,
				    .id = region->id,
				    .generation = region->generation,
				    .kind = region->kind,
				    .row_bytes = region->rows.format.payload_bytes,
				    .seed = region->rows.seed};
}

gw_status gw_wire_region(const struct wire_region *encoded, struct gw_region *out)
{
	*out = (struct gw_region){.bytes = encoded->bytes,
				  .id = encoded->id,
				  .generation = encoded->generation,
				  .kind = (enum gw_region_kind)encoded->kind};
	bool good = encoded->kind == GW_REGION_IMMUTABLE && !encoded->row_bytes && !encoded->seed;
	if (encoded->kind == GW_REGION_VERSIONED) {
		out->rows.seed = encoded->seed;
		good = gw_row_format_init(encoded->row_bytes, &out->rows.format) == GW_OK &&
		       encoded->bytes % out->rows.format.stride == 0;
	}
	return good ? GW_OK : gw_fail(GW_PROTOCOL, "region %u is malformed", encoded->id);
}

gw_status gw_wire_welcome(const uint8_t *body, uint32_t n, struct wire_welcome *out,
			  struct gw_region regions[GW_REGIONS_MAX])
{
	if (n < sizeof(*out))
		return gw_fail(GW_PROTOCOL, "a WELCOME of %u bytes", n);
	memcpy(out, body, sizeof(*out));
	if (out->region_count > GW_REGIONS_MAX || n != sizeof(*out) + (size_t)out->region_count * WIRE_REGION_BYTES)
		return gw_fail(GW_PROTOCOL, "a WELCOME of %u bytes with %u regions", n, out->region_count);
	if (out->requests_max == 0)
		return gw_fail(GW_PROTOCOL, "a WELCOME that allows no request");
	for (uint32_t i = 0; i < out->region_count; i++) {
		struct wire_region region;
		memcpy(&region, body + sizeof(*out) + (size_t)i * WIRE_REGION_BYTES, sizeof(region));
		if (region.id != i || gw_wire_region(&region, &regions[i]))
			return gw_fail(GW_PROTOCOL, "a WELCOME whose region %u is malformed", i);
	}
	return GW_OK;
}

gw_status gw_wire_memory(const uint8_t *body, uint32_t n, const struct gw_region *regions, uint32_t region_count,
			 struct wire_memories *out)
{
	struct wire_memory head;
	if (n < sizeof(head))
		return gw_fail(GW_PROTOCOL, "a MEMORY of %u bytes", n);
	memcpy(&head, body, sizeof(head));
	if (head.memory_count > GW_MEMORIES_MAX || head.region_count != region_count ||
	    n != WIRE_MEMORY_BYTES(head.memory_count, head.region_count))
		return gw_fail(GW_PROTOCOL, "a MEMORY of %u bytes with %u memfds and %u regions", n, head.memory_count,
			       head.region_count);
	out->memory_count = head.memory_count;
	out->region_count = head.region_count;
	memcpy(out->bytes, body + sizeof(head), 8ull * head.memory_count);
	memcpy(out->places, body + sizeof(head) + 8ull * head.memory_count,
	       sizeof(struct wire_place) * head.region_count);
	for (uint32_t i = 0; i < region_count; i++) {
		const struct wire_place *place = &out->places[i];
		bool apart = regions[i].kind == GW_REGION_VERSIONED && place->offset % GW_ROW_ALIGN;
		if (place->zero || apart || (!regions[i].bytes && (place->memory || place->offset)))
			return gw_fail(GW_PROTOCOL, "a MEMORY whose region %u is malformed", i);
		if (regions[i].bytes &&
		    (place->memory >= head.memory_count || regions[i].bytes > out->bytes[place->memory] ||
		     place->offset > out->bytes[place->memory] - regions[i].bytes))
			return gw_fail(GW_PROTOCOL, "a MEMORY without a place for region %u", i);
	}
	return GW_OK;
}

gw_status gw_wire_ranges(uint8_t type, const uint8_t *body, uint32_t n, struct wire_ranges *out)
{
	const char *name = types[type].name;
	if (n < WIRE_READ_BYTES)
		return gw_fail(GW_PROTOCOL, "a %s frame of %u bytes", name, n);
	memcpy(&out->read, body, WIRE_READ_BYTES);
	const struct wire_read *read = &out->read;
	if (read->count > WIRE_RANGES_MAX || (read->width != 4 && read->width != 8) || read->shift > 31 || read->zero ||
	    read->zero2)
		return gw_fail(GW_PROTOCOL, "a malformed %s frame: %u ranges, width %u, shift %u", name, read->count,
			       read->width, read->shift);
	if (n != gw_wire_read_bytes(type, read->count, read->width))
		return gw_fail(GW_PROTOCOL, "a %s frame of %u bytes with %u ranges", name, n, read->count);
	out->relative = body + WIRE_READ_BYTES;
	out->lengths = NULL;
	out->bytes = (uint64_t)read->count * read->length;
	if (type == WIRE_READV) {
		out->lengths = out->relative + (size_t)read->count * read->width;
		uint64_t sum = 0;
		for (uint32_t i = 0; i < read->count; i++)
			sum += gw_wire_length(out, i);
		if (sum != read->length)
			return gw_fail(GW_PROTOCOL, "a READV frame whose lengths do not add up");
		out->bytes = sum;
	}
	if (out->bytes > WIRE_PAYLOAD_MAX && read->count > 1)
		return gw_fail(GW_PROTOCOL, "a %s frame that asks for %llu bytes; at most %u are allowed", name,
			       (unsigned long long)out->bytes, WIRE_PAYLOAD_MAX);
	return GW_OK;
}

/* Checks the usual read in one pass without branches: for ranges of one length, the largest narrow offset decides. */
static bool narrow_ranges_fit(const struct wire_ranges *ranges, uint64_t region_bytes)
{
	const struct wire_read *read = &ranges->read;
	uint32_t largest = 0;
	for (uint32_t i = 0; i < read->count; i++) {
		uint32_t relative;
		memcpy(&relative, ranges->relative + 4ull * i, 4);
		largest = relative > largest ? relative : largest;
	}
	uint64_t at = (uint64_t)largest << read->shift; /* at most 63 bits */
	return !__builtin_add_overflow(at, read->base, &at) && read->length <= region_bytes &&
	       at <= region_bytes - read->length;
}

gw_status gw_wire_ranges_check(const struct wire_ranges *ranges, uint64_t region_bytes)
{
	const struct wire_read *read = &ranges->read;
	if (read->width == 4 && !ranges->lengths && narrow_ranges_fit(ranges, region_bytes))
		return GW_OK;
	for (uint32_t i = 0; i < read->count; i++) {
		uint64_t relative = 0, length = gw_wire_length(ranges, i);
		memcpy(&relative, ranges->relative + (size_t)i * read->width, read->width);
		uint64_t shifted = relative << read->shift, at = read->base + shifted;
		if (shifted >> read->shift != relative || at < shifted || length > region_bytes ||
		    at > region_bytes - length)
			return gw_fail(GW_RANGE, "read of %llu bytes at %llu of a region of %llu bytes",
				       (unsigned long long)length, (unsigned long long)at,
				       (unsigned long long)region_bytes);
	}
	return GW_OK;
}

gw_status gw_wire_rows_check(const struct wire_ranges *ranges, const struct gw_row_format *format)
{
	struct gw_row_divider divider = gw_row_divider(format->stride);
	uint64_t number;
	for (uint32_t i = 0; i < ranges->read.count; i++) {
		uint32_t length = gw_wire_length(ranges, i);
		if (length &&
		    (length != format->payload_bytes || !gw_row_at(&divider, gw_wire_offset(ranges, i), &number)))
			return gw_fail(GW_INVALID,
				       "read of %u bytes at %llu: not a row of the region, whose rows have %u bytes",
				       length, (unsigned long long)gw_wire_offset(ranges, i), format->payload_bytes);
	}
	return GW_OK;
}

gw_status gw_wire_dynamic(const uint8_t *body, struct wire_dynamic *out)
{
	memcpy(out, body, sizeof(*out));
	if (out->id < GW_REGIONS_MAX || out->id >= GW_REGIONS_MAX + GW_DYNAMIC_REGIONS_MAX || !out->generation ||
	    out->lease > 1 || out->zero)
		return gw_fail(GW_PROTOCOL, "a frame about region %u of generation %u is malformed", out->id,
			       out->generation);
	return GW_OK;
}

gw_status gw_wire_torn(const uint8_t *body, uint32_t n, uint32_t ranges)
{
	uint32_t number, least = 0;
	if (n % 4)
		return gw_fail(GW_PROTOCOL, "a TORN of %u bytes", n);
	for (uint32_t at = 0; at < n; at += 4, least = number + 1) {
		memcpy(&number, body + at, 4);
		if (number < least || number >= ranges)
			return gw_fail(GW_PROTOCOL, "a TORN that names range %u of %u", number, ranges);
	}
	return GW_OK;
}

static inline uint64_t wire_load(const uint64_t *at, uint32_t i, size_t step)
{
	return *(const uint64_t *)((const uint8_t *)at + i * step);
}

struct wire_code gw_wire_code(const uint64_t *at, uint32_t n, size_t step)
{
	struct wire_code code = {.width = 4};
	if (n == 0)
		return code;
	uint64_t low = wire_load(at, 0, step), high = low;
	for (uint32_t i = 1; i < n; i++) {
		uint64_t offset = wire_load(at, i, step);
		low = offset < low ? offset : low;
		high = offset > high ? offset : high;
	}
	code.base = low;
	if ((high - low) >> 32 == 0)
		return code;
	uint64_t bits = 0;
	for (uint32_t i = 0; i < n; i++)
		bits |= wire_load(at, i, step) - low;
	uint32_t shift = (uint32_t)__builtin_ctzll(bits);
	code.shift = (uint8_t)(shift > 31 ? 31 : shift);
	code.width = (high - low) >> code.shift >> 32 ? 8 : 4;
	return code;
}

void gw_wire_encode(const struct wire_code *code, const uint64_t *at, uint32_t n, size_t step, uint8_t *out)
{
	if (code->width == 4) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t relative = (uint32_t)((wire_load(at, i, step) - code->base) >> code->shift);
			memcpy(out + 4ull * i, &relative, 4);
		}
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t relative = (wire_load(at, i, step) - code->base) >> code->shift;
		memcpy(out + 8ull * i, &relative, 8);
	}
}
