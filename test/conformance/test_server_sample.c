/* The server's answers to sample requests equal, byte by byte, a plain loop that picks and prints run by run, however
 * often the handler is interrupted. A client with small requests is served while others ask for millions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "protocol/sample_call.h"
#include "sampler/columns.h"
#include "test/support/every_second.h"
#include "test/support/many.h"
#include "test/support/server_bed.h"
#include "test/support/transport_bed.h"
#include "test/support/uniform_picks.h"

#define REPLY_BYTES_MAX (16u << 20)
#define SLICE_WORK      8192u /* as in server/answer_sample.c */

static uint8_t *make_call(struct gw_sample_call head, uint32_t rows_max, size_t *bytes)
{
	*bytes = sizeof(head) + head.row_count * 4ull;
	uint8_t *call = malloc(*bytes);
	assert_non_null(call);
	head.sampler_version = GW_SAMPLER_VERSION;
	memcpy(call, &head, sizeof(head));
	for (uint32_t i = 0; i < head.row_count; i++) {
		uint32_t row = (uint32_t)(gw_mix64(i ^ head.key) % rows_max);
		memcpy(call + sizeof(head) + i * 4ull, &row, 4);
	}
	return call;
}

/* --- The plain loop. --- */

struct reply {
	uint8_t *bytes;
	size_t n;
};

static uint64_t picks_of(const struct gw_adjacency *adjacency, const struct gw_pick_rule *rule, uint32_t row)
{
	uint64_t begin, end;
	gw_adjacency_list(adjacency, row, &begin, &end);
	return gw_pick_count(rule, end - begin);
}

static struct reply expected(const struct server_bed *bed, const uint8_t *call)
{
	struct gw_sample_call head;
	memcpy(&head, call, sizeof(head));
	const uint32_t *rows = (const void *)(call + sizeof(head));
	const struct gw_adjacency *adjacency = gw_part_adjacency(bed->server->part, head.etype);
	const struct gw_pick_rule rule = {
		.key = head.key, .fanout = head.fanout, .replace = head.flags & GW_SAMPLE_REPLACE};
	const struct gw_sample_form form = {.id_bytes =
						    adjacency->index_bytes == 8 || adjacency->indptr_bytes == 8 ? 8 : 4,
					    .no_edges = head.flags & GW_SAMPLE_NO_EDGES};
	size_t room = head.reply_bytes_max < REPLY_BYTES_MAX ? head.reply_bytes_max : REPLY_BYTES_MAX;
	struct reply reply = {.bytes = malloc(room + 1)};
	struct gw_picks picks = {0};
	for (uint32_t i = 0, n = 0, wanted = 0; i < head.row_count && n == wanted; i += n) {
		uint64_t vertices[GW_SAMPLE_RUN_ROWS], edges = 0;
		wanted = head.row_count - i < GW_SAMPLE_RUN_ROWS ? head.row_count - i : GW_SAMPLE_RUN_ROWS;
		for (n = 0; n < wanted; n++) {
			edges += picks_of(adjacency, &rule, rows[i + n]);
			if (reply.n + gw_sample_run_bytes(n + 1, edges, form) > room)
				break;
			vertices[n] = adjacency->dst_start + rows[i + n];
		}
		if (n == 0)
			break;
		assert_int_equal(uniform_from_memory(&picks, adjacency, &rule, vertices, n), GW_OK);
		gw_sample_run_print(&picks, form, reply.bytes + reply.n);
		reply.n += gw_sample_run_bytes(n, picks.edge_count, form);
	}
	gw_picks_free(&picks);
	return reply;
}

