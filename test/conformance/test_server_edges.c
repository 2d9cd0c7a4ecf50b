/* The server's answers to edge requests equal those from the edge list of the graph, however little room a reply
 * has and however often slices end. Also questions about edges and sources that do not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "protocol/edge_call.h"
#include "protocol/ops.h"
#include "test/support/server_bed.h"

#define QUESTIONS 3000

/* Sends a request; the completion's reply is valid until the next one. */
static struct gw_completion ask(const struct server_bed *bed, struct gw_edge_call head, const uint64_t *numbers)
{
	size_t bytes = (size_t)head.count * gw_edge_call_width(head.ask) * 8;
	uint8_t *call = malloc(sizeof(head) + bytes);
	memcpy(call, &head, sizeof(head));
	memcpy(call + sizeof(head), numbers, bytes);
	assert_int_equal(gw_endpoint_request(bed->endpoint, GW_OP_EDGES, 0, call, (uint32_t)(sizeof(head) + bytes),
					     GW_NO_DEADLINE, call),
			 GW_OK);
	struct gw_completion answer = server_bed_await(bed->group, call);
	free(call);
	return answer;
}

static const uint8_t *parse(const struct server_bed *bed, const struct gw_completion *answer,
			    const struct gw_edge_call *head, struct gw_edge_reply *reply)
{
	const struct gw_graph_meta *meta = bed->fixture.schema;
	const struct gw_edge_type *type = &meta->etypes[head->etype];
	const struct gw_edge_bounds bounds = {
		.rows = meta->ntypes[type->dst].count, .edges = type->count, .sources = meta->ntypes[type->src].count};
	const uint8_t *numbers;
	assert_int_equal(answer->status, GW_OK);
	assert_int_equal(gw_edge_reply_parse(answer->reply, answer->reply_bytes, head, &bounds, reply, &numbers),
			 GW_OK);
	return numbers;
}

static void make_pairs(const struct server_bed *bed, uint32_t etype, uint64_t *numbers)
{
	const struct gw_graph_meta *meta = bed->fixture.schema;
	const struct gw_fixture_edges *edges = &bed->fixture.edges[etype];
	for (uint64_t i = 0; i < QUESTIONS; i++) {
		uint64_t edge = gw_mix64(i + etype) % edges->count;
		numbers[2 * i] = edges->dst[edge];
		numbers[2 * i + 1] =
			i % 4 ? edges->src[edge] : gw_mix64(i) % meta->ntypes[meta->etypes[etype].src].count;
	}
}

static uint64_t next_of_pair(const struct gw_fixture_edges *edges, const uint64_t *pair, uint64_t from)
{
	uint64_t begin = edges->indptr[pair[0]], end = edges->indptr[pair[0] + 1];
	for (uint64_t i = from > begin ? from : begin; i < end; i++) {
		if (edges->src[i] == pair[1])
			return i;
	}
	return UINT64_MAX;
}

static void check_ends_and_counts(const struct server_bed *bed, uint32_t etype)
{
	const struct gw_fixture_edges *edges = &bed->fixture.edges[etype];
	uint64_t numbers[2 * QUESTIONS];
	struct gw_edge_reply reply;
	struct gw_edge_call head = {
		.ask = GW_EDGE_ENDS, .etype = etype, .count = QUESTIONS, .reply_bytes_max = 1u << 20};
	for (uint64_t i = 0; i < QUESTIONS; i++)
		numbers[i] = gw_mix64(i) % edges->count;
	struct gw_completion answer = ask(bed, head, numbers);
	const uint8_t *got = parse(bed, &answer, &head, &reply);
	for (uint64_t i = 0; i < QUESTIONS; i++) {
		assert_int_equal(gw_edge_number(got, 2 * i), edges->dst[numbers[i]]);
		assert_int_equal(gw_edge_number(got, 2 * i + 1), edges->src[numbers[i]]);
	}
	make_pairs(bed, etype, numbers);
	head.ask = GW_EDGE_COUNTS;
	answer = ask(bed, head, numbers);
	got = parse(bed, &answer, &head, &reply);
	for (uint64_t i = 0; i < QUESTIONS; i++) {
		uint64_t n = 0, at = 0;
		while ((at = next_of_pair(edges, numbers + 2 * i, at)) != UINT64_MAX) {
			n++;
			at++;
		}
		assert_int_equal(gw_edge_number(got, i), n);
	}
}

