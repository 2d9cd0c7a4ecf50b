/* graphwire inspect: shows what a graph contains, as a table for people or a JSON for programs.
 *
 *   JSON -> types, arrays, parts -> lists and times of the parts -> degrees, the cut, first and last times
 *
 * The lists are read if all parts are on this host, and the graph is not too large or --deep is given.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/options.h"
#include "core/graph/part_lists.h"
#include "core/graph/replicas.h"
#include "core/memory/alloc.h"
#include "tools/edge_scan.h"
#include "tools/inspect_times.h"
#include "tools/tables_record.h"
#include "tools/tools.h"

#define DEEP_EDGES_MAX 50000000u /* without --deep, lists of at most so many edges are read: a second or less */

static const char doc[] = "Show what a graph contains: types, counts, degrees, arrays, parts, balance and cut.\v"
			  "CONFIG is the graph's JSON or its folder.\n\n"
			  "Examples:\n"
			  "  graphwire inspect parts/\n"
			  "  graphwire inspect parts/mygraph.json --deep\n"
			  "  graphwire inspect parts/ --json | jq .node_types\n";

struct inspect_arguments {
	const char *config;
	unsigned threads;
	bool deep, shallow, json;
};

struct findings {
	const struct gw_graph_meta *meta;
	struct gw_edge_scan *scans; /* NULL: the lists were not read */
	struct gw_times_seen *times;
	json_t *tables;  /* that the graph was made of, or NULL */
	const char *why; /* why the lists were not read */
};

static gw_status inspect_check(void *input)
{
	const struct inspect_arguments *a = input;
	if (a->deep && a->shallow)
		return gw_fail(GW_INVALID, "--deep and --shallow exclude each other: leave out one");
	return GW_OK;
}

static const struct gw_option table[] = {
	{"deep", NULL,
	 "read the lists of a large graph too, for degrees and cut (those of a small graph are always read)", 0,
	 GW_OPTION_FLAG(struct inspect_arguments, deep)},
	{"shallow", NULL, "read only the JSON", 0, GW_OPTION_FLAG(struct inspect_arguments, shallow)},
	{"threads", "N", "default: all processors", 0, GW_OPTION_NUMBER(struct inspect_arguments, threads, 1, 256)},
	{"json", NULL, "one JSON object on standard output", 0, GW_OPTION_FLAG(struct inspect_arguments, json)},
	{0},
};

static uint64_t total_edges(const struct gw_graph_meta *meta)
{
	uint64_t edges = 0;
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		edges += meta->etypes[t].count;
	return edges;
}

static uint64_t total_nodes(const struct gw_graph_meta *meta)
{
	uint64_t nodes = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		nodes += meta->ntypes[t].count;
	return nodes;
}

static uint64_t array_rows_of_all_parts(const struct gw_graph_meta *meta, const char *key, uint64_t *bytes)
{
	uint64_t rows = 0;
	*bytes = 0;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, key);
		rows += array ? array->shape[0] : 0;
		*bytes += array ? gw_array_meta_bytes(array) : 0;
	}
	return rows;
}

struct part_size {
	uint64_t nodes, edges, bytes;
	uint64_t lists; /* bytes of these that draws read: what serve --lists all holds of the part on another host */
};

static struct part_size part_size(const struct gw_graph_meta *meta, uint32_t part)
{
	struct part_size size = {0};
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		size.nodes += meta->ntypes[t].starts[part + 1] - meta->ntypes[t].starts[part];
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		size.edges += meta->etypes[t].starts[part + 1] - meta->etypes[t].starts[part];
	for (uint32_t i = 0; i < meta->parts[part].count; i++)
		size.bytes += gw_array_meta_bytes(&meta->parts[part].arrays[i]);
	size.lists = gw_part_lists_bytes(meta, part, NULL, NULL);
	return size;
}

/* Offsets are checked, since the walk follows them. Digests are not: verify checks those. */
static gw_status scan_part(struct findings *findings, uint32_t number, unsigned threads)
{
	struct gw_part_options open_options = {
		.mapped = true, .skip_verify = true, .load = {.verify_threads = threads}};
	struct gw_part *part;
	gw_status status = gw_part_open(findings->meta, number, &open_options, &part);
	for (uint32_t t = 0; status == GW_OK && t < findings->meta->num_etypes; t++)
		status = gw_edge_scan_add(part, t, threads, &findings->scans[t]);
	if (status == GW_OK)
		gw_times_seen_add(findings->times, part);
	gw_part_close(part);
	return status;
}

