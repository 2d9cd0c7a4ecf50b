/* Whether memory can be a region: for those that are there from the start, and those that come late. */
#include "transport/service_private.h"

/* Readers look at sequences and small rows by whole words: memory must lie so that they can. */
static gw_status rows_check(const uint8_t *base, uint64_t bytes, const struct gw_region_rows *rows)
{
	const struct gw_row_format *format = &rows->format;
	uint32_t align = format->versioned ? GW_ROW_ALIGN : format->payload_bytes;
	if (bytes % format->stride || (uintptr_t)base % align)
		return gw_fail(GW_INVALID, "a region of %llu bytes at %p: rows lie %u apart, aligned to %u",
			       (unsigned long long)bytes, (const void *)base, format->stride, align);
	return GW_OK;
}

gw_status gw_service_region_check(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
				  const struct gw_region_rows *rows)
{
	if (slice_bytes & (slice_bytes - 1))
		return gw_fail(GW_INVALID, "slices of %llu bytes: not a power of two", (unsigned long long)slice_bytes);
	if (bytes && (!base || (uintptr_t)base + bytes < (uintptr_t)base))
		return gw_fail(GW_INVALID, "a region of %llu bytes that no memory holds", (unsigned long long)bytes);
	return rows ? rows_check(base, bytes, rows) : GW_OK;
}
