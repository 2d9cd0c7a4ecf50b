/* graphwire bench ids: nodes by their original ids, against a bare loop with the same index.
 *
 *   graph of nodes in two parts, written here -> servers -> batches of random ids -> results compared with the ids'
 *   nodes -> look-ups and bare loop alternately -> report, with the time that the index took
 *
 * One thread of the client looks up one batch after the other, in forms of ids that the index distinguishes: texts of
 * 36 bytes, sparse numbers, and dense numbers. The ceiling has the same keys, the same index and the same number of
 * threads, over plain sockets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bare_ids.h"
#include "bench/bench.h"
#include "bench/own_servers.h"
#include "client/state/client.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/scheme.h"

#define IDS_PARTS  2u
#define TEXT_BYTES 36u
#define BATCHES    32u /* different ones */

struct ids_arguments {
	struct gw_bench bench;
	struct gw_client_options client;
	uint64_t nodes, batch, rounds;
	const char *form; /* NULL: all */
	uint32_t server_threads;
	/* in use while the benchmark runs */
	struct gw_staging *staging;
	char *folder;
	enum gw_id_form of; /* the case */
	double index_s;
	struct gw_own_servers own;
	struct gw_client *measured, *alone;
	struct gw_orig_ids batches[BATCHES];
	uint64_t *offsets;
	char *bytes;
	int64_t *numbers, *expected, *found; /* [BATCHES][batch], [BATCHES][batch], [batch] */
	struct gw_id_index indexes[IDS_PARTS];
	struct gw_bare_ids bare;
};

static const char *const forms[] = {"texts", "numbers", "dense", NULL};

#define A struct ids_arguments
static const struct gw_option table[] = {
	{"nodes", "N", "nodes of the graph (default 1M)", 0, GW_OPTION_NUMBER(A, nodes, 1, 1ull << 32)},
	{"batch", "N", "ids of a look-up (default 10k)", 0, GW_OPTION_NUMBER(A, batch, 1, 1 << 20)},
	{"rounds", "N", "look-ups of one measurement (default 100)", 0, GW_OPTION_NUMBER(A, rounds, 1, 1 << 20)},
	{"form", "NAME", "measure texts, numbers or dense numbers only", 0, GW_OPTION_CHOICE(A, form, forms)},
	{"transport", GW_SCHEME_CHOICES, "transport to the servers (default tcp)", 0,
	 GW_OPTION_CHOICE(A, client.transport, gw_scheme_choices)},
	{"server-threads", "N", "threads of each server (default 1)", 0, GW_OPTION_NUMBER(A, server_threads, 1, 256)},
	{0},
};
#undef A

/* ---- ids ---- */

