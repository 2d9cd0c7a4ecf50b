/* Masks of nodes and edges. */
#ifndef GW_TOOLS_IMPORT_MASKS_H
#define GW_TOOLS_IMPORT_MASKS_H

#include "tools/import/import.h"

/* Makes bools of numbers 0 and 1, one for each row. GW_FORMAT. */
gw_status gw_import_mask_of_flags(struct gw_import *im, const struct gw_import_feature *feature, uint64_t rows,
				  struct gw_builder_array *array);

/* Makes bools of a list of ids, in the order of the nodes (*by_id). Numbers 0 and 1, one for each row, are taken as
 * flags instead, in the order of the rows. GW_RANGE for an id that does not exist; GW_FORMAT for one that repeats. */
gw_status gw_import_mask_of_ids(struct gw_import *im, const struct gw_import_space *space,
				const struct gw_import_feature *feature, struct gw_builder_array *array, bool *by_id);

#endif
