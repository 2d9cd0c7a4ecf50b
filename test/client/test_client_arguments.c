/* The library reads no argument for longer than the headers say. The tests overwrite and free all arguments when the
 * call has returned, or when its ticket has ended where the header says so. Results equal those of the same call with
 * arguments that stay, standalone and over servers. The address sanitizer finds reads that do not change a result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/client_paths.h"
#include "test/support/must.h"

#define SEEDS 120
#define LENT  32 /* pieces at once */

/* The arguments of a call. */
struct loan {
	void *pieces[LENT];
	size_t bytes[LENT];
	uint32_t count;
};

static void *lend(struct loan *loan, const void *from, size_t bytes)
{
	assert_true(loan->count < LENT);
	void *piece = calloc(1, bytes ? bytes : 1);
	if (bytes)
		memcpy(piece, from, bytes);
	loan->pieces[loan->count] = piece;
	loan->bytes[loan->count++] = bytes;
	return piece;
}

static char *lend_text(struct loan *loan, const char *text)
{
	return text ? lend(loan, text, strlen(text) + 1) : NULL;
}

static void take_back(struct loan *loan)
{
	while (loan->count > 0) {
		loan->count--;
		memset(loan->pieces[loan->count], 1, loan->bytes[loan->count]);
		free(loan->pieces[loan->count]);
	}
}

/* A spec and all that it points to, except reverse_ids, which must stay (edges.h). */
static struct gw_sample_spec *lend_spec(struct loan *loan, const struct gw_sample_spec *from)
{
	struct gw_sample_spec *spec = lend(loan, from, sizeof(*from));
	uint32_t types = !from->edges ? 0 : from->edge_type_count ? from->edge_type_count : 1;
	spec->fanouts = lend(loan, from->fanouts, from->hops * GW_FIXTURE_ETYPES * sizeof(*from->fanouts));
	spec->fetches = lend(loan, from->fetches, from->fetch_count * sizeof(*from->fetches));
	if (types == 0)
		return spec;
	struct gw_edge_seeds *edges = lend(loan, from->edges, types * sizeof(*edges));
	for (uint32_t i = 0; i < types; i++) {
		if (edges[i].negative_ids)
			edges[i].negative_ids = lend(loan, edges[i].negative_ids, edges[i].negative_id_count * 8);
	}
	spec->edges = edges;
	return spec;
}

static struct gw_seeds *lend_lists(struct loan *loan, const struct gw_seeds *from, uint32_t count)
{
	struct gw_seeds *lists = lend(loan, from, count * sizeof(*from));
	for (uint32_t i = 0; i < count; i++)
		lists[i].ids = lend(loan, from[i].ids, from[i].count * 8);
	return lists;
}

/* --- Opening. --- */

static struct gw_client *open_lent(const struct setup *setup, bool served, const char *driver)
{
	struct loan loan = {0};
	struct gw_client_options options = {
		.part_config = setup->fixture.folder, .order = "never", .neighbours = "reads", .job = "lent"};
	if (served) {
		options.transport = "tcp";
		options.tcp_driver = driver;
		options.server_count = setup->cluster.parts;
		const char **list = lend(&loan, setup->cluster.list, options.server_count * sizeof(*list));
		for (uint32_t i = 0; i < options.server_count; i++)
			list[i] = lend_text(&loan, list[i]);
		options.servers = list;
	}
	struct gw_client_options *lent = lend(&loan, &options, sizeof(options));
	lent->part_config = lend_text(&loan, options.part_config);
	lent->order = lend_text(&loan, options.order);
	lent->neighbours = lend_text(&loan, options.neighbours);
	lent->transport = lend_text(&loan, options.transport);
	lent->tcp_driver = lend_text(&loan, options.tcp_driver);
	lent->job = lend_text(&loan, options.job);
	struct gw_client *client = open_client(lent);
	take_back(&loan);
	return client;
}

/* --- Mini-batches. --- */

static uint64_t digest_and_release(struct gw_minibatch *batch)
{
	uint64_t digest = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);
	return digest;
}

