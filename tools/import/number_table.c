/* graphwire import table: converts a text table of numbers to a NumPy array.
 *
 *   text -> delimiter, header -> rows counted -> read as whole numbers -> on a fraction, read again (numbers.h)
 *
 * The first attempt ends at the first fraction, so tables of real numbers are in effect read once.
 */
#include "tools/import/number_table.h"

#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/system/parallel.h"
#include "tools/import/npy_write.h"
#include "tools/import/numbers.h"
#include "tools/output_options.h"

/* [rows, columns], row by row: int64 if all numbers are whole, else float32 (GW_NUMBERS_DIGITS of numbers.h). */
struct number_table {
	gw_dtype dtype;
	uint64_t rows, columns;
	void *values;
};

static void number_table_close(struct number_table *table)
{
	gw_free(table->values);
	*table = (struct number_table){0};
}

struct table_reading {
	const struct gw_table *table;
	struct gw_table_column *columns;
	struct number_table *out;
	unsigned threads;
};

static gw_status number_table_read_as(void *context, enum gw_column_kind kind)
{
	const struct table_reading *r = context;
	for (uint32_t i = 0; i < r->out->columns; i++)
		r->columns[i] = (struct gw_table_column){.index = i,
							 .kind = kind,
							 .nan = true,
							 .what = "value",
							 .values = (uint64_t *)r->out->values + i,
							 .stride = r->out->columns};
	return gw_table_read(r->table, r->columns, (uint32_t)r->out->columns, r->threads);
}

static gw_status read_values(const struct gw_table *table, unsigned threads, struct number_table *out)
{
	uint64_t bytes;
	if (__builtin_mul_overflow(out->rows, out->columns * 8, &bytes))
		return gw_fail(GW_LIMIT, "%s: more values than any memory has", table->text->name);
	gw_status status = gw_memory_check(bytes, -1, "the table");
	if (status != GW_OK)
		return status;
	struct gw_table_column *columns = gw_calloc(out->columns, sizeof(*columns));
	out->values = gw_calloc(out->rows * out->columns, 8);
	if (!columns || !out->values) {
		gw_free(columns);
		return GW_NO_MEMORY;
	}
	struct table_reading reading = {.table = table, .columns = columns, .out = out, .threads = threads};
	enum gw_column_kind kind;
	status = gw_numbers_choose(GW_NUMBERS_DIGITS, number_table_read_as, &reading, &kind);
	if (status == GW_OK)
		out->dtype = gw_numbers_pack(kind, out->values, out->rows * out->columns);
	gw_free(columns);
	return status;
}

/* Reads all columns. Every row must have as many as the first. */
static gw_status number_table_read(const char *path, const struct gw_table_format *format, unsigned threads,
				   struct number_table *out)
{
	struct gw_table_format detected = *format;
	struct gw_text text;
	struct gw_table table = {0};
	*out = (struct number_table){0};
	gw_status status = gw_text_open(path, NULL, &text);
	if (status != GW_OK)
		return status;
	gw_table_sniff(&text, (const uint32_t[]){0}, 1, &detected);
	detected.exact = true;
	out->columns = gw_table_peek(&text, &detected, 0, NULL, 0);
	if (out->columns == 0 || out->columns > GW_TABLE_COLUMNS_MAX)
		status = gw_fail(GW_FORMAT, "%s: %s", path,
				 out->columns ? "too many columns" : "no rows: an empty table has no columns");
	if (status == GW_OK)
		status = gw_table_scan(&text, &detected, threads, &table);
	if (status == GW_OK) {
		out->rows = table.rows;
		status = read_values(&table, threads, out);
		gw_table_close(&table);
	}
	gw_text_close(&text);
	if (status != GW_OK)
		number_table_close(out);
	return status;
}

static gw_status number_table_write(const struct number_table *table, const char *path)
{
	const uint64_t shape[2] = {table->rows, table->columns};
	return gw_import_npy_write(path, table->dtype, 2, shape, table->values);
}

struct table_arguments {
	const char *from, *out;
	bool no_header;
	unsigned threads;
};

#define A struct table_arguments
static const struct gw_option options_table[] = {
	{"from", "FILE", "numbers in rows of equal length, gzip or not; - is standard input", 0,
	 GW_OPTION_TEXT(A, from, .missing = "name the input with --from")},
	{"out", "FILE", "write the array here, as .npy", 0, GW_OPTION_TEXT(A, out, .missing = "name an .npy file")},
	{"no-header", NULL, "the first line is data (default: if its first column is a number)", 0,
	 GW_OPTION_FLAG(A, no_header)},
	{"threads", "N", "default: all processors", 0, GW_OPTION_NUMBER(A, threads, 1, GW_TOOL_THREADS_MAX)},
	{0},
};
#undef A

static const char table_doc[] =
	"Convert a text table of numbers to a NumPy array, such as features for import --node-feature.\v"
	"The array is int64 if all numbers are whole, else float32. Its shape is [rows, columns]. "
	"A number that the array would change is refused.\n\n"
	"Example:\n"
	"  graphwire import table --from node-feat.csv.gz --out feat.npy\n";

int gw_number_table_main(int argc, char **argv)
{
	static const struct gw_options options = {.table = options_table, .doc = table_doc};
	struct table_arguments a = {0};
	struct number_table table;
	gw_options_parse(&options, argc, argv, &a);
	struct gw_table_format format = {.header = a.no_header ? GW_HEADER_NONE : GW_HEADER_AUTO};
	gw_status status = number_table_read(a.from, &format, a.threads ? a.threads : gw_processors(), &table);
	if (status == GW_OK) {
		status = number_table_write(&table, a.out);
		number_table_close(&table);
	}
	return gw_exit_status("graphwire import table", status);
}
