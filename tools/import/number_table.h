/* Tables of numbers as text: features, labels and ids of data sets that come as CSV. */
#ifndef GW_TOOLS_IMPORT_NUMBER_TABLE_H
#define GW_TOOLS_IMPORT_NUMBER_TABLE_H

#include "core/graph/npy.h"
#include "tools/import/table.h"

/* [rows, columns], row by row: int64 if all numbers are whole, else float32 (GW_NUMBERS_DIGITS of numbers.h). */
struct gw_number_table {
	gw_dtype dtype;
	uint64_t rows, columns;
	void *values;
};

/* Reads all columns of a text, gzip or not. Every row must have as many columns as the first. format: what is known of
 * the text. Errors name the input, line and column; GW_NO_MEMORY. Release with gw_number_table_close. */
gw_status gw_number_table_read(const char *path, const struct gw_table_format *format, unsigned threads,
			       struct gw_number_table *out);
void gw_number_table_close(struct gw_number_table *table);

/* Writes an .npy file; removes it again if that fails. GW_IO. */
gw_status gw_number_table_write(const struct gw_number_table *table, const char *path);

/* graphwire import table: argv[0] is the command's name. Returns the exit status. */
int gw_number_table_main(int argc, char **argv);

#endif
