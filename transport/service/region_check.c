/* Checks whether memory can be a region; for static and dynamic regions. */
#include "transport/service/service_backend.h"

/* Readers load sequences and small rows as words, so the memory must be aligned for that. */
static gw_status rows_check(const uint8_t *base, uint64_t bytes, const struct gw_region_rows *rows)
{
	const struct gw_row_format *format = &rows->format;
	uint32_t align = format->versioned ? GW_ROW_ALIGN : format->payload_bytes;
	if (bytes % format->stride || (uintptr_t)base % align)
		return gw_fail(GW_INVALID,
			       "a region of %llu bytes at %p: rows must be %u bytes apart and aligned to %u bytes",
			       (unsigned long long)bytes, (const void *)base, format->stride, align);
	return GW_OK;
}

gw_status gw_service_region_check(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
				  const struct gw_region_rows *rows)
{
	if (slice_bytes & (slice_bytes - 1))
		return gw_fail(GW_INVALID, "slices of %llu bytes: not a power of two", (unsigned long long)slice_bytes);
	if (bytes && (!base || (uintptr_t)base + bytes < (uintptr_t)base))
		return gw_fail(GW_INVALID, "a region of %llu bytes has no valid address range",
			       (unsigned long long)bytes);
	return rows ? rows_check(base, bytes, rows) : GW_OK;
}
