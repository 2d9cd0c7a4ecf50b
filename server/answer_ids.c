/* The id request: the nodes of original ids.
 *
 *   reserve the reply ─▶ keys, BLOCK at a time: look them up in the part's index ─▶ write the answers
 *                             └─▶ the slice is used up: other clients are served, then the call continues
 *
 * The opening has checked the index, and each key has an answer. Fails on a malformed call, if the type has no index or
 * one of another form, and if memory runs out.
 */
#include <string.h>

#include "protocol/id_call.h"
#include "server/server.h"

#define BLOCK      256u  /* keys copied at once, to an aligned place */
#define SLICE_KEYS 2048u /* looked up in one slice */

/* The state that is kept between slices. */
struct ids_work {
	bool begun;
	uint32_t answered;
};

static gw_status ids_answer_keys(const struct gw_id_index *index, const uint8_t *keys, uint32_t n, uint8_t *out)
{
	uint64_t block[BLOCK * GW_ID_KEY_WORDS], nodes[BLOCK];
	size_t key_bytes = index->words * sizeof(*block);
	for (uint32_t i = 0; i < n; i += BLOCK) {
		uint32_t count = n - i < BLOCK ? n - i : BLOCK;
		memcpy(block, keys + i * key_bytes, count * key_bytes);
		gw_status status = gw_id_index_look_up(index, block, count, nodes);
		if (status != GW_OK)
			return status;
		memcpy(out + i * sizeof(*nodes), nodes, count * sizeof(*nodes));
	}
	return GW_OK;
}

static gw_status ids_begin(const struct gw_id_call *call, struct gw_reply *reply)
{
	gw_status status = gw_reply_reserve(reply, call->count * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	return gw_reply_extend(reply, (uint32_t)(call->count * sizeof(uint64_t))) ? GW_OK : GW_NO_MEMORY;
}

gw_status gw_server_ids(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_server *server = context;
	struct gw_id_call ids;
	struct gw_id_index index;
	const uint8_t *keys;
	gw_status status = gw_id_call_parse(call->bytes, call->byte_count, server->meta->num_ntypes, &ids, &keys);
	if (status != GW_OK)
		return status;
	const bool here = gw_id_index_of(server->part, ids.ntype, &index);
	if (index.form != (enum gw_id_form)ids.form)
		return gw_fail(GW_PROTOCOL, "id request for another kind of index than node type %s has",
			       server->meta->ntypes[ids.ntype].name);
	if (!here && index.form != GW_IDS_NONE)
		return gw_fail(
			GW_UNSUPPORTED,
			"node type %s: the index of its original ids stays on disk (serve --on-disk): upgrade the "
			"client",
			server->meta->ntypes[ids.ntype].name);
	struct ids_work *work = gw_reply_work(reply, sizeof(*work), NULL);
	if (!work)
		return GW_NO_MEMORY;
	if (!work->begun && ids.count)
		status = ids_begin(&ids, reply);
	if (status != GW_OK)
		return status;
	work->begun = true;
	uint32_t left = ids.count - work->answered, n = left < SLICE_KEYS ? left : SLICE_KEYS, bytes;
	uint8_t *out = gw_reply_data(reply, &bytes);
	if (n)
		status = ids_answer_keys(&index, keys + (size_t)work->answered * index.words * sizeof(uint64_t), n,
					 out + (size_t)work->answered * sizeof(uint64_t));
	work->answered += n;
	return status == GW_OK && work->answered < ids.count ? GW_AGAIN : status;
}
