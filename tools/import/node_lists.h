/* Lists of ids: --nodes and --relations. */
#ifndef GW_TOOLS_IMPORT_NODE_LISTS_H
#define GW_TOOLS_IMPORT_NODE_LISTS_H

#include "tools/import/import.h"

/* Reads space->list_path into space->list, in the order of the numbers; sets list_is_text and lines. GW_FORMAT and
 * others name the file. */
gw_status gw_import_list_read(struct gw_import *im, struct gw_import_space *space);

/* The line (from 1) of the id with this number, for error texts; the element of an array likewise. */
uint64_t gw_import_list_line(const struct gw_import_space *space, uint64_t number);

#endif
