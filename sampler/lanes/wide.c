/* The functions of each width of vectors, and the sorting networks that all widths share. Nothing here fails. */
#include "sampler/lanes/wide.h"

/* Batcher's merge exchange for any n (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M). */
void gw_network_make(struct gw_network *network, uint32_t n)
{
	network->n = n;
	network->count = 0;
	uint32_t top = 1;
	while (top * 2 < n)
		top *= 2;
	for (uint32_t p = n > 1 ? top : 0; p > 0; p /= 2) {
		uint32_t q = top, r = 0, distance = p;
		for (;;) {
			for (uint32_t i = 0; i + distance < n; i++) {
				if ((i & p) == r) {
					network->pairs[network->count].low = (uint8_t)i;
					network->pairs[network->count++].high = (uint8_t)(i + distance);
				}
			}
			if (q == p)
				break;
			distance = q - p;
			q /= 2;
			r = p;
		}
	}
}

static const gw_wide_draw functions[GW_VECTORS_COUNT] = {
#if defined(__x86_64__) || defined(__aarch64__)
	[GW_VECTORS_FOUR] = gw_wide_four,
#endif
#ifdef __x86_64__
	[GW_VECTORS_AVX2] = gw_wide_avx2,
	[GW_VECTORS_AVX512] = gw_wide_avx512,
#endif
};

gw_wide_draw gw_wide_function(void)
{
	return functions[gw_vectors_used()];
}
