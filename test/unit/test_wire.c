/* Frames: any list of offsets is decoded as it was encoded, in as few bytes as the format allows; ranges are checked
 * as exact arithmetic would; and every malformed frame is refused. Bodies are at odd addresses throughout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/wire.h"

#define RANGES 500u

static uint64_t random64(uint64_t *seed)
{
	return gw_below(seed, 1ull << 32) << 32 | gw_below(seed, 1ull << 32);
}

/* A frame's body, in memory of exactly its size, so that a sanitizer detects reads past it. */
struct body {
	uint8_t *memory, *at;
	uint32_t n;
};

static struct body body_begin(uint32_t n)
{
	struct body body = {.memory = calloc(1, n + 1), .n = n};
	assert_non_null(body.memory);
	body.at = body.memory + 1;
	return body;
}

static struct body read_begin(uint8_t type, const struct wire_read *read)
{
	struct body body = body_begin(gw_wire_read_bytes(type, read->count, read->width));
	memcpy(body.at, read, sizeof(*read));
	return body;
}

/* --- Offsets. --- */

/* Returns the code. */
static struct wire_code round_trip(uint8_t type, const uint64_t *at, uint32_t n, size_t step)
{
	struct wire_code code = gw_wire_code(at, n, step);
	struct wire_read read = {.region = 3,
				 .generation = 4,
				 .count = n,
				 .length = 5,
				 .base = code.base,
				 .shift = code.shift,
				 .width = code.width};
	struct wire_ranges ranges;
	if (type == WIRE_READV)
		read.length = n * (n + 1) / 2;
	struct body body = read_begin(type, &read);
	gw_wire_encode(&code, at, n, step, body.at + WIRE_READ_BYTES);
	for (uint32_t i = 0; i < n && type == WIRE_READV; i++) {
		uint32_t length = i + 1;
		memcpy(body.at + WIRE_READ_BYTES + (size_t)n * code.width + 4ull * i, &length, 4);
	}
	assert_int_equal(gw_wire_ranges(type, body.at, body.n, &ranges), GW_OK);
	assert_memory_equal(&ranges.read, &read, sizeof(read));
	assert_int_equal(ranges.bytes, type == WIRE_READV ? n * (n + 1) / 2 : n * 5);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset;
		memcpy(&offset, (const uint8_t *)at + i * step, 8);
		assert_true(gw_wire_offset(&ranges, i) == offset);
		assert_int_equal(gw_wire_length(&ranges, i), type == WIRE_READV ? i + 1 : 5);
	}
	free(body.memory);
	return code;
}

static void offsets_come_back(void **state)
{
	struct gw_span spans[RANGES];
	uint64_t at[RANGES], seed = 1;
	(void)state;
	for (int round = 0; round < 4000; round++) {
		uint32_t n = (uint32_t)gw_below(&seed, round % 50 ? 20 : RANGES);
		uint32_t shift = (uint32_t)gw_below(&seed, 40), bits = (uint32_t)gw_below(&seed, 65 - shift);
		uint64_t mask = bits ? UINT64_MAX >> (64 - bits) : 0, most = UINT64_MAX - (mask << shift);
		uint64_t base = gw_below(&seed, 4) ? random64(&seed) : gw_below(&seed, 2) ? most : 0;
		base = base < most ? base : most;
		for (uint32_t i = 0; i < n; i++) {
			at[i] = base + ((random64(&seed) & mask) << shift);
			spans[i].remote = at[i];
		}
		struct wire_code code = round_trip(WIRE_GATHER, at, n, sizeof(at[0]));
		/* Multiples of a power of two within reach of the shift, up to 2^32 of them, need 4 bytes. */
		if (bits <= 32 && shift <= 31)
			assert_int_equal(code.width, 4);
		struct wire_code other = round_trip(WIRE_READV, &spans[0].remote, n, sizeof(spans[0]));
		assert_true(code.base == other.base && code.shift == other.shift && code.width == other.width);
	}
}

