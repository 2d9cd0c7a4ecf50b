/* graphwire import combine: takes types from graphs in one part, and makes one graph of them.
 *
 *   words -> the graphs' JSONs -> schema: types in the order of the words -> arrays linked, and their digests checked
 *   -> offsets: a column for each edge type that ends at a node type -> records -> commit
 *
 * The result has the bytes of one import of all types: an array depends on its type alone, except the offsets. An edge
 * type fits a node type if both graphs have as many nodes of it.
 *
 * Any failure leaves no files.
 */
#include "tools/import/combine.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/records.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "tools/output_options.h"
#include "tools/phase.h"

#define RECORDS_MAX 4u
#define KEY_MAX     (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

struct combine_graph {
	const char *path;
	struct gw_graph_meta *meta;
};

/* A type of a graph. */
struct combine_type {
	char name[GW_EDGE_FOLDER_MAX + 1]; /* "users", "orders:f2p_user:users" */
	uint32_t graph, number;            /* among the graphs; in the graph */
};

struct combine_arguments {
	const char *out, *name;
	struct gw_builder_options build;
	bool renew;
	const char *records[RECORDS_MAX];
	uint32_t num_records;
	struct combine_graph *graphs;
	struct combine_type *ntypes, *etypes;
	uint32_t num_graphs, num_ntypes, num_etypes;
};

struct combining {
	const struct combine_arguments *a;
	struct gw_graph_meta *meta;
	struct gw_writer *writer;
	uint64_t bytes;
};

/* ---- words ---- */

static gw_status combine_open(struct combine_arguments *a, const char *path, uint32_t *out)
{
	for (*out = 0; *out < a->num_graphs; (*out)++) {
		if (strcmp(a->graphs[*out].path, path) == 0)
			return GW_OK;
	}
	struct combine_graph *grown = gw_realloc(a->graphs, a->num_graphs + 1, sizeof(*grown));
	if (!grown)
		return GW_NO_MEMORY;
	a->graphs = grown;
	struct combine_graph *graph = &a->graphs[a->num_graphs];
	*graph = (struct combine_graph){.path = path};
	gw_status status = gw_meta_read(path, &graph->meta);
	if (status != GW_OK)
		return status;
	a->num_graphs++;
	if (graph->meta->num_parts != 1)
		return gw_fail(GW_UNSUPPORTED, "%s: a graph of %u parts: types of graphs in one part are combined",
			       path, graph->meta->num_parts);
	return graph->meta->minor > GW_FORMAT_MINOR
		       ? gw_fail(GW_VERSION, "%s: minor version %u, and this program knows %d", path,
				 graph->meta->minor, GW_FORMAT_MINOR)
		       : GW_OK;
}

static gw_status combine_take(struct combine_arguments *a, bool edge, const char *text)
{
	struct combine_type **types = edge ? &a->etypes : &a->ntypes, type = {0};
	uint32_t *count = edge ? &a->num_etypes : &a->num_ntypes;
	const char *equals = strchr(text, '=');
	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(type.name))
		return gw_fail(GW_INVALID, "\"%.200s\": write %s=GRAPH", text, edge ? "SRC:REL:DST" : "TYPE");
	if (*count == GW_TYPES_MAX)
		return gw_fail(GW_LIMIT, "more than %d types", GW_TYPES_MAX);
	memcpy(type.name, text, (size_t)(equals - text));
	gw_status status = combine_open(a, equals + 1, &type.graph);
	if (status != GW_OK)
		return status;
	const struct gw_graph_meta *meta = a->graphs[type.graph].meta;
	status = edge ? gw_meta_etype(meta, type.name, &type.number) : gw_meta_ntype(meta, type.name, &type.number);
	struct combine_type *grown = status == GW_OK ? gw_realloc(*types, *count + 1, sizeof(*grown)) : NULL;
	if (!grown)
		return status != GW_OK ? gw_context(status, "%s", equals + 1) : GW_NO_MEMORY;
	*types = grown;
	grown[(*count)++] = type;
	return GW_OK;
}

static gw_status combine_take_node_type(void *input, char *text)
{
	return combine_take(input, false, text);
}

static gw_status combine_take_edge_type(void *input, char *text)
{
	return combine_take(input, true, text);
}

static gw_status combine_take_record(void *input, char *text)
{
	struct combine_arguments *a = input;
	if (a->num_records == RECORDS_MAX)
		return gw_fail(GW_LIMIT, "more than %u", RECORDS_MAX);
	a->records[a->num_records++] = text;
	return gw_record_check(text);
}

/* ---- the schema ---- */

