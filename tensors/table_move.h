/* Tensors that move to another process: the successor of a server on the same host.
 *
 *   old server   gw_tensor_table_give ─▶ descriptions and descriptors ─▶ (server/handover.h carries them)
 *   successor    gw_tensor_moved_adopt ─▶ a row store, while the old server serves
 *                gw_tensor_table_take  ─▶ listed, with the epochs, regions and leases that clients know
 *
 * A shard that is not filled yet moves as its plan alone, and the successor fills it. */
#ifndef GW_TENSORS_TABLE_MOVE_H
#define GW_TENSORS_TABLE_MOVE_H

#include "tensors/table.h"

struct gw_tensor_moved {
	struct gw_tensor_plan plan;
	uint64_t epoch, leader;
	uint64_t *epochs; /* [num_parts], or NULL */
	bool restored, ready;
	uint32_t region, generation; /* generation 0: its rows are not published */
	uint64_t counts[6];          /* written, pushed, pulled, read, pulls, torn */
	struct gw_row_memory memory; /* if ready */
	struct gw_shard *shard;      /* old server: referenced */
	struct gw_row_store *store;  /* successor: of gw_tensor_moved_adopt */
};

struct gw_tensor_moved_job {
	char name[GW_JOB_NAME_MAX + 1];
	uint64_t age_ms; /* since the last renewal of its lease */
};

struct gw_tensor_moves {
	struct gw_tensor_moved *shards;
	uint32_t shard_count;
	struct gw_tensor_moved_job *jobs;
	uint32_t job_count;
	uint64_t epochs; /* numbers of epochs given out so far */
};

/* Describes all listed shards, the newest first, and references them. Free the result by gw_tensor_moves_free. */
gw_status gw_tensor_table_give(struct gw_tensor_table *table, struct gw_tensor_moves *out);
/* table: the one that gave them; NULL: the successor's, whose stores that were not taken end. */
void gw_tensor_moves_free(struct gw_tensor_table *table, struct gw_tensor_moves *moves);

/* Makes moved->store of moved->memory, whose descriptors it takes over in any case. GW_INVALID and others as for
 * gw_row_store_adopt. */
gw_status gw_tensor_moved_adopt(const struct gw_tensor_table_options *options, struct gw_tensor_moved *moved);
/* Lists the shard in an empty or partly filled new table, before clients connect, and publishes its rows. Takes over
 * moved->store and moved->epochs if it succeeds. GW_EXISTS and GW_INVALID: it does not fit; GW_NOT_FOUND: the source of
 * an unfilled shard does not exist. */
gw_status gw_tensor_table_take(struct gw_tensor_table *table, struct gw_tensor_moved *moved);
/* After the shards: the numbers of epochs, and the leases of jobs. */
void gw_tensor_table_take_rest(struct gw_tensor_table *table, const struct gw_tensor_moves *moves);

#endif
