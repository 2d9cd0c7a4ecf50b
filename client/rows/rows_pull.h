/* Reading rows that change: by one-sided reads, where their region is open, and what was torn each time, or cannot be
 * read so, by asking their owner for it. */
#ifndef GW_CLIENT_ROWS_ROWS_PULL_H
#define GW_CLIENT_ROWS_ROWS_PULL_H

#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "core/memory/vec.h"

/* The rows of one part. */
struct gw_pull {
	const char *name; /* of the tensor */
	uint64_t epoch;
	uint64_t *rows; /* where they lie in the region: their numbers times `step`. Changed when some are torn */
	uint32_t *to;   /* where they go: rows of `out`; likewise */
	uint64_t count;
	uint64_t step;
	uint8_t *out;
	uint64_t out_local; /* its offset in the op's buffer */
	uint64_t row_bytes;
	const struct gw_fan_in *reads; /* what it is a piece of */
	_Atomic uint64_t *read;        /* the engine's count of rows that were read without asking; NULL: none */
	/* Its own: */
	uint64_t at, asked;
	bool torn;             /* what is asked for was read before */
	struct gw_vec request; /* kept from gather to gather */
	struct gw_link *link;
	void *owner; /* the link op's, given back to it before `done` */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
};

/* Makes room for `count` pulls. On failure there are none. */
gw_status gw_pulls_reserve(struct gw_pull **pulls, uint64_t *room, uint64_t count);
void gw_pulls_free(struct gw_pull *pulls, uint64_t room);

/* Begins one: `op`, a gather of the rows from their region, whose done tells the end, reads them if it can be, or asks
 * for them. It carries one request after another; cancelled, it ends. */
void gw_pull_start(struct gw_pull *pull, struct gw_link *link, struct gw_link_op *op);

#endif