static void extreme_offsets(void **state)
{
	static const uint64_t ends[] = {0, UINT64_MAX}, wide[] = {7, 7 + (1ull << 32)}, odd[] = {7, 8 + (1ull << 32)};
	static const uint64_t narrow[] = {7, 7 + UINT32_MAX}, far[] = {0, 1ull << 63};
	static const uint64_t reached[] = {5, 5 + ((uint64_t)UINT32_MAX << 31)};
	static const uint64_t missed[] = {0, (uint64_t)UINT32_MAX << 32};
	(void)state;
	assert_int_equal(round_trip(WIRE_GATHER, ends, 0, 8).width, 4);
	assert_int_equal(round_trip(WIRE_GATHER, ends + 1, 1, 8).width, 4);
	assert_int_equal(round_trip(WIRE_GATHER, ends, 2, 8).width, 8);
	assert_int_equal(round_trip(WIRE_GATHER, narrow, 2, 8).width, 4);
	assert_int_equal(round_trip(WIRE_GATHER, wide, 2, 8).width, 4);
	assert_int_equal(round_trip(WIRE_GATHER, odd, 2, 8).width, 8);
	assert_int_equal(round_trip(WIRE_GATHER, far, 2, 8).width, 8);
	assert_int_equal(round_trip(WIRE_GATHER, reached, 2, 8).width, 4);
	assert_int_equal(round_trip(WIRE_GATHER, missed, 2, 8).width, 8);
}

/* --- Ranges against a region. --- */

static void ranges_are_checked_exactly(void **state)
{
	uint64_t seed = 2;
	uint32_t good = 0, bad = 0;
	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t type = gw_below(&seed, 2) ? WIRE_GATHER : WIRE_READV;
		struct wire_read read = {.count = (uint32_t)gw_below(&seed, 4),
					 .length = (uint32_t)gw_below(&seed, 100),
					 .base = random64(&seed) >> gw_below(&seed, 64),
					 .shift = (uint8_t)gw_below(&seed, 32),
					 .width = gw_below(&seed, 2) ? 4 : 8};
		uint64_t relative[4] = {0}, sum = 0;
		uint32_t lengths[4];
		unsigned __int128 end = 0;
		for (uint32_t i = 0; i < read.count; i++) {
			relative[i] = random64(&seed) >> gw_below(&seed, 64);
			relative[i] = read.width == 4 ? (uint32_t)relative[i] : relative[i];
			lengths[i] = type == WIRE_READV ? (uint32_t)gw_below(&seed, 100) : read.length;
			sum += lengths[i];
			unsigned __int128 last =
				((unsigned __int128)relative[i] << read.shift) + read.base + lengths[i];
			end = last > end ? last : end;
		}
		if (type == WIRE_READV)
			read.length = (uint32_t)sum;
		struct body body = read_begin(type, &read);
		for (uint32_t i = 0; i < read.count; i++) {
			uint64_t value = relative[i];
			memcpy(body.at + WIRE_READ_BYTES + i * read.width, &value, read.width == 4 ? 4 : 8);
			if (type == WIRE_READV)
				memcpy(body.at + WIRE_READ_BYTES + read.count * read.width + 4 * i, &lengths[i], 4);
		}
		/* Exactly at the end, next to it, or anywhere. */
		uint64_t region = gw_below(&seed, 2) ? random64(&seed) >> gw_below(&seed, 64)
						     : (uint64_t)end + gw_below(&seed, 3) - 1;
		struct wire_ranges ranges;
		assert_int_equal(gw_wire_ranges(type, body.at, body.n, &ranges), GW_OK);
		gw_status expected = end <= region ? GW_OK : GW_RANGE;
		assert_int_equal(gw_wire_ranges_check(&ranges, region), expected);
		*(expected ? &bad : &good) += 1;
		free(body.memory);
	}
	assert_in_range(good, 2000, 18000);
	assert_in_range(bad, 2000, 18000);
}

/* --- Malformed frames. --- */

