/* Subgraph requests and replies: every malformed length, count and number is refused before its use. A reply with any
 * wrong byte decodes to possible edges, or is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "protocol/subgraph_call.h"

#define EDGES_MAX 40
#define EDGES     1000000000000ull /* of the part */

/* Three sections, of 2, 1 and 4 destinations and 3, 2 and 1 sources. */
static const struct gw_subgraph_section sections[] = {{2, 3}, {1, 2}, {4, 1}};
static const struct gw_subgraph_call good = {
	.etype = 3, .section_count = 3, .dst_count = 7, .src_count = 6, .id_bytes = 8, .reply_bytes_max = 1000};

/* A call's bytes; the caller frees them. They end with the block, so that a sanitizer detects a read past the end. */
static uint8_t *print_call(const struct gw_subgraph_call *call, size_t bytes)
{
	uint8_t *out = calloc(1, bytes ? bytes : 1);
	uint64_t srcs[6] = {1, 5, 9, 1ull << 40, 1ull << 41, 0};
	uint8_t whole[400] = {0};
	memcpy(whole, call, sizeof(*call));
	memcpy(whole + sizeof(*call), sections, sizeof(sections));
	memcpy(whole + sizeof(*call) + sizeof(sections) + 32, srcs, sizeof(srcs));
	memcpy(out, whole, bytes < sizeof(whole) ? bytes : sizeof(whole));
	return out;
}

static gw_status parse_call(const struct gw_subgraph_call *call, size_t bytes)
{
	uint8_t *exact = print_call(call, bytes);
	struct gw_subgraph_call out;
	struct gw_subgraph_arrays arrays;
	gw_status status = gw_subgraph_call_parse(exact, bytes, 4, &out, &arrays);
	if (status == GW_OK) {
		assert_memory_equal(&out, call, sizeof(out));
		status = gw_subgraph_sections_check(&out, &arrays);
	}
	for (uint32_t i = 0, at = 0; status == GW_OK && i < out.section_count; i++) {
		uint64_t srcs[6];
		assert_int_equal(gw_subgraph_section(&arrays, i).dst_count, sections[i].dst_count);
		status = gw_subgraph_srcs(&out, &arrays, at, sections[i].src_count, srcs);
		at += sections[i].src_count;
	}
	free(exact);
	return status;
}

static void calls_are_checked(void **state)
{
	(void)state;
	size_t whole = gw_subgraph_call_bytes(&good);
	assert_int_equal(whole, sizeof(good) + sizeof(sections) + 32 + 48);
	assert_int_equal(parse_call(&good, whole), GW_OK);
	for (size_t n = 0; n < whole; n++)
		assert_int_equal(parse_call(&good, n), GW_PROTOCOL);
	assert_int_equal(parse_call(&good, whole + 1), GW_PROTOCOL);
	struct gw_subgraph_call call = good;
	call.etype = 4;
	assert_int_equal(parse_call(&call, whole), GW_RANGE);
	call = good;
	call.reply_bytes_max = sizeof(struct gw_subgraph_reply) + GW_SUBGRAPH_EDGE_MAX - 1;
	assert_int_equal(parse_call(&call, whole), GW_RANGE);
	static const struct gw_subgraph_call wrong[] = {
		{.section_count = 2, .dst_count = 7, .src_count = 6, .id_bytes = 8},
		{.section_count = 3, .dst_count = 8, .src_count = 6, .id_bytes = 8},
		{.section_count = 3, .dst_count = 7, .src_count = 5, .id_bytes = 8},
		{.section_count = 3, .dst_count = 7, .src_count = 6, .id_bytes = 6},
		{.section_count = 3, .dst_count = 7, .src_count = 6, .id_bytes = 8, .first = 7},
		{.section_count = 3, .dst_count = 7, .src_count = 6, .id_bytes = 8, .zero = 1},
		{.section_count = 0, .dst_count = 0, .src_count = 0, .id_bytes = 8},
		{.section_count = UINT32_MAX, .dst_count = 7, .src_count = 6, .id_bytes = 8},
		{.section_count = 3, .dst_count = UINT32_MAX, .src_count = 6, .id_bytes = 8},
		{.section_count = 3, .dst_count = 7, .src_count = 1u << 29, .id_bytes = 8},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		call = wrong[i];
		call.reply_bytes_max = 1000;
		for (size_t n = sizeof(call); n < whole + 16; n++)
			assert_int_equal(parse_call(&call, n), GW_PROTOCOL);
	}
}