static void answers_do_not_depend_on_slices(void **state)
{
	(void)state;
	static const int32_t fanouts[] = {
		0, 1, 15, 32, 33, 64, 65, 200, 5000, 8192, 8193, 70000, GW_FANOUT_MAX, GW_FANOUT_ALL};
	static const uint32_t counts[] = {0, 1, 2, 255, 256, 257, 1000, GW_SAMPLE_ROWS_MAX};
	static const uint32_t rooms[] = {0, 1000, 100000, 4u << 20, UINT32_MAX};
	struct server_bed bed;
	struct gw_service_counters counters;
	const size_t step = 16 / gw_many(16) * gw_many_step();
	server_bed_begin(&bed, 7, 3000);
	for (uint32_t etype = 0; etype < GW_FIXTURE_ETYPES; etype++)
		for (size_t f = 0; f < sizeof(fanouts) / sizeof(fanouts[0]); f++)
			for (size_t i = (f + etype) % step; i < 16; i += step) {
				const struct gw_adjacency *adjacency = gw_part_adjacency(bed.server->part, etype);
				struct gw_sample_call head = {.etype = etype,
							      .key = gw_mix64(i + 99 * f),
							      .fanout = fanouts[f],
							      .kind = gw_sample_uniform.number,
							      .flags = (i % 2 ? GW_SAMPLE_REPLACE : 0u) |
								       (f % 2 ? GW_SAMPLE_NO_EDGES : 0u),
							      .row_count = counts[(i / 2 + f) % 8],
							      .reply_bytes_max = rooms[(i + f + etype) % 5]};
				size_t n;
				uint8_t *call = make_call(head, (uint32_t)adjacency->rows, &n);
				assert_int_equal(gw_endpoint_request(bed.endpoint, GW_OP_SAMPLE, 0, call, (uint32_t)n,
								     GW_NO_DEADLINE, call),
						 GW_OK);
				struct gw_completion answer = server_bed_await(bed.group, call);
				struct reply wanted = expected(&bed, call);
				assert_int_equal(answer.status, GW_OK);
				assert_int_equal(answer.reply_bytes, wanted.n);
				if (wanted.n)
					assert_memory_equal(answer.reply, wanted.bytes, wanted.n);
				free(wanted.bytes);
				free(call);
			}
	gw_service_counters(bed.server->service, &counters);
	assert_true(counters.deferred > 1000 / step);
	assert_int_equal(counters.reply_bytes, 0);
	server_bed_end(&bed);
}

static uint32_t longest_list(const struct gw_adjacency *adjacency, uint64_t *degree)
{
	uint32_t longest = 0;
	*degree = 0;
	for (uint32_t row = 0; row < adjacency->rows; row++) {
		uint64_t begin, end;
		gw_adjacency_list(adjacency, row, &begin, &end);
		if (end - begin > *degree) {
			*degree = end - begin;
			longest = row;
		}
	}
	return longest;
}

static gw_status ask_for_columns(const struct server_bed *bed, struct gw_sample_call head,
				 const struct gw_sample_column *columns, uint32_t count, char *text)
{
	static const uint32_t rows[] = {0, 1};
	struct gw_sample_arrays arrays = {.rows = rows};
	uint8_t call[2048];
	head.sampler_version = GW_SAMPLER_VERSION;
	head.fanout = 2;
	head.row_count = 2;
	head.reply_bytes_max = 1u << 20;
	for (uint32_t i = 0; i < count; i++)
		gw_sample_call_add_column(&head, &arrays, columns[i].number, columns[i].name);
	uint32_t bytes = (uint32_t)gw_sample_call_bytes(&head);
	assert_true(bytes <= sizeof(call));
	gw_sample_call_print(&head, &arrays, call);
	assert_int_equal(gw_endpoint_request(bed->endpoint, GW_OP_SAMPLE, 0, call, bytes, GW_NO_DEADLINE, call), GW_OK);
	struct gw_completion answer = server_bed_await(bed->group, call);
	snprintf(text, GW_ERROR_TEXT_MAX, "%s", answer.status == GW_OK ? "" : answer.text);
	return answer.status;
}

