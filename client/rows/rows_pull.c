/* Fetches rows with a read, then with requests, each as large as its reply may be: see rows_pull.h.
 *
 * If a read fails for a reason other than the connection, the pull requests the rows. The server then checks the
 * shard's epoch and decides. Fails if the server cannot be reached in time (client/link/link.h), with the server's
 * error, or with GW_PROTOCOL if the length of a reply does not match its rows. */
#include "client/rows/rows_pull.h"

#include <assert.h>
#include <string.h>

#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "protocol/disk_call.h"
#include "protocol/ops.h"
#include "protocol/tensor_call.h"

gw_status gw_pulls_reserve(struct gw_pull **pulls, uint64_t *room, uint64_t count)
{
	if (count <= *room)
		return GW_OK;
	gw_pulls_free(*pulls, *room);
	*pulls = gw_calloc(count, sizeof(**pulls));
	*room = *pulls ? count : 0;
	return *pulls ? GW_OK : GW_NO_MEMORY;
}

void gw_pulls_free(struct gw_pull *pulls, uint64_t room)
{
	for (uint64_t i = 0; i < room; i++)
		gw_vec_free(&pulls[i].request);
	gw_free(pulls);
}

static void pull_end(struct gw_pull *pull, struct gw_link_op *op, gw_status status)
{
	op->owner = pull->owner;
	pull->done(op, pull->name ? gw_tensor_name_gone(status, pull->name) : status, NULL);
}

static void pull_request(struct gw_pull *pull, struct gw_link_op *op);

static void pull_done(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct gw_pull *pull = op->owner;
	uint64_t row_bytes = pull->row_bytes;
	if (status == GW_OK && completion->reply_bytes != pull->asked * row_bytes)
		status = gw_fail(GW_PROTOCOL, "%llu rows of %llu bytes were answered with %u bytes",
				 (unsigned long long)pull->asked, (unsigned long long)row_bytes,
				 completion->reply_bytes);
	/* If another piece of the gather has failed, this pull requests no more rows. */
	if (status == GW_OK && pull->reads->status != GW_OK)
		status = gw_fail_text(pull->reads->status, pull->reads->text);
	if (status == GW_OK) {
		const uint8_t *from = completion->reply;
		if (!pull->to && pull->asked)
			memcpy(pull->out + pull->at * row_bytes, from, pull->asked * row_bytes);
		for (uint64_t i = 0; pull->to && i < pull->asked; i++, from += row_bytes)
			memcpy(pull->out + pull->to[pull->at + i] * row_bytes, from, row_bytes);
		pull->at += pull->asked;
	}
	if (status == GW_OK && pull->at < pull->count)
		pull_request(pull, op);
	else
		pull_end(pull, op, status);
}

/* Both calls have a head of this length before their numbers of rows. */
#define HEAD_BYTES 16u
static_assert(sizeof(struct gw_tensor_rows_call) == HEAD_BYTES && sizeof(struct gw_disk_call) == HEAD_BYTES,
	      "the numbers of rows must be aligned");

static uint64_t pull_most(const struct gw_pull *pull)
{
	if (pull->place->on_disk)
		return gw_disk_call_most(pull->row_bytes);
	uint64_t most = GW_TENSOR_PULL_BYTES / pull->row_bytes, fit = (GW_TENSOR_REQUEST_BYTES - HEAD_BYTES) / 8;
	most = most < fit ? most : fit;
	return most ? most : 1;
}

static void pull_head(struct gw_pull *pull)
{
	const struct gw_place *place = pull->place;
	if (place->on_disk)
		*(struct gw_disk_call *)pull->request.data = (struct gw_disk_call){
			.array = place->array, .count = (uint32_t)pull->asked, .digest = place->digest};
	else
		*(struct gw_tensor_rows_call *)pull->request.data = (struct gw_tensor_rows_call){
			.epoch = pull->epoch, .count = (uint32_t)pull->asked, .torn = pull->torn};
}

static void pull_request(struct gw_pull *pull, struct gw_link_op *op)
{
	uint64_t most = pull_most(pull), left = pull->count - pull->at;
	pull->asked = left < most ? left : most;
	size_t bytes = HEAD_BYTES + pull->asked * 8;
	if (gw_vec_reserve(&pull->request, bytes) != GW_OK) {
		pull_end(pull, op, GW_NO_MEMORY);
		return;
	}
	pull_head(pull);
	uint64_t *numbers = (uint64_t *)(void *)((uint8_t *)pull->request.data + HEAD_BYTES);
	for (uint64_t i = 0; i < pull->asked; i++)
		numbers[i] = pull->rows[pull->at + i] / pull->step;
	op->form = GW_LINK_REQUEST;
	op->call = pull->place->on_disk ? GW_OP_DISK_ROWS : GW_OP_TENSOR_PULL;
	op->once.sequence = 0;
	op->request = pull->request.data;
	op->request_bytes = (uint32_t)bytes;
	op->done = pull_done;
	gw_link_post(pull->link, op);
}

/* The engine's own counter: no other thread writes it. */
static void pull_count(const struct gw_pull *pull, uint64_t rows)
{
	if (pull->read)
		atomic_store_explicit(pull->read, atomic_load_explicit(pull->read, memory_order_relaxed) + rows,
				      memory_order_relaxed);
}

static gw_status pull_take_torn(struct gw_pull *pull, const struct gw_completion *completion)
{
	if (completion->torn_count == 0 || completion->torn_count > pull->count)
		return gw_fail(GW_PROTOCOL, "%u of %llu rows are torn", completion->torn_count,
			       (unsigned long long)pull->count);
	pull_count(pull, pull->count - completion->torn_count);
	pull->count = completion->torn_count;
	pull->torn = true;
	for (uint64_t i = 0; i < pull->count; i++) {
		pull->rows[i] = completion->torn[i].remote;
		pull->to[i] = (uint32_t)((completion->torn[i].local - pull->out_local) / pull->row_bytes);
	}
	return GW_OK;
}

static void pull_read(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct gw_pull *pull = op->owner;
	bool final = status == GW_OK || status == GW_CANCELLED || status == GW_DEADLINE || status == GW_PEER_LOST ||
		     status == GW_NO_MEMORY || pull->reads->status != GW_OK;
	if (status == GW_OK)
		pull_count(pull, pull->count);
	if (status == GW_AGAIN && !final) {
		status = pull_take_torn(pull, completion);
		final = status != GW_OK;
	}
	if (status == GW_AGAIN)
		status = gw_fail_text(pull->reads->status, pull->reads->text);
	if (final)
		pull_end(pull, op, status);
	else
		pull_request(pull, op);
}

void gw_pull_start(struct gw_pull *pull, struct gw_link *link, struct gw_link_op *op)
{
	pull->link = link;
	pull->at = 0;
	pull->owner = op->owner;
	pull->done = op->done;
	op->owner = pull;
	pull->torn = false;
	if (!pull->place->on_disk && gw_link_can_read(link, op->region, op->generation)) {
		op->done = pull_read;
		gw_link_post(link, op);
	} else {
		pull_request(pull, op);
	}
}
