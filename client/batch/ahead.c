/* Windows, and the thread that counts epochs: see ahead.h. */
#include "client/batch/ahead.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/batch/kept_rows.h"
#include "client/engine/background.h"
#include "client/engine/engine.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define IN_PROGRESS 2u /* batches that are counted at a time, for each engine */
#define LOOK_AFTER  8u /* counted batches, after which it is known whether there are rows elsewhere */

struct gw_ahead {
	struct gw_background background; /* first */
	struct gw_ahead_options options;
	atomic_uint users;
	uint32_t fetch_count;
	struct gw_row_window **windows; /* [fetch_count] */
	/* Without kept rows, the rest is not used. */
	bool runs; /* the thread */
	struct gw_kept *kept;
	struct gw_kept **taking;   /* [fetch_count]: those that take part, or NULL */
	struct gw_batch **counted; /* [in_progress] */
	uint32_t in_progress;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t wanted; /* numbers below it were or are submitted */
	bool stops;
	uint64_t began_ns; /* the epoch before got its rows */
	uint64_t epoch;    /* of those that the caller orders: how many have begun */
};

static bool takes_part(const struct gw_rows *rows)
{
	return !rows->epochs && !rows->striped;
}

struct gw_row_window *const *gw_ahead_windows(const struct gw_ahead *ahead)
{
	return ahead ? ahead->windows : NULL;
}

void gw_ahead_pass(struct gw_ahead *ahead, uint64_t number)
{
	for (uint32_t i = 0; ahead && i < ahead->fetch_count; i++) {
		if (ahead->windows[i])
			gw_row_window_pass(ahead->windows[i], number);
	}
}

void gw_ahead_submits(struct gw_ahead *ahead, uint64_t number)
{
	if (!ahead || !ahead->runs)
		return;
	pthread_mutex_lock(&ahead->lock);
	if (number >= ahead->wanted) {
		ahead->wanted = number + 1;
		pthread_cond_signal(&ahead->moved);
	}
	pthread_mutex_unlock(&ahead->lock);
}

/* --- The thread. --- */

/* Waits until batches from this number on are submitted. False: the loader ends. */
static bool wait_until_wanted(struct gw_ahead *ahead, uint64_t number)
{
	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stops && ahead->wanted <= number)
		pthread_cond_wait(&ahead->moved, &ahead->lock);
	const bool goes_on = !ahead->stops;
	pthread_mutex_unlock(&ahead->lock);
	return goes_on;
}

static gw_status count_submit(struct gw_ahead *ahead, uint64_t number)
{
	struct gw_batch *batch;
	gw_status status = ahead->options.make(ahead->options.loader, number, &batch);
	if (status != GW_OK)
		return status;
	batch->counts = true;
	ahead->counted[number % ahead->in_progress] = batch;
	gw_engine_submit(batch->engine, gw_batch_job(batch), false);
	return GW_OK;
}

static void count_release(struct gw_batch **place)
{
	gw_batch_release(*place);
	*place = NULL;
}

/* Counts the rows of a batch. number: in the epoch. *any: whether it has rows elsewhere. */
static gw_status count_batch(struct gw_ahead *ahead, struct gw_batch *batch, uint64_t number, bool *any)
{
	gw_cancel_scope_wait(&batch->ticket.job);
	if (batch->ticket.job.status != GW_OK)
		return gw_fail_text(batch->ticket.job.status, batch->ticket.job.text);
	for (uint32_t f = 0; f < ahead->fetch_count; f++) {
		const struct gw_gather_op *op = &batch->work[f].op;
		if (!ahead->taking[f] || batch->view_row_counts[f] == 0)
			continue;
		gw_kept_count(ahead->taking[f], op->ids, op->divided.elsewhere, op->divided.elsewhere_count,
			      (uint32_t)number, ahead->options.lookahead);
		*any |= op->divided.elsewhere_count > 0;
	}
	return GW_OK;
}