static const struct limits {
	uint8_t type;
	bool from_client;
	uint32_t min, max;
} limits[] = {
	{WIRE_HELLO, true, 12, 4096},
	{WIRE_CHALLENGE, false, 12, 4096},
	{WIRE_PROOF, true, 32, 32},
	{WIRE_WELCOME, false, 64, 64 + 32 * GW_REGIONS_MAX},
	{WIRE_GATHER, true, 32, 32 + 8 * WIRE_RANGES_MAX},
	{WIRE_READV, true, 32, 32 + 12 * WIRE_RANGES_MAX},
	{WIRE_REQUEST, true, 24, 24 + GW_REQUEST_BYTES_MAX},
	{WIRE_PING, true, 0, 0},
	{WIRE_DATA, false, 0, UINT32_MAX},
	{WIRE_REPLY, false, 0, GW_REPLY_BYTES_MAX},
	{WIRE_ERROR, false, 0, WIRE_ERROR_TEXT},
	{WIRE_PONG, false, 0, 0},
	{WIRE_MEMORY, false, 8, 8 + 8 * 16 + 16 * 256},
	{WIRE_TORN, false, 0, 4 * WIRE_RANGES_MAX},
	{WIRE_OPEN, true, 16, 16},
	{WIRE_REGION, false, 32, 32},
	{WIRE_WITHDRAWN, false, 16, 16},
	{WIRE_RELEASED, true, 16, 16},
	{WIRE_MOVED, false, 0, 0},
};

/* The table of versions, said a second time: frames that not every version has. */
static const struct {
	uint8_t type;
	uint32_t since;
} later_frames[] = {{WIRE_MOVED, 8}};

/* A frame is unknown to a connection of a version that does not have it. */
static void frames_of_versions(void **state)
{
	(void)state;
	for (uint8_t type = WIRE_HELLO; type < WIRE_TYPES; type++) {
		const struct limits *known = NULL;
		uint32_t since = 0;
		for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
			known = limits[i].type == type ? &limits[i] : known;
		for (size_t i = 0; i < sizeof(later_frames) / sizeof(later_frames[0]); i++)
			since = later_frames[i].type == type ? later_frames[i].since : since;
		assert_non_null(known);
		const struct wire_header header = {.bytes = known->min, .type = type};
		for (uint32_t version = 0; version <= WIRE_VERSION + 1; version++) {
			struct wire_header out;
			assert_int_equal(gw_wire_speaks(version, type), version >= since);
			assert_int_equal(gw_wire_header((const uint8_t *)&header, known->from_client, version, &out),
					 version >= since ? GW_OK : GW_PROTOCOL);
		}
	}
}

static gw_status header_with(uint8_t type, uint32_t bytes, uint8_t status, uint16_t op, bool from_client)
{
	struct wire_header header = {.bytes = bytes, .type = type, .status = status, .op = op, .tag = 9}, out;
	uint8_t raw[WIRE_HEADER_BYTES + 1];
	memcpy(raw + 1, &header, sizeof(header));
	gw_status result = gw_wire_header(raw + 1, from_client, WIRE_VERSION, &out);
	if (!result)
		assert_memory_equal(&out, &header, sizeof(header));
	return result;
}

static void headers(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < 256; type++) {
		const struct limits *known = NULL;
		for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
			known = limits[i].type == type ? &limits[i] : known;
		for (int from_client = 0; from_client < 2; from_client++) {
			uint8_t t = (uint8_t)type;
			uint32_t bytes = known ? known->min : 0;
			bool good = known && known->from_client == from_client;
			assert_int_equal(header_with(t, bytes, 0, 0, from_client), good ? GW_OK : GW_PROTOCOL);
			if (!good)
				continue;
			assert_int_equal(header_with(t, known->max, 0, 0, from_client), GW_OK);
			if (known->min)
				assert_int_equal(header_with(t, known->min - 1, 0, 0, from_client), GW_PROTOCOL);
			if (known->max < UINT32_MAX)
				assert_int_equal(header_with(t, known->max + 1, 0, 0, from_client), GW_PROTOCOL);
			gw_status status = t == WIRE_ERROR ? GW_OK : GW_PROTOCOL;
			gw_status op = t == WIRE_REQUEST ? GW_OK : GW_PROTOCOL;
			assert_int_equal(header_with(t, bytes, 1, 0, from_client), status);
			assert_int_equal(header_with(t, bytes, 128, 0, from_client), status);
			assert_int_equal(header_with(t, bytes, 0, 1, from_client), op);
			assert_int_equal(header_with(t, bytes, 0, 0x8000, from_client), op);
		}
	}
}

