/* The subgraph request: asks the server that owns destinations for their edges from given sources. Little-endian.
 *
 *   call:   struct gw_subgraph_call,
 *           struct gw_subgraph_section [section_count],
 *           the sections' destinations [dst_count] uint32, local rows, padded to 8 bytes,
 *           the sections' sources [src_count] of id_bytes each, ascending in each section
 *   reply:  struct gw_subgraph_reply, then each edge as three numbers of 7 bits a byte, the lowest first; all bytes but
 *           a number's last have the top bit:
 *             how many destinations of the call its destination is after that of the edge before (at first: after
 *             `first`),
 *             the place of its source in the section,
 *             its CSC position
 *
 * Each section is a question of its own: which edges go from its sources to its destinations? So an edge takes 3 to 16
 * bytes, usually 4 to 8, and a destination or source without edges takes none. Edges are in the order of the
 * call's destinations, then by position.
 *
 * A reply has all edges of the destinations before `answered`, and perhaps the first ones of the destination at
 * `answered`. The client sends the call again for the rest, with `first` and `from` after the last edge that it
 * received.
 */
#ifndef GW_PROTOCOL_SUBGRAPH_CALL_H
#define GW_PROTOCOL_SUBGRAPH_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "core/errors/status.h"

#define GW_SUBGRAPH_SECTIONS_MAX (1u << 16) /* in one call; likewise below */
#define GW_SUBGRAPH_DSTS_MAX     (1u << 18)
#define GW_SUBGRAPH_SRCS_MAX     (1u << 18)
#define GW_SUBGRAPH_EDGE_MAX     20u /* bytes of an edge */

struct gw_subgraph_call {
	uint32_t etype;
	uint32_t section_count, dst_count, src_count;
	uint32_t id_bytes; /* 4 or 8 */
	uint32_t reply_bytes_max;
	uint32_t first; /* the destination to begin with, below dst_count */
	uint32_t zero;
	uint64_t from; /* of its edges, only those at positions from here on */
};

struct gw_subgraph_section {
	uint32_t dst_count, src_count; /* neither is 0 */
};

struct gw_subgraph_reply {
	uint32_t answered, edge_count;
};

/* The arrays of a call, at any alignment. */
struct gw_subgraph_arrays {
	const uint8_t *sections, *dsts, *srcs;
};

size_t gw_subgraph_call_bytes(const struct gw_subgraph_call *call);
/* The arrays of a call of gw_subgraph_call_bytes() bytes. */
void gw_subgraph_call_arrays(const struct gw_subgraph_call *call, const void *bytes, struct gw_subgraph_arrays *arrays);

/* Checks a call's head and its length. GW_PROTOCOL, GW_RANGE. */
gw_status gw_subgraph_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes,
				 struct gw_subgraph_call *call, struct gw_subgraph_arrays *arrays);
/* Checks that the sections of a parsed call add up. GW_PROTOCOL. */
gw_status gw_subgraph_sections_check(const struct gw_subgraph_call *call, const struct gw_subgraph_arrays *arrays);

struct gw_subgraph_section gw_subgraph_section(const struct gw_subgraph_arrays *arrays, uint32_t number);
uint32_t gw_subgraph_dst(const struct gw_subgraph_arrays *arrays, uint32_t at);
/* Copies n sources, beginning with number `at`. GW_PROTOCOL: they do not ascend. */
gw_status gw_subgraph_srcs(const struct gw_subgraph_call *call, const struct gw_subgraph_arrays *arrays, uint32_t at,
			   uint32_t n, uint64_t *out);

/* One edge of a reply. */
struct gw_subgraph_edge {
	uint32_t dst; /* number in the call */
	uint32_t src; /* place in the section */
	uint64_t position;
};

/* Writes an edge to out, which has room for GW_SUBGRAPH_EDGE_MAX bytes. before: the destination of the edge before.
 * Returns the number of its bytes. */
uint32_t gw_subgraph_edge_print(const struct gw_subgraph_edge *edge, uint32_t before, uint8_t *out);

/* Checks a reply's bytes against its call, whose bytes are `arrays`: lengths, order, bounds, progress. `edges`: the
 * part's number of edges, an exclusive bound of positions. Calls take for each edge, in order. *next: for the call that
 * asks for the rest, the position to begin at. If take fails, or the reply is impossible (GW_PROTOCOL), so does this;
 * edges before were taken. */
gw_status gw_subgraph_reply_parse(const void *bytes, size_t byte_count, const struct gw_subgraph_call *call,
				  const struct gw_subgraph_arrays *arrays, uint64_t edges,
				  gw_status (*take)(void *context, uint32_t section,
						    const struct gw_subgraph_edge *edge),
				  void *context, struct gw_subgraph_reply *reply, uint64_t *next);

#endif
