/* Sample requests and replies: what is printed is what is parsed; every malformed length, count and number is refused
 * before it is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "protocol/sample_call.h"
#include "sampler/picks.h"
#include "test/support/alloc_fault.h"

#define ROWS 300

/* --- Calls. --- */

static const int64_t until[] = {7, 0, INT64_MAX}, from[] = {-5, 0, INT64_MIN};
static const struct gw_sample_group_run runs[] = {{2, 1}, {0, 2}};
static const uint32_t good_rows[] = {7, 0, 9};
static const struct gw_sample_column good_columns[] = {{1, "weight"}, {2, "m"}, {7, "at"}};

static struct gw_sample_call good_call_with(uint32_t column_count, struct gw_sample_arrays *arrays)
{
	struct gw_sample_call call = {.sampler_version = GW_SAMPLER_VERSION,
				      .etype = 2,
				      .key = 99,
				      .fanout = 5,
				      .kind = 2,
				      .flags = GW_SAMPLE_WINDOWS | GW_SAMPLE_REPLACE,
				      .row_count = 3,
				      .reply_bytes_max = 1000,
				      .table_count = 3,
				      .run_count = 2};
	*arrays = (struct gw_sample_arrays){.until = until, .from = from, .runs = runs, .rows = good_rows};
	for (uint32_t i = 0; i < column_count; i++)
		gw_sample_call_add_column(&call, arrays, good_columns[i].number, good_columns[i].name);
	return call;
}

static struct gw_sample_call good_call(void)
{
	struct gw_sample_arrays arrays;
	return good_call_with(3, &arrays);
}

#define WHOLE_MAX 512

/* The bytes of a good call, with another head. */
static size_t make_whole(const struct gw_sample_call *call, uint8_t whole[WHOLE_MAX])
{
	struct gw_sample_arrays good_arrays;
	const struct gw_sample_call good = good_call_with(3, &good_arrays);
	size_t bytes = gw_sample_call_bytes(&good);
	assert_true(bytes <= WHOLE_MAX);
	memset(whole, 0xaa, WHOLE_MAX);
	gw_sample_call_print(&good, &good_arrays, whole);
	memcpy(whole, call, sizeof(*call));
	return bytes;
}

static gw_status parse_bytes(const uint8_t *whole, size_t bytes, struct gw_sample_call *out)
{
	uint8_t *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read past the end */
	memcpy(exact, whole, bytes);
	struct gw_sample_arrays arrays;
	gw_status status = gw_sample_call_parse(exact, bytes, 4, out, &arrays);
	if (status == GW_OK && out->row_count) {
		for (uint32_t i = 0; i < out->column_count; i++) {
			assert_int_equal(arrays.columns[i].number, good_columns[i].number);
			assert_string_equal(arrays.columns[i].name, good_columns[i].name);
		}
		assert_memory_equal(arrays.until, until, out->table_count * sizeof(until[0]));
		if (out->flags & GW_SAMPLE_WINDOWS)
			assert_memory_equal(arrays.from, from, out->table_count * sizeof(from[0]));
		else
			assert_null(arrays.from);
		assert_memory_equal(arrays.runs, runs, out->run_count * sizeof(runs[0]));
		assert_memory_equal(arrays.rows, good_rows, out->row_count * sizeof(good_rows[0]));
	}
	free(exact);
	return status;
}

static gw_status parse_call(const struct gw_sample_call *call)
{
	uint8_t whole[WHOLE_MAX];
	struct gw_sample_call out;
	size_t bytes = make_whole(call, whole);
	gw_status status = parse_bytes(whole, bytes, &out);
	if (status == GW_OK)
		assert_memory_equal(&out, call, sizeof(out));
	return status;
}

