/* The server's answers to subgraph requests equal those from the edge list of the graph, however little room a reply
 * has and however often slices end. Also sections that do not add up, and rows and sources that do not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "protocol/subgraph_call.h"
#include "test/support/server_bed.h"

#define SECTIONS 3
#define SRCS     60
#define DSTS     400

/* A request of sections of as many sources each, ascending, and destinations. */
struct request {
	struct gw_subgraph_call head;
	struct gw_subgraph_section sections[SECTIONS];
	uint32_t dsts[SECTIONS * DSTS], srcs[SECTIONS * SRCS];
};

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void request_make(const struct server_bed *bed, uint32_t etype, struct request *request)
{
	const struct gw_graph_meta *meta = bed->fixture.schema;
	uint64_t srcs = meta->ntypes[meta->etypes[etype].src].count, dsts = meta->ntypes[meta->etypes[etype].dst].count;
	memset(request, 0, sizeof(*request));
	request->head = (struct gw_subgraph_call){.etype = etype, .section_count = SECTIONS, .id_bytes = 4};
	for (uint32_t s = 0; s < SECTIONS; s++) {
		uint32_t *ids = request->srcs + request->head.src_count, n = 0;
		for (uint32_t i = 0; i < SRCS; i++)
			ids[i] = (uint32_t)(gw_mix64(s * SRCS + i) % (i % 2 ? srcs : srcs / 20 + 1));
		qsort(ids, SRCS, sizeof(*ids), by_id);
		for (uint32_t i = 0; i < SRCS; i++) {
			if (!n || ids[n - 1] != ids[i])
				ids[n++] = ids[i];
		}
		for (uint32_t i = 0; i < DSTS; i++)
			request->dsts[s * DSTS + i] =
				(uint32_t)(gw_mix64(s * DSTS + i) % (i % 2 ? dsts : dsts / 20 + 1));
		request->sections[s] = (struct gw_subgraph_section){DSTS, n};
		request->head.dst_count += DSTS;
		request->head.src_count += n;
	}
}

/* The completion's reply is valid until the next request. */
static struct gw_completion ask(const struct server_bed *bed, const struct request *request, uint8_t **call)
{
	size_t bytes = gw_subgraph_call_bytes(&request->head);
	struct gw_subgraph_arrays arrays;
	*call = calloc(1, bytes);
	memcpy(*call, &request->head, sizeof(request->head));
	gw_subgraph_call_arrays(&request->head, *call, &arrays);
	memcpy(*call + sizeof(request->head), request->sections, sizeof(request->sections));
	memcpy(*call + (arrays.dsts - *call), request->dsts, request->head.dst_count * sizeof(uint32_t));
	memcpy(*call + (arrays.srcs - *call), request->srcs, request->head.src_count * sizeof(uint32_t));
	assert_int_equal(
		gw_endpoint_request(bed->endpoint, GW_OP_SUBGRAPH, 0, *call, (uint32_t)bytes, GW_NO_DEADLINE, *call),
		GW_OK);
	return server_bed_await(bed->group, *call);
}

/* --- Answers. --- */

/* What is found, and where the next edge is looked for. */
struct walk {
	const struct gw_fixture_edges *edges;
	const struct request *request;
	uint32_t dst, section, section_begin, src_begin;
	uint64_t at; /* the next edge of dst, or UINT64_MAX: its first */
	uint64_t found;
};

static bool walk_next(struct walk *walk, struct gw_subgraph_edge *edge)
{
	const struct request *request = walk->request;
	for (; walk->dst < request->head.dst_count; walk->dst++, walk->at = UINT64_MAX) {
		const struct gw_subgraph_section *section = &request->sections[walk->section];
		if (walk->dst >= walk->section_begin + section->dst_count) {
			walk->section_begin += section->dst_count;
			walk->src_begin += section->src_count;
			section = &request->sections[++walk->section];
		}
		uint64_t row = request->dsts[walk->dst];
		walk->at = walk->at == UINT64_MAX ? walk->edges->indptr[row] : walk->at;
		for (; walk->at < walk->edges->indptr[row + 1]; walk->at++) {
			const uint32_t *srcs = request->srcs + walk->src_begin,
				       id = (uint32_t)walk->edges->src[walk->at];
			const uint32_t *place = bsearch(&id, srcs, section->src_count, sizeof(id), by_id);
			if (!place)
				continue;
			*edge = (struct gw_subgraph_edge){walk->dst, (uint32_t)(place - srcs), walk->at++};
			return true;
		}
	}
	return false;
}

