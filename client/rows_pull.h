/* Reading rows that change by asking their owners for them: the way of a gather that every transport has. */
#ifndef GW_CLIENT_ROWS_PULL_H
#define GW_CLIENT_ROWS_PULL_H

#include "client/fan_in.h"
#include "client/link.h"
#include "core/base/vec.h"

/* The rows of one part. */
struct gw_pull {
	uint64_t birth;
	const uint64_t *rows; /* their numbers there */
	const uint32_t *to;   /* where they go: rows of `out` */
	uint64_t count;
	uint8_t *out;
	uint64_t row_bytes;
	const struct gw_fan_in *reads; /* what it is a piece of */
	/* Its own: */
	uint64_t at, asked;
	struct gw_vec request; /* kept from gather to gather */
	struct gw_link *link;
	void *owner; /* the link op's, given back to it before `done` */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
};

/* Makes room for `count` pulls. On failure there are none. */
gw_status gw_pulls_reserve(struct gw_pull **pulls, uint64_t *room, uint64_t count);
void gw_pulls_free(struct gw_pull *pulls, uint64_t room);

/* Begins one: `op`, whose done tells the end, asks for the rows. It carries one request after another; cancelled, it
 * ends. */
void gw_pull_start(struct gw_pull *pull, struct gw_link *link, struct gw_link_op *op);

#endif