/* A request names exactly the columns that its kind draws with. */
static void other_columns_are_refused(void **state)
{
	(void)state;
	char longest[GW_COLUMN_NAME_MAX + 2], text[GW_ERROR_TEXT_MAX];
	memset(longest, 'w', sizeof(longest) - 1);
	longest[GW_COLUMN_NAME_MAX + 1] = 0;
	const struct gw_sample_column weight = {GW_COLUMN_WEIGHT, "weight"}, time = {GW_COLUMN_TIME, "weight"};
	const struct {
		uint32_t kind, count;
		struct gw_sample_column columns[2];
		gw_status status;
		const char *says;
	} cases[] = {
		{GW_KIND_UNIFORM, 0, {{0}}, GW_OK, ""},
		{GW_KIND_WEIGHTED, 1, {weight}, GW_OK, ""},
		{GW_KIND_UNIFORM, 1, {weight}, GW_PROTOCOL, "kind uniform with columns 0x2: it draws with 0x0"},
		{GW_KIND_WEIGHTED, 0, {{0}}, GW_PROTOCOL, "kind weighted with columns 0x0: it draws with 0x2"},
		{GW_KIND_WEIGHTED, 1, {time}, GW_PROTOCOL, "kind weighted with columns 0x8"},
		{GW_KIND_WEIGHTED, 2, {weight, time}, GW_PROTOCOL, "kind weighted with columns 0xa"},
		{GW_KIND_WEIGHTED, 1, {{GW_COLUMN_ALIAS, "weight"}}, GW_UNSUPPORTED, "column 0: this server does not"},
		{GW_KIND_WEIGHTED, 1, {{GW_COLUMN_IDS, "weight"}}, GW_UNSUPPORTED, "column 4: this server does not"},
		{GW_KIND_WEIGHTED, 1, {{900, "weight"}}, GW_UNSUPPORTED, "column 900: this server does not"},
		{GW_KIND_WEIGHTED, 1, {{UINT32_MAX, "weight"}}, GW_UNSUPPORTED, "column 4294967295: this server"},
		{GW_KIND_WEIGHTED, 1, {{GW_COLUMN_WEIGHT, "absent"}}, GW_NOT_FOUND, "no feature \"absent\""},
		{GW_KIND_WEIGHTED, 1, {{GW_COLUMN_WEIGHT, longest}}, GW_PROTOCOL, "weight's name of 72 bytes"},
		{GW_KIND_TEMPORAL, 1, {weight}, GW_PROTOCOL, "kind temporal with columns 0x2: it draws with 0x48"},
		{GW_KIND_LAST, 1, {{GW_COLUMN_END, "year"}}, GW_PROTOCOL, "kind last with columns 0x40"},
		{GW_KIND_TEMPORAL, 1, {{GW_COLUMN_FENCE, "year"}}, GW_UNSUPPORTED, "column 5: this server does not"},
		{GW_KIND_TEMPORAL, 1, {{GW_COLUMN_TIME, "year"}}, GW_INVALID, "drawn by time, which needs a value"},
		{GW_KIND_LAST, 2, {{GW_COLUMN_TIME, "year"}, {GW_COLUMN_END, "year"}}, GW_INVALID, "needs a value"},
		{77, 1, {weight}, GW_UNSUPPORTED, "kind 77: this server does not know it"},
	};
	struct server_bed bed;
	struct gw_sampling_kind valued = sample_every_second;
	valued.valued = true;
	valued.how = "by value";
	gw_sampling_kind_try(&valued); /* while the server's threads run, none may change the table */
	server_bed_begin(&bed, 7, 300);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gw_sample_call head = {.etype = FIXTURE_CITES, .kind = cases[i].kind};
		assert_int_equal(ask_for_columns(&bed, head, cases[i].columns, cases[i].count, text), cases[i].status);
		if (!strstr(text, cases[i].says))
			fail_msg("case %zu says \"%s\"", i, text);
	}
	const struct gw_sample_call without_values = {.etype = FIXTURE_CITES, .kind = valued.number};
	assert_int_equal(ask_for_columns(&bed, without_values, &weight, 1, text), GW_INVALID);
	assert_non_null(strstr(text, "drawn by value, which needs a value for each seed"));
	const struct gw_sample_call by_source = {
		.etype = FIXTURE_WRITES, .kind = GW_KIND_WEIGHTED, .flags = GW_SAMPLE_BY_SOURCE};
	assert_int_equal(ask_for_columns(&bed, by_source, &weight, 1, text), GW_UNSUPPORTED);
	assert_non_null(strstr(text, "for out-edges: they have no columns"));
	server_bed_end(&bed);
	gw_sampling_kind_try(NULL);
}

/* A draw by a weight without a table reads complete lists. Not only picks end a slice, but also the entries that they
 * have needed. */
