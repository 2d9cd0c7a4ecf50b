/* A gather that takes part in a loader's window: see row_window.h and gather.c.
 *
 *   ids -> here, elsewhere -> [parked until its turn] plan -> requests for F(k); copies of the rows that are here
 *       -> landed: kept in the window -> [parked until other batches' rows have landed] copies of their rows
 *       -> rows that other batches failed to fetch: requests
 *
 * Rows land in the batch, and the window copies them from there: its memory needs no registration with transports, and
 * belongs to no engine. While an op is parked, the clock of its job stands still: the batch whose rows it waits for has
 * a deadline of its own.
 */
#include <stddef.h>
#include <string.h>

#include "client/rows/gather_private.h"
#include "core/system/clock.h"

static void gather_continue(struct gw_parked *parked)
{
	struct gw_gather_op *op = (struct gw_gather_op *)((char *)parked - offsetof(struct gw_gather_op, share.parked));
	op->parked = false;
	gw_job_resume(op->reads.job, gw_now_ns());
	op->slice.run(&op->slice);
}

static gw_status park(struct gw_gather_op *op)
{
	op->parked = true;
	gw_job_pause(op->reads.job, gw_now_ns());
	return GW_AGAIN;
}

void gw_gather_unpark(struct gw_gather_op *op)
{
	if (!gw_row_window_unpark(&op->share))
		return;
	op->parked = false;
	gw_job_resume(op->reads.job, gw_now_ns());
	gw_fan_in_end_one(&op->reads, GW_OK); /* the cause is known already */
}

gw_status gw_gather_divide_all(struct gw_gather_op *op, const struct gw_local_rows *local)
{
	struct gw_window_share *share = &op->share;
	const struct gw_local_rows none = {.starts = op->from.starts,
					   .parts = op->engine->client->meta->num_parts,
					   .step = op->from.step,
					   .row_bytes = op->row_bytes,
					   .origins = op->origins};
	if (!local) {
		local = &none;
		memset(op->origins, 0, none.parts * sizeof(*op->origins));
	}
	op->unique = op->unique || gw_row_window_has_entries(share->window);
	gw_status status = op->counts ? GW_OK : gw_gather_prepare(op);
	if (status == GW_OK)
		status = gw_gather_divide(op, local);
	if (status != GW_OK)
		return status;
	uint64_t end = gw_local_rows_divide(local, op->ids, 0, op->n, &op->divided);
	if (end < op->n)
		return gw_fail_id("id", op->ids[end], end, local->starts[local->parts]);
	if (op->near.sets)
		gw_gather_divide_near(op, 0);
	if (op->counts)
		return GW_OK;
	share->parked.engine = op->engine;
	share->parked.run = gather_continue;
	op->stage = GW_GATHER_DIVIDED;
	return gw_gather_plan(op);
}

gw_status gw_gather_plan(struct gw_gather_op *op)
{
	if (!gw_row_window_turn(&op->share))
		return park(op);
	op->fetched = op->divided.elsewhere_count;
	gw_status status = gw_row_window_plan(&op->share, op->ids, op->divided.elsewhere, &op->fetched);
	if (status != GW_OK)
		return status;
	op->divided.elsewhere_count = op->fetched;
	op->stage = GW_GATHER_PLANNED;
	op->ahead_at = 0;
	status = gw_gather_post_pieces(op, 0, op->fetched);
	return status == GW_OK && (op->near_count || op->divided.here_count) ? GW_AGAIN : status;
}

/* GW_AGAIN: the next slice continues, or the op is parked. */
static gw_status keep_in_window(struct gw_gather_op *op)
{
	const uint64_t end = op->ahead_at + gw_gather_slice_rows(op, op->fetched - op->ahead_at);
	if (op->fetched)
		gw_row_window_keep(&op->share, op->to.rows, op->divided.elsewhere, op->ahead_at, end);
	op->ahead_at = end;
	if (end < op->fetched)
		return GW_AGAIN;
	op->stage = GW_GATHER_COPIES;
	op->ahead_at = op->missing = 0;
	return GW_OK;
}

static gw_status copy_from_window(struct gw_gather_op *op)
{
	const uint64_t count = gw_row_window_copies(&op->share);
	const uint64_t end = op->ahead_at + gw_gather_slice_rows(op, count - op->ahead_at);
	struct gw_divided_rows *divided = &op->divided;
	struct gw_window_copied copied;
	if (op->ahead_at == 0 && !gw_row_window_settled(&op->share))
		return park(op);
	gw_row_window_copy(&op->share, op->ahead_at, end, op->to.rows,
			   divided->elsewhere + divided->elsewhere_count + op->missing, &copied);
	gw_gather_count(&op->engine->ahead_bytes, copied.ahead * op->row_bytes);
	gw_gather_count(&op->engine->cached_bytes, copied.kept * op->row_bytes);
	op->missing += copied.missing;
	op->ahead_at = end;
	if (end < count)
		return GW_AGAIN;
	op->stage = GW_GATHER_PLAIN;
	gw_row_window_leave(&op->share);
	const struct gw_row_piece piece = {divided->elsewhere_count, divided->elsewhere_count + op->missing};
	divided->elsewhere_count = piece.end;
	return op->missing ? gw_gather_post_piece(op, &piece) : GW_OK;
}

static gw_status follow_step(struct gw_gather_op *op)
{
	gw_status status = op->stage == GW_GATHER_PLANNED ? keep_in_window(op) : GW_OK;
	return status == GW_OK ? copy_from_window(op) : status;
}

void gw_gather_follow(struct gw_job_slice *slice)
{
	struct gw_gather_op *op = (struct gw_gather_op *)((char *)slice - offsetof(struct gw_gather_op, slice));
	gw_status status = op->reads.status == GW_OK ? follow_step(op) : op->reads.status;
	if (status == GW_AGAIN && !op->parked)
		gw_engine_continue(op->engine, slice);
	else if (status != GW_AGAIN)
		gw_fan_in_end_one(&op->reads, status);
}
