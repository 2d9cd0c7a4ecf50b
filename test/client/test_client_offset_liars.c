/* Servers whose offsets are false: the range of a list or of a string ends before it begins, or beyond the bytes of its
 * part. Every call that reads offsets refuses them in one line, from a peer's answer as from a peer's mapped memory.
 * The widest range that fits is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "core/graph/part.h"
#include "core/numbers/rng.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS 2

/* A call that reads one range of a node, and gives its length. */
struct question {
	const char *key;  /* of the offsets */
	uint32_t ntype;   /* of the node */
	uint32_t column;  /* of the offsets' columns */
	const char *data; /* the array that the offsets are of */
	uint32_t etype;
	enum gw_direction direction;
	gw_status (*ask)(struct gw_client *client, const struct question *question, int64_t id, uint64_t *length);
};

static gw_status ask_degree(struct gw_client *client, const struct question *question, int64_t id, uint64_t *length)
{
	int64_t degree = 0;
	gw_status status = question->direction == GW_IN ? gw_degrees(client, question->etype, &id, 1, &degree)
							: gw_out_degrees(client, question->etype, &id, 1, &degree);
	*length = (uint64_t)degree;
	return status;
}

static gw_status ask_neighbours(struct gw_client *client, const struct question *question, int64_t id, uint64_t *length)
{
	const struct gw_neighbours_spec spec = {
		.etype = question->etype, .direction = question->direction, .fanout = GW_ALL_NEIGHBOURS};
	struct gw_edge_list *list = NULL;
	gw_status status = gw_neighbours(client, &spec, 5, 6, &id, 1, &list);
	*length = list ? list->edge_count : 0;
	gw_edge_list_free(list);
	return status;
}

static gw_status ask_text(struct gw_client *client, const struct question *question, int64_t id, uint64_t *length)
{
	struct gw_texts *texts = NULL;
	gw_status status = gw_node_texts(client, question->ntype, "orig_id", &id, 1, &texts);
	*length = texts ? texts->offsets[1] : 0;
	gw_texts_free(texts);
	return status;
}

/* Offsets in the memory of a server of this process. No call runs meanwhile, which the thread sanitizer does not see.
 */
__attribute__((no_sanitize_thread)) static uint64_t swap_offset(const struct gw_array *offsets, uint64_t i, uint64_t to)
{
	volatile uint64_t *wide = (volatile uint64_t *)(uintptr_t)offsets->data;
	volatile uint32_t *narrow = (volatile uint32_t *)(uintptr_t)offsets->data;
	bool is_wide = gw_dtype_bytes(offsets->meta->dtype) == 8;
	uint64_t before = is_wide ? wide[i] : narrow[i];
	if (is_wide)
		wide[i] = to;
	else
		narrow[i] = (uint32_t)to;
	return before;
}

static gw_status ask_range(struct gw_client *client, const struct question *question, const struct gw_part *part,
			   uint64_t row, uint64_t begin, uint64_t end, uint64_t *length)
{
	const struct gw_array *offsets = gw_part_array(part, question->key);
	uint64_t columns = offsets->row_bytes / gw_dtype_bytes(offsets->meta->dtype);
	uint64_t first = row * columns + question->column, last = first + columns;
	uint64_t id = gw_part_meta(part)->ntypes[question->ntype].starts[gw_part_number(part)] + row;
	uint64_t kept_first = swap_offset(offsets, first, begin), kept_last = swap_offset(offsets, last, end);
	gw_status status = question->ask(client, question, (int64_t)id, length);
	(void)swap_offset(offsets, first, kept_first);
	(void)swap_offset(offsets, last, kept_last);
	return status;
}

static void hear_of_ranges(struct gw_client *client, const struct question *question, const struct gw_part *part)
{
	uint64_t bytes = gw_part_array(part, question->data)->rows, length;
	const uint64_t lies[][2] = {
		{0, bytes + 1}, {bytes, bytes + 1}, {bytes + 1, bytes + 1}, {bytes, bytes - 1},
		{1, 0},         {0, UINT32_MAX},    {UINT32_MAX, 0},
	};
	const uint64_t truths[][2] = {{0, 0}, {0, bytes}, {bytes - 1, bytes}, {bytes, bytes}};
	uint64_t rows = gw_part_array(part, question->key)->rows - 1;
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t row = i ? gw_mix64(i) % rows : rows - 1;
		for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
			gw_status status = ask_range(client, question, part, row, lies[k][0], lies[k][1], &length);
			assert_true(status == GW_PROTOCOL || status == GW_RANGE);
			assert_non_null(strstr(gw_last_error(), "part "));
			assert_null(strchr(gw_last_error(), '\n'));
		}
		for (size_t k = 0; k < sizeof(truths) / sizeof(truths[0]); k++) {
			must(ask_range(client, question, part, row, truths[k][0], truths[k][1], &length));
			assert_int_equal(length, truths[k][1] - truths[k][0]);
		}
	}
}

static void ask_all(const struct gw_client_options *options, const struct setup *setup)
{
	struct gw_client *client = open_client(options);
	const struct gw_graph_meta *meta = setup->cluster.servers[0]->meta;
	uint32_t paper = 0, author = 0;
	must(gw_meta_ntype(meta, "paper", &paper));
	must(gw_meta_ntype(meta, "author", &author));
	const struct gw_edge_type *cites = &meta->etypes[FIXTURE_CITES], *writes = &meta->etypes[FIXTURE_WRITES];
	static const char in[] = "edge/paper__cites__paper/indices", out[] = "edge/author__writes__paper/out/indices";
	const struct question questions[] = {
		{"node/paper/orig_id.offsets", paper, 0, "node/paper/orig_id.bytes", 0, GW_IN, ask_text},
		{"node/paper/indptr", paper, cites->column, in, FIXTURE_CITES, GW_IN, ask_degree},
		{"node/paper/indptr", paper, cites->column, in, FIXTURE_CITES, GW_IN, ask_neighbours},
		{"node/author/out_indptr", author, writes->out_column, out, FIXTURE_WRITES, GW_OUT, ask_degree},
		{"node/author/out_indptr", author, writes->out_column, out, FIXTURE_WRITES, GW_OUT, ask_neighbours},
	};
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		for (uint32_t p = 0; p < PARTS; p++)
			hear_of_ranges(client, &questions[i], setup->cluster.servers[p]->part);
	}
	gw_client_close(client);
}

static void no_range_beyond_its_bytes_is_believed(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 280, PARTS, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = 1, .neighbours = "reads"};
	ask_all(&options, &setup);
	setup_end(&setup);
}

static void not_even_in_mapped_memory(void **state)
{
	(void)state;
	struct setup setup;
	if (cluster_is_rdma())
		skip();
	cluster_offer("shm");
	setup_begin(&setup, 281, PARTS, NULL);
	cluster_offer(NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = PARTS, .threads = 1};
	ask_all(&options, &setup);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_range_beyond_its_bytes_is_believed),
		cmocka_unit_test(not_even_in_mapped_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