/* A valid WELCOME of `regions` regions, with one 4-byte word changed (word < 0: no change), in n bytes. */
static gw_status welcome(uint32_t region_count, uint32_t n, int word, uint32_t value)
{
	struct wire_welcome head = {.graph_id = 1,
				    .part = 2,
				    .parts = 3,
				    .region_count = region_count,
				    .requests_max = 4},
			    out;
	struct gw_region regions[GW_REGIONS_MAX];
	struct body body = body_begin(n);
	memcpy(body.at, &head, n < sizeof(head) ? n : sizeof(head));
	for (uint32_t i = 0; sizeof(head) + (i + 1) * WIRE_REGION_BYTES <= n; i++) {
		struct wire_region region = {.bytes = i * 100ull,
					     .id = i,
					     .generation = i ^ 5,
					     .kind = i % 2,
					     .row_bytes = i % 2 * 4,
					     .seed = i % 2 * 99};
		memcpy(body.at + sizeof(head) + i * WIRE_REGION_BYTES, &region, sizeof(region));
	}
	if (word >= 0)
		memcpy(body.at + 4 * word, &value, 4);
	gw_status status = gw_wire_welcome(body.at, n, &out, regions);
	for (uint32_t i = 0; status == GW_OK && i < out.region_count; i++) {
		assert_int_equal(regions[i].bytes, i * 100ull);
		assert_int_equal(regions[i].id, i);
		assert_int_equal(regions[i].generation, i ^ 5);
		assert_int_equal(regions[i].kind, i % 2);
		assert_true(word >= 0 || regions[i].rows.format.stride == i % 2 * 4);
	}
	free(body.memory);
	return status;
}

static void welcomes(void **state)
{
	(void)state;
	for (uint32_t count = 0; count <= GW_REGIONS_MAX; count++) {
		uint32_t n = 64 + 32 * count;
		assert_int_equal(welcome(count, n, -1, 0), GW_OK);
		assert_int_equal(welcome(count, n - 1, -1, 0), GW_PROTOCOL);
		assert_int_equal(welcome(count, n + 1, -1, 0), GW_PROTOCOL);
		assert_int_equal(welcome(count + 1, n, -1, 0), GW_PROTOCOL);
		assert_int_equal(welcome(count + (1u << 27), n, -1, 0),
				 GW_PROTOCOL); /* times 32: the same in 32 bits */
	}
	assert_int_equal(welcome(GW_REGIONS_MAX + 1, 64 + 32 * (GW_REGIONS_MAX + 1), -1, 0), GW_PROTOCOL);
	assert_int_equal(welcome(1, 64 + 32, 52 / 4, 0), GW_PROTOCOL); /* no request is allowed */
	for (int region = 0; region < 3; region++) {
		const uint32_t n = 64 + 96;
		int word = (64 + 32 * region) / 4;
		assert_int_equal(welcome(3, n, word + 2, 3), GW_PROTOCOL); /* id */
		assert_int_equal(welcome(3, n, word + 4, 2), GW_PROTOCOL); /* kind */
		assert_int_equal(welcome(3, n, word + 4, region != 1), GW_PROTOCOL);
		assert_int_equal(welcome(3, n, word + 5, 3), GW_PROTOCOL); /* rows of 32 bytes: fewer fit */
		assert_int_equal(welcome(3, n, word + 5, GW_ROW_PAYLOAD_MAX + 1), GW_PROTOCOL);
		assert_int_equal(welcome(3, n, word + 5, 0), region == 1 ? GW_PROTOCOL : GW_OK);
		assert_int_equal(welcome(3, n, word + 6, 1), region == 1 ? GW_OK : GW_PROTOCOL); /* seed */
	}
}

/* A MEMORY of 2 memories of 1000 and 2000 bytes with two regions of 1000 bytes and one empty region; with one 4-byte
 * word changed (word < 0: no change), in n bytes. */