static const struct gw_graph_meta *combine_meta(const struct combining *c, const struct combine_type *type)
{
	return c->a->graphs[type->graph].meta;
}

/* The number of a type with this name among the words; GW_TYPE_NONE without one. */
static uint32_t combine_find(const struct combine_type *types, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(types[i].name, name) == 0)
			return i;
	}
	return GW_TYPE_NONE;
}

/* An end of an edge type among the node types of the words. */
static gw_status combine_end(const struct combining *c, const struct combine_type *type, uint32_t end, uint32_t *out)
{
	const struct gw_node_type *wanted = &combine_meta(c, type)->ntypes[end];
	*out = combine_find(c->a->ntypes, c->a->num_ntypes, wanted->name);
	if (*out == GW_TYPE_NONE)
		return gw_fail(GW_NOT_FOUND, "%s: no --node-type %s", type->name, wanted->name);
	uint64_t count = c->meta->ntypes[*out].count;
	if (count == wanted->count)
		return GW_OK;
	return gw_fail(GW_INVALID, "%s: %s has %llu nodes of %s, and %s has %llu", type->name,
		       c->a->graphs[type->graph].path, (unsigned long long)wanted->count, wanted->name,
		       c->a->graphs[c->a->ntypes[*out].graph].path, (unsigned long long)count);
}

static gw_status combine_etype(struct combining *c, uint32_t number)
{
	const struct combine_type *type = &c->a->etypes[number];
	const struct gw_graph_meta *from = combine_meta(c, type);
	const struct gw_edge_type *old = &from->etypes[type->number];
	struct gw_edge_type *made = &c->meta->etypes[number];
	char reverse[GW_EDGE_FOLDER_MAX + 1];
	memcpy(made->name, old->name, sizeof(made->name));
	made->count = made->starts[1] = old->count;
	made->relations = old->relations;
	made->order = old->order;
	memcpy(made->time_name, old->time_name, sizeof(made->time_name));
	made->out_column = old->out_column == GW_TYPE_NONE ? GW_TYPE_NONE : 0;
	if (old->reverse != GW_TYPE_NONE)
		made->reverse =
			combine_find(c->a->etypes, c->a->num_etypes, gw_meta_etype_text(from, old->reverse, reverse));
	gw_status status = combine_end(c, type, old->src, &made->src);
	return status == GW_OK ? combine_end(c, type, old->dst, &made->dst) : status;
}

static gw_status combine_schema(struct combining *c, const char *name)
{
	const struct combine_arguments *a = c->a;
	gw_status status = gw_meta_create(name, 1, a->num_ntypes, a->num_etypes, &c->meta);
	if (status != GW_OK)
		return status;
	snprintf(c->meta->part_method, sizeof(c->meta->part_method), "none");
	for (uint32_t t = 0; t < a->num_ntypes; t++) {
		const struct gw_node_type *old = &combine_meta(c, &a->ntypes[t])->ntypes[a->ntypes[t].number];
		memcpy(c->meta->ntypes[t].name, old->name, sizeof(old->name));
		c->meta->ntypes[t].count = c->meta->ntypes[t].starts[1] = old->count;
	}
	for (uint32_t e = 0; e < a->num_etypes && status == GW_OK; e++)
		status = combine_etype(c, e);
	return status == GW_OK ? gw_meta_finish(c->meta) : status;
}

/* ---- arrays ---- */

static gw_status combine_array(struct combining *c, const struct gw_graph_meta *from, const struct gw_array_meta *array,
			       bool edge, const char *name)
{
	if (!edge && gw_name_is_node_ids(name))
		gw_writer_set_minor(c->writer, GW_FORMAT_MINOR_IDS);
	if (gw_name_is_of_times(edge, name))
		gw_writer_set_minor(c->writer, GW_FORMAT_MINOR_TIMES);
	c->bytes += gw_array_meta_bytes(array);
	gw_status status = gw_writer_set_unit(c->writer, array->key, gw_meta_unit(from, array->key));
	const struct gw_original_meta *original = gw_meta_original(from, array);
	if (original && status == GW_OK)
		status = gw_writer_set_original(c->writer, array->key, original->dtype, original->columns);
	return status == GW_OK ? gw_writer_take(c->writer, 0, array->key, from) : status;
}

/* All arrays of a type, except the offsets. */
static gw_status combine_arrays(struct combining *c, const struct combine_type *type, bool edge)
{
	const struct gw_graph_meta *from = combine_meta(c, type);
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < from->parts[0].count && status == GW_OK; i++) {
		const struct gw_array_meta *array = &from->parts[0].arrays[i];
		struct gw_array_key key;
		status = gw_array_key_parse(from, array->key, &key);
		if (status != GW_OK || key.edge != edge || key.type != type->number)
			continue;
		if (edge || (strcmp(key.name, "indptr") != 0 && strcmp(key.name, "out_indptr") != 0))
			status = combine_array(c, from, array, edge, key.out ? "" : key.name);
	}
	return status;
}