static void check_ids_of_all_pairs(const struct server_bed *bed, uint32_t etype, uint32_t room)
{
	const struct gw_fixture_edges *edges = &bed->fixture.edges[etype];
	uint64_t numbers[2 * QUESTIONS], from = 0, replies = 0;
	make_pairs(bed, etype, numbers);
	for (uint32_t done = 0; done < QUESTIONS; replies++) {
		struct gw_edge_call head = {
			.ask = GW_EDGE_IDS, .etype = etype, .count = QUESTIONS - done, .from = from};
		struct gw_edge_reply reply;
		if (room < 100 && head.count > 40)
			head.count = 40; /* with more, a reply would be mostly zeros */
		head.reply_bytes_max = (uint32_t)gw_edge_reply_bytes(GW_EDGE_IDS, head.count) + room * 8 + 7;
		struct gw_completion answer = ask(bed, head, numbers + 2 * (size_t)done);
		const uint8_t *got = parse(bed, &answer, &head, &reply), *positions = got + head.count * 8ull;
		assert_true(reply.total <= room && reply.answered + reply.total > 0);
		for (uint32_t i = 0; i < reply.answered + reply.partial; i++) {
			const uint64_t *pair = numbers + 2 * (size_t)(done + i);
			uint64_t at = i == 0 ? from : 0;
			for (uint64_t n = gw_edge_number(got, i); n > 0; n--, positions += 8, at++) {
				at = next_of_pair(edges, pair, at);
				assert_int_equal(gw_edge_number(positions, 0), at);
			}
			if (i < reply.answered)
				assert_true(next_of_pair(edges, pair, at) == UINT64_MAX);
			from = i < reply.answered ? 0 : at;
		}
		if (!reply.partial && reply.answered)
			from = 0;
		done += reply.answered;
	}
	assert_true(room > 100 || replies > 10);
}

static void answers_are_those_of_the_edge_list(void **state)
{
	(void)state;
	struct server_bed bed;
	struct gw_service_counters counters;
	server_bed_begin(&bed, 8, 700);
	for (uint32_t etype = 0; etype < GW_FIXTURE_ETYPES; etype++) {
		check_ends_and_counts(&bed, etype);
		static const uint32_t rooms[] = {1, 2, 3, 7, 1000, 100000};
		for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
			check_ids_of_all_pairs(&bed, etype, rooms[i]);
	}
	gw_service_counters(bed.server->service, &counters);
	assert_true(counters.deferred > 8); /* the handler was interrupted */
	server_bed_end(&bed);
}

static void what_is_not_there_is_refused(void **state)
{
	(void)state;
	struct server_bed bed;
	server_bed_begin(&bed, 9, 100);
	uint64_t edges = bed.fixture.edges[FIXTURE_CITES].count, papers = bed.fixture.schema->ntypes[0].count;
	const uint64_t far[] = {edges, 0}, row[] = {papers, 0}, nobody[] = {0, UINT64_MAX};
	struct gw_edge_call head = {.ask = GW_EDGE_ENDS, .etype = FIXTURE_CITES, .count = 1, .reply_bytes_max = 1000};
	assert_int_equal(ask(&bed, head, far).status, GW_RANGE);
	head.ask = GW_EDGE_IDS;
	assert_int_equal(ask(&bed, head, row).status, GW_RANGE);
	head.ask = GW_EDGE_COUNTS;
	assert_int_equal(ask(&bed, head, row).status, GW_RANGE);
	/* A source that does not exist has no edges; no edge exists after the last position. */
	struct gw_edge_reply reply;
	struct gw_completion answer = ask(&bed, head, nobody);
	assert_int_equal(gw_edge_number(parse(&bed, &answer, &head, &reply), 0), 0);
	head.ask = GW_EDGE_IDS;
	head.from = UINT64_MAX;
	answer = ask(&bed, head, nobody);
	parse(&bed, &answer, &head, &reply);
	assert_int_equal(reply.answered, 1);
	head.etype = 99;
	assert_int_equal(ask(&bed, head, nobody).status, GW_RANGE);
	head.ask = 9;
	assert_int_equal(ask(&bed, head, nobody).status, GW_PROTOCOL);
	server_bed_end(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_those_of_the_edge_list),
		cmocka_unit_test(what_is_not_there_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