static void sources_ascend(void **state)
{
	(void)state;
	size_t whole = gw_subgraph_call_bytes(&good);
	struct gw_subgraph_arrays arrays;
	uint64_t out[6], same = 5;
	for (uint32_t k = 0; k < 3; k++) {
		uint8_t *bytes = print_call(&good, whole);
		gw_subgraph_call_arrays(&good, bytes, &arrays);
		assert_int_equal(gw_subgraph_srcs(&good, &arrays, 0, 3, out), GW_OK);
		memcpy(bytes + whole - 48 + (size_t)k * 8, &same, 8); /* 5 5 9, 1 5 9, 1 5 5 */
		assert_int_equal(gw_subgraph_srcs(&good, &arrays, 0, 3, out), k == 1 ? GW_OK : GW_PROTOCOL);
		free(bytes);
	}
}

/* --- Replies. --- */

struct taken {
	uint32_t n;
	struct gw_subgraph_edge edges[EDGES_MAX];
	uint32_t sections[EDGES_MAX];
};

static gw_status take(void *context, uint32_t section, const struct gw_subgraph_edge *edge)
{
	struct taken *taken = context;
	assert_true(section < 3 && edge->dst < 7 && edge->src < sections[section].src_count && edge->position < EDGES);
	if (taken->n == EDGES_MAX)
		return GW_LIMIT;
	taken->sections[taken->n] = section;
	taken->edges[taken->n++] = *edge;
	return GW_OK;
}

static gw_status parse_reply(const struct gw_subgraph_call *call, const uint8_t *bytes, size_t n, struct taken *taken,
			     struct gw_subgraph_reply *reply, uint64_t *next)
{
	uint8_t *exact = malloc(n ? n : 1), *asked = print_call(call, gw_subgraph_call_bytes(call));
	struct gw_subgraph_arrays arrays;
	gw_subgraph_call_arrays(call, asked, &arrays);
	memcpy(exact, bytes, n);
	taken->n = 0;
	gw_status status = gw_subgraph_reply_parse(exact, n, call, &arrays, EDGES, take, taken, reply, next);
	free(exact);
	free(asked);
	return status;
}

/* Random edges from call->first and from on, and the reply that has them. Returns its bytes. */
static size_t make_reply(uint64_t seed, const struct gw_subgraph_call *call, struct taken *made, uint8_t *out)
{
	static const uint32_t of_dst[] = {0, 0, 1, 2, 2, 2, 2};
	size_t n = sizeof(struct gw_subgraph_reply);
	uint32_t before = call->first;
	made->n = 0;
	for (uint32_t dst = call->first; dst < 7; dst++) {
		uint64_t position = dst == call->first ? call->from : 0;
		for (uint64_t left = gw_mix64(seed + dst) % 6; left > 0; left--) {
			uint64_t random = gw_mix64(seed * 1000 + made->n);
			position += random % (random & 1 ? EDGES / 10 : 100);
			struct gw_subgraph_edge edge = {dst, (uint32_t)(random >> 40) % sections[of_dst[dst]].src_count,
							position++};
			n += gw_subgraph_edge_print(&edge, before, out + n);
			before = dst;
			made->sections[made->n] = of_dst[dst];
			made->edges[made->n++] = edge;
		}
	}
	const struct gw_subgraph_reply head = {seed % 2 && made->n ? before : 7, made->n};
	memcpy(out, &head, sizeof(head));
	return n;
}