static uint64_t offset_at(const struct gw_npy_file *file, uint64_t place)
{
	return file->npy.dtype == GW_UINT32 ? ((const uint32_t *)file->data)[place]
					    : ((const uint64_t *)file->data)[place];
}

/* A column of the offsets of a graph; *out: [rows + 1], which the caller frees. */
static gw_status read_column(const struct gw_graph_meta *from, const char *key, uint64_t rows, uint32_t column,
			     uint32_t columns, uint64_t **out)
{
	const struct gw_array_meta *array = gw_meta_array(from, 0, key);
	struct gw_npy_file file = {0};
	char *path = array ? gw_format("%s/%s", from->folder, array->file) : NULL;
	gw_status status = path ? gw_npy_open(path, &file) : GW_NO_MEMORY;
	if (status == GW_OK && (file.npy.data_bytes != gw_array_meta_bytes(array) ||
				gw_array_digest(file.data, file.npy.data_bytes) != array->digest))
		status = gw_fail(GW_DIGEST, "%s: another digest than in the graph's JSON: damaged", path);
	*out = status == GW_OK ? gw_malloc((rows + 1) * sizeof(**out)) : NULL;
	if (status == GW_OK && !*out)
		status = GW_NO_MEMORY;
	for (uint64_t row = 0; status == GW_OK && row <= rows; row++)
		(*out)[row] = offset_at(&file, row * columns + column);
	gw_npy_close(&file);
	gw_free(path);
	return status;
}

/* The graph whose offsets of a node type are those of the new graph: all of its columns, in the same order. NULL: none.
 */
static const struct gw_graph_meta *with_columns(const struct combining *c, const uint32_t *etypes, uint32_t columns,
						bool out)
{
	const struct gw_graph_meta *from = combine_meta(c, &c->a->etypes[etypes[0]]);
	for (uint32_t i = 0; i < columns; i++) {
		const struct combine_type *edges = &c->a->etypes[etypes[i]];
		const struct gw_edge_type *old = &combine_meta(c, edges)->etypes[edges->number];
		const struct gw_node_type *end = &combine_meta(c, edges)->ntypes[out ? old->src : old->dst];
		if (combine_meta(c, edges) != from || (out ? old->out_column : old->column) != i ||
		    (out ? end->out_columns : end->columns) != columns)
			return NULL;
	}
	return from;
}

/* The offsets of a node type, by destination or (out) by source. */
static gw_status combine_offsets(struct combining *c, uint32_t ntype, bool out)
{
	const struct gw_node_type *type = &c->meta->ntypes[ntype];
	uint32_t columns = out ? type->out_columns : type->columns;
	const uint32_t *etypes = out ? type->out_column_edge_types : type->column_edge_types;
	char key[KEY_MAX];
	snprintf(key, sizeof(key), "node/%s/%s", type->name, out ? "out_indptr" : "indptr");
	if (columns == 0)
		return GW_OK;
	const struct gw_graph_meta *whole = with_columns(c, etypes, columns, out);
	if (whole)
		return gw_writer_take(c->writer, 0, key, whole);
	uint64_t **offsets = gw_calloc(columns, sizeof(*offsets));
	gw_status status = offsets ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; i < columns && status == GW_OK; i++) {
		const struct combine_type *edges = &c->a->etypes[etypes[i]];
		const struct gw_graph_meta *from = combine_meta(c, edges);
		const struct gw_edge_type *old = &from->etypes[edges->number];
		const struct gw_node_type *end = &from->ntypes[out ? old->src : old->dst];
		status = read_column(from, key, type->count, out ? old->out_column : old->column,
				     out ? end->out_columns : end->columns, &offsets[i]);
	}
	if (status == GW_OK)
		status = gw_writer_indptr(c->writer, 0, key, type->count, columns, (const uint64_t *const *)offsets);
	for (uint32_t i = 0; offsets && i < columns; i++)
		gw_free(offsets[i]);
	gw_free(offsets);
	return status;
}

