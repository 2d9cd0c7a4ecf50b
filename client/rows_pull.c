/* Requests for rows, as many in each as its reply may have: see rows_pull.h. Fails as links do, with the server's
 * error, or with GW_PROTOCOL when a reply is not as long as its rows. */
#include "client/rows_pull.h"

#include <string.h>

#include "client/link.h"
#include "core/base/alloc.h"
#include "protocol/ops.h"
#include "protocol/tensor_call.h"

struct gw_pull {
	uint64_t birth;
	uint32_t part;
	const uint64_t *rows;
	const uint32_t *to;
	uint64_t count, at, asked;
	struct gw_vec request; /* kept from gather to gather */
	void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion);
};

gw_status gw_pulls_room(struct gw_gather_op *gather)
{
	if (gather->read_room <= gather->pull_room)
		return GW_OK;
	gw_pulls_free(gather);
	gather->pulls = gw_calloc(gather->read_room, sizeof(*gather->pulls));
	gather->pull_room = gather->pulls ? gather->read_room : 0;
	return gather->pulls ? GW_OK : GW_NO_MEMORY;
}

void gw_pulls_free(struct gw_gather_op *gather)
{
	for (uint64_t i = 0; i < gather->pull_room; i++)
		gw_vec_free(&gather->pulls[i].request);
	gw_free(gather->pulls);
	gather->pulls = NULL;
	gather->pull_room = 0;
}

static void pull_ask(struct gw_pull *pull, struct gw_link_op *op);

static void pull_done(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct gw_gather_op *gather = op->owner;
	struct gw_pull *pull = &gather->pulls[op - gather->reads];
	uint64_t row_bytes = gather->row_bytes;
	if (status == GW_OK && completion->reply_bytes != pull->asked * row_bytes)
		status = gw_fail(GW_PROTOCOL, "%llu rows of %llu bytes were answered with %u bytes",
				 (unsigned long long)pull->asked, (unsigned long long)row_bytes,
				 completion->reply_bytes);
	/* A gather that has failed elsewhere asks for no more. */
	if (status == GW_OK && gather->status != GW_OK)
		status = gw_fail_text(gather->status, gather->text);
	if (status == GW_OK) {
		const uint8_t *from = completion->reply;
		for (uint64_t i = 0; i < pull->asked; i++, from += row_bytes)
			memcpy(gather->out + pull->to[pull->at + i] * row_bytes, from, row_bytes);
		pull->at += pull->asked;
	}
	if (status == GW_OK && pull->at < pull->count)
		pull_ask(pull, op);
	else
		pull->done(op, status, NULL);
}

static void pull_ask(struct gw_pull *pull, struct gw_link_op *op)
{
	struct gw_gather_op *gather = op->owner;
	uint64_t most = GW_TENSOR_PULL_BYTES / gather->row_bytes, left = pull->count - pull->at;
	uint64_t fit = (GW_TENSOR_REQUEST_BYTES - sizeof(struct gw_tensor_rows_call)) / 8;
	most = most < fit ? most : fit;
	pull->asked = left < most ? left : most;
	size_t bytes = sizeof(struct gw_tensor_rows_call) + pull->asked * 8;
	if (gw_vec_reserve(&pull->request, bytes) != GW_OK) {
		pull->done(op, GW_NO_MEMORY, NULL);
		return;
	}
	struct gw_tensor_rows_call *call = pull->request.data;
	*call = (struct gw_tensor_rows_call){.birth = pull->birth, .count = (uint32_t)pull->asked};
	memcpy(call + 1, pull->rows + pull->at, pull->asked * 8);
	op->form = GW_LINK_REQUEST;
	op->call = GW_OP_TENSOR_PULL;
	op->sequence = 0;
	op->request = call;
	op->request_bytes = (uint32_t)bytes;
	op->done = pull_done;
	gw_link_post(gather->engine->part_links[pull->part], op);
}

void gw_pull_start(struct gw_gather_op *gather, struct gw_link_op *op, uint64_t birth, uint32_t part, uint64_t first)
{
	struct gw_pull *pull = &gather->pulls[op - gather->reads];
	pull->birth = birth;
	pull->part = part;
	pull->rows = (const uint64_t *)gather->remote.data + first;
	pull->to = (const uint32_t *)gather->rows.data + first;
	pull->count = op->count;
	pull->at = 0;
	pull->done = op->done;
	pull_ask(pull, op);
}
