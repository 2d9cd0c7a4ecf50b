/* The union of the parts, through original ids, is the input: checked by brute force, for any graph on disk.
 *
 *   rows of nodes recognised by their original ids and data -> the map from new ids to old ones, a bijection
 *   -> every list expected by a stable sort of the old list -> ids, edges' rows, aliases and transposes compared
 *
 * Shares no code with what it tests but the reader. Fails the test (cmocka) at the first difference.
 */
#ifndef GW_TEST_PARTITION_ORACLE_H
#define GW_TEST_PARTITION_ORACLE_H

#include <stdint.h>

struct gw_oracle_result {
	uint64_t edges, edges_cut; /* counted from the parts: a source that another part owns */
	uint32_t parts;
	uint64_t nodes[16], part_edges[16], train[16]; /* of the first 16 parts */
	uint64_t ntype_nodes[8][16];
	uint64_t graph_id;
};

/* in, out: folders or JSONs. */
void gw_oracle_check(const char *in, const char *out, struct gw_oracle_result *result);

#endif
