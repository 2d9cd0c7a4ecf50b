/* gw_lookahead_…: look-ahead over batches that the caller orders. Batches and the object share one gw_ahead, which
 * outlives the object while a batch is under way. */
#include <string.h>

#include <graphwire/graphwire.h>

#include "client/batch/single_batch.h"
#include "client/engine/background.h"
#include "client/engine/engine.h"
#include "client/rows/gather_call.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"

struct gw_lookahead {
	struct gw_client *client;
	struct gw_ahead *ahead;   /* NULL: there is nothing to look ahead for */
	struct gw_fetch *fetches; /* [fetch_count] */
	uint32_t fetch_count;
};

static gw_status lookahead_check_options(struct gw_client *client, const struct gw_lookahead_options *options)
{
	gw_status status = gw_client_check(client);
	if (status == GW_OK && options->lookahead > GW_WINDOW_BATCHES_MAX)
		return gw_fail(GW_RANGE, "lookahead %u: at most %u", options->lookahead, GW_WINDOW_BATCHES_MAX);
	if (status == GW_OK && options->fetch_count > GW_FETCHES_MAX)
		return gw_fail(GW_LIMIT, "%u fetches: at most %d", options->fetch_count, GW_FETCHES_MAX);
	for (uint32_t f = 0; f < options->fetch_count && status == GW_OK; f++) {
		status = gw_tensor_check(client, options->fetches[f].tensor);
		if (status != GW_OK)
			gw_context(status, "fetch %u", f);
	}
	return status;
}

gw_status gw_lookahead_open(struct gw_client *client, const struct gw_lookahead_options *options,
			    struct gw_lookahead **out)
{
	*out = NULL;
	gw_status status = lookahead_check_options(client, options);
	if (status != GW_OK)
		return status;
	struct gw_lookahead *lookahead = gw_calloc(1, sizeof(*lookahead));
	if (!lookahead)
		return GW_NO_MEMORY;
	lookahead->client = client;
	lookahead->fetch_count = options->fetch_count;
	lookahead->fetches = gw_calloc(options->fetch_count ? options->fetch_count : 1, sizeof(*lookahead->fetches));
	if (lookahead->fetches && options->fetch_count)
		memcpy(lookahead->fetches, options->fetches, options->fetch_count * sizeof(*lookahead->fetches));
	const struct gw_ahead_options ahead = {.client = client,
					       .fetches = lookahead->fetches,
					       .fetch_count = options->fetch_count,
					       .lookahead = options->lookahead ? options->lookahead : 1,
					       .cache_bytes = options->cache_bytes};
	status = lookahead->fetches ? gw_ahead_open(&ahead, &lookahead->ahead) : GW_NO_MEMORY;
	if (status != GW_OK) {
		gw_lookahead_close(lookahead);
		return status;
	}
	*out = lookahead;
	return GW_OK;
}

void gw_lookahead_close(struct gw_lookahead *lookahead)
{
	if (!lookahead || gw_client_is_inherited(lookahead->client))
		return;
	gw_ahead_close(lookahead->ahead);
	gw_free(lookahead->fetches);
	gw_free(lookahead);
}

bool gw_lookahead_is_idle(const struct gw_lookahead *lookahead)
{
	return !gw_ahead_is_shared(lookahead->ahead);
}

static gw_status check_fetches(const struct gw_lookahead *lookahead, const struct gw_sample_spec *spec)
{
	bool same = spec->fetch_count == lookahead->fetch_count;
	for (uint32_t f = 0; f < lookahead->fetch_count && same; f++)
		same = spec->fetches[f].tensor == lookahead->fetches[f].tensor;
	return same ? GW_OK : gw_fail(GW_INVALID, "the spec has other fetches than the look-ahead");
}

static gw_status check_number(struct gw_lookahead *lookahead, uint64_t number)
{
	gw_status status = gw_client_check(lookahead->client);
	if (status == GW_OK && !gw_ahead_takes(lookahead->ahead, number))
		return gw_fail(GW_RANGE, "batch %llu: a batch %u or more before it has neither begun nor passed",
			       (unsigned long long)number, GW_WINDOW_BATCHES_MAX);
	return status;
}

/* --- Epochs. --- */

struct epoch_begin {
	struct gw_background background; /* first */
	struct gw_ahead *ahead;
	const struct gw_sample_spec *spec;
	const struct gw_ordered_batch *batches;
	uint64_t count;
};

/* Returns nothing: the count reads the result from the batch. */
static void finish_counted(struct gw_ticket *ticket, gw_status status)
{
	(void)ticket;
	(void)status;
}

