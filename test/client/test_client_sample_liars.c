/* Servers that know the key, and answer sample requests with picks that the draw cannot have: too many, out of order,
 * repeated, of another part, with counts that do not add up. A client refuses each in one line, and believes the next
 * answer that is true. Alias tables that were spoiled after they were checked are refused as well, by the client that
 * reads them and by the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/ops.h"
#include "protocol/sample_call.h"
#include "test/support/client_setup.h"
#include "test/support/every_second.h"
#include "test/support/hop_ask.h"
#include "test/support/must.h"
#include "transport/service/service_backend.h"

#define NODES 40
#define NONE  UINT32_MAX

/* The arrays of a reply's first run. */
struct run_view {
	struct gw_sample_run head;
	uint8_t *bytes;
	uint32_t *counts, *edges, *neighbours;
	uint32_t row, first; /* the first row with two picks, and its first edge */
};

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) & ~7ull;
}

static void view_run(uint8_t *bytes, struct run_view *view)
{
	memcpy(&view->head, bytes, sizeof(view->head));
	assert_int_equal(view->head.id_bytes, 4);
	view->bytes = bytes;
	view->counts = (void *)(bytes + sizeof(view->head));
	view->edges = (void *)(bytes + sizeof(view->head) + padded(4ull * view->head.dst_count));
	view->neighbours = (void *)((uint8_t *)view->edges + padded(4 * view->head.edge_count));
	view->first = 0;
	for (view->row = 0; view->counts[view->row] < 2; view->row++)
		view->first += view->counts[view->row];
	assert_true(view->row + 1 < view->head.dst_count);
}

/* --- The lies. --- */

static void put_head(const struct run_view *view)
{
	memcpy(view->bytes, &view->head, sizeof(view->head));
}

/* The picks of the next row with some become picks of this row. */
static void pick_too_many(struct run_view *view)
{
	for (uint32_t i = view->row + 1; i < view->head.dst_count; i++) {
		view->counts[view->row] += view->counts[i];
		view->counts[i] = 0;
	}
}

static void turn_round(struct run_view *view)
{
	uint32_t kept = view->edges[view->first];
	view->edges[view->first] = view->edges[view->first + 1];
	view->edges[view->first + 1] = kept;
}

static void repeat(struct run_view *view)
{
	view->edges[view->first + 1] = view->edges[view->first];
}

static void leave_the_part(struct run_view *view)
{
	view->edges[view->first + view->counts[view->row] - 1] = UINT32_MAX;
}

static void leave_the_type(struct run_view *view)
{
	view->neighbours[view->first] = SETUP_SCALE;
}

static void count_one_more(struct run_view *view)
{
	view->counts[view->row]++;
}

static void claim_more_edges(struct run_view *view)
{
	view->head.edge_count += 2;
	put_head(view);
}

static void claim_all_edges(struct run_view *view)
{
	view->head.edge_count = UINT64_MAX / 8;
	put_head(view);
}

static void claim_more_rows(struct run_view *view)
{
	view->head.dst_count = NODES + 1;
	put_head(view);
}

static void use_odd_ids(struct run_view *view)
{
	view->head.id_bytes = 2;
	put_head(view);
}

static const struct lie {
	void (*apply)(struct run_view *view);
	const char *error;
	bool in_only;   /* ids of out-edges need not ascend */
	bool once_only; /* with replacement it may be true */
} lies[] = {
	{.apply = pick_too_many, .error = "neighbours at fanout"},
	{.apply = turn_round, .error = " after ", .in_only = true},
	{.apply = repeat, .error = " after ", .in_only = true, .once_only = true},
	{.apply = leave_the_part, .error = "picks position 4294967295 of"},
	{.apply = leave_the_type, .error = "has node"},
	{.apply = count_one_more, .error = "do not add up"},
	{.apply = claim_more_edges, .error = "sample reply"},
	{.apply = claim_all_edges, .error = "sample reply with a run of"},
	{.apply = claim_more_rows, .error = "sample reply with a run of"},
	{.apply = use_odd_ids, .error = "of 2 bytes"},
};
#define LIES (sizeof(lies) / sizeof(lies[0]))

struct sample_liar {
	gw_handler truth;
	void *context;
	_Atomic uint32_t lie; /* NONE: the truth */
};

static gw_status answer_sample_lie(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct sample_liar *liar = context;
	gw_status status = liar->truth(liar->context, call, reply);
	uint32_t lie = atomic_load(&liar->lie), bytes;
	if (status != GW_OK || lie == NONE)
		return status;
	struct run_view view;
	view_run(gw_reply_data(reply, &bytes), &view);
	lies[lie].apply(&view);
	return GW_OK;
}

static void liar_begin(const struct setup *setup, struct sample_liar *liar)
{
	struct gw_service *service = setup->cluster.servers[0]->service;
	liar->truth = service->handlers[GW_OP_SAMPLE].call;
	liar->context = service->handlers[GW_OP_SAMPLE].context;
	atomic_store(&liar->lie, NONE);
	service->handlers[GW_OP_SAMPLE].context = liar;
	service->handlers[GW_OP_SAMPLE].call = answer_sample_lie;
}