static gw_status memory(uint32_t n, int word, uint32_t value)
{
	static const struct gw_region regions[] = {{.bytes = 1000}, {.bytes = 1000, .id = 1}, {.id = 2}};
	struct {
		struct wire_memory head;
		uint64_t bytes[2];
		struct wire_place places[3];
	} good = {{2, 3}, {1000, 2000}, {{0, 0, 0}, {1000, 1, 0}, {0, 0, 0}}};
	struct wire_memories out;
	struct body body = body_begin(n);
	if (word >= 0)
		memcpy((uint8_t *)&good + 4 * word, &value, 4);
	memcpy(body.at, &good, n < sizeof(good) ? n : sizeof(good));
	gw_status status = gw_wire_memory(body.at, n, regions, 3, &out);
	if (status == GW_OK) {
		assert_int_equal(out.memory_count, 2);
		assert_int_equal(out.region_count, 3);
		for (uint32_t i = 0; i < 2; i++)
			assert_true(out.places[i].memory < 2 &&
				    out.places[i].offset + 1000 <= out.bytes[out.places[i].memory]);
	}
	free(body.memory);
	return status;
}

static void memories(void **state)
{
	(void)state;
	const uint32_t n = 8 + 2 * 8 + 3 * 16;
	for (uint32_t other = 0; other < 2 * n; other++)
		assert_int_equal(memory(other, -1, 0), other == n ? GW_OK : GW_PROTOCOL);
	static const struct {
		int word;
		uint32_t value;
		gw_status status;
	} changes[] = {
		{0, 1, GW_PROTOCOL}, /* fewer memories than the length says */
		{0, UINT32_MAX, GW_PROTOCOL},
		{1, 2, GW_PROTOCOL},   /* other regions than the welcome's */
		{2, 999, GW_PROTOCOL}, /* a memory shorter than its region */
		{2, 1001, GW_OK},
		{4, 1999, GW_PROTOCOL},
		{6, 1, GW_PROTOCOL}, /* an offset past the end, in both its words */
		{7, 1, GW_PROTOCOL},
		{11, UINT32_MAX, GW_PROTOCOL},
		{8, 1, GW_OK},       /* another memory that has it too */
		{8, 2, GW_PROTOCOL}, /* no such memory */
		{8, UINT32_MAX, GW_PROTOCOL},
		{9, 1, GW_PROTOCOL},  /* zero */
		{12, 0, GW_PROTOCOL}, /* the second region in the first memory */
		{14, 1, GW_PROTOCOL}, /* an empty region is in no memory */
		{16, 1, GW_PROTOCOL},
	};
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (memory(n, changes[i].word, changes[i].value) != changes[i].status)
			fail_msg("change %zu: %s", i, gw_status_text(memory(n, changes[i].word, changes[i].value)));
}

/* Mutable rows are aligned so that words can be read in one access. */
static void memories_of_rows(void **state)
{
	(void)state;
	struct {
		struct wire_memory head;
		uint64_t bytes;
		struct wire_place place;
	} told = {{1, 1}, 2000, {0, 0, 0}};
	struct gw_region region = {.bytes = 960, .kind = GW_REGION_VERSIONED};
	struct wire_memories out;
	for (uint32_t offset = 0; offset < 64; offset++) {
		told.place.offset = offset;
		assert_int_equal(gw_wire_memory((const uint8_t *)&told, sizeof(told), &region, 1, &out),
				 offset % 16 ? GW_PROTOCOL : GW_OK);
	}
}

static gw_status row_at(const struct gw_row_format *format, uint64_t at, uint32_t bytes)
{
	struct wire_read read = {.count = 1, .length = bytes, .width = 8};
	struct wire_ranges ranges;
	uint8_t body[WIRE_READ_BYTES + 8];
	memcpy(body, &read, sizeof(read));
	memcpy(body + WIRE_READ_BYTES, &at, 8);
	assert_int_equal(gw_wire_ranges(WIRE_GATHER, body, sizeof(body), &ranges), GW_OK);
	return gw_wire_rows_check(&ranges, format);
}

static void rows(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {1, 2, 4, 8, 3, 16, 17, 100, 1600, 65536, GW_ROW_PAYLOAD_MAX};
	uint64_t seed = 1;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct gw_row_format format;
		assert_int_equal(gw_row_format_init(sizes[i], &format), GW_OK);
		for (int round = 0; round < 1000; round++) {
			seed = gw_mix64(seed + 1);
			uint64_t at = seed >> (seed & 63);
			at = round % 2 ? at : at - at % format.stride;
			assert_int_equal(row_at(&format, at, sizes[i]), at % format.stride ? GW_INVALID : GW_OK);
		}
		assert_int_equal(row_at(&format, 0, sizes[i] + 1), GW_INVALID);
		assert_int_equal(row_at(&format, 0, sizes[i] - 1), sizes[i] == 1 ? GW_OK : GW_INVALID);
		assert_int_equal(row_at(&format, 1, 0), GW_OK);
	}
}