static void calls_are_checked(void **state)
{
	(void)state;
	struct gw_sample_call call = good_call(), out;
	uint8_t whole[WHOLE_MAX];
	size_t bytes = make_whole(&call, whole);
	assert_int_equal(bytes % 4, 0);
	assert_int_equal(parse_call(&call), GW_OK);
	for (size_t n = 0; n < bytes; n++)
		assert_int_equal(parse_bytes(whole, n, &out), GW_PROTOCOL);
	call.sampler_version++;
	assert_int_equal(parse_call(&call), GW_VERSION);
	call = good_call();
	call.etype = 4;
	assert_int_equal(parse_call(&call), GW_RANGE);
	static const int32_t fanouts[] = {-2, GW_FANOUT_MAX + 1, INT32_MIN, INT32_MAX};
	for (size_t i = 0; i < sizeof(fanouts) / sizeof(fanouts[0]); i++) {
		call = good_call();
		call.fanout = fanouts[i];
		assert_int_equal(parse_call(&call), GW_RANGE);
	}
	for (uint32_t bit = 0; bit < 32; bit++) {
		call = good_call();
		call.flags = GW_SAMPLE_WINDOWS | 1u << bit; /* the bytes have both times of the groups */
		assert_int_equal(parse_call(&call), 1u << bit & GW_SAMPLE_FLAGS ? GW_OK : GW_UNSUPPORTED);
	}
	static const uint32_t counts[] = {0, 2, 4, GW_SAMPLE_ROWS_MAX + 1, UINT32_MAX, 1u << 30};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		call = good_call();
		call.row_count = counts[i];
		assert_int_equal(parse_call(&call), GW_PROTOCOL);
		call = good_call();
		call.table_count = counts[i];
		assert_int_equal(parse_call(&call), GW_PROTOCOL);
		call = good_call();
		call.run_count = counts[i] == 2 ? 1 : counts[i];
		assert_int_equal(parse_call(&call), GW_PROTOCOL);
	}
	static const uint16_t column_counts[] = {0, 1, 2, 4, 5, GW_SAMPLE_COLUMNS_MAX + 1, UINT16_MAX};
	for (size_t i = 0; i < sizeof(column_counts) / sizeof(column_counts[0]); i++) {
		call = good_call();
		call.column_count = column_counts[i];
		assert_int_equal(parse_call(&call), GW_PROTOCOL);
	}
	for (uint32_t name_bytes = 0; name_bytes <= UINT16_MAX;
	     name_bytes = name_bytes < 30 ? name_bytes + 1 : name_bytes * 2 + 1) {
		call = good_call();
		call.name_bytes = (uint16_t)name_bytes;
		assert_int_equal(parse_call(&call), name_bytes == 12 ? GW_OK : GW_PROTOCOL);
	}
	call = (struct gw_sample_call){.sampler_version = GW_SAMPLER_VERSION};
	assert_int_equal(parse_bytes((const uint8_t *)&call, sizeof(call), &out), GW_OK);
}

/* Calls with each number of columns, and with other bytes where the columns are: their numbers ascend, and each name
 * has at least one byte and one NUL. */
static void columns_are_checked(void **state)
{
	(void)state;
	struct gw_sample_call out;
	struct gw_sample_arrays arrays;
	uint8_t whole[WHOLE_MAX];
	for (uint32_t n = 0; n <= 3; n++) {
		const struct gw_sample_call call = good_call_with(n, &arrays);
		gw_sample_call_print(&call, &arrays, whole);
		assert_int_equal(parse_bytes(whole, gw_sample_call_bytes(&call), &out), GW_OK);
		assert_int_equal(out.column_count, n);
	}
	const struct gw_sample_call call = good_call_with(3, &arrays);
	const size_t bytes = gw_sample_call_bytes(&call), names = sizeof(call) + 3 * sizeof(uint32_t);
	const struct {
		size_t at;
		uint8_t value;
		gw_status status;
	} cases[] = {
		{sizeof(call), 0, GW_OK},           /* 0, 2, 7 */
		{sizeof(call), 2, GW_PROTOCOL},     /* 2, 2, 7 */
		{sizeof(call) + 4, 9, GW_PROTOCOL}, /* 1, 9, 7 */
		{sizeof(call) + 11, 255, GW_OK},    /* 1, 2, a large number: the server refuses it */
		{names, 0, GW_PROTOCOL},            /* an empty name */
		{names + 3, 0, GW_PROTOCOL},        /* "wei" and "ght", and one name too many */
		{names + 6, 'x', GW_PROTOCOL},      /* "weightxm", and one name too few */
		{names + 8, 'x', GW_PROTOCOL},      /* "mxat", and one name too few */
		{names + 11, 'x', GW_PROTOCOL},     /* the last name has no NUL */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gw_sample_call_print(&call, &arrays, whole);
		whole[cases[i].at] = cases[i].value;
		uint8_t *exact = malloc(bytes);
		struct gw_sample_arrays parsed;
		memcpy(exact, whole, bytes);
		assert_int_equal(gw_sample_call_parse(exact, bytes, 4, &out, &parsed), cases[i].status);
		free(exact);
	}
}

