/* The sample request: sends a batch of vertices to their owner, which returns the picks. Little-endian, 8-byte aligned.
 *
 *   call:   struct gw_sample_call, rows [row_count] uint32 (local rows of the destination type)
 *   reply:  runs of {struct gw_sample_run, counts [dst_count] uint32, positions [edge_count], neighbours [edge_count]},
 *           each array padded to 8 bytes, positions and neighbours in id_bytes each
 *
 * A reply answers a prefix of the rows, as many as fit. The client asks again for the remaining rows. If not even one
 * list fits, the reply answers no row, and the client reads that list itself.
 */
#ifndef GW_PROTOCOL_SAMPLE_CALL_H
#define GW_PROTOCOL_SAMPLE_CALL_H

#include "core/errors/status.h"
#include "core/graph/picks.h"

#define GW_SAMPLE_ROWS_MAX 16384u /* rows of one call */
#define GW_SAMPLE_RUN_ROWS 256u   /* rows of one run of a reply */

struct gw_sample_call {
	uint32_t sampler_version; /* GW_SAMPLER_VERSION of the client; the server refuses any other */
	uint32_t etype;
	uint64_t key;
	int32_t fanout;
	uint32_t replace; /* 0 or 1 */
	uint32_t row_count;
	uint32_t reply_bytes_max;
};

struct gw_sample_run {
	uint32_t dst_count, id_bytes; /* id_bytes: 4 or 8, for positions and neighbours alike */
	uint64_t edge_count;
};

/* Checks a call's bytes: versions, counts, lengths. *rows points into them. GW_PROTOCOL, GW_VERSION, GW_RANGE. */
gw_status gw_sample_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes, struct gw_sample_call *call,
			       const uint32_t **rows);

/* Bytes of a run with this content. */
size_t gw_sample_run_bytes(uint64_t dst_count, uint64_t edge_count, uint32_t id_bytes);

/* Writes a run of picks to out, which has gw_sample_run_bytes() bytes. */
void gw_sample_run_print(const struct gw_picks *picks, uint32_t id_bytes, uint8_t *out);

/* Writes a run in pieces. Its numbers of rows and picks must be known: begin it, then fill it in any order.
 * gw_sample_run_counts writes n counts, beginning with that of row `row`. gw_sample_run_edges writes n picks, beginning
 * with number `edge`. */
void gw_sample_run_begin(uint8_t *out, uint32_t dst_count, uint64_t edge_count, uint32_t id_bytes);
void gw_sample_run_counts(uint8_t *run, uint32_t row, uint32_t n, const uint32_t *counts);
void gw_sample_run_edges(uint8_t *out, uint64_t edge, uint64_t n, const uint64_t *positions,
			 const uint64_t *neighbours);

/* Appends the runs of a reply to picks (dst_count and edge_count grow). Checks every length, and that the reply answers
 * at most rows_max rows; *answered is their number. GW_PROTOCOL, GW_NO_MEMORY. */
gw_status gw_sample_reply_parse(const void *bytes, size_t byte_count, uint32_t rows_max, struct gw_picks *picks,
				uint32_t *answered);

#endif