static uint64_t sampled(struct gw_client *client, const struct gw_sample_spec *spec, const struct gw_seeds *lists,
			uint32_t count)
{
	struct gw_minibatch *batch;
	must(count ? gw_sample_lists(client, spec, 5, 6, lists, count, &batch)
		   : gw_sample(client, spec, 5, 6, lists->ids, lists->count, &batch));
	return digest_and_release(batch);
}

static uint64_t sampled_lent(struct gw_client *client, const struct gw_sample_spec *from, const struct gw_seeds *given,
			     uint32_t count)
{
	struct loan loan = {0};
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	struct gw_sample_spec *spec = lend_spec(&loan, from);
	struct gw_seeds *lists = lend_lists(&loan, given, count ? count : 1);
	must(count ? gw_sample_lists_start(client, spec, 5, 6, lists, count, &batch, &ticket)
		   : gw_sample_start(client, spec, 5, 6, lists->ids, lists->count, &batch, &ticket));
	take_back(&loan);
	must(gw_wait(ticket, -1));
	return digest_and_release(batch);
}

/* Two epochs, of seeds of one type or of lists. */
static void loaded(struct gw_client *client, const struct gw_sample_spec *from, const struct gw_seeds *given,
		   uint32_t count, bool lent, uint64_t *digests)
{
	struct loan loan = {0};
	struct gw_loader *loader;
	struct gw_loader_options *options = lend(&loan, &(struct gw_loader_options){0}, sizeof(*options));
	const struct gw_seeds *lists = lend_lists(&loan, given, count ? count : 1);
	*options = (struct gw_loader_options){
		.spec = *lend_spec(&loan, from), .batch_size = 7, .shuffle = true, .seed = 8, .depth = 3};
	options->lists = count ? lists : NULL;
	options->list_count = count;
	options->ids = count ? NULL : lists->ids;
	options->id_count = count ? 0 : lists->count;
	must(gw_loader_open(client, options, &loader));
	if (lent)
		take_back(&loan);
	uint64_t steps = gw_loader_steps(loader);
	for (uint64_t i = 0; i < 2 * steps; i++) {
		struct gw_minibatch *batch;
		gw_status status = gw_loader_next(loader, &batch, -1);
		if (status == GW_END)
			status = gw_loader_next(loader, &batch, -1);
		must(status);
		digests[i % 64] = digest_and_release(batch);
	}
	gw_loader_close(loader);
	take_back(&loan);
}

static void check_batches(struct gw_client *client, const struct gw_sample_spec *spec, const struct gw_seeds *lists,
			  uint32_t count)
{
	uint64_t expected[64] = {0}, found[64] = {0};
	assert_int_equal(sampled_lent(client, spec, lists, count), sampled(client, spec, lists, count));
	loaded(client, spec, lists, count, false, expected);
	loaded(client, spec, lists, count, true, found);
	assert_memory_equal(found, expected, sizeof(found));
}

static void check_all_batches(struct gw_client *client)
{
	static const int64_t few[] = {3, 5, 9, 12, 13};
	int64_t seeds[SEEDS], others[SEEDS / 2];
	struct plan plan;
	make_plan(client, &plan, false, false);
	for (int i = 0; i < SEEDS; i++)
		seeds[i] = (i * 7 + 3) % 50;
	for (int i = 0; i < SEEDS / 2; i++)
		others[i] = (i * 5 + 1) % 40;
	const struct gw_seeds nodes[] = {{.type = 0, .count = SEEDS, .ids = seeds},
					 {.type = 1, .count = SEEDS / 2, .ids = others}};
	check_batches(client, &plan.spec, nodes, 0);
	check_batches(client, &plan.spec, nodes, 2);
	const struct gw_edge_seeds edges[] = {{.etype = FIXTURE_WRITES,
					       .negatives = GW_NEGATIVES_DST,
					       .negatives_each = 2,
					       .negative_ids = few,
					       .negative_id_count = 5,
					       .no_true_edges = true,
					       .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE},
					      {.etype = FIXTURE_CITES,
					       .negatives = GW_NEGATIVES_SRC,
					       .negatives_each = 1,
					       .negative_ids = few,
					       .negative_id_count = 4}};
	const struct gw_seeds links[] = {{.type = FIXTURE_WRITES, .count = SEEDS, .ids = seeds},
					 {.type = FIXTURE_CITES, .count = SEEDS / 2, .ids = others}};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .edges = edges};
	check_batches(client, &spec, links, 0);
	spec.edge_type_count = 2;
	check_batches(client, &spec, links, 2);
}

