/* The arrays of an edge type while it is written: a stream for each, to which every run appends its rows in CSC order.
 *
 *   gw_builder_streams_open -> for each run: gw_builder_streams_append -> gw_builder_streams_close
 */
#ifndef GW_TOOLS_BUILDER_STREAMS_H
#define GW_TOOLS_BUILDER_STREAMS_H

#include "tools/builder/builder_private.h"
#include "tools/builder/runs.h"

/* What a stream takes from a run. */
enum builder_stream_kind {
	BUILDER_STREAM_INDICES,
	BUILDER_STREAM_SOURCE_TIMES,
	BUILDER_STREAM_REL,
	BUILDER_STREAM_ROWS,
	BUILDER_STREAM_ALIAS, /* of the weights in rows */
	BUILDER_STREAM_ORIGINS,
};

struct builder_stream {
	enum builder_stream_kind kind;
	struct gw_array_stream *stream;
	char key[GW_BUILDER_KEY_MAX];
	gw_dtype dtype;
	uint64_t bytes;      /* of a row of `rows` */
	const uint8_t *rows; /* of the input, or scattered to the runs */
	void *scattered;     /* NULL: rows are those of the input */
	const struct builder_item *item;
};

/* An edge type as it is written: the input, or the input reversed. */
struct builder_turned {
	struct builder_writing *w;
	const struct builder_etype *type;
	uint32_t number; /* its number in the schema */
	const uint64_t *src, *dst;
	const char *folder;
	const struct gw_time_order *order; /* by time; NULL: none */
	struct gw_runs runs;
	struct builder_stream *streams;
	uint32_t stream_count;
	/* The current run, by CSC position. */
	struct gw_run run;
	uint64_t *scratch;    /* sources; then input rows, unless order has them */
	const uint64_t *rows; /* the input row of each position */
	/* The edges to be transposed, by CSC position of the type. */
	uint64_t *out_src, *out_dst, *out_keys;
};

static inline uint64_t gw_builder_input_rows(const struct gw_builder_edges *edges)
{
	return edges->origin ? edges->input_rows : edges->count;
}

/* Opens the streams of all arrays of the type. Close them in any case. */
gw_status gw_builder_streams_open(struct builder_turned *t);
/* Opens one stream. shape[1] and on: of a row. out may be NULL. t->streams has room for it. */
gw_status gw_builder_stream_open(struct builder_turned *t, enum builder_stream_kind kind, const char *name,
				 gw_dtype dtype, uint32_t ndim, const uint64_t *shape, struct builder_stream **out);
/* Appends the current run to the streams that take sources, which t->scratch has, or to the others. */
gw_status gw_builder_streams_append(struct builder_turned *t, bool of_sources);
/* Ends the streams, or drops them if the status is a failure. Returns the status. */
gw_status gw_builder_streams_close(struct builder_turned *t, gw_status status);

#endif