/* Cancels what is left after a failure. */
static void count_clean(struct gw_ahead *ahead)
{
	for (uint32_t i = 0; i < ahead->in_progress; i++) {
		if (ahead->counted[i])
			gw_job_cancel(&ahead->counted[i]->ticket.job);
	}
	for (uint32_t i = 0; i < ahead->in_progress; i++) {
		if (!ahead->counted[i])
			continue;
		gw_job_wait(&ahead->counted[i]->ticket.job, GW_NO_DEADLINE);
		count_release(&ahead->counted[i]);
	}
}

/* Batches first to end - 1, in order. *counted of them; fewer if no rows are elsewhere. */
static gw_status count_batches(struct gw_ahead *ahead, uint64_t first, uint64_t end, uint64_t *counted)
{
	gw_status status = GW_OK;
	uint64_t submitted = first;
	bool any = false;
	assert(ahead->in_progress > 0);
	*counted = 0;
	for (uint64_t number = first; number < end && status == GW_OK; number++) {
		for (; submitted < end && submitted < number + ahead->in_progress && status == GW_OK; submitted++)
			status = count_submit(ahead, submitted);
		struct gw_batch **place = &ahead->counted[number % ahead->in_progress];
		if (status == GW_OK)
			status = count_batch(ahead, *place, number - first, &any);
		if (status != GW_OK)
			break;
		count_release(place);
		++*counted;
		if (!any && *counted == LOOK_AFTER)
			break;
	}
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	count_clean(ahead);
	gw_error_restore(&kept);
	return status;
}

static gw_status choose_for_epoch(struct gw_ahead *ahead, uint64_t first, uint64_t end, uint64_t *counted,
				  struct gw_kept_sums *sums)
{
	gw_status status = GW_OK;
	*counted = 0;
	for (uint32_t f = 0; f < ahead->fetch_count && status == GW_OK; f++)
		status = ahead->taking[f] ? gw_kept_count_begin(ahead->taking[f]) : GW_OK;
	if (status == GW_OK)
		status = count_batches(ahead, first, end, counted);
	if (status == GW_OK)
		status = gw_kept_choose(ahead->taking, ahead->fetch_count, ahead->options.cache_bytes, sums);
	return status;
}

/* False: the loader ends. */
static bool take_kept(struct gw_ahead *ahead)
{
	bool taken = true;
	for (uint32_t f = 0; f < ahead->fetch_count && taken; f++)
		taken = !ahead->taking[f] || gw_row_window_take_kept(ahead->windows[f]);
	return taken;
}

static void set_kept(struct gw_ahead *ahead, uint64_t gate)
{
	for (uint32_t f = 0; f < ahead->fetch_count; f++) {
		if (ahead->taking[f])
			gw_row_window_set_kept(ahead->windows[f],
					       ahead->taking[f]->count ? &ahead->taking[f]->view : NULL, gate);
	}
}

static void log_epoch(struct gw_ahead *ahead, uint64_t epoch, uint64_t counted, uint64_t count_ns,
		      const struct gw_kept_sums *sums)
{
	const uint64_t now = gw_now_ns(), last_ns = ahead->began_ns ? now - ahead->began_ns : 0;
	char share[64] = "";
	if (last_ns)
		snprintf(share, sizeof(share), ", %.1f %% of the epoch before",
			 100.0 * (double)count_ns / (double)last_ns);
	gw_log(GW_LOG_INFO,
	       "epoch %" PRIu64 ": keeps %" PRIu64 " rows, %.1f MiB, %" PRIu64 " of them new: of %.1f MiB that %" PRIu64
	       " batches would fetch, they save %.1f MiB; the count took %.3f s%s",
	       epoch, sums->rows, (double)sums->bytes / 1048576, sums->fetched, (double)sums->without / 1048576,
	       counted, (double)sums->saved / 1048576, (double)count_ns / 1e9, share);
	atomic_fetch_add(&ahead->options.client->count_ns, count_ns);
	ahead->began_ns = now;
}