/* --- Rows, edges, tensors. --- */

static const struct gw_tensor *create_lent(struct gw_client *client, const char *name)
{
	struct loan loan = {0};
	const struct gw_tensor *tensor;
	const struct gw_tensor_spec spec = {
		.dtype = GW_FLOAT32, .placement = GW_PLACE_STRIPED, .ndim = 2, .shape = {50, 3}};
	struct gw_tensor_spec *lent = lend(&loan, &spec, sizeof(spec));
	lent->name = lend_text(&loan, name);
	must(gw_tensor_create(client, lent, &tensor));
	take_back(&loan);
	assert_string_equal(tensor->name, name);
	return tensor;
}

/* Ids and rows are freed when their tickets have ended, the optimizer at once. */
static void check_rows(struct gw_client *client, const struct gw_tensor *tensor)
{
	static const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	static const int64_t ids[] = {4, 49, 4, 0};
	float rows[4][3];
	for (int i = 0; i < 12; i++)
		rows[i / 3][i % 3] = (float)(i + 1);
	struct loan loans[3] = {0}, optimizer = {0};
	struct gw_ticket *tickets[3];
	must(gw_update_start(client, tensor, lend(&loans[0], ids, 32), 4, lend(&loans[0], rows, 48), &tickets[0]));
	must(gw_push_start(client, tensor, lend(&loans[1], ids, 32), 4, lend(&loans[1], rows, 48),
			   lend(&optimizer, &add, sizeof(add)), &tickets[1]));
	take_back(&optimizer);
	for (int i = 0; i < 2; i++) {
		must(gw_wait(tickets[i], -1));
		take_back(&loans[i]);
	}
	float found[4][3];
	must(gw_gather_start(client, tensor, lend(&loans[2], ids, 32), 4, found, &tickets[2]));
	must(gw_wait(tickets[2], -1));
	take_back(&loans[2]);
	for (int c = 0; c < 3; c++) {
		assert_true(found[0][c] == rows[2][c] + rows[0][c] + rows[2][c] && found[2][c] == found[0][c]);
		assert_true(found[1][c] == 2 * rows[1][c] && found[3][c] == 2 * rows[3][c]);
	}
}

/* A cancelled operation no longer reads its arguments and writes nothing. */
static void check_cancelled(struct gw_client *client, const struct gw_tensor *tensor)
{
	static const int64_t ids[] = {1, 2, 3};
	static const float rows[9] = {0};
	static const struct gw_optimizer optimizer = {.kind = GW_SGD};
	struct loan loan = {0};
	struct gw_ticket *tickets[5];
	struct gw_edge_list *list;
	must(gw_update_start(client, tensor, lend(&loan, ids, 24), 3, lend(&loan, rows, 36), &tickets[0]));
	must(gw_push_start(client, tensor, lend(&loan, ids, 24), 3, lend(&loan, rows, 36), &optimizer, &tickets[1]));
	must(gw_gather_start(client, tensor, lend(&loan, ids, 24), 3, lend(&loan, rows, 36), &tickets[2]));
	must(gw_find_edges_start(client, FIXTURE_CITES, lend(&loan, ids, 24), 3, lend(&loan, ids, 24),
				 lend(&loan, ids, 24), &tickets[3]));
	must(gw_edge_ids_start(client, FIXTURE_CITES, lend(&loan, ids, 24), lend(&loan, ids, 24), 3, &list,
			       &tickets[4]));
	for (int i = 0; i < 5; i++)
		gw_cancel(tickets[i]);
	take_back(&loan);
	must(gw_flush(client));
}