static gw_status combine_write(struct combining *c)
{
	const struct combine_arguments *a = c->a;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < a->num_etypes; e++) {
		if (c->meta->etypes[e].order == GW_ORDER_TIME_SRC)
			gw_writer_set_minor(c->writer, GW_FORMAT_MINOR_TIMES);
	}
	for (uint32_t t = 0; t < a->num_ntypes && status == GW_OK; t++)
		status = combine_arrays(c, &a->ntypes[t], false);
	for (uint32_t e = 0; e < a->num_etypes && status == GW_OK; e++)
		status = combine_arrays(c, &a->etypes[e], true);
	for (uint32_t t = 0; t < a->num_ntypes && status == GW_OK; t++) {
		status = combine_offsets(c, t, false);
		if (status == GW_OK)
			status = combine_offsets(c, t, true);
	}
	return status == GW_OK ? gw_records_add(c->writer, a->records, a->num_records) : status;
}

static gw_status combine_check_output(const struct combine_arguments *a)
{
	gw_status status = gw_builder_target_check(a->out, a->build.replace);
	for (uint32_t i = 0; i < a->num_graphs && status == GW_OK && a->build.replace && !a->renew; i++) {
		const char *folder = a->graphs[i].meta->folder;
		status = gw_builder_input_check(a->out, folder[0] ? folder : ".");
	}
	return status;
}

static gw_status combine_run(const struct combine_arguments *a)
{
	struct combining c = {.a = a};
	struct gw_phase phase = gw_phase_begin(1, a->build.quiet);
	gw_status status = combine_schema(&c, a->name ? a->name : "graph");
	if (status == GW_OK)
		status = combine_check_output(a);
	if (status == GW_OK)
		status = gw_writer_open(a->out, c.meta, a->build.replace, &c.writer);
	if (status == GW_OK) {
		status = combine_write(&c);
		if (status == GW_OK)
			status = gw_writer_commit(c.writer, NULL);
		else
			gw_writer_abort(c.writer);
	}
	if (status == GW_OK) {
		uint64_t nodes = 0, edges = 0;
		for (uint32_t t = 0; t < a->num_ntypes; t++)
			nodes += c.meta->ntypes[t].count;
		for (uint32_t e = 0; e < a->num_etypes; e++)
			edges += c.meta->etypes[e].count;
		gw_phase_end(&phase, "combine", c.bytes);
		gw_phase_print_graph(a->build.quiet, a->out, c.meta->graph_name, nodes, edges);
	}
	gw_meta_destroy(c.meta);
	return status;
}

/* ---- the command ---- */

#define A struct combine_arguments
static const struct gw_option combine_table[] = {
	{"node-type", "TYPE=GRAPH",
	 "a node type with its arrays; GRAPH is the JSON of a graph in one part, or its folder", 0,
	 GW_OPTION_CALL(combine_take_node_type)},
	{"edge-type", "SRC:REL:DST=GRAPH", "an edge type with its arrays; both of its ends are named by --node-type", 0,
	 GW_OPTION_CALL(combine_take_edge_type)},
	{"record", "KIND=FILE",
	 "store this JSON as NAME.KIND.json; KIND is tables or build. The graph's id takes the place of its first 16 "
	 "zeros",
	 0, GW_OPTION_CALL(combine_take_record)},
	{"renew", NULL, "the graph that --replace replaces may be one of those that types come from", 0,
	 GW_OPTION_FLAG(A, renew)},
	GW_OUTPUT_OPTIONS(A, , "graph", 0),
	{0},
};
#undef A

static const char combine_doc[] =
	"Make a one-part graph of types of other one-part graphs. The order of the words is that of the types.\v"
	"Arrays are linked, not copied, if the file system allows it, and their digests are checked. The result has "
	"the bytes that one import of all types gives.\n\n"
	"Example:\n"
	"  graphwire import combine --node-type user=a/ --node-type film=b/ \\\n"
	"                           --edge-type user:rates:film=b/ --out graph/\n";

static gw_status combine_check(void *input)
{
	const struct combine_arguments *a = input;
	if (!a->num_ntypes)
		return gw_fail(GW_INVALID, "name types with --node-type and --edge-type");
	return a->name ? gw_name_check("graph", a->name) : GW_OK;
}

int gw_combine_main(int argc, char **argv)
{
	static const struct gw_options options = {.table = combine_table,
						  .argument_missing = "name types with --node-type and --edge-type",
						  .doc = combine_doc,
						  .check = combine_check};
	struct combine_arguments a = {0};
	gw_options_parse(&options, argc, argv, &a);
	gw_phase_hush(a.build.quiet);
	gw_status status = combine_run(&a);
	for (uint32_t i = 0; i < a.num_graphs; i++)
		gw_meta_destroy(a.graphs[i].meta);
	gw_free(a.graphs);
	gw_free(a.ntypes);
	gw_free(a.etypes);
	return gw_exit_status("graphwire import combine", status);
}
