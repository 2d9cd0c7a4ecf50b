/* Checks id requests and their replies. Every length from a peer is checked before its use. */
#include "protocol/id_call.h"

#include <string.h>

gw_status gw_id_call_parse(const void *bytes, size_t byte_count, uint32_t num_ntypes, struct gw_id_call *call,
			   const uint8_t **keys)
{
	if (byte_count < sizeof(*call))
		return gw_fail(GW_PROTOCOL, "id request of %zu bytes is too short", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->form <= GW_IDS_NONE || call->form > GW_IDS_TEXTS || call->zero)
		return gw_fail(GW_PROTOCOL, "id request of kind %u", call->form);
	size_t key_bytes = gw_id_key_words((enum gw_id_form)call->form) * sizeof(uint64_t);
	if (call->count > GW_ID_KEYS_MAX || byte_count - sizeof(*call) != call->count * key_bytes)
		return gw_fail(GW_PROTOCOL, "id request with %u keys in %zu bytes", call->count, byte_count);
	if (call->ntype >= num_ntypes)
		return gw_fail(GW_RANGE, "id request for node type %u of %u", call->ntype, num_ntypes);
	*keys = (const uint8_t *)bytes + sizeof(*call);
	return GW_OK;
}

gw_status gw_id_answers_check(const uint64_t *nodes, uint64_t count, uint64_t node_count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (nodes[i] != GW_ID_MISSING && (nodes[i] & ~GW_ID_SHARED) >= node_count)
			return gw_fail(GW_PROTOCOL,
				       "id reply: an id belongs to node %llu, but there are only %llu nodes",
				       (unsigned long long)(nodes[i] & ~GW_ID_SHARED), (unsigned long long)node_count);
	}
	return GW_OK;
}

gw_status gw_id_reply_parse(const void *bytes, size_t byte_count, uint32_t count, uint64_t node_count, uint64_t *nodes)
{
	if (byte_count != count * sizeof(*nodes))
		return gw_fail(GW_PROTOCOL, "id reply of %zu bytes to %u keys", byte_count, count);
	if (count)
		memcpy(nodes, bytes, byte_count);
	return gw_id_answers_check(nodes, count, node_count);
}