static gw_status scan(struct findings *findings, const struct inspect_arguments *a)
{
	const struct gw_graph_meta *meta = findings->meta;
	if (a->shallow || (!a->deep && total_edges(meta) > DEEP_EDGES_MAX)) {
		findings->why = a->shallow ? "not read" : "not read: --deep reads them";
		return GW_OK;
	}
	findings->scans = gw_calloc(meta->num_etypes, sizeof(*findings->scans));
	gw_status status = findings->scans ? GW_OK : GW_NO_MEMORY;
	for (uint32_t p = 0; status == GW_OK && p < meta->num_parts; p++)
		status = scan_part(findings, p, a->threads);
	if (status == GW_NOT_FOUND && !a->deep) { /* a host with only its own part */
		gw_free(findings->scans);
		findings->scans = NULL;
		findings->why = "not all parts are on this host";
		return GW_OK;
	}
	return status;
}

static const char *order_text(const struct gw_edge_type *type, char text[GW_NAME_MAX + 8])
{
	if (type->order == GW_ORDER_SRC)
		return "src";
	if (type->order == GW_ORDER_REL_SRC)
		return "rel, src";
	snprintf(text, GW_NAME_MAX + 8, "%s, src", type->time_name);
	return text;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void print_types(const struct findings *findings)
{
	const struct gw_graph_meta *meta = findings->meta;
	char nodes[GW_UNIT_TEXT_MAX], text[GW_EDGE_FOLDER_MAX + 1], order[GW_NAME_MAX + 8];
	printf("\n%-40s %12s\n", "NODE TYPE", "NODES");
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		printf("%-40s %12s\n", meta->ntypes[t].name, gw_text_count(nodes, (double)meta->ntypes[t].count));
	printf("\n%-40s %12s %8s %8s %8s %10s %7s  %s\n", "EDGE TYPE", "EDGES", "MEAN IN", "MEDIAN", "P99", "MAX",
	       "CUT", "LISTS BY");
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_edge_type *type = &meta->etypes[t];
		uint64_t rows = meta->ntypes[type->dst].count;
		printf("%-40s %12s %8.1f", gw_meta_etype_text(meta, t, text), gw_text_count(nodes, (double)type->count),
		       rows ? (double)type->count / (double)rows : 0.0);
		if (findings->scans) {
			const struct gw_edge_scan *s = &findings->scans[t];
			printf(" %8" PRIu64 " %8" PRIu64 " %10" PRIu64 " %6.1f%%",
			       gw_histogram_quantile(&s->degrees, 0.5), gw_histogram_quantile(&s->degrees, 0.99),
			       s->degrees.count ? s->degrees.max : 0,
			       s->edges ? 100.0 * (double)s->remote / (double)s->edges : 0.0);
		} else {
			printf(" %8s %8s %10s %7s", "-", "-", "-", "-");
		}
		printf("  %s", order_text(type, order));
		if (type->relations > 0)
			printf("; %u relations", type->relations);
		if (type->reverse != GW_TYPE_NONE)
			printf("; reverse %s", meta->etypes[type->reverse].name);
		printf("%s\n", type->out_column != GW_TYPE_NONE ? "; transposed too" : "");
	}
	if (findings->why)
		printf("(degrees and cut: %s)\n", findings->why);
}

/* How the rows of replicas were chosen; NULL: the array has none. */
static const char *replicas_by(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	const size_t length = strlen(array->key);
	if (!gw_replica_key(meta, array->key) || !gw_name_ends_in(array->key, GW_REPLICA_TAIL))
		return NULL;
	for (uint32_t i = 0; i < meta->num_replicas; i++) {
		const char *key = meta->replicas[i].key;
		if (strlen(key) + strlen(GW_REPLICA_TAIL) == length && strncmp(key, array->key, strlen(key)) == 0)
			return meta->replicas[i].by;
	}
	return NULL;
}

/* What narrow rows were, how replicas were chosen, or "". */
static const char *original_text(const struct gw_graph_meta *meta, const struct gw_array_meta *array, char text[64])
{
	const struct gw_original_meta *original = gw_meta_original(meta, array);
	text[0] = '\0';
	if (original && original->columns)
		snprintf(text, 64, "  was %s x %" PRIu64, gw_dtype_name(original->dtype), original->columns);
	else if (original)
		snprintf(text, 64, "  was %s", gw_dtype_name(original->dtype));
	const char *by = replicas_by(meta, array);
	if (by)
		snprintf(text, 64, "  by %s", by);
	return text;
}