static void dynamic_regions(void **state)
{
	(void)state;
	static const struct {
		struct wire_dynamic dynamic;
		gw_status status;
	} cases[] = {
		{{GW_REGIONS_MAX, 1, 0, 0}, GW_OK},
		{{GW_REGIONS_MAX + GW_DYNAMIC_REGIONS_MAX - 1, UINT32_MAX, 1, 0}, GW_OK},
		{{GW_REGIONS_MAX - 1, 1, 0, 0}, GW_PROTOCOL},
		{{GW_REGIONS_MAX + GW_DYNAMIC_REGIONS_MAX, 1, 0, 0}, GW_PROTOCOL},
		{{UINT32_MAX, 1, 0, 0}, GW_PROTOCOL},
		{{GW_REGIONS_MAX, 0, 0, 0}, GW_PROTOCOL},
		{{GW_REGIONS_MAX, 1, 2, 0}, GW_PROTOCOL},
		{{GW_REGIONS_MAX, 1, 0, 1}, GW_PROTOCOL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_dynamic out;
		assert_int_equal(gw_wire_dynamic((const uint8_t *)&cases[i].dynamic, &out), cases[i].status);
		assert_memory_equal(&out, &cases[i].dynamic, sizeof(out));
	}
}

static void torn(void **state)
{
	(void)state;
	uint32_t numbers[] = {0, 3, 4, 9};
	const uint8_t *body = (const uint8_t *)numbers;
	for (uint32_t n = 0; n <= sizeof(numbers); n++)
		assert_int_equal(gw_wire_torn(body, n, 10), n % 4 ? GW_PROTOCOL : GW_OK);
	assert_int_equal(gw_wire_torn(body, sizeof(numbers), 9), GW_PROTOCOL);
	assert_int_equal(gw_wire_torn(body, 4, 0), GW_PROTOCOL);
	numbers[2] = 3; /* twice */
	assert_int_equal(gw_wire_torn(body, sizeof(numbers), 10), GW_PROTOCOL);
	numbers[2] = 2;
	assert_int_equal(gw_wire_torn(body, sizeof(numbers), 10), GW_PROTOCOL);
	numbers[3] = numbers[2] = UINT32_MAX;
	assert_int_equal(gw_wire_torn(body, sizeof(numbers), UINT32_MAX), GW_PROTOCOL);
}

/* A read of `read`'s ranges in n bytes. For READV, each length is `length`. */
static gw_status read_with(uint8_t type, struct wire_read read, uint32_t n, uint32_t length)
{
	struct wire_ranges ranges;
	struct body body = body_begin(n);
	memcpy(body.at, &read, n < sizeof(read) ? n : sizeof(read));
	uint64_t offsets = WIRE_READ_BYTES + (uint64_t)read.count * read.width;
	for (uint64_t at = offsets; type == WIRE_READV && at + 4 <= n; at += 4)
		memcpy(body.at + at, &length, 4);
	gw_status status = gw_wire_ranges(type, body.at, n, &ranges);
	free(body.memory);
	return status;
}

static void reads(void **state)
{
	(void)state;
	for (uint8_t type = WIRE_GATHER; type <= (uint8_t)WIRE_READV; type++)
		for (uint8_t width = 4; width <= 8; width += 4) {
			struct wire_read good = {.count = 3, .length = 30, .width = width, .shift = 31};
			uint32_t n = gw_wire_read_bytes(type, 3, width);
			assert_int_equal(read_with(type, good, n, 10), GW_OK);
			for (uint32_t other = 0; other < 100; other++)
				assert_int_equal(read_with(type, good, other, 10), other == n ? GW_OK : GW_PROTOCOL);
			struct wire_read bad = good;
			for (uint32_t value = 0; value < 256; value++) {
				bad.width = (uint8_t)value;
				assert_int_equal(read_with(type, bad, n, 10), value == width ? GW_OK : GW_PROTOCOL);
			}
			bad = good;
			for (uint32_t value = 32; value < 256; value++) {
				bad.shift = (uint8_t)value;
				assert_int_equal(read_with(type, bad, n, 10), GW_PROTOCOL);
			}
			bad = good;
			bad.zero = 1;
			assert_int_equal(read_with(type, bad, n, 10), GW_PROTOCOL);
			bad = good;
			bad.zero2 = 1u << 31;
			assert_int_equal(read_with(type, bad, n, 10), GW_PROTOCOL);
			/* Counts, also one whose bytes are the same in 32 bits. */
			bad = good;
			bad.count = 3 + (1u << 30);
			assert_int_equal(read_with(type, bad, n, 10), GW_PROTOCOL);
			bad.count = UINT32_MAX;
			assert_int_equal(read_with(type, bad, n, 10), GW_PROTOCOL);
			bad.count = WIRE_RANGES_MAX;
			bad.length = type == WIRE_READV ? WIRE_RANGES_MAX : 1;
			uint32_t most = gw_wire_read_bytes(type, WIRE_RANGES_MAX, width);
			assert_int_equal(read_with(type, bad, most, 1), GW_OK);
			bad.count++;
			bad.length += type == WIRE_READV;
			most = gw_wire_read_bytes(type, WIRE_RANGES_MAX + 1, width);
			assert_int_equal(read_with(type, bad, most, 1), GW_PROTOCOL);
		}
}

static void payloads(void **state)
{
	(void)state;
	uint32_t n = gw_wire_read_bytes(WIRE_READV, 4, 4);
	struct wire_read read = {.count = 4, .width = 4, .length = 40};
	assert_int_equal(read_with(WIRE_READV, read, n, 10), GW_OK);
	read.length = 39;
	assert_int_equal(read_with(WIRE_READV, read, n, 10), GW_PROTOCOL);
	read.length = 0; /* 4 times 2^30: a sum that is 0 in 32 bits */
	assert_int_equal(read_with(WIRE_READV, read, n, 0), GW_OK);
	assert_int_equal(read_with(WIRE_READV, read, n, 1u << 30), GW_PROTOCOL);
	/* Several ranges have a common limit; a single range has no limit. */
	read.length = WIRE_PAYLOAD_MAX;
	assert_int_equal(read_with(WIRE_READV, read, n, WIRE_PAYLOAD_MAX / 4), GW_OK);
	read.length += 4;
	assert_int_equal(read_with(WIRE_READV, read, n, WIRE_PAYLOAD_MAX / 4 + 1), GW_PROTOCOL);
	n = gw_wire_read_bytes(WIRE_GATHER, 4, 4);
	read.length = WIRE_PAYLOAD_MAX / 4;
	assert_int_equal(read_with(WIRE_GATHER, read, n, 0), GW_OK);
	read.length++;
	assert_int_equal(read_with(WIRE_GATHER, read, n, 0), GW_PROTOCOL);
	read.length = 1u << 30;
	assert_int_equal(read_with(WIRE_GATHER, read, n, 0), GW_PROTOCOL);
	read.count = 1;
	read.length = UINT32_MAX;
	assert_int_equal(read_with(WIRE_GATHER, read, gw_wire_read_bytes(WIRE_GATHER, 1, 4), 0), GW_OK);
	assert_int_equal(read_with(WIRE_READV, read, gw_wire_read_bytes(WIRE_READV, 1, 4), UINT32_MAX), GW_OK);
	read.count = 0;
	read.length = 0;
	assert_int_equal(read_with(WIRE_GATHER, read, WIRE_READ_BYTES, 0), GW_OK);
	assert_int_equal(read_with(WIRE_READV, read, WIRE_READ_BYTES, 0), GW_OK);
	read.length = 1;
	assert_int_equal(read_with(WIRE_READV, read, WIRE_READ_BYTES, 0), GW_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_come_back),
		cmocka_unit_test(extreme_offsets),
		cmocka_unit_test(ranges_are_checked_exactly),
		cmocka_unit_test(headers),
		cmocka_unit_test(frames_of_versions),
		cmocka_unit_test(welcomes),
		cmocka_unit_test(memories),
		cmocka_unit_test(memories_of_rows),
		cmocka_unit_test(rows),
		cmocka_unit_test(torn),
		cmocka_unit_test(dynamic_regions),
		cmocka_unit_test(reads),
		cmocka_unit_test(payloads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