/* The rows of an epoch, whose batches first to end - 1 are counted. GW_CANCELLED, else GW_OK. */
static gw_status keep_rows(struct gw_ahead *ahead, uint64_t epoch, uint64_t first, uint64_t end)
{
	const uint64_t begin = gw_now_ns();
	struct gw_kept_sums sums = {0};
	uint64_t counted;
	gw_status status = choose_for_epoch(ahead, first, end, &counted, &sums);
	const uint64_t count_ns = gw_now_ns() - begin;
	if (status != GW_OK && status != GW_CANCELLED)
		gw_log(GW_LOG_WARN, "epoch %" PRIu64 " keeps the rows of the epoch before: %s", epoch, gw_last_error());
	bool goes_on = status != GW_CANCELLED && take_kept(ahead);
	for (uint32_t f = 0; goes_on && status == GW_OK && f < ahead->fetch_count; f++) {
		gw_status changed = ahead->taking[f] ? gw_kept_change(ahead->taking[f], &sums) : GW_OK;
		goes_on = changed != GW_CANCELLED;
		if (changed != GW_OK && goes_on)
			gw_log(GW_LOG_WARN, "epoch %" PRIu64 " keeps no rows of \"%s\": %s", epoch,
			       ahead->taking[f]->tensor->name, gw_last_error());
	}
	for (uint32_t f = 0; f < ahead->fetch_count; f++) {
		if (ahead->taking[f])
			gw_kept_count_end(ahead->taking[f]);
	}
	if (!goes_on)
		return GW_CANCELLED;
	if (status == GW_OK)
		log_epoch(ahead, epoch, counted, count_ns, &sums);
	return GW_OK;
}

static gw_status ahead_work(struct gw_background *background)
{
	struct gw_ahead *ahead = (struct gw_ahead *)background;
	const uint64_t steps = ahead->options.steps, most = ahead->options.cache_batches;
	uint64_t first = ahead->options.first;
	while (wait_until_wanted(ahead, first)) {
		const uint64_t end = (first / steps + 1) * steps;
		if (keep_rows(ahead, first / steps, first, most && end - first > most ? first + most : end) != GW_OK)
			break;
		set_kept(ahead, end);
		first = end;
	}
	return GW_OK;
}

static void ahead_free(struct gw_background *background)
{
	((struct gw_ahead *)background)->runs = false;
}

/* --- Opening and closing. --- */

static gw_status open_windows(struct gw_ahead *ahead)
{
	gw_status status = GW_OK;
	for (uint32_t f = 0; f < ahead->fetch_count && status == GW_OK; f++) {
		const struct gw_client_tensor *tensor =
			(const struct gw_client_tensor *)ahead->options.fetches[f].tensor;
		if (!takes_part(&tensor->rows))
			continue;
		status = gw_row_window_create(ahead->options.lookahead, tensor->rows.row_bytes, ahead->options.first,
					      &ahead->windows[f]);
		if (status != GW_OK || !ahead->kept)
			continue;
		if (ahead->options.steps)
			gw_row_window_hold(ahead->windows[f], ahead->options.first);
		gw_kept_init(&ahead->kept[f], ahead->options.client, &tensor->tensor);
		ahead->taking[f] = &ahead->kept[f];
	}
	return status;
}

static gw_status open_thread(struct gw_ahead *ahead)
{
	bool any = false;
	for (uint32_t f = 0; f < ahead->fetch_count; f++)
		any |= ahead->taking[f] != NULL;
	if (!any || !ahead->options.steps)
		return GW_OK;
	ahead->background.work = ahead_work;
	ahead->background.free = ahead_free;
	gw_status status = gw_background_start(&ahead->background, ahead->options.client);
	ahead->runs = status == GW_OK;
	return status;
}