static void print_arrays(const struct gw_graph_meta *meta)
{
	printf("\n%-56s %-9s %-22s %10s %12s\n", "ARRAY", "DTYPE", "SHAPE", "ROW", "ALL PARTS");
	for (uint32_t i = 0; i < meta->parts[0].count; i++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[i];
		char shape[128], row[GW_UNIT_TEXT_MAX], all[GW_UNIT_TEXT_MAX], was[64];
		uint64_t bytes, rows = array_rows_of_all_parts(meta, array->key, &bytes);
		int used = snprintf(shape, sizeof(shape), "%" PRIu64, rows);
		for (uint32_t d = 1; d < array->ndim; d++)
			used += snprintf(shape + used, sizeof(shape) - (size_t)used, " x %" PRIu64, array->shape[d]);
		printf("%-56s %-9s %-22s %10s %12s%s\n", array->key, gw_dtype_name(array->dtype), shape,
		       gw_text_bytes(row, (double)gw_array_meta_row_bytes(array)), gw_text_bytes(all, (double)bytes),
		       original_text(meta, array, was));
	}
}

static double ratio(uint64_t value, uint64_t total, uint32_t parts)
{
	return total ? (double)value * parts / (double)total : 1.0;
}

static void print_parts(const struct gw_graph_meta *meta)
{
	struct part_size most = {0};
	uint64_t nodes = total_nodes(meta), edges = total_edges(meta);
	printf("\n%-6s %12s %12s %12s %12s\n", "PART", "NODES", "EDGES", "BYTES", "OF LISTS");
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		struct part_size size = part_size(meta, p);
		char n[GW_UNIT_TEXT_MAX], e[GW_UNIT_TEXT_MAX], b[GW_UNIT_TEXT_MAX], l[GW_UNIT_TEXT_MAX];
		printf("%-6u %12s %12s %12s %12s\n", p, gw_text_count(n, (double)size.nodes),
		       gw_text_count(e, (double)size.edges), gw_text_bytes(b, (double)size.bytes),
		       gw_text_bytes(l, (double)size.lists));
		most.nodes = size.nodes > most.nodes ? size.nodes : most.nodes;
		most.edges = size.edges > most.edges ? size.edges : most.edges;
	}
	if (meta->num_parts > 1)
		printf("largest part over the mean: nodes %.3f, edges %.3f\n",
		       ratio(most.nodes, nodes, meta->num_parts), ratio(most.edges, edges, meta->num_parts));
}

static void print_cut(const struct findings *findings)
{
	uint64_t remote = 0, edges = total_edges(findings->meta);
	if (!findings->scans || findings->meta->num_parts < 2)
		return;
	for (uint32_t t = 0; t < findings->meta->num_etypes; t++)
		remote += findings->scans[t].remote;
	printf("cut: %" PRIu64 " of %" PRIu64 " edges (%.1f %%) come from another part\n", remote, edges,
	       edges ? 100.0 * (double)remote / (double)edges : 0.0);
}

static void inspect_print_text(const struct findings *findings)
{
	const struct gw_graph_meta *meta = findings->meta;
	char nodes[GW_UNIT_TEXT_MAX], edges[GW_UNIT_TEXT_MAX];
	printf("%s: %s nodes, %s edges, %u part%s (%s), %s, graph id %016" PRIx64 "\n", meta->graph_name,
	       gw_text_count(nodes, (double)total_nodes(meta)), gw_text_count(edges, (double)total_edges(meta)),
	       meta->num_parts, meta->num_parts == 1 ? "" : "s", meta->part_method, GW_FORMAT_NAME, meta->graph_id);
	gw_tables_record_print(findings->tables);
	print_types(findings);
	print_arrays(meta);
	gw_times_seen_print(findings->times);
	print_parts(meta);
	print_cut(findings);
}

/* --- the JSON ----------------------------------------------------------------------------------------------------- */

static json_t *etype_object(const struct findings *findings, uint32_t t)
{
	const struct gw_graph_meta *meta = findings->meta;
	const struct gw_edge_type *type = &meta->etypes[t];
	char text[GW_EDGE_FOLDER_MAX + 1], order[GW_NAME_MAX + 8];
	json_t *object =
		json_pack("{sI ss sI sb}", "edges", (json_int_t)type->count, "order", order_text(type, order),
			  "relations", (json_int_t)type->relations, "transposed", type->out_column != GW_TYPE_NONE);
	if (type->reverse != GW_TYPE_NONE)
		json_object_set_new(object, "reverse", json_string(gw_meta_etype_text(meta, type->reverse, text)));
	if (findings->scans) {
		const struct gw_edge_scan *s = &findings->scans[t];
		json_object_set_new(object, "cut", json_integer((json_int_t)s->remote));
		json_object_set_new(object, "degree_p50",
				    json_integer((json_int_t)gw_histogram_quantile(&s->degrees, 0.5)));
		json_object_set_new(object, "degree_p99",
				    json_integer((json_int_t)gw_histogram_quantile(&s->degrees, 0.99)));
		json_object_set_new(object, "degree_max",
				    json_integer(s->degrees.count ? (json_int_t)s->degrees.max : 0));
	}
	return object;
}

