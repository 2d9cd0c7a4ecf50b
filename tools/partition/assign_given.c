/* partition --assignment: takes the part of each node from files, which another partitioner wrote.
 *
 *   "[TYPE=]FILE" or a folder -> .npy of integers, or text with "PART" or "NODE PART" on a line -> the pieces
 *
 * Row i of a file is the part of the input's node i. A file of a type has the nodes of this type. A file without a type
 * has all nodes, type after type, as METIS and ParMETIS number them. A folder has TYPE.npy or TYPE.txt for each type;
 * its partition_meta.json, if it exists, must have the same number of parts (DGL's and GraphStorm's pipelines write
 * such folders).
 *
 * Errors name the file and the row or line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/graph/json.h"
#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tools/import/table.h"
#include "tools/partition/plan.h"

#define FOLDER_META "partition_meta.json"

/* The nodes that a file assigns: those of one type, or of all. */
struct given_nodes {
	const struct gw_plan *plan;
	const struct gw_graph_meta *meta;
	uint16_t *const *piece; /* [ntypes][count of the type] */
	bool *has;              /* [ntypes]: a file has the nodes of the type */
	const char *path;       /* of the file that assigns them now */
	uint32_t first, end;    /* types */
	uint64_t count;
};

static uint16_t *piece_of(const struct given_nodes *nodes, uint64_t row)
{
	uint32_t t = nodes->first;
	while (row >= nodes->meta->ntypes[t].count)
		row -= nodes->meta->ntypes[t++].count;
	return &nodes->piece[t][row];
}

static gw_status given_check_count(const struct given_nodes *nodes, uint64_t rows)
{
	if (rows == nodes->count)
		return GW_OK;
	bool one = nodes->end - nodes->first == 1;
	return gw_fail(GW_INVALID, "%s: %" PRIu64 " rows for %" PRIu64 " nodes%s%s", nodes->path, rows, nodes->count,
		       one ? " of type " : " of all types", one ? nodes->meta->ntypes[nodes->first].name : "");
}

/* "FILE: line 7" of a text, or "FILE: row 6" of an array: the place of an error. */
static gw_status given_fail_at(const struct given_nodes *nodes, const struct gw_table *table, uint64_t row,
			       gw_status status, const char *what)
{
	return gw_fail(status, "%s: %s %" PRIu64 ": %s", nodes->path, table ? "line" : "row",
		       table ? gw_table_line(table, row) : row, what);
}

/* table: of the text that has the row; NULL: an array has it. */
static gw_status given_put_part(const struct given_nodes *nodes, const struct gw_table *table, uint64_t row,
				uint64_t node, int64_t part)
{
	char what[GW_ERROR_TEXT_MAX / 4];
	if (part < 0 || part >= (int64_t)nodes->plan->parts) {
		snprintf(what, sizeof(what), "part %" PRId64 " does not exist: --num-parts is %u", part,
			 nodes->plan->parts);
		return given_fail_at(nodes, table, row, GW_RANGE, what);
	}
	*piece_of(nodes, node) = (uint16_t)part;
	return GW_OK;
}

/* --- Arrays. --- */

static int64_t integer_at(const struct gw_npy_file *file, uint64_t i)
{
	const void *data = file->data;
	switch (file->npy.dtype) {
	case GW_INT8:
		return ((const int8_t *)data)[i];
	case GW_UINT8:
		return ((const uint8_t *)data)[i];
	case GW_INT16:
		return ((const int16_t *)data)[i];
	case GW_UINT16:
		return ((const uint16_t *)data)[i];
	case GW_INT32:
		return ((const int32_t *)data)[i];
	case GW_UINT32:
		return ((const uint32_t *)data)[i];
	default: /* values of uint64 from 2^63 on become negative, which no part is */
		return ((const int64_t *)data)[i];
	}
}

