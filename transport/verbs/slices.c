/* Cuts memory into slices and registers each slice as its own MR. */
#include <errno.h>

#include "transport/verbs/listener_private.h"

#define SHIFT_MIN 12u
#define SHIFT_MAX 30u

static uint32_t slice_shift(uint64_t bytes, uint64_t slice_bytes)
{
	uint64_t wanted = slice_bytes ? slice_bytes : bytes;
	uint32_t shift = SHIFT_MIN;
	while (shift < SHIFT_MAX && (1ull << shift) < wanted)
		shift++;
	return shift;
}

struct handshake_region gw_verbs_place(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes)
{
	uint32_t shift = slice_shift(bytes, slice_bytes);
	return (struct handshake_region){(uintptr_t)base, shift, gw_handshake_slices(bytes, shift)};
}

gw_status gw_verbs_slice_register(struct ibv_pd *pd, const uint8_t *base, uint64_t bytes, uint32_t shift, uint64_t i,
				  struct ibv_mr **out)
{
	uint64_t at = i << shift, left = bytes - at, most = 1ull << shift;
	/* The cast is safe: registering for reads only does not write to the memory. */
	void *memory = (void *)(uintptr_t)(base + at);
	*out = ibv_reg_mr(pd, memory, left < most ? left : most, IBV_ACCESS_REMOTE_READ);
	return *out ? GW_OK : gw_verbs_mr_fail(left < most ? left : most, errno);
}