/* As the graph's JSON has it. */
static json_t *original_object(const struct gw_original_meta *original)
{
	const char *dtype = gw_dtype_name(original->dtype);
	return original->columns ? json_pack("{ss sI}", "dtype", dtype, "columns", (json_int_t)original->columns)
				 : json_pack("{ss}", "dtype", dtype);
}

static json_t *arrays_object(const struct gw_graph_meta *meta)
{
	json_t *arrays = json_object();
	for (uint32_t i = 0; i < meta->parts[0].count; i++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[i];
		uint64_t bytes, rows = array_rows_of_all_parts(meta, array->key, &bytes);
		json_t *shape = json_array();
		json_array_append_new(shape, json_integer((json_int_t)rows));
		for (uint32_t d = 1; d < array->ndim; d++)
			json_array_append_new(shape, json_integer((json_int_t)array->shape[d]));
		json_t *object = json_pack("{ss so sI}", "dtype", gw_dtype_name(array->dtype), "shape", shape, "bytes",
					   (json_int_t)bytes);
		const struct gw_original_meta *original = gw_meta_original(meta, array);
		if (original)
			json_object_set_new(object, "original", original_object(original));
		const char *by = replicas_by(meta, array);
		if (by)
			json_object_set_new(object, "by", json_string(by));
		json_object_set_new(arrays, array->key, object);
	}
	return arrays;
}

static void inspect_print_json(const struct findings *findings)
{
	const struct gw_graph_meta *meta = findings->meta;
	char id[17], text[GW_EDGE_FOLDER_MAX + 1];
	json_t *ntypes = json_object(), *etypes = json_object(), *parts = json_array();
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		json_object_set_new(ntypes, meta->ntypes[t].name,
				    json_pack("{sI}", "nodes", (json_int_t)meta->ntypes[t].count));
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		json_object_set_new(etypes, gw_meta_etype_text(meta, t, text), etype_object(findings, t));
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		struct part_size size = part_size(meta, p);
		json_array_append_new(parts, json_pack("{sI sI sI sI}", "nodes", (json_int_t)size.nodes, "edges",
						       (json_int_t)size.edges, "bytes", (json_int_t)size.bytes,
						       "lists_bytes", (json_int_t)size.lists));
	}
	snprintf(id, sizeof(id), "%016" PRIx64, meta->graph_id);
	json_t *root =
		json_pack("{ss ss ss ss sI sI so so so so so}", "format", GW_FORMAT_NAME, "graph", meta->graph_name,
			  "graph_id", id, "part_method", meta->part_method, "nodes", (json_int_t)total_nodes(meta),
			  "edges", (json_int_t)total_edges(meta), "node_types", ntypes, "edge_types", etypes, "arrays",
			  arrays_object(meta), "times", gw_times_seen_json(findings->times), "parts", parts);
	if (findings->tables)
		json_object_set(root, "tables", findings->tables);
	json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}

int gw_tool_inspect(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .argument = "CONFIG",
						  .argument_to = GW_OPTION_TEXT(struct inspect_arguments, config),
						  .argument_missing = "name the JSON or the folder of a graph",
						  .doc = doc,
						  .check = inspect_check};
	struct inspect_arguments a = {0};
	struct gw_graph_meta *meta = NULL;
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = gw_meta_read(a.config, &meta);
	struct findings findings = {.meta = meta};
	if (status == GW_OK)
		status = gw_times_seen_make(meta, &findings.times);
	if (status == GW_OK)
		status = gw_tables_record_read(meta, &findings.tables);
	if (status == GW_OK)
		status = scan(&findings, &a);
	if (status == GW_OK && a.json)
		inspect_print_json(&findings);
	else if (status == GW_OK)
		inspect_print_text(&findings);
	gw_free(findings.scans);
	json_decref(findings.tables);
	gw_times_seen_free(findings.times);
	gw_meta_destroy(meta);
	return gw_exit_status("graphwire inspect", status);
}