static bool given_is_integer(gw_dtype dtype)
{
	const char *kind = gw_dtype_numpy(dtype);
	return dtype != GW_BFLOAT16 && dtype != GW_INT8_ROW && (kind[1] == 'i' || kind[1] == 'u');
}

static gw_status given_read_array(const struct given_nodes *nodes)
{
	struct gw_npy_file file;
	gw_status status = gw_npy_open(nodes->path, &file);
	if (status != GW_OK)
		return status;
	if (file.npy.ndim != 1 || !given_is_integer(file.npy.dtype) || file.npy.unit != GW_UNIT_NONE)
		status = gw_fail(GW_INVALID, "%s: an assignment is one integer for each node", nodes->path);
	if (status == GW_OK)
		status = given_check_count(nodes, file.npy.shape[0]);
	for (uint64_t i = 0; i < nodes->count && status == GW_OK; i++)
		status = given_put_part(nodes, NULL, i, i, integer_at(&file, i));
	gw_npy_close(&file);
	return status;
}

/* --- Text. --- */

/* values: [rows][columns], the last column has the parts. seen: [rows] bools, all false. */
static gw_status put_rows(const struct given_nodes *nodes, const struct gw_table *table, const uint64_t *values,
			  uint32_t columns, bool *seen)
{
	for (uint64_t i = 0; i < table->rows; i++) {
		uint64_t node = columns == 2 ? values[2 * i] : i;
		if (node >= nodes->count)
			return given_fail_at(nodes, table, i, GW_RANGE, "this node does not exist");
		if (seen[node])
			return given_fail_at(nodes, table, i, GW_INVALID, "this node has a line before");
		seen[node] = true;
		gw_status status = given_put_part(nodes, table, i, node, (int64_t)values[columns * (i + 1) - 1]);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

static gw_status given_read_rows(const struct given_nodes *nodes, const struct gw_table *table, uint32_t columns,
				 unsigned threads)
{
	uint64_t *values = gw_malloc(table->rows * columns * sizeof(*values));
	bool *seen = gw_calloc(table->rows, sizeof(*seen));
	const struct gw_table_column read[] = {
		{.kind = GW_COLUMN_ID, .is_id = true, .what = "node", .values = values, .stride = 2},
		{.index = columns - 1,
		 .kind = GW_COLUMN_ID,
		 .is_id = true,
		 .what = "part",
		 .values = values ? values + columns - 1 : NULL,
		 .stride = columns},
	};
	gw_status status = values && seen ? given_check_count(nodes, table->rows) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_table_read(table, read + 2 - columns, columns, threads);
	if (status == GW_OK)
		status = put_rows(nodes, table, values, columns, seen);
	gw_free(values);
	gw_free(seen);
	return status;
}

static gw_status given_read_text(const struct given_nodes *nodes)
{
	struct gw_table_format format = {.exact = true, .header = GW_HEADER_NONE, .comments = "#%"};
	struct gw_text text;
	struct gw_table table = {0};
	gw_status status = gw_text_open_file(nodes->path, NULL, &text);
	if (status != GW_OK)
		return status;
	gw_table_sniff(&text, (const uint32_t[]){0}, 1, &format);
	uint32_t columns = gw_table_peek(&text, &format, 0, NULL, 0);
	if (columns > 2)
		status = gw_fail(GW_FORMAT, "%s: a line has %u fields: write PART, or NODE PART", nodes->path, columns);
	if (status == GW_OK)
		status = gw_table_scan(&text, &format, nodes->plan->threads, &table);
	if (status == GW_OK)
		status = given_read_rows(nodes, &table, columns ? columns : 1, nodes->plan->threads);
	gw_table_close(&table);
	gw_text_close(&text);
	return status;
}

/* --- Words. --- */

static bool ends_in(const char *path, const char *tail)
{
	size_t length = strlen(path), n = strlen(tail);
	return length > n && strcmp(path + length - n, tail) == 0;
}

/* types: [first, end) of the graph. */
static gw_status given_read_file(struct given_nodes *nodes, const char *path, uint32_t first, uint32_t end)
{
	nodes->path = path;
	nodes->first = first;
	nodes->end = end;
	nodes->count = 0;
	for (uint32_t t = first; t < end; t++) {
		const struct gw_node_type *type = &nodes->meta->ntypes[t];
		nodes->count += type->count;
		if (nodes->has[t])
			return gw_fail(GW_INVALID, "%s: a file before it has the nodes of type \"%s\" too", path,
				       type->name);
		nodes->has[t] = true;
	}
	return ends_in(path, ".npy") ? given_read_array(nodes) : given_read_text(nodes);
}

static gw_status check_folder_meta(const struct gw_plan *plan, const char *folder)
{
	uint64_t parts = plan->parts;
	char *path = gw_format("%s/" FOLDER_META, folder);
	if (!path)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	if (access(path, F_OK) == 0) {
		json_error_t error;
		json_t *root = json_load_file(path, 0, &error);
		status = root ? gw_json_number(root, "num_parts", UINT32_MAX, &parts)
			      : gw_fail(GW_FORMAT, "line %d: %s", error.line, error.text);
		json_decref(root);
		if (status == GW_OK && parts != plan->parts)
			status = gw_fail(GW_INVALID, "its assignment is of %" PRIu64 " parts, and --num-parts is %u",
					 parts, plan->parts);
		if (status != GW_OK)
			gw_context(status, "%s", path);
	}
	gw_free(path);
	return status;
}

static gw_status read_folder(struct given_nodes *nodes, const char *folder)
{
	gw_status status = check_folder_meta(nodes->plan, folder);
	for (uint32_t t = 0; t < nodes->meta->num_ntypes && status == GW_OK; t++) {
		const char *name = nodes->meta->ntypes[t].name;
		char *array = gw_format("%s/%s.npy", folder, name), *text = gw_format("%s/%s.txt", folder, name);
		if (!array || !text)
			status = GW_NO_MEMORY;
		else if (access(array, F_OK) == 0 || access(text, F_OK) == 0)
			status = given_read_file(nodes, access(array, F_OK) == 0 ? array : text, t, t + 1);
		else
			status = gw_fail(GW_NOT_FOUND, "%s: has neither \"%s.npy\" nor \"%s.txt\"", folder, name, name);
		gw_free(array);
		gw_free(text);
	}
	return status;
}

static gw_status read_word(struct given_nodes *nodes, const char *word)
{
	const struct gw_graph_meta *meta = nodes->meta;
	struct stat found;
	const char *path = word;
	uint32_t t = 0, end = meta->num_ntypes;
	if (stat(word, &found) != 0 && strchr(word, '=')) {
		gw_status status = gw_plan_type_of_word(meta, word, &path, &t);
		if (status != GW_OK)
			return status;
		end = t + 1;
	} else if (stat(word, &found) == 0 && S_ISDIR(found.st_mode)) {
		return read_folder(nodes, word);
	}
	return given_read_file(nodes, path, t, end);
}

static gw_status check_complete(const struct given_nodes *nodes)
{
	for (uint32_t t = 0; t < nodes->meta->num_ntypes; t++) {
		if (!nodes->has[t])
			return gw_fail(GW_INVALID, "no file has the nodes of type \"%s\"", nodes->meta->ntypes[t].name);
	}
	return GW_OK;
}

gw_status gw_assign_given(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	struct given_nodes nodes = {.plan = plan, .meta = gw_part_meta(part), .piece = assignment->piece};
	uint64_t start_ns = gw_now_ns();
	nodes.has = gw_calloc(nodes.meta->num_ntypes, sizeof(*nodes.has));
	gw_status status = nodes.has ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; i < plan->given_count && status == GW_OK; i++)
		status = read_word(&nodes, plan->given[i]);
	if (status == GW_OK)
		status = check_complete(&nodes);
	gw_free(nodes.has);
	assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status == GW_OK ? GW_OK : gw_context(status, "--assignment");
}
