/* The table, for people and for programs. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/units.h"
#include "tools/means/means.h"

#define CELL 64

/* How a user has the means. */
static const char *option_text(const struct gw_means_row *row, char out[CELL])
{
	if (strcmp(row->means, "replicas") == 0)
		snprintf(out, CELL,
			 strcmp(row->by, "best") == 0 ? "replicas of %g%%: the bound" : "replicate --rows %g%% --by %s",
			 100 * row->value, row->by);
	else if (strcmp(row->means, "narrow") == 0)
		snprintf(out, CELL, "partition --store NAME=%s", row->by);
	else if (strcmp(row->means, "lookahead") == 0)
		snprintf(out, CELL, "loader, lookahead=%.0f", row->value);
	else if (strcmp(row->means, "cache") == 0)
		snprintf(out, CELL, "loader, cache_bytes=%.0f", row->value);
	else if (strcmp(row->means, "lists") == 0)
		snprintf(out, CELL, "serve --lists all");
	else if (strcmp(row->means, "disk") == 0)
		snprintf(out, CELL, "serve --on-disk NAME");
	else if (strcmp(row->means, "disk_lists") == 0)
		snprintf(out, CELL, "serve --on-disk lists");
	else if (strcmp(row->means, "disk_offsets") == 0)
		snprintf(out, CELL, "serve --on-disk lists,offsets");
	else
		snprintf(out, CELL, "%s", row->means);
	return out;
}

static const char *bytes_cell(double bytes, char out[CELL])
{
	char text[GW_UNIT_TEXT_MAX];
	if (isnan(bytes))
		return "-";
	snprintf(out, CELL, "%s%s", bytes < 0 ? "-" : "", gw_text_bytes(text, bytes < 0 ? -bytes : bytes));
	return out;
}

static void print_rows(const struct gw_means_table *table)
{
	char option[CELL], memory[CELL], rows[CELL], samples[CELL], share[CELL], blocks[CELL];
	const double none = table->rows[0].rows + table->rows[0].samples;
	printf("%-34s %11s %11s %11s %6s %11s\n", "MEANS", "MEMORY", "ROWS", "SAMPLES", "SHARE", "DISK BLOCKS");
	for (uint32_t i = 0; i < table->count; i++) {
		const struct gw_means_row *row = &table->rows[i];
		const double all = row->rows + row->samples;
		snprintf(blocks, sizeof(blocks), "%.0f", row->disk_blocks);
		snprintf(share, sizeof(share), "%.3f", none > 0 ? all / none : 1);
		printf("%-34s %11s %11s %11s %6s %11s\n", option_text(row, option), bytes_cell(row->memory, memory),
		       bytes_cell(row->rows, rows), bytes_cell(row->samples, samples), isnan(all) ? "-" : share,
		       row->disk_blocks > 0 ? blocks : "-");
	}
}

static void print_fit(const struct gw_means_table *table, const struct gw_means_fit *fit)
{
	char memory[CELL], rows[CELL], samples[CELL];
	printf("%-10s ", fit->store ? fit->store : "as stored");
	if (!fit->fits) {
		printf("does not fit: a part takes %s. Make more parts\n", bytes_cell(fit->memory, memory));
		return;
	}
	printf("%s; rows %s, samples %s:", bytes_cell(fit->memory, memory), bytes_cell(fit->rows, rows),
	       bytes_cell(fit->samples, samples));
	if (fit->on_disk)
		printf(" serve --on-disk NAME --disk-cache %.0f", (double)table->memory - fit->memory);
	if (fit->on_disk && fit->disk_blocks > 0)
		printf(" (%.0f blocks)", fit->disk_blocks);
	if (fit->share > 0)
		printf(" replicate --rows %g%%", 100 * fit->share);
	if (fit->lists)
		printf(" serve --lists all");
	if (fit->lookahead > 1)
		printf(" lookahead=%u", fit->lookahead);
	if (fit->cache_bytes)
		printf(" cache_bytes=%" PRIu64, fit->cache_bytes);
	if (!fit->on_disk && !(fit->share > 0) && !fit->lists && fit->lookahead == 1 && !fit->cache_bytes)
		printf(" none");
	printf("\n");
}

static void print_text(const struct gw_means_table *table)
{
	char memory[CELL];
	printf("A mini-batch of %u seeds: the mean of %" PRIu64 " mini-batches of %u parts.\n"
	       "MEMORY: more than the part, on the host where it is most, with one trainer. ROWS, SAMPLES: bytes between "
	       "hosts; samples by requests.\nDISK BLOCKS: blocks of 4 KiB that a mini-batch reads, without a cache.\n\n",
	       table->batch_size, table->batches, table->parts);
	print_rows(table);
	if (!table->fit_count)
		return;
	printf("\nThe least bytes within %s, the part included:\n", bytes_cell((double)table->memory, memory));
	for (uint32_t i = 0; i < table->fit_count; i++)
		print_fit(table, &table->fits[i]);
}

/* --- Programs. --- */

static json_t *row_json(const struct gw_means_row *row)
{
	json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:f}", "means", row->means, "value", row->value, "memory",
				   row->memory, "rows", row->rows, "disk_blocks", row->disk_blocks);
	if (!isnan(row->samples))
		json_object_set_new(object, "samples", json_real(row->samples));
	if (row->by)
		json_object_set_new(object, "by", json_string(row->by));
	return object;
}

static json_t *fit_json(const struct gw_means_fit *fit)
{
	json_t *object = json_pack("{s:b, s:f}", "fits", fit->fits, "memory", fit->memory);
	json_object_set_new(object, "store", fit->store ? json_string(fit->store) : json_null());
	if (fit->fits)
		json_object_update_new(
			object, json_pack("{s:b, s:f, s:I, s:I, s:b, s:f, s:f, s:f}", "on_disk", fit->on_disk,
					  "replicas", fit->share, "lookahead", (json_int_t)fit->lookahead,
					  "cache_bytes", (json_int_t)fit->cache_bytes, "lists", fit->lists, "rows",
					  fit->rows, "samples", fit->samples, "disk_blocks", fit->disk_blocks));
	return object;
}

static gw_status print_table_json(const struct gw_means_table *table)
{
	json_t *rows = json_array(), *fits = json_array();
	for (uint32_t i = 0; i < table->count; i++)
		json_array_append_new(rows, row_json(&table->rows[i]));
	for (uint32_t i = 0; i < table->fit_count; i++)
		json_array_append_new(fits, fit_json(&table->fits[i]));
	json_t *object = json_pack("{s:I, s:I, s:I, s:o}", "batches", (json_int_t)table->batches, "batch_size",
				   (json_int_t)table->batch_size, "parts", (json_int_t)table->parts, "means", rows);
	if (table->fit_count)
		json_object_set_new(object, "fits", fits);
	else
		json_decref(fits);
	char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(object);
	if (!text)
		return gw_fail(GW_NO_MEMORY, "no memory for the table");
	puts(text);
	free(text);
	return GW_OK;
}

gw_status gw_means_print(const struct gw_means_table *table, bool json)
{
	if (json)
		return print_table_json(table);
	print_text(table);
	return GW_OK;
}