static void groups_are_checked(void **state)
{
	(void)state;
	static const struct {
		struct gw_sample_group_run runs[2];
		uint32_t table_count;
		gw_status status;
	} cases[] = {
		{{{0, 1}, {2, 2}}, 3, GW_OK},
		{{{0, 1}, {3, 2}}, 3, GW_PROTOCOL}, /* group 3 of 3 */
		{{{0, 1}, {UINT32_MAX, 2}}, 0, GW_OK},
		{{{0, 1}, {1, 1}}, 3, GW_PROTOCOL}, /* 2 rows of 3 */
		{{{0, 3}, {1, 1}}, 3, GW_PROTOCOL},
		{{{0, UINT32_MAX}, {1, 4}}, 0, GW_PROTOCOL}, /* 3 after an overflow of 32 bits */
		{{{0, 0}, {1, 3}}, 3, GW_OK},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t whole[WHOLE_MAX];
		struct gw_sample_arrays arrays;
		struct gw_sample_call call = good_call_with(3, &arrays), out;
		call.table_count = cases[i].table_count;
		arrays.runs = cases[i].runs;
		gw_sample_call_print(&call, &arrays, whole);
		assert_int_equal(gw_sample_call_parse(whole, gw_sample_call_bytes(&call), 4, &out, &arrays),
				 cases[i].status);
	}
}

/* --- Replies. --- */

struct reply {
	struct gw_vec bytes;
	size_t used;
};

/* n destinations with 0 to 6 picks each, from the seed. */
static void make_picks(struct gw_picks *picks, uint64_t seed, uint64_t n, uint32_t id_bytes)
{
	uint64_t top = id_bytes == 4 ? UINT32_MAX : UINT64_MAX;
	memset(picks, 0, sizeof(*picks));
	picks->dst_count = n;
	assert_int_equal(gw_vec_reserve(&picks->counts, n * 4 + 4), GW_OK);
	assert_int_equal(gw_vec_reserve(&picks->positions, n * 6 * 8 + 8), GW_OK);
	assert_int_equal(gw_vec_reserve(&picks->neighbours, n * 6 * 8 + 8), GW_OK);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t count = (uint32_t)(gw_mix64(seed + i) % 7);
		((uint32_t *)picks->counts.data)[i] = count;
		for (uint32_t j = 0; j < count; j++) {
			uint64_t at = picks->edge_count++;
			((uint64_t *)picks->positions.data)[at] = gw_mix64(seed * 7 + at) & top;
			((uint64_t *)picks->neighbours.data)[at] = gw_mix64(seed * 11 + at) & top;
		}
	}
}

static void print_run(struct reply *reply, const struct gw_picks *picks, struct gw_sample_form form)
{
	size_t bytes = gw_sample_run_bytes(picks->dst_count, picks->edge_count, form);
	assert_int_equal(bytes % 8, 0);
	assert_int_equal(gw_vec_reserve(&reply->bytes, reply->used + bytes), GW_OK);
	gw_sample_run_print(picks, form, (uint8_t *)reply->bytes.data + reply->used);
	reply->used += bytes;
}

static const struct gw_sample_form whole_form = {.id_bytes = 4};

static gw_status parse_reply_of(const struct reply *reply, bool no_edges, size_t bytes, uint32_t rows_max,
				struct gw_picks *out, uint32_t *answered)
{
	uint8_t *exact = malloc(bytes ? bytes : 1);
	memcpy(exact, reply->bytes.data, bytes);
	gw_status status = gw_sample_reply_parse(exact, bytes, rows_max, no_edges, out, answered);
	free(exact);
	return status;
}

static gw_status parse_reply(const struct reply *reply, size_t bytes, uint32_t rows_max, struct gw_picks *out,
			     uint32_t *answered)
{
	return parse_reply_of(reply, false, bytes, rows_max, out, answered);
}

static void check_reply(struct gw_sample_form form)
{
	struct reply reply = {0};
	struct gw_picks sent[3], got = {0};
	static const uint64_t rows[] = {1, 0, 255};
	for (int i = 0; i < 3; i++) {
		make_picks(&sent[i], (uint64_t)i + form.id_bytes, rows[i], form.id_bytes);
		print_run(&reply, &sent[i], form);
	}
	uint32_t answered;
	assert_int_equal(parse_reply_of(&reply, form.no_edges, reply.used, ROWS, &got, &answered), GW_OK);
	assert_int_equal(answered, 256);
	/* A second reply is appended to the first. */
	assert_int_equal(parse_reply_of(&reply, form.no_edges, reply.used, ROWS, &got, &answered), GW_OK);
	assert_int_equal(answered, 256);
	assert_int_equal(got.dst_count, 512);
	uint64_t dst = 0, edge = 0;
	for (int i = 0; i < 6; i++) {
		const struct gw_picks *p = &sent[i % 3];
		assert_memory_equal((uint32_t *)got.counts.data + dst, p->counts.data, p->dst_count * 4);
		if (!form.no_edges)
			assert_memory_equal((uint64_t *)got.positions.data + edge, p->positions.data,
					    p->edge_count * 8);
		assert_memory_equal((uint64_t *)got.neighbours.data + edge, p->neighbours.data, p->edge_count * 8);
		dst += p->dst_count;
		edge += p->edge_count;
	}
	assert_int_equal(got.edge_count, edge);
	assert_int_equal(got.positions.data == NULL, form.no_edges);
	/* One row more than was asked for. */
	assert_int_equal(parse_reply_of(&reply, form.no_edges, reply.used, 255, &got, &answered), GW_PROTOCOL);
	for (int i = 0; i < 3; i++)
		gw_picks_free(&sent[i]);
	gw_picks_free(&got);
	gw_vec_free(&reply.bytes);
}