static gw_status make_counted(void *owner, uint64_t number, struct gw_batch **out)
{
	const struct epoch_begin *begin = owner;
	struct gw_client *client = begin->background.ticket.client;
	const struct gw_ordered_batch *batch = &begin->batches[number];
	const struct gw_single_batch call = {.spec = begin->spec,
					     .seed = batch->seed,
					     .stream = batch->stream,
					     .lists = batch->lists,
					     .list_count = batch->list_count,
					     .typed = true,
					     .ahead = begin->ahead,
					     .number = number};
	gw_status status = gw_single_batch_make(&client->engines[number % client->engine_count], &call, out);
	if (status == GW_OK)
		(*out)->ticket.finish = finish_counted;
	return status;
}

static gw_status begin_work(struct gw_background *background)
{
	struct epoch_begin *begin = (struct epoch_begin *)background;
	return begin->ahead ? gw_ahead_begin(begin->ahead, begin->count, make_counted, begin) : GW_OK;
}

static void begin_free(struct gw_background *background)
{
	struct epoch_begin *begin = (struct epoch_begin *)background;
	gw_ahead_close(begin->ahead);
	gw_free(begin);
}

gw_status gw_lookahead_begin(struct gw_lookahead *lookahead, const struct gw_sample_spec *spec,
			     const struct gw_ordered_batch *batches, uint64_t count, struct gw_ticket **ticket)
{
	*ticket = NULL;
	gw_status status = gw_client_check(lookahead->client);
	if (status == GW_OK && spec)
		status = check_fetches(lookahead, spec);
	if (status == GW_OK && !spec && count)
		return gw_fail(GW_INVALID, "%llu batches to count, and no spec", (unsigned long long)count);
	if (status == GW_OK && gw_ahead_is_shared(lookahead->ahead))
		return gw_fail(GW_INVALID, "an epoch begins, and batches of the one before are under way");
	if (status != GW_OK)
		return status;
	struct epoch_begin *begin = gw_calloc(1, sizeof(*begin));
	if (!begin)
		return GW_NO_MEMORY;
	begin->background.work = begin_work;
	begin->background.free = begin_free;
	begin->ahead = gw_ahead_share(lookahead->ahead);
	begin->spec = spec;
	begin->batches = batches;
	begin->count = count;
	status = gw_background_start(&begin->background, lookahead->client);
	if (status != GW_OK) {
		begin_free(&begin->background);
		return status;
	}
	*ticket = &begin->background.ticket;
	return GW_OK;
}

/* --- Batches. --- */

gw_status gw_lookahead_sample_start(struct gw_lookahead *lookahead, uint64_t number, const struct gw_sample_spec *spec,
				    const struct gw_ordered_batch *batch, struct gw_minibatch **out,
				    struct gw_ticket **ticket)
{
	*out = NULL;
	*ticket = NULL;
	const struct gw_single_batch call = {.spec = spec,
					     .seed = batch->seed,
					     .stream = batch->stream,
					     .lists = batch->lists,
					     .list_count = batch->list_count,
					     .typed = true,
					     .ahead = lookahead->ahead,
					     .number = number};
	gw_status status = check_number(lookahead, number);
	if (status == GW_OK)
		status = check_fetches(lookahead, spec);
	return status == GW_OK ? gw_single_batch_start(lookahead->client, &call, false, out, ticket) : status;
}

static void gather_ended(void *ahead)
{
	gw_ahead_close(ahead);
}

gw_status gw_lookahead_gather_start(struct gw_lookahead *lookahead, uint64_t number, uint32_t fetch, const int64_t *ids,
				    uint64_t n, void *out, struct gw_ticket **ticket)
{
	*ticket = NULL;
	gw_status status = check_number(lookahead, number);
	if (status == GW_OK && fetch >= lookahead->fetch_count)
		return gw_fail(GW_RANGE, "fetch %u of %u", fetch, lookahead->fetch_count);
	if (status != GW_OK)
		return status;
	const struct gw_fetch *of = &lookahead->fetches[fetch];
	struct gw_row_window *const *windows = gw_ahead_windows(lookahead->ahead);
	struct gw_row_window *window = windows ? windows[fetch] : NULL;
	const struct gw_gather_window with = {window, number, gather_ended, gw_ahead_share(lookahead->ahead)};
	status = gw_gather_call_start(lookahead->client, of->tensor, of->convert, ids, n, out, &with, ticket);
	if (status != GW_OK)
		gw_ahead_close(lookahead->ahead);
	else if (window && n == 0)
		gw_row_window_pass(window, number);
	return status;
}

gw_status gw_lookahead_pass(struct gw_lookahead *lookahead, uint64_t number)
{
	gw_status status = check_number(lookahead, number);
	if (status == GW_OK)
		gw_ahead_pass(lookahead->ahead, number);
	return status;
}
