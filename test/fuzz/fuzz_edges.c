/* Any bytes as a table of edges, or as a matrix in text: refused with one line that names the input, or read to the
 * same values by one thread and by three, each of which means what its text says.
 *
 * Byte 0 chooses the form; the rest is the text. Chunks are a megabyte, so that threads differ only where the input is
 * large; the seam itself is tested by unit tests.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/import/matrix.h"
#include "tools/import/numbering.h"
#include "tools/import/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(void)
{
	assert(gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
}

/* Numbers of texts: equal texts, and only they, have equal numbers; strings are the texts. */
static void check_names(const struct gw_text *text, const uint64_t *refs, uint64_t rows)
{
	uint64_t *numbers = gw_malloc(rows * 8), *offsets;
	char *bytes;
	assert(numbers);
	memcpy(numbers, refs, rows * 8);
	struct gw_numbering_column column = {.first = numbers, .rows = rows, .text = text->data};
	struct gw_numbering numbering;
	struct gw_spill spill = {0};
	const struct gw_numbering_memory memory = {.spill = &spill, .bytes = rows % 2};
	gw_status status = gw_numbering_create(&column, 1, 1, &memory, &numbering);
	assert(status == GW_OK && numbering.count <= rows);
	status = gw_numbering_strings(&numbering, &column, 1, &spill, &offsets, &bytes);
	assert(status == GW_OK);
	for (uint64_t i = 0; i < rows; i++) {
		struct gw_text_span span = gw_text_span(text->data, refs[i]);
		uint64_t length = offsets[numbers[i] + 1] - offsets[numbers[i]];
		assert(span.at >= text->data && span.at + span.bytes <= text->data + text->bytes);
		assert(span.escaped ? length < span.bytes : length == span.bytes);
		assert(span.escaped || memcmp(bytes + offsets[numbers[i]], span.at, length) == 0);
	}
	gw_spill_give(offsets);
	gw_spill_give(bytes);
	gw_free(numbers);
	gw_numbering_free(&numbering);
}

static void try_table(const struct gw_text *text, struct gw_table_format format, enum gw_column_kind kind)
{
	static const uint32_t numbers[] = {0, 1};
	struct gw_table table;
	struct gw_text_span fields[4];
	uint32_t index;
	gw_table_sniff(text, numbers, 2, &format);
	assert(format.delimiter && format.header != GW_HEADER_AUTO);
	gw_table_peek(text, &format, 3, fields, 4);
	if (gw_table_find(text, &format, "dst", &index) == GW_OK)
		assert(index < GW_TABLE_COLUMNS_MAX);
	uint64_t line;
	if (gw_table_repeats(text, &format, &line))
		assert(line > 1);
	gw_status status = gw_table_scan(text, &format, 2, &table);
	assert(status == GW_OK && table.rows <= text->bytes);
	uint64_t *values[2];
	gw_status got[2];
	for (unsigned i = 0; i < 2; i++) {
		values[i] = gw_calloc(table.rows * 2, sizeof(uint64_t));
		assert(values[i]);
		struct gw_table_column columns[] = {
			{.index = 0,
			 .kind = kind,
			 .is_id = text->bytes & 4,
			 .digits = 3,
			 .what = "a",
			 .values = values[i]},
			{.index = 1, .kind = GW_COLUMN_ID, .what = "b", .values = values[i] + table.rows}};
		got[i] = gw_table_read(&table, columns, 1 + (text->bytes & 1), i ? 3 : 1);
		if (got[i])
			check_error();
	}
	assert(got[0] == got[1]);
	if (got[0] == GW_OK) {
		assert(memcmp(values[0], values[1], table.rows * 16) == 0);
		if (kind == GW_COLUMN_TEXT)
			check_names(text, values[0], table.rows);
	}
	for (uint64_t row = 0; row < table.rows && row < 5; row++)
		assert(gw_table_line(&table, row) > row);
	gw_free(values[0]);
	gw_free(values[1]);
	gw_table_close(&table);
}

static void try_matrix(const struct gw_text *text)
{
	struct gw_import_file file = {.path = "input", .format = GW_FROM_TEXT};
	struct gw_table_format format = {.comments = "#%"};
	if (gw_import_matrix_text(text, &format, &file.matrix) != GW_OK) {
		check_error();
		return;
	}
	if (!file.matrix.what)
		return;
	gw_status status = gw_table_scan(text, &format, 2, &file.table);
	assert(status == GW_OK);
	file.rows = file.table.rows;
	uint64_t *ids = gw_calloc(file.rows * 2, sizeof(*ids));
	assert(ids);
	const struct gw_table_column columns[] = {
		{.index = 0, .kind = GW_COLUMN_ID, .what = "row", .values = ids},
		{.index = 1, .kind = GW_COLUMN_ID, .what = "column", .values = ids + file.rows}};
	status = gw_table_read(&file.table, columns, 2, 2);
	if (status == GW_OK)
		status = gw_import_matrix_check(&file, ids, ids + file.rows);
	if (status != GW_OK)
		check_error();
	for (uint64_t i = 0; i < file.rows && status == GW_OK; i++)
		assert(ids[i] >= 1 && ids[i] <= file.matrix.rows && ids[file.rows + i] >= 1 &&
		       ids[file.rows + i] <= file.matrix.columns);
	gw_free(ids);
	gw_table_close(&file.table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char delimiters[] = {0, '\t', ',', ' ', ';', 0, 0, '|'};
	struct gw_text text;
	if (size == 0)
		return 0;
	uint8_t form = data[0];
	/* A copy of its own, so that a read past the end is seen. */
	char *copy = malloc(size - 1 ? size - 1 : 1);
	assert(copy);
	memcpy(copy, data + 1, size - 1);
	gw_status status = gw_text_borrow("input", copy, size - 1, &text);
	assert(status == GW_OK);
	if (form >> 7) {
		try_matrix(&text);
	} else {
		struct gw_table_format format = {.delimiter = delimiters[form & 7],
						 .quotes = form & 8 ? (size & 2 ? GW_QUOTES_LOOSE : GW_QUOTES_STRICT)
								    : GW_QUOTES_NONE,
						 .comments = "#%"};
		try_table(&text, format, (enum gw_column_kind)((form >> 4) % 5));
	}
	gw_text_close(&text);
	free(copy);
	return 0;
}