static void check_neighbours(struct gw_client *client)
{
	static const int64_t ids[] = {7, 0, 7, 11};
	const struct gw_neighbours_spec specs[] = {{.etype = FIXTURE_CITES, .direction = GW_IN, .fanout = 3},
						   {.etype = FIXTURE_WRITES, .direction = GW_OUT, .fanout = 2}};
	for (int i = 0; i < 2; i++) {
		struct loan spec = {0}, asked = {0};
		struct gw_edge_list *expected, *found;
		struct gw_ticket *ticket;
		must(gw_neighbours(client, &specs[i], 3, 4, ids, 4, &expected));
		must(gw_neighbours_start(client, lend(&spec, &specs[i], sizeof(specs[i])), 3, 4,
					 lend(&asked, ids, sizeof(ids)), 4, &found, &ticket));
		take_back(&spec);
		must(gw_wait(ticket, -1));
		take_back(&asked);
		assert_int_equal(found->edge_count, expected->edge_count);
		assert_memory_equal(found->offsets, expected->offsets, 5 * 8);
		assert_memory_equal(found->src, expected->src, found->edge_count * 8);
		assert_memory_equal(found->dst, expected->dst, found->edge_count * 8);
		assert_memory_equal(found->edge_ids, expected->edge_ids, found->edge_count * 8);
		gw_edge_list_free(expected);
		gw_edge_list_free(found);
	}
}

static void check_saved_in_the_background(struct gw_client *client, const char *folder)
{
	struct loan loan = {0};
	struct gw_ticket *ticket;
	const struct gw_checkpoint_options from = {.name_count = 1};
	struct gw_checkpoint_options *options = lend(&loan, &from, sizeof(from));
	const char **names = lend(&loan, &(const char *){NULL}, sizeof(*names));
	names[0] = lend_text(&loan, "one");
	options->names = names;
	must(gw_checkpoint_start(client, lend_text(&loan, folder), options, &ticket));
	take_back(&loan);
	must(gw_wait(ticket, -1));
	must(gw_tensor_delete(client, "one", GW_OF_JOB));
	must(gw_restore(client, folder, NULL, 0));
	const struct gw_tensor *tensor;
	must(gw_tensor_open(client, lend_text(&loan, "one"), GW_OF_JOB, &tensor));
	take_back(&loan);
	check_rows(client, tensor);
	must(gw_remove_tree(folder));
}

static void check_client(struct gw_client *client, const char *root)
{
	char folder[128];
	snprintf(folder, sizeof(folder), "%s/saved", root);
	check_all_batches(client);
	check_neighbours(client);
	const struct gw_tensor *one = create_lent(client, "one"), *two = create_lent(client, "two");
	check_rows(client, one);
	check_cancelled(client, two);
	check_saved_in_the_background(client, folder);
	must(gw_tensor_delete(client, "two", GW_OF_JOB));
	float row[3];
	expect(gw_gather(client, two, &(int64_t){0}, 1, row), GW_NOT_FOUND, "two");
	must(gw_tensor_delete(client, "one", GW_OF_JOB));
}

static void no_argument_is_read_after_its_call(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 61, 2, NULL);
	static const char *const drivers[] = {"epoll", "auto"};
	for (int way = 0; way < 3; way++) {
		struct gw_client *client = open_lent(&setup, way > 0, way ? drivers[way - 1] : NULL);
		check_client(client, setup.fixture.root);
		if (way == 1) { /* the client finds a restarted server by its own copy of the address */
			cluster_kill(&setup.cluster, 1);
			cluster_revive(&setup.cluster, 1);
			check_client(client, setup.fixture.root);
		}
		gw_client_close(client);
	}
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_argument_is_read_after_its_call)};
	return cmocka_run_group_tests_name("client arguments", tests, NULL, NULL);
}
