/* The header of a text file of edges or triples: which columns its names point out. */
#ifndef GW_TOOLS_IMPORT_HEADER_H
#define GW_TOOLS_IMPORT_HEADER_H

#include "tools/import/import.h"

/* Looks for known names of ends in the first row, in any column and any order: the end types of the set, src and dst,
 * source and target, user and item and so on (names.h). *found: they are there; file->id_columns has their columns, and
 * the format a header. Leaves ends alone that options name. Does nothing if the format has no header. GW_FORMAT if the
 * names point out more than one column for an end, or if a quote of the first row does not close on its line. */
gw_status gw_import_header_find(const struct gw_import *im, const struct gw_import_set *set,
				struct gw_import_file *file, bool *found);

/* For a file without known names: sets file->id_columns to the first columns, those without a name left out. GW_FORMAT
 * if the header says that these columns are no ends; or if the format has no header, and the first row may be one: its
 * ids are text, and none of its words recurs below. */
gw_status gw_import_header_default(const struct gw_import *im, const struct gw_import_set *set,
				   struct gw_import_file *file);

/* Checks columns against the rows: a header that is shorter than the rows below it, a delimiter that may be another.
 * GW_FORMAT. */
gw_status gw_import_header_check(const struct gw_import *im, const struct gw_import_file *file);

/* When all files of a set are open: refuses a doubtful first row whose words no other file of the set has. GW_FORMAT.
 */
gw_status gw_import_header_settle(const struct gw_import_set *set);

/* Prints the line that names the columns in use, unless they are those of the set's previous file. GW_FORMAT if one
 * file of a set has known names in other columns than the first, and the other has no header. */
gw_status gw_import_header_report(const struct gw_import *im, const struct gw_import_set *set, uint32_t number);

#endif
