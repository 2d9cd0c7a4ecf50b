/* Functions that writing and reading a checkpoint share: which tensors are wanted, what an optimizer stores for a part
 * at the moment, and the original ids of rows. Fails if a server cannot be reached or returns an error. */
#include "client/tensors/checkpoint.h"

#include <string.h>

#include "client/engine/remote_call.h"
#include "core/memory/alloc.h"
#include "core/memory/idmap.h"
#include "core/numbers/digest.h"
#include "protocol/ops.h"

const char *gw_plan_type_name(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan)
{
	if (plan->placement == GW_PLACE_NODES)
		return plan->type < meta->num_ntypes ? meta->ntypes[plan->type].name : "";
	if (plan->placement == GW_PLACE_EDGES)
		return plan->type < meta->num_etypes ? meta->etypes[plan->type].folder : "";
	return "";
}

bool gw_checkpoint_wants(const char *const *names, uint32_t name_count, const char *name)
{
	for (uint32_t i = 0; names && i < name_count; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return !names;
}

gw_status gw_checkpoint_check_names(const char *const *names, uint32_t name_count,
				    const char *(*name_at)(const void *list, uint32_t i), const void *list,
				    uint32_t count)
{
	if (names && name_count == 0)
		return gw_fail(GW_INVALID, "an empty list of names: name tensors, or leave the names out for all");
	for (uint32_t n = 0; names && n < name_count; n++) {
		uint32_t i = 0;
		while (i < count && strcmp(name_at(list, i), names[n]) != 0)
			i++;
		if (i == count)
			return gw_fail(GW_NOT_FOUND, "tensor \"%.128s\" does not exist", names[n]);
	}
	return GW_OK;
}

gw_status gw_checkpoint_look(struct gw_client *client, const struct gw_tensor_handle *handle, uint32_t part,
			     struct gw_vec *reply, struct gw_tensor_saved *saved)
{
	struct gw_tensor_range_call call = {.epoch = handle->epochs[part]};
	const uint8_t *state, *rows;
	size_t bytes = 0;
	gw_status status = gw_remote_call(client, part, GW_OP_TENSOR_SAVE, &call, sizeof(call), reply, &bytes);
	if (status != GW_OK)
		return status;
	return gw_tensor_saved_parse(reply->data, bytes, 0, handle->layout.row_bytes, saved, &state, &rows);
}

gw_status gw_original_ids_find(struct gw_client *client, const struct gw_tensor_plan *plan, struct gw_original_ids *out)
{
	*out = (struct gw_original_ids){0};
	if (plan->placement > GW_PLACE_EDGES)
		return GW_OK;
	bool edges = plan->placement == GW_PLACE_EDGES;
	if (!edges) {
		char *key = gw_format("node/%s/orig_id.offsets", gw_plan_type_name(client->meta, plan));
		if (!key)
			return GW_NO_MEMORY;
		out->text = gw_meta_array(client->meta, 0, key) != NULL;
		out->ntype = plan->type;
		gw_free(key);
	}
	if (out->text)
		return GW_OK;
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	gw_status status = edges ? gw_edge_tensor(client, plan->type, "orig_id", &out->tensor)
				 : gw_node_tensor(client, plan->type, "orig_id", &out->tensor);
	bool numbers = status == GW_OK && out->tensor->ndim == 1;
	if (numbers && (out->tensor->dtype == GW_INT64 || (edges && out->tensor->dtype == GW_UINT32)))
		return GW_OK;
	out->tensor = NULL;
	gw_error_restore(&kept);
	return status == GW_OK || status == GW_NOT_FOUND ? GW_OK : status;
}

/* Digests are practically unique; a restore checks them for duplicates. */
static gw_status digest_texts(struct gw_client *client, uint32_t ntype, const int64_t *nodes, uint64_t n, int64_t *out)
{
	struct gw_texts *texts;
	gw_status status = gw_node_texts(client, ntype, "orig_id", nodes, n, &texts);
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		uint64_t digest =
			gw_digest(texts->bytes + texts->offsets[i], texts->offsets[i + 1] - texts->offsets[i]);
		out[i] = digest == GW_HASH_EMPTY ? 0 : (int64_t)digest;
	}
	if (status == GW_OK)
		gw_texts_free(texts);
	return status;
}

/* Widens n numbers of 4 bytes, at the beginning of out, to 8 bytes each. Starts with the last, so that no number is
 * overwritten before it is read. */
static void widen(int64_t *out, uint64_t n)
{
	for (uint64_t i = n; i-- > 0;) {
		uint32_t number;
		memcpy(&number, (const char *)out + i * sizeof(number), sizeof(number));
		out[i] = number;
	}
}

gw_status gw_original_ids_read(struct gw_client *client, const struct gw_original_ids *ids, uint64_t first, uint64_t n,
			       int64_t *out)
{
	for (uint64_t i = 0; i < n; i++)
		out[i] = (int64_t)(first + i);
	if ((!ids->tensor && !ids->text) || n == 0)
		return GW_OK;
	int64_t *nodes = gw_malloc(n * sizeof(*nodes));
	if (!nodes)
		return GW_NO_MEMORY;
	memcpy(nodes, out, n * sizeof(*nodes));
	gw_status status = ids->text ? digest_texts(client, ids->ntype, nodes, n, out)
				     : gw_gather(client, ids->tensor, nodes, n, out);
	if (status == GW_OK && !ids->text && ids->tensor->dtype == GW_UINT32)
		widen(out, n);
	gw_free(nodes);
	return status;
}
