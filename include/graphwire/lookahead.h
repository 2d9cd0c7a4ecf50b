/* Look-ahead over mini-batches, or gathers, whose order the caller decides. A loader has its own look-ahead
 * (gw_loader_options). graphwire.h includes this header; its rules hold here too.
 *
 *   gw_lookahead_open, with what the batches fetch
 *     -> gw_lookahead_begin: an epoch. Its batches are 0, 1, ... With cache_bytes they are counted, and rows kept
 *       -> gw_lookahead_sample_start or gw_lookahead_gather_start for each number; else gw_lookahead_pass
 *
 * A row that a batch fetches from a server serves this batch and the next lookahead - 1 batches, which copy it from
 * memory of the look-ahead. Which batch fetches a row depends on the numbers alone, and not on time: a batch waits for
 * its rows until each batch with a lower number has asked for its own, or has passed. A deadline stands still
 * meanwhile. No batch's bytes differ from those of gw_sample_lists and gw_gather_as. Rows that change are fetched for
 * each batch; rows in memory that this process can address are copied from there.
 */
#ifndef GRAPHWIRE_LOOKAHEAD_H
#define GRAPHWIRE_LOOKAHEAD_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;
struct gw_fetch;
struct gw_minibatch;
struct gw_sample_spec;
struct gw_seeds;
struct gw_ticket;

struct gw_lookahead;

struct gw_lookahead_options {
	const struct gw_fetch *fetches; /* of every batch; the call copies them */
	uint32_t fetch_count;
	uint32_t lookahead;   /* as in gw_loader_options, at most 256; 0: 1 */
	uint64_t cache_bytes; /* as in gw_loader_options */
};

/* The arguments of gw_sample_lists for one batch. */
struct gw_ordered_batch {
	uint64_t seed, stream;
	const struct gw_seeds *lists;
	uint32_t list_count;
};

/* GW_RANGE: lookahead above 256. GW_INVALID: a fetch is of another client. */
GW_API gw_status gw_lookahead_open(struct gw_client *client, const struct gw_lookahead_options *options,
				   struct gw_lookahead **out);
/* Batches under way stay valid, and end as they would have. NULL is allowed. */
GW_API void gw_lookahead_close(struct gw_lookahead *lookahead);

/* Begins an epoch, in the background: no row of an earlier batch serves it. With cache_bytes, samples `batches` without
 * rows, counts, and fetches the rows that pay and that the epoch before did not keep; spec and batches belong to the
 * library until gw_wait or gw_cancel has ended the ticket. Without, count may be 0. `batches` are those of the epoch,
 * or its first ones. If a server or memory fails, fewer rows are kept, and the log says so. After gw_cancel, begin
 * again. GW_INVALID: batches are under way; the spec has other fetches. */
GW_API gw_status gw_lookahead_begin(struct gw_lookahead *lookahead, const struct gw_sample_spec *spec,
				    const struct gw_ordered_batch *batches, uint64_t count, struct gw_ticket **ticket);
/* Whether no batch is under way: the ticket of each has ended. */
GW_API bool gw_lookahead_is_idle(const struct gw_lookahead *lookahead);

/* gw_sample_lists_start for the batch of this number, with its errors. A batch that has failed may be started again.
 * GW_INVALID: the spec has other fetches. GW_RANGE: the number is 256 or more above the lowest that has neither begun
 * nor passed. */
GW_API gw_status gw_lookahead_sample_start(struct gw_lookahead *lookahead, uint64_t number,
					   const struct gw_sample_spec *spec, const struct gw_ordered_batch *batch,
					   struct gw_minibatch **out, struct gw_ticket **ticket);
/* gw_gather_as_start for fetch number `fetch` of the options, as that of the batch of this number. GW_RANGE: likewise,
 * and for a fetch that does not exist. */
GW_API gw_status gw_lookahead_gather_start(struct gw_lookahead *lookahead, uint64_t number, uint32_t fetch,
					   const int64_t *ids, uint64_t n, void *out, struct gw_ticket **ticket);
/* The batch of this number asks for no more rows: others do not wait for it. Repeating it changes nothing. GW_RANGE
 * likewise. */
GW_API gw_status gw_lookahead_pass(struct gw_lookahead *lookahead, uint64_t number);

#ifdef __cplusplus
}
#endif
#endif
