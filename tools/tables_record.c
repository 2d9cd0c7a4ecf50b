/* See tables_record.h. A copy keeps the text, with the other graph's id in place of this one's. */
#include "tools/tables_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/errors/options.h"
#include "core/files/regular.h"
#include "core/memory/alloc.h"

#define ID_DIGITS 16

static char *tables_record_path(const char *folder, const struct gw_graph_meta *meta)
{
	return gw_format("%s/%s.tables.json", folder, meta->graph_name);
}

/* The text of the graph's record, as a string that gw_free frees, and its JSON; both NULL without one. */
static gw_status load_record(const struct gw_graph_meta *meta, char **text, json_t **root)
{
	char id[ID_DIGITS + 1], *path = tables_record_path(meta->folder, meta);
	size_t bytes = 0;
	json_error_t error;
	*text = NULL;
	*root = NULL;
	if (!path)
		return GW_NO_MEMORY;
	snprintf(id, sizeof(id), "%016" PRIx64, meta->graph_id);
	gw_status status = access(path, F_OK) == 0 ? gw_regular_read(path, GW_JSON_BYTES_MAX, text, &bytes) : GW_OK;
	if (status == GW_OK && *text) {
		*root = json_loadb(*text, bytes, JSON_REJECT_DUPLICATES, &error);
		if (!*root || !json_is_object(json_object_get(*root, "tables")))
			status = gw_fail(GW_FORMAT, "%s: no record of tables, or damaged: remove it", path);
		const char *found = json_string_value(json_object_get(*root, "graph_id"));
		if (status == GW_OK && (!found || strcmp(found, id) != 0)) {
			json_decref(*root);
			*root = NULL;
		}
	}
	gw_free(path);
	if (status != GW_OK || !*root) {
		json_decref(*root);
		gw_free(*text);
		*root = NULL;
		*text = NULL;
	}
	return status;
}

gw_status gw_tables_record_read(const struct gw_graph_meta *meta, json_t **tables)
{
	char *text;
	json_t *root;
	gw_status status = load_record(meta, &text, &root);
	*tables = json_incref(json_object_get(root, "tables"));
	json_decref(root);
	gw_free(text);
	return status;
}

static gw_status write_whole(const char *path, const char *text)
{
	char *temporary = gw_format("%s.%ld", path, (long)getpid());
	FILE *file = temporary ? fopen(temporary, "we") : NULL;
	int error = file ? 0 : errno;
	if (file && fputs(text, file) < 0)
		error = errno;
	if (file && fclose(file) != 0 && !error)
		error = errno;
	if (!error && rename(temporary, path) != 0)
		error = errno;
	if (error && file)
		unlink(temporary);
	gw_free(temporary);
	return error ? gw_fail_errno(error == ENOSPC ? GW_NO_SPACE : GW_IO, error, "%s: cannot be written", path)
		     : GW_OK;
}

gw_status gw_tables_record_copy(const struct gw_graph_meta *meta, const char *folder, uint64_t graph_id)
{
	char id[ID_DIGITS + 1], *text;
	json_t *root;
	gw_status status = load_record(meta, &text, &root);
	if (status != GW_OK || !root)
		return status;
	snprintf(id, sizeof(id), "%016" PRIx64, meta->graph_id);
	char *at = strstr(text, id), *path = tables_record_path(folder, meta);
	snprintf(id, sizeof(id), "%016" PRIx64, graph_id);
	memcpy(at, id, ID_DIGITS); /* the first text with these digits is the value, which precedes the tables */
	status = path ? write_whole(path, text) : GW_NO_MEMORY;
	gw_free(path);
	gw_free(text);
	json_decref(root);
	return status;
}

/* ---- the table ---- */

#define LINE_BYTES 256

static void record_append(char line[LINE_BYTES], const char *text)
{
	size_t used = strlen(line);
	snprintf(line + used, LINE_BYTES - used, "%s", text);
}

/* "a+b", or "-" without a column. */
static void append_columns(char line[LINE_BYTES], const json_t *columns)
{
	for (size_t i = 0; i < json_array_size(columns); i++) {
		const char *name = json_string_value(json_array_get(columns, i));
		record_append(line, i ? "+" : "");
		record_append(line, name ? name : "");
	}
	if (json_array_size(columns) == 0)
		record_append(line, "-");
}

static uint64_t record_count(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *record_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "-";
}

static void print_foreign_key(const char *table, const json_t *key)
{
	char line[LINE_BYTES] = "", rows[GW_UNIT_TEXT_MAX];
	uint64_t count = record_count(key, "rows");
	record_append(line, table);
	record_append(line, ".");
	append_columns(line, json_object_get(key, "columns"));
	record_append(line, " -> ");
	record_append(line, record_text(key, "table"));
	printf("%-56s %12s", line, gw_text_count(rows, (double)count));
	printf(" %7.2f%% %8.2f%%\n", count ? 100.0 * (double)record_count(key, "null") / (double)count : 0.0,
	       count ? 100.0 * (double)record_count(key, "dangling") / (double)count : 0.0);
}

void gw_tables_record_print(const json_t *tables)
{
	const char *name;
	json_t *table, *key;
	size_t place;
	if (!tables)
		return;
	printf("\n%-40s %12s  %-30s %-20s %s\n", "TABLE", "ROWS", "KEY", "TIME", "END");
	json_object_foreach((json_t *)tables, name, table)
	{
		char line[LINE_BYTES] = "", rows[GW_UNIT_TEXT_MAX];
		append_columns(line, json_object_get(table, "key"));
		printf("%-40s %12s  %-30s %-20s %s\n", name, gw_text_count(rows, (double)record_count(table, "rows")),
		       line, record_text(table, "time"), record_text(table, "end_time"));
	}
	printf("\n%-56s %12s %8s %9s\n", "FOREIGN KEY", "ROWS", "NULL", "DANGLING");
	json_object_foreach((json_t *)tables, name, table)
	{
		json_array_foreach(json_object_get(table, "foreign_keys"), place, key)
		{
			print_foreign_key(name, key);
		}
	}
}
