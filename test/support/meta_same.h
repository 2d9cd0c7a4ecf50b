/* Whether two descriptions are of one graph: compares id, types, ranges, and each array's key, dtype, shape and digest.
 */
#ifndef GW_TEST_SUPPORT_META_SAME_H
#define GW_TEST_SUPPORT_META_SAME_H

#include "core/graph/meta.h"

bool meta_same(const struct gw_graph_meta *a, const struct gw_graph_meta *b);

#endif