static void replies_come_back(void **state)
{
	(void)state;
	static struct taken made, taken;
	for (uint64_t seed = 0; seed < 300; seed++) {
		uint8_t bytes[sizeof(struct gw_subgraph_reply) + EDGES_MAX * GW_SUBGRAPH_EDGE_MAX];
		struct gw_subgraph_call call = good;
		struct gw_subgraph_reply reply;
		uint64_t next;
		call.first = (uint32_t)(seed % 7);
		call.from = seed % 3 * 1000;
		size_t n = make_reply(seed, &call, &made, bytes);
		assert_int_equal(parse_reply(&call, bytes, n, &taken, &reply, &next), GW_OK);
		assert_int_equal(taken.n, made.n);
		assert_memory_equal(taken.edges, made.edges, made.n * sizeof(made.edges[0]));
		assert_memory_equal(taken.sections, made.sections, made.n * sizeof(made.sections[0]));
		assert_int_equal(next, reply.answered < 7 ? made.edges[made.n - 1].position + 1 : 0);
		for (size_t less = 0; less < n; less++)
			assert_int_equal(parse_reply(&call, bytes, less, &taken, &reply, &next), GW_PROTOCOL);
		for (size_t at = 0; at < n; at++) { /* take checks what is accepted */
			uint8_t kept = bytes[at];
			bytes[at] ^= (uint8_t)(1u << seed % 8);
			parse_reply(&call, bytes, n, &taken, &reply, &next);
			bytes[at] = kept;
		}
	}
}

static void impossible_replies_are_refused(void **state)
{
	(void)state;
	static struct taken taken;
	struct gw_subgraph_reply reply;
	uint64_t next;
	struct gw_subgraph_call call = good;
	call.first = 2;
	call.from = 50;
	const struct {
		struct gw_subgraph_reply head;
		uint8_t edges[24], bytes;
		gw_status status;
	} replies[] = {
		{{7, 0}, {0}, 0, GW_OK},
		{{2, 0}, {0}, 0, GW_PROTOCOL}, /* no progress: it would be requested for ever */
		{{1, 0}, {0}, 0, GW_PROTOCOL},
		{{8, 0}, {0}, 0, GW_PROTOCOL},
		{{2, 1}, {0, 1, 50}, 3, GW_OK},
		{{2, 1}, {0, 1, 49}, 3, GW_PROTOCOL},
		{{2, 1}, {0, 2, 50}, 3, GW_PROTOCOL},
		{{2, 1}, {1, 0, 50}, 3, GW_PROTOCOL}, /* of a destination after `answered` */
		{{7, 1}, {1, 0, 0}, 3, GW_OK},
		{{7, 1}, {5, 0, 0}, 3, GW_PROTOCOL},
		{{7, 2}, {1, 0, 3, 0, 0, 3}, 6, GW_PROTOCOL},
		{{7, 2}, {1, 0, 3, 0, 0, 4}, 6, GW_OK},
		{{7, UINT32_MAX}, {1, 0, 3}, 3, GW_PROTOCOL},
		{{7, 1}, {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12, GW_PROTOCOL},
		{{7, 1}, {1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2}, 12, GW_PROTOCOL},
		{{7, 1}, {0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0, 0}, 13, GW_PROTOCOL},
	};
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		uint8_t bytes[64];
		memcpy(bytes, &replies[i].head, sizeof(reply));
		memcpy(bytes + sizeof(reply), replies[i].edges, replies[i].bytes);
		if (parse_reply(&call, bytes, sizeof(reply) + replies[i].bytes, &taken, &reply, &next) !=
		    replies[i].status)
			fail_msg("reply %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_checked),
		cmocka_unit_test(sources_ascend),
		cmocka_unit_test(replies_come_back),
		cmocka_unit_test(impossible_replies_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