static gw_status take(void *context, uint32_t section, const struct gw_subgraph_edge *edge)
{
	struct walk *walk = context;
	struct gw_subgraph_edge wanted = {0};
	assert_true(walk_next(walk, &wanted));
	assert_int_equal(section, walk->section);
	assert_int_equal(edge->dst, wanted.dst);
	assert_int_equal(edge->src, wanted.src);
	assert_int_equal(edge->position, wanted.position);
	walk->found++;
	return GW_OK;
}

/* Returns the number of replies. */
static uint64_t check_all_edges(const struct server_bed *bed, uint32_t etype, uint32_t room)
{
	struct request request;
	struct gw_subgraph_edge none;
	uint64_t replies = 0;
	request_make(bed, etype, &request);
	request.head.reply_bytes_max = (uint32_t)sizeof(struct gw_subgraph_reply) + GW_SUBGRAPH_EDGE_MAX + room;
	struct walk walk = {.edges = &bed->fixture.edges[etype], .request = &request, .at = UINT64_MAX};
	for (; request.head.first < request.head.dst_count; replies++) {
		struct gw_subgraph_arrays arrays;
		struct gw_subgraph_reply reply;
		uint8_t *call;
		struct gw_completion answer = ask(bed, &request, &call);
		assert_int_equal(answer.status, GW_OK);
		assert_true(answer.reply_bytes <= request.head.reply_bytes_max);
		gw_subgraph_call_arrays(&request.head, call, &arrays);
		assert_int_equal(gw_subgraph_reply_parse(answer.reply, answer.reply_bytes, &request.head, &arrays,
							 walk.edges->count, take, &walk, &reply, &request.head.from),
				 GW_OK);
		request.head.first = reply.answered;
		free(call);
	}
	assert_false(walk_next(&walk, &none));
	assert_true(walk.found > 100);
	return replies;
}

static void answers_are_those_of_the_edge_list(void **state)
{
	(void)state;
	struct server_bed bed;
	struct gw_service_counters counters;
	server_bed_begin(&bed, 8, 700);
	for (uint32_t etype = 0; etype < GW_FIXTURE_ETYPES; etype++) {
		assert_true(check_all_edges(&bed, etype, 0) > 100);
		assert_true(check_all_edges(&bed, etype, 7) > 50);
		assert_true(check_all_edges(&bed, etype, 100) > 3);
		assert_int_equal(check_all_edges(&bed, etype, 100000), 1);
	}
	gw_service_counters(bed.server->service, &counters);
	assert_true(counters.deferred > 0); /* the handler was interrupted */
	server_bed_end(&bed);
}

/* --- Refusals. --- */

static gw_status status_of(const struct server_bed *bed, const struct request *request)
{
	uint8_t *call;
	gw_status status = ask(bed, request, &call).status;
	free(call);
	return status;
}

static void wrong_requests_are_refused(void **state)
{
	(void)state;
	struct server_bed bed;
	struct request good, request;
	server_bed_begin(&bed, 9, 100);
	request_make(&bed, FIXTURE_CITES, &good);
	good.head.reply_bytes_max = 1000;
	assert_int_equal(status_of(&bed, &good), GW_OK);
	request = good;
	request.dsts[0] = 100;
	assert_int_equal(status_of(&bed, &request), GW_RANGE);
	request = good;
	request.dsts[2 * DSTS] = UINT32_MAX;
	request.head.first = 2 * DSTS;
	assert_int_equal(status_of(&bed, &request), GW_RANGE);
	request = good;
	request.srcs[1] = request.srcs[0];
	assert_int_equal(status_of(&bed, &request), GW_PROTOCOL);
	request = good;
	request.sections[1].dst_count++;
	assert_int_equal(status_of(&bed, &request), GW_PROTOCOL);
	request = good;
	request.sections[2].src_count += request.sections[1].src_count;
	request.sections[1].src_count = 0;
	assert_int_equal(status_of(&bed, &request), GW_PROTOCOL);
	request = good;
	request.head.zero = 1; /* a later version's */
	assert_int_equal(status_of(&bed, &request), GW_PROTOCOL);
	request = good;
	request.head.etype = 99;
	assert_int_equal(status_of(&bed, &request), GW_RANGE);
	/* Sources that do not exist have no edges. */
	request = good;
	request.srcs[good.head.src_count - 1] = UINT32_MAX;
	assert_int_equal(status_of(&bed, &request), GW_OK);
	request = good;
	request.head.from = UINT64_MAX;
	assert_int_equal(status_of(&bed, &request), GW_OK);
	server_bed_end(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_those_of_the_edge_list),
		cmocka_unit_test(wrong_requests_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
