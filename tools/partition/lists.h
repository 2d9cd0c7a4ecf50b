/* The symmetric graph as a file: in the ParHIP format, which partitioners read, and mapped.
 *
 *   uint64 version, nodes, entries | uint64 offset[nodes + 1] | uint32 id[entries] | uint32 weight[nodes], if wanted
 *
 * An offset is the byte of the file where the node's list begins. A bit of version is set where a part is absent or has
 * 32 bits: 1 weights of entries, 2 weights of nodes; 4 offsets, 8 ids, 16 weights of nodes, 32 weights of entries
 * (kaminpar-io/parhip_parser.cc of KaMinPar). Entries have no weights: repeated edges count once.
 */
#ifndef GW_TOOLS_PARTITION_LISTS_H
#define GW_TOOLS_PARTITION_LISTS_H

#include "tools/builder/spill.h"
#include "tools/partition/balance.h"

struct gw_list_file {
	int fd; /* without a name in any folder */
	uint64_t bytes;
	void *map;
	uint64_t nodes; /* that have a neighbour */
	uint64_t entries;
	const uint64_t *offset; /* [nodes + 1], of the mapped file */
	const uint32_t *ids;    /* [entries], of the mapped file: each list ascending, without loops and repeats */
	uint32_t *origin;       /* [nodes]: the number of each node in the common numbering, ascending */
	uint64_t *total, *most; /* [quantities]: the sum over the nodes, and the greatest value of a node */
};

/* GW_LIMIT: too many nodes or quantities for a file. gw_list_file_make fails in the same way. */
gw_status gw_list_file_check(const struct gw_balance *balance);

/* Writes the file in the spill's folder, its space reserved first, in passes over the edges with about `bytes` of
 * memory besides 16 bytes a node. weights: each node weighs its share of all quantities; without them nodes weigh the
 * same. GW_LIMIT: more than 2^32 - 2 nodes, or quantities; GW_NO_MEMORY; GW_IO, GW_NO_SPACE. Close the lists in any
 * case. */
gw_status gw_list_file_make(const struct gw_balance *balance, struct gw_spill *spill, uint64_t bytes, bool weights,
			    struct gw_list_file *out);
void gw_list_file_close(struct gw_list_file *lists); /* one with map NULL is allowed */

/* The bytes that the file takes at most. */
uint64_t gw_list_file_bytes_max(uint64_t nodes, uint64_t edges);

/* For a pass over the lists in the order of nodes, before node v: takes the pages of earlier lists out of the process's
 * memory, a few MiB at a time. The kernel's cache keeps them. *left: 0 before the pass; then a place in the file. */
void gw_list_file_leave(const struct gw_list_file *lists, uint64_t v, uint64_t *left);

/* The list of node v: *n ids. */
static inline const uint32_t *gw_list_file_of(const struct gw_list_file *lists, uint64_t v, uint64_t *n)
{
	*n = (lists->offset[v + 1] - lists->offset[v]) / sizeof(uint32_t);
	return lists->ids + (lists->offset[v] - lists->offset[0]) / sizeof(uint32_t);
}

#endif