static gw_status ask_liar(struct gw_client *client, const struct gw_neighbours_spec *spec)
{
	int64_t ids[NODES];
	struct gw_edge_list *list = NULL;
	for (int64_t i = 0; i < NODES; i++)
		ids[i] = NODES - i;
	gw_status status = gw_neighbours(client, spec, 5, 6, ids, NODES, &list);
	assert_int_equal(status == GW_OK, list != NULL);
	gw_edge_list_free(list);
	return status;
}

static void expect_line(gw_status got, const char *error)
{
	expect(got, GW_PROTOCOL, error);
	assert_null(strchr(gw_last_error(), '\n'));
}

static void hear_each_lie(struct gw_client *client, struct sample_liar *liar, const struct gw_neighbours_spec *spec)
{
	bool repeats = spec->replace && spec->fanout != GW_ALL_NEIGHBOURS;
	must(ask_liar(client, spec));
	for (uint32_t i = 0; i < LIES; i++) {
		if (lies[i].in_only && spec->direction == GW_OUT)
			continue;
		if (lies[i].apply == pick_too_many && spec->fanout == GW_ALL_NEIGHBOURS)
			continue; /* the client does not know the degrees */
		atomic_store(&liar->lie, i);
		if (lies[i].once_only && repeats)
			must(ask_liar(client, spec));
		else if (lies[i].apply != turn_round || !repeats) /* with replacement both may be the same pick */
			expect_line(ask_liar(client, spec), lies[i].error);
		atomic_store(&liar->lie, NONE);
		must(ask_liar(client, spec));
	}
}

static void no_lie_about_picks_is_believed(void **state)
{
	(void)state;
	static const struct gw_sampling_kind *const kinds[] = {NULL, &gw_sample_weighted, &sample_every_second};
	static const int32_t fanouts[] = {3, 30, GW_ALL_NEIGHBOURS};
	struct setup setup;
	struct sample_liar liar;
	const struct gw_edge_columns *columns;
	gw_sampling_kind_try(&sample_every_second);
	setup_begin(&setup, 270, 1, NULL);
	liar_begin(&setup, &liar);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct gw_client_options options = {
			.servers = setup.cluster.list, .server_count = 1, .threads = 1, .neighbours = "requests"};
		struct gw_client *client = open_client(&options);
		if (kinds[k])
			must(hop_columns(client, FIXTURE_CITES, (struct gw_edge_rule){.weight = "weight"}, kinds[k],
					 &columns));
		for (uint32_t i = 0; i < 6; i++) {
			struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES,
							  .fanout = fanouts[i / 2],
							  .replace = i & 1,
							  .rule = {.weight = kinds[k] ? "weight" : NULL}};
			hear_each_lie(client, &liar, &spec);
			spec.etype = FIXTURE_WRITES;
			spec.direction = GW_OUT;
			if (!kinds[k])
				hear_each_lie(client, &liar, &spec);
		}
		gw_client_close(client);
	}
	setup_end(&setup);
	gw_sampling_kind_try(NULL);
}

/* Every draw takes the alias, which is past any list. No call runs meanwhile, which the thread sanitizer does not see.
 */
__attribute__((no_sanitize_thread)) static void spoil_table(const struct gw_array *table)
{
	volatile uint32_t *entries = (volatile uint32_t *)(uintptr_t)table->data;
	for (uint64_t i = 0; i < table->rows; i++) {
		entries[2 * i] = 0;
		entries[2 * i + 1] = 0x7fffffff;
	}
}

/* Files are checked as they are loaded; a peer's memory may say what it likes. */
static void spoiled_tables_are_refused(void **state)
{
	(void)state;
	static const char *const ways[] = {"reads", "requests"};
	for (size_t w = 0; w < 2; w++) {
		for (int replace = 0; replace < 2; replace++) {
			struct setup setup;
			setup_begin(&setup, 271, 1, NULL);
			const struct gw_array *table =
				gw_part_array(setup.cluster.servers[0]->part, "edge/paper__cites__paper/weight.alias");
			struct gw_client_options options = {
				.servers = setup.cluster.list, .server_count = 1, .threads = 1, .neighbours = ways[w]};
			struct gw_client *client = open_client(&options);
			const struct gw_neighbours_spec spec = {
				.etype = FIXTURE_CITES, .fanout = 4, .replace = replace, .rule = {.weight = "weight"}};
			must(ask_liar(client, &spec));
			spoil_table(table);
			gw_status status = ask_liar(client, &spec);
			assert_true(status == GW_RANGE || status == GW_PROTOCOL);
			assert_non_null(strstr(gw_last_error(), "alias table"));
			assert_null(strchr(gw_last_error(), '\n'));
			gw_client_close(client);
			setup_end(&setup);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_lie_about_picks_is_believed),
		cmocka_unit_test(spoiled_tables_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
