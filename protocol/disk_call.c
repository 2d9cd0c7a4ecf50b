/* Checks requests for rows on disk. */
#include "protocol/disk_call.h"

#include <string.h>

gw_status gw_disk_call_parse(const void *bytes, size_t byte_count, struct gw_disk_call *call, const uint8_t **rows)
{
	if (byte_count < sizeof(*call))
		return gw_fail(GW_PROTOCOL, "a request for rows on disk of %zu bytes is too short", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->count > GW_DISK_ROWS_MAX || byte_count - sizeof(*call) != call->count * sizeof(uint64_t))
		return gw_fail(GW_PROTOCOL, "a request for %u rows on disk in %zu bytes", call->count, byte_count);
	*rows = (const uint8_t *)bytes + sizeof(*call);
	return GW_OK;
}
