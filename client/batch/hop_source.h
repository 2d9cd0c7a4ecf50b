/* The elements of a hop, shared by its modes: one owner's share of the nodes, and the picks of one edge type there. */
#ifndef GW_CLIENT_BATCH_HOP_SOURCE_H
#define GW_CLIENT_BATCH_HOP_SOURCE_H

#include "client/batch/edge_columns.h"
#include "client/batch/entries.h"
#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "client/state/recv_buffer.h"
#include "sampler/picks_rounds.h"

/* GW_HOP_MEMORY: the lists stay valid, so gw_hop_take picks from them, at most GW_HOP_RUN nodes at a time.
 * GW_HOP_MAPPED: the lists are unmapped when their server ends, so gw_hop_start picks from them at once. */
enum gw_hop_mode { GW_HOP_MEMORY, GW_HOP_MAPPED, GW_HOP_READS, GW_HOP_REQUEST };

struct gw_hop_share {
	struct gw_fan_in *answers;     /* of the hop */
	struct gw_hop_source *sources; /* of the hop: [num_etypes][num_parts] */
	uint32_t ntype, part;
	enum gw_direction direction;
	uint64_t count;
	bool grouped;
	struct gw_vec rows;     /* uint64_t: local rows, in the order of the nodes */
	struct gw_vec vertices; /* uint64_t: global ids */
	struct gw_vec groups;   /* uint32_t, if grouped */
	/* By reads: the degree records, read once for all edge types. */
	struct gw_link_op link_op;
	struct gw_vec offsets;
	struct gw_pull pull; /* of records on disk */
	struct gw_recv_buffer records;
	bool reading, recorded;
};

struct gw_hop_source {
	struct gw_fan_in *answers; /* of the hop: one answer for each source that has a request or read */
	struct gw_hop_share *share;
	uint32_t etype;
	bool active;   /* its edge type has a fanout in this hop */
	bool awaiting; /* waits for the degree records of the share */
	enum gw_hop_mode mode;
	enum gw_direction direction;
	struct gw_draw draw;
	const struct gw_edge_columns *columns;
	struct gw_picks picks;
	uint64_t taken_dst, taken_edges, seen_dst; /* cursors of the merge */
	/* By request. */
	struct gw_link_op link_op;
	struct gw_vec call, call_rows, group_runs;
	uint64_t asked; /* rows of the open call */
	/* By reads. */
	struct gw_vec begins, ends;
	struct gw_picks_rounds rounds;
	struct gw_entries neighbours;      /* their ids; then the ids of out-edges */
	struct gw_entries *column_entries; /* [GW_COLUMN_COUNT], once used */
	uint32_t columns_open;             /* reads of a round that have not ended */
	gw_status round_status;
};

/* Start a source (hop_reads.c, hop_request.c). The end of a source counts as one answer of the hop. */
void gw_hop_read(struct gw_hop_source *source);
void gw_hop_request(struct gw_hop_source *source);

static inline const uint32_t *gw_hop_share_groups(const struct gw_hop_share *share)
{
	return share->grouped ? share->groups.data : NULL;
}

#endif