static void replies_come_back_as_they_were(void **state)
{
	(void)state;
	for (uint32_t id_bytes = 4; id_bytes <= 8; id_bytes += 4) {
		check_reply((struct gw_sample_form){id_bytes, false});
		check_reply((struct gw_sample_form){id_bytes, true});
	}
}

static void a_reply_cut_anywhere_is_refused(void **state)
{
	(void)state;
	struct reply reply = {0};
	struct gw_picks sent;
	make_picks(&sent, 5, 20, 4);
	print_run(&reply, &sent, whole_form);
	for (size_t n = 1; n < reply.used; n++) {
		struct gw_picks got = {0};
		uint32_t answered;
		assert_int_equal(parse_reply(&reply, n, ROWS, &got, &answered), GW_PROTOCOL);
		assert_int_equal(got.dst_count, 0);
		gw_picks_free(&got);
	}
	gw_picks_free(&sent);
	gw_vec_free(&reply.bytes);
}

static void a_run_that_lies_is_refused(void **state)
{
	(void)state;
	struct reply reply = {0};
	struct gw_picks sent, got = {0};
	make_picks(&sent, 6, 20, 4);
	print_run(&reply, &sent, whole_form);
	struct gw_sample_run *run = reply.bytes.data;
	const struct gw_sample_run good = *run;
	const struct gw_sample_run lies[] = {
		{good.dst_count, 3, good.edge_count},          {good.dst_count, 0, good.edge_count},
		{good.dst_count, UINT32_MAX, good.edge_count}, {good.dst_count + 1, 4, good.edge_count},
		{good.dst_count - 2, 4, good.edge_count},      {UINT32_MAX, 4, good.edge_count},
		{good.dst_count, 4, good.edge_count + 1},      {good.dst_count, 4, UINT64_MAX},
		{good.dst_count, 4, UINT64_MAX / 8},           {good.dst_count, 8, UINT64_MAX / 8 + 1},
	};
	uint32_t answered;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		*run = lies[i];
		assert_int_equal(parse_reply(&reply, reply.used, ROWS, &got, &answered), GW_PROTOCOL);
		assert_int_equal(got.dst_count, 0);
	}
	*run = good;
	uint32_t *counts = (uint32_t *)(run + 1);
	counts[3] += 1;
	assert_int_equal(parse_reply(&reply, reply.used, ROWS, &got, &answered), GW_PROTOCOL);
	counts[3] = UINT32_MAX;
	assert_int_equal(parse_reply(&reply, reply.used, ROWS, &got, &answered), GW_PROTOCOL);
	gw_picks_free(&sent);
	gw_picks_free(&got);
	gw_vec_free(&reply.bytes);
}

static gw_status parse_in_need(void *context)
{
	const struct reply *reply = context;
	struct gw_picks got = {0};
	uint32_t answered;
	gw_status status = gw_sample_reply_parse(reply->bytes.data, reply->used, ROWS, false, &got, &answered);
	gw_picks_free(&got);
	return status;
}

static void shortage_is_told(void **state)
{
	(void)state;
	struct reply reply = {0};
	struct gw_picks sent;
	make_picks(&sent, 7, 30, 8);
	print_run(&reply, &sent, (struct gw_sample_form){.id_bytes = 8});
	assert_true(gw_fault_each(parse_in_need, &reply) >= 3);
	gw_picks_free(&sent);
	gw_vec_free(&reply.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_checked),
		cmocka_unit_test(columns_are_checked),
		cmocka_unit_test(groups_are_checked),
		cmocka_unit_test(replies_come_back_as_they_were),
		cmocka_unit_test(a_reply_cut_anywhere_is_refused),
		cmocka_unit_test(a_run_that_lies_is_refused),
		cmocka_unit_test(shortage_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
