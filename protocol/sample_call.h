/* The sample request: sends a batch of vertices to their owner, which returns the picks. Little-endian, 8-byte aligned.
 *
 *   call:   struct gw_sample_call,
 *           the columns [column_count] uint32, ascending numbers, and their names [name_bytes], each with its NUL, both
 *           together padded to 8 bytes,
 *           the table of groups: keys of the last eligible times [table_count] int64; with GW_SAMPLE_WINDOWS the first
 *           ones, too,
 *           the rows' groups in runs [run_count] struct gw_sample_group_run,
 *           rows [row_count] uint32 (local rows of the lists' node type)
 *   reply:  runs of {struct gw_sample_run, counts [dst_count] uint32, edges [edge_count], neighbours [edge_count]},
 *           each array padded to 8 bytes, edges and neighbours in id_bytes each. An in-edge is its position in the
 *           part's lists; an out-edge is its id. With GW_SAMPLE_NO_EDGES runs have no edges.
 *
 * A reply answers a prefix of the rows, as many as fit. The client asks again for the remaining rows. If not even one
 * list fits, the reply answers no row, and the client reads that list itself.
 *
 * The call carries any kind of sampling by its number, and the features that the kind draws with as a list of columns
 * and names. A server that does not know a kind, a column or a flag refuses the call.
 */
#ifndef GW_PROTOCOL_SAMPLE_CALL_H
#define GW_PROTOCOL_SAMPLE_CALL_H

#include <assert.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "core/graph/picks.h"

#define GW_SAMPLE_ROWS_MAX 16384u /* rows of one call */
#define GW_SAMPLE_RUN_ROWS 256u   /* rows of one run of a reply */

enum gw_sample_flag {
	GW_SAMPLE_REPLACE = 1,     /* with replacement */
	GW_SAMPLE_BY_SOURCE = 2,   /* from out-lists */
	GW_SAMPLE_STRICT_ENDS = 4, /* gw_groups.strict_ends (sampler/draw.h) */
	GW_SAMPLE_WINDOWS = 8,     /* the table has first eligible times */
	GW_SAMPLE_NO_EDGES = 16,   /* the reply has neighbours alone */
};
#define GW_SAMPLE_FLAGS                                                                                                \
	(GW_SAMPLE_REPLACE | GW_SAMPLE_BY_SOURCE | GW_SAMPLE_STRICT_ENDS | GW_SAMPLE_WINDOWS | GW_SAMPLE_NO_EDGES)

#define GW_SAMPLE_COLUMNS_MAX 16u

struct gw_sample_call {
	uint32_t sampler_version; /* GW_SAMPLER_VERSION of the client; the server refuses any other */
	uint32_t etype;
	uint64_t key;
	int32_t fanout;
	uint32_t kind;  /* gw_sampling_kind_at() */
	uint32_t flags; /* enum gw_sample_flag */
	uint32_t row_count;
	uint32_t reply_bytes_max;
	uint32_t table_count; /* at most GW_GROUPS_MAX. 0: groups are plain numbers; else each group is below it */
	uint32_t run_count;   /* at most GW_GROUPS_MAX. 0: all rows are in group 0 */
	uint16_t column_count, name_bytes;
};
static_assert(sizeof(struct gw_sample_call) == 48, "no padding: every byte of the call is set");

/* A column that the kind draws with: its number (enum gw_column), and the name of the feature that it belongs to. */
struct gw_sample_column {
	uint32_t number;
	const char *name;
};

/* The next `rows` rows are in a group. */
struct gw_sample_group_run {
	uint32_t group, rows;
};

/* The arrays of a call. They and the names point into the call's bytes, at any alignment. */
struct gw_sample_arrays {
	struct gw_sample_column columns[GW_SAMPLE_COLUMNS_MAX];
	const int64_t *until, *from; /* [table_count], both ends included; from: NULL without GW_SAMPLE_WINDOWS */
	const struct gw_sample_group_run *runs;
	const uint32_t *rows;
};

struct gw_sample_run {
	uint32_t dst_count, id_bytes; /* id_bytes: 4 or 8, for edges and neighbours alike */
	uint64_t edge_count;
};

/* Adds a column to a call that is being made. Its number is higher than those before, and its name is not empty. */
void gw_sample_call_add_column(struct gw_sample_call *call, struct gw_sample_arrays *arrays, uint32_t number,
			       const char *name);

/* Bytes of a call whose head is `call`. */
size_t gw_sample_call_bytes(const struct gw_sample_call *call);

/* Writes a call to out, which has gw_sample_call_bytes() bytes. */
void gw_sample_call_print(const struct gw_sample_call *call, const struct gw_sample_arrays *arrays, void *out);

/* Checks a call's bytes: versions, counts, lengths, columns, groups, flags. GW_PROTOCOL, GW_VERSION, GW_RANGE;
 * GW_UNSUPPORTED: a flag that this version does not know. */
gw_status gw_sample_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes, struct gw_sample_call *call,
			       struct gw_sample_arrays *arrays);

/* The arrays of a reply's runs. */
struct gw_sample_form {
	uint32_t id_bytes; /* 4 or 8 */
	bool no_edges;
};

/* Bytes of a run with this content. */
size_t gw_sample_run_bytes(uint64_t dst_count, uint64_t edge_count, struct gw_sample_form form);

/* Writes a run of picks to out, which has gw_sample_run_bytes() bytes. */
void gw_sample_run_print(const struct gw_picks *picks, struct gw_sample_form form, uint8_t *out);

/* Writes a run in pieces. Its numbers of rows and picks must be known: begin it, then fill it in any order.
 * gw_sample_run_counts writes n counts, beginning with that of row `row`. gw_sample_run_edges writes n picks, beginning
 * with number `edge`; it reads no positions for a run without edges. */
void gw_sample_run_begin(uint8_t *out, uint32_t dst_count, uint64_t edge_count, struct gw_sample_form form);
void gw_sample_run_counts(uint8_t *run, uint32_t row, uint32_t n, const uint32_t *counts);
void gw_sample_run_edges(uint8_t *out, struct gw_sample_form form, uint64_t edge, uint64_t n, const uint64_t *positions,
			 const uint64_t *neighbours);

/* Appends the runs of a reply to picks (dst_count and edge_count grow; positions stay as they are if the call had
 * GW_SAMPLE_NO_EDGES). Checks every length, and that the reply answers at most rows_max rows; *answered is their
 * number. GW_PROTOCOL, GW_NO_MEMORY. */
gw_status gw_sample_reply_parse(const void *bytes, size_t byte_count, uint32_t rows_max, bool no_edges,
				struct gw_picks *picks, uint32_t *answered);

#endif
