/* The law of alias tables on disk: every edge of every list has its share of the weight, to within 2^-32.
 *
 *   a part's weights, decoded here -> shares of each list -> compared with the chances that the table implies
 *
 * Shares no code with the construction of the tables. Fails the test (cmocka) at the first difference.
 */
#ifndef GW_TEST_WEIGHT_TABLES_H
#define GW_TEST_WEIGHT_TABLES_H

#include "core/graph/part.h"

/* Checks the table of the feature `name` of an edge type, "src:rel:dst", in an opened part. */
void weight_table_holds(const struct gw_part *part, const char *etype, const char *name);

/* The same in all parts of a graph on disk, which it opens and checks (gw_part_check). */
void weight_tables_hold(const char *folder, const char *etype, const char *name);

#endif