static void slices_end_after_so_many_entries(void **state)
{
	(void)state;
	struct server_bed bed;
	struct gw_service_counters before, after;
	struct gw_picks picks = {0};
	uint64_t degree;
	uint32_t answered;
	server_bed_begin(&bed, 7, 3000);
	const uint32_t row = longest_list(gw_part_adjacency(bed.server->part, FIXTURE_WRITES), &degree);
	struct gw_sample_call head = {.sampler_version = GW_SAMPLER_VERSION,
				      .etype = FIXTURE_WRITES,
				      .key = 5,
				      .fanout = 1,
				      .kind = gw_sample_weighted.number,
				      .row_count = GW_SAMPLE_ROWS_MAX,
				      .reply_bytes_max = UINT32_MAX};
	static uint32_t rows[GW_SAMPLE_ROWS_MAX];
	for (uint32_t i = 0; i < GW_SAMPLE_ROWS_MAX; i++)
		rows[i] = row;
	struct gw_sample_arrays arrays = {.rows = rows};
	gw_sample_call_add_column(&head, &arrays, GW_COLUMN_WEIGHT, "orig_id");
	uint32_t bytes = (uint32_t)gw_sample_call_bytes(&head);
	uint8_t *call = malloc(bytes);
	assert_non_null(call);
	gw_sample_call_print(&head, &arrays, call);
	gw_service_counters(bed.server->service, &before);
	assert_int_equal(gw_endpoint_request(bed.endpoint, GW_OP_SAMPLE, 0, call, bytes, GW_NO_DEADLINE, call), GW_OK);
	struct gw_completion answer = server_bed_await(bed.group, call);
	assert_int_equal(answer.status, GW_OK);
	assert_int_equal(
		gw_sample_reply_parse(answer.reply, answer.reply_bytes, GW_SAMPLE_ROWS_MAX, false, &picks, &answered),
		GW_OK);
	assert_int_equal(answered, GW_SAMPLE_ROWS_MAX);
	gw_service_counters(bed.server->service, &after);
	uint64_t slices = after.deferred - before.deferred + 1;
	assert_true(degree * GW_SAMPLE_RUN_ROWS > SLICE_WORK); /* so a slice is one run */
	assert_true(slices >= GW_SAMPLE_ROWS_MAX / GW_SAMPLE_RUN_ROWS);
	gw_picks_free(&picks);
	free(call);
	server_bed_end(&bed);
}

/* Each call of the light client waits for at most a slice of the heavy ones' work. It completes all its calls before
 * the heavy clients have got more than a small part of theirs. */
static void a_light_client_among_heavy_ones(void **state)
{
	(void)state;
	enum { HEAVY = 3 };
	const uint32_t each = gw_many(40), light = gw_many(400);
	struct server_bed bed;
	struct gw_poll_group *groups[HEAVY];
	struct gw_endpoint *heavy[HEAVY];
	struct gw_service_counters counters;
	size_t n;
	server_bed_begin(&bed, 7, 3000);
	struct gw_sample_call head = {.etype = FIXTURE_CITES,
				      .fanout = GW_FANOUT_MAX,
				      .kind = gw_sample_uniform.number,
				      .flags = GW_SAMPLE_REPLACE,
				      .row_count = 64,
				      .reply_bytes_max = UINT32_MAX};
	uint8_t *call = make_call(head, 3000, &n);
	for (int i = 0; i < HEAVY; i++) {
		groups[i] = server_bed_group();
		server_bed_join(&bed, groups[i], &heavy[i]);
		for (uint32_t c = 0; c < each; c++)
			assert_int_equal(gw_endpoint_request(heavy[i], GW_OP_SAMPLE, 0, call, (uint32_t)n,
							     GW_NO_DEADLINE, heavy),
					 GW_OK);
		struct gw_completion first = server_bed_await(groups[i], heavy); /* and all have begun */
		assert_int_equal(first.status, GW_OK);
	}
	gw_service_counters(bed.server->service, &counters);
	uint64_t before = counters.requests;
	for (uint32_t i = 0; i < light; i++) {
		assert_int_equal(gw_endpoint_request(bed.endpoint, GW_OP_CATALOG, 0, "", 1, GW_NO_DEADLINE, &bed),
				 GW_OK);
		assert_int_equal(server_bed_await(bed.group, &bed).status, GW_OK);
		/* A heavy client reads its answers and sends new requests. */
		for (int h = 0; h < HEAVY; h++) {
			struct gw_completion completions[8];
			gw_poll_group_poll(groups[h], completions, 8, 0);
		}
	}
	gw_service_counters(bed.server->service, &counters);
	uint64_t long_calls = counters.requests - before - light;
	if (long_calls > light / 8)
		fail_msg("%llu long calls came between %u light ones", (unsigned long long)long_calls, light);
	free(call);
	for (int i = 0; i < HEAVY; i++) {
		gw_endpoint_close(heavy[i]);
		gw_poll_group_destroy(groups[i]);
	}
	server_bed_end(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_do_not_depend_on_slices),
		cmocka_unit_test(other_columns_are_refused),
		cmocka_unit_test(slices_end_after_so_many_entries),
		cmocka_unit_test(a_light_client_among_heavy_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