gw_status gw_ahead_open(const struct gw_ahead_options *options, struct gw_ahead **out)
{
	const uint32_t count = options->fetch_count;
	*out = NULL;
	if (options->client->standalone || !count || (options->lookahead == 1 && !options->cache_bytes))
		return GW_OK;
	struct gw_ahead *ahead = gw_calloc(1, sizeof(*ahead));
	if (!ahead)
		return GW_NO_MEMORY;
	ahead->options = *options;
	atomic_init(&ahead->users, 1);
	ahead->fetch_count = count;
	ahead->in_progress = IN_PROGRESS * options->client->engine_count;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->moved, NULL);
	ahead->windows = gw_calloc(count, sizeof(struct gw_row_window *));
	bool made = ahead->windows;
	if (options->cache_bytes) {
		ahead->kept = gw_calloc(count, sizeof(*ahead->kept));
		ahead->taking = gw_calloc(count, sizeof(struct gw_kept *));
		ahead->counted = gw_calloc(ahead->in_progress, sizeof(struct gw_batch *));
		made = made && ahead->kept && ahead->taking && ahead->counted;
	}
	gw_status status = made ? open_windows(ahead) : GW_NO_MEMORY;
	ahead->options.fetches = NULL;
	if (status == GW_OK && options->cache_bytes)
		status = open_thread(ahead);
	if (status != GW_OK) {
		gw_ahead_close(ahead);
		return status;
	}
	*out = ahead;
	return GW_OK;
}

void gw_ahead_stop(struct gw_ahead *ahead)
{
	if (!ahead || !ahead->runs)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stops = true;
	pthread_cond_signal(&ahead->moved);
	pthread_mutex_unlock(&ahead->lock);
	for (uint32_t f = 0; f < ahead->fetch_count; f++) {
		if (ahead->windows[f])
			gw_row_window_give_up(ahead->windows[f]);
	}
	gw_cancel(&ahead->background.ticket);
}

struct gw_ahead *gw_ahead_share(struct gw_ahead *ahead)
{
	if (ahead)
		atomic_fetch_add(&ahead->users, 1);
	return ahead;
}

bool gw_ahead_is_shared(const struct gw_ahead *ahead)
{
	return ahead && atomic_load(&ahead->users) > 1;
}

void gw_ahead_close(struct gw_ahead *ahead)
{
	if (!ahead || atomic_fetch_sub(&ahead->users, 1) > 1)
		return;
	gw_ahead_stop(ahead);
	for (uint32_t f = 0; f < ahead->fetch_count; f++) {
		if (ahead->windows)
			gw_row_window_destroy(ahead->windows[f]);
		if (ahead->kept)
			gw_kept_free(&ahead->kept[f]);
	}
	gw_free(ahead->windows);
	gw_free(ahead->kept);
	gw_free(ahead->taking);
	gw_free(ahead->counted);
	pthread_cond_destroy(&ahead->moved);
	pthread_mutex_destroy(&ahead->lock);
	gw_free(ahead);
}

/* --- Batches that the caller orders. --- */

gw_status gw_ahead_begin(struct gw_ahead *ahead, uint64_t count, gw_ahead_make *make, void *loader)
{
	for (uint32_t f = 0; f < ahead->fetch_count; f++) {
		if (ahead->windows[f])
			gw_row_window_restart(ahead->windows[f], ahead->taking && ahead->taking[f] ? 0 : UINT64_MAX);
	}
	if (!ahead->taking)
		return GW_OK;
	ahead->options.make = make;
	ahead->options.loader = loader;
	gw_status status = keep_rows(ahead, ahead->epoch++, 0, count);
	set_kept(ahead, UINT64_MAX);
	return status;
}

bool gw_ahead_takes(struct gw_ahead *ahead, uint64_t number)
{
	bool takes = true;
	for (uint32_t f = 0; ahead && f < ahead->fetch_count && takes; f++)
		takes = !ahead->windows[f] || gw_row_window_takes(ahead->windows[f], number);
	return takes;
}