static void ids_uuid(uint64_t node, char text[TEXT_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	const uint64_t halves[2] = {gw_mix64(node + 0x9e3779b97f4a7c15ull), gw_mix64(node ^ 0xd1b54a32d192ed03ull)};
	uint32_t at = 0;
	for (uint32_t i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			text[at++] = '-';
		text[at++] = digits[halves[i / 16] >> (4 * (i % 16)) & 15];
	}
}

static int64_t ids_number(const struct ids_arguments *a, uint64_t node)
{
	return a->of == GW_IDS_DENSE ? (int64_t)((node + a->nodes / 3) % a->nodes) : (int64_t)gw_mix64(node);
}

/* ---- the graph ---- */

static gw_status ids_end_array(struct gw_array_stream *stream, gw_status status)
{
	if (status == GW_OK)
		return gw_writer_end(stream);
	if (stream)
		gw_writer_drop(stream);
	return status;
}

static gw_status ids_write_texts(struct gw_writer *writer, uint32_t part, uint64_t from, uint64_t count)
{
	struct gw_array_stream *stream;
	uint64_t rows = count + 1, bytes = count * TEXT_BYTES;
	char piece[64 * TEXT_BYTES];
	gw_status status = gw_writer_begin(writer, part, "node/n/orig_id.offsets", GW_UINT64, 1, &rows, &stream);
	for (uint64_t i = 0; i <= count && status == GW_OK; i++) {
		uint64_t offset = i * TEXT_BYTES;
		status = gw_writer_append(stream, &offset, sizeof(offset));
	}
	status = ids_end_array(stream, status);
	if (status == GW_OK)
		status = gw_writer_begin(writer, part, "node/n/orig_id.bytes", GW_UINT8, 1, &bytes, &stream);
	for (uint64_t i = 0; i < count && status == GW_OK; i += 64) {
		uint32_t n = count - i < 64 ? (uint32_t)(count - i) : 64;
		for (uint32_t k = 0; k < n; k++)
			ids_uuid(from + i + k, piece + (size_t)k * TEXT_BYTES);
		status = gw_writer_append(stream, piece, (size_t)n * TEXT_BYTES);
	}
	return ids_end_array(stream, status);
}

static gw_status ids_write_numbers(const struct ids_arguments *a, struct gw_writer *writer, uint32_t part,
				   uint64_t from, uint64_t count)
{
	struct gw_array_stream *stream;
	gw_status status = gw_writer_begin(writer, part, "node/n/orig_id", GW_INT64, 1, &count, &stream);
	for (uint64_t i = 0; i < count && status == GW_OK; i++) {
		int64_t id = ids_number(a, from + i);
		status = gw_writer_append(stream, &id, sizeof(id));
	}
	return ids_end_array(stream, status);
}

static gw_status ids_open_writer(const struct ids_arguments *a, struct gw_writer **out)
{
	struct gw_graph_meta *schema;
	gw_status status = gw_meta_create("ids", IDS_PARTS, 1, 0, &schema);
	if (status != GW_OK)
		return status;
	memcpy(schema->ntypes[0].name, "n", 2);
	memcpy(schema->part_method, "none", 5);
	schema->ntypes[0].count = a->nodes;
	for (uint32_t p = 1; p <= IDS_PARTS; p++)
		schema->ntypes[0].starts[p] = a->nodes * p / IDS_PARTS;
	status = gw_meta_finish(schema);
	if (status == GW_OK)
		status = gw_writer_open(a->folder, schema, true, out);
	gw_meta_destroy(schema);
	return status;
}

static gw_status ids_write(struct ids_arguments *a)
{
	struct gw_writer *writer;
	gw_status status = ids_open_writer(a, &writer);
	if (status != GW_OK)
		return status;
	for (uint32_t p = 0; p < IDS_PARTS && status == GW_OK; p++) {
		uint64_t from = a->nodes * p / IDS_PARTS, count = a->nodes * (p + 1) / IDS_PARTS - from;
		status = a->of == GW_IDS_TEXTS ? ids_write_texts(writer, p, from, count)
					       : ids_write_numbers(a, writer, p, from, count);
	}
	uint64_t start_ns = gw_now_ns();
	if (status == GW_OK)
		status = gw_id_index_write(writer, 0, 0);
	a->index_s = (double)(gw_now_ns() - start_ns) / GW_NS_PER_SECOND;
	if (status == GW_OK)
		return gw_writer_commit(writer, NULL);
	gw_writer_abort(writer);
	return status;
}

/* ---- batches ---- */

static gw_status ids_make_batches(struct ids_arguments *a)
{
	uint64_t n = BATCHES * a->batch;
	a->offsets = gw_malloc((n + BATCHES) * sizeof(*a->offsets));
	a->bytes = gw_malloc(n * TEXT_BYTES);
	a->numbers = gw_malloc(n * sizeof(*a->numbers));
	a->expected = gw_malloc(n * sizeof(*a->expected));
	a->found = gw_malloc(a->batch * sizeof(*a->found));
	if (!a->offsets || !a->bytes || !a->numbers || !a->expected || !a->found)
		return GW_NO_MEMORY;
	for (uint32_t b = 0; b < BATCHES; b++) {
		uint64_t *offsets = a->offsets + b * (a->batch + 1);
		offsets[0] = 0;
		for (uint64_t i = 0; i < a->batch; i++) {
			uint64_t at = b * a->batch + i, node = gw_mix64(at + 11) % a->nodes;
			a->expected[at] = (int64_t)node;
			a->numbers[at] = ids_number(a, node);
			ids_uuid(node, a->bytes + at * TEXT_BYTES);
			offsets[i + 1] = offsets[i] + TEXT_BYTES;
		}
		a->batches[b] = (struct gw_orig_ids){.count = a->batch};
		if (a->of == GW_IDS_TEXTS) {
			a->batches[b].offsets = offsets;
			a->batches[b].bytes = a->bytes + b * a->batch * TEXT_BYTES;
		} else {
			a->batches[b].dtype = GW_INT64;
			a->batches[b].numbers = a->numbers + b * a->batch;
		}
	}
	return GW_OK;
}

static gw_status ids_compare(const struct ids_arguments *a, uint32_t batch, const char *who)
{
	if (memcmp(a->found, a->expected + batch * a->batch, a->batch * sizeof(*a->found)) == 0)
		return GW_OK;
	return gw_fail(GW_PROTOCOL, "%s: batch %u: an id has another node", who, batch);
}

static gw_status ids_check_all(struct ids_arguments *a)
{
	gw_status status = GW_OK;
	for (uint32_t b = 0; b < BATCHES && status == GW_OK; b++) {
		status = gw_node_ids(a->measured, 0, &a->batches[b], a->found, NULL);
		if (status == GW_OK)
			status = ids_compare(a, b, "servers");
		if (status == GW_OK)
			status = gw_node_ids(a->alone, 0, &a->batches[b], a->found, NULL);
		if (status == GW_OK)
			status = ids_compare(a, b, "standalone");
	}
	int error = status == GW_OK ? gw_bare_ids_run(&a->bare, a->batches, BATCHES, BATCHES, a->found) : 0;
	if (error)
		return gw_fail_errno(GW_IO, error, "the bare loop");
	return status == GW_OK ? ids_compare(a, BATCHES - 1, "bare loop") : status;
}

/* ---- measuring ---- */

static double ids_rate(const struct ids_arguments *a, uint64_t start_ns)
{
	return (double)(a->rounds * a->batch) / ((double)(gw_now_ns() - start_ns) / 1e9) / 1e6;
}

static gw_status ids_measure(void *context, double *figure)
{
	struct ids_arguments *a = context;
	uint64_t start_ns = gw_now_ns();
	gw_status status = GW_OK;
	for (uint64_t r = 0; r < a->rounds && status == GW_OK; r++)
		status = gw_node_ids(a->measured, 0, &a->batches[r % BATCHES], a->found, NULL);
	*figure = ids_rate(a, start_ns);
	return status;
}

static gw_status ids_measure_bare(void *context, double *figure)
{
	struct ids_arguments *a = context;
	uint64_t start_ns = gw_now_ns();
	int error = gw_bare_ids_run(&a->bare, a->batches, BATCHES, (uint32_t)a->rounds, a->found);
	*figure = ids_rate(a, start_ns);
	return error ? gw_fail_errno(GW_IO, error, "the bare loop") : GW_OK;
}

static gw_status ids_open(struct ids_arguments *a)
{
	struct gw_own_clients_options own = {.client = a->client, .server_threads = a->server_threads};
	own.client.part_config = a->folder;
	own.client.threads = 1;
	gw_status status = gw_own_clients_open(&a->own, &own, &a->alone, &a->measured);
	for (uint32_t p = 0; p < IDS_PARTS && status == GW_OK; p++)
		gw_id_index_of(a->alone->servers[p].local, 0, &a->indexes[p]);
	a->bare =
		(struct gw_bare_ids){.parts = IDS_PARTS, .form = a->of, .node_count = a->nodes, .indexes = a->indexes};
	return status;
}

static void ids_end(struct ids_arguments *a)
{
	gw_client_close(a->measured);
	gw_client_close(a->alone);
	a->measured = a->alone = NULL;
	gw_own_servers_end(&a->own);
	gw_free(a->offsets);
	gw_free(a->bytes);
	gw_free(a->numbers);
	gw_free(a->expected);
	gw_free(a->found);
	a->offsets = NULL;
	a->bytes = NULL;
	a->numbers = a->expected = a->found = NULL;
}

static void ids_report(struct ids_arguments *a, const struct gw_bench_series *values,
		       const struct gw_bench_series *ceilings)
{
	char title[96];
	snprintf(title, sizeof(title), "%llu %s in %u parts, %s", (unsigned long long)a->nodes,
		 forms[a->of == GW_IDS_TEXTS     ? 0
		       : a->of == GW_IDS_NUMBERS ? 1
						 : 2],
		 IDS_PARTS, gw_part_transport(a->measured, 0));
	struct gw_bench_result result = {
		.title = title,
		.unit = "M ids/s",
		.values = values,
		.ceilings = ceilings,
		.verified = true,
		.fields = {{"batch", (double)a->batch, NULL},
			   {"index_s", a->index_s, NULL},
			   {"index_m_ids_per_s", (double)a->nodes / a->index_s / 1e6, NULL}},
		.note = "ceiling: the same keys and index over plain sockets; index_s: building the index",
	};
	gw_bench_report(&a->bench, &result);
}

static gw_status ids_run_case(struct ids_arguments *a, enum gw_id_form form)
{
	static struct gw_bench_series values, ceilings;
	values.count = ceilings.count = 0;
	a->of = form;
	gw_status status = ids_write(a);
	if (status == GW_OK)
		status = ids_make_batches(a);
	if (status == GW_OK)
		status = ids_open(a);
	if (status == GW_OK)
		status = ids_check_all(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, ids_measure_bare, ids_measure, a, &ceilings, &values);
	if (status == GW_OK)
		ids_report(a, &values, &ceilings);
	ids_end(a);
	return status;
}

static gw_status ids_make_folder(struct ids_arguments *a)
{
	const char *base = getenv("TMPDIR");
	char *name = gw_format("%s/graphwire-bench-ids-%ld", base && *base ? base : "/var/tmp", (long)getpid());
	gw_status status = name ? gw_staging_begin(name, false, &a->staging) : GW_NO_MEMORY;
	gw_free(name);
	if (status != GW_OK)
		return status;
	a->folder = gw_format("%s/graph", gw_staging_path(a->staging));
	return a->folder ? GW_OK : GW_NO_MEMORY;
}

int gw_bench_ids(int argc, char **argv)
{
	static struct ids_arguments a = {.bench = {.name = "ids"},
					 .nodes = 1000000,
					 .batch = 10000,
					 .rounds = 100,
					 .server_threads = 1,
					 .client = {.transport = "tcp"}};
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct ids_arguments, bench),
		.doc = "Measure look-ups of nodes by their original ids, against a bare loop with the same index.\v"
		       "Examples:\n  graphwire bench ids\n"
		       "  graphwire bench ids --form texts --nodes 10M"};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = gw_bench_open(&a.bench);
	if (status == GW_OK)
		status = ids_make_folder(&a);
	static const enum gw_id_form all[] = {GW_IDS_TEXTS, GW_IDS_NUMBERS, GW_IDS_DENSE};
	for (size_t i = 0; i < 3 && status == GW_OK; i++) {
		if (!a.form || strcmp(a.form, forms[i]) == 0)
			status = ids_run_case(&a, all[i]);
	}
	if (status != GW_OK)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	gw_staging_abort(a.staging);
	gw_free(a.folder);
	gw_status closed = gw_bench_close(&a.bench);
	if (closed != GW_OK && status == GW_OK)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	return status == GW_OK && closed == GW_OK ? 0 : 1;
}
