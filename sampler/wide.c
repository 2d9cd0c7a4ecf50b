/* The choice of vectors at run time, and the sorting networks that all widths share. Nothing here fails. */
#include "sampler/wide.h"

#include <stdlib.h>
#include <string.h>

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

static const gw_wide_draw functions[] = {
	[GW_VECTORS_OFF] = NULL,
#ifdef __x86_64__
	[GW_VECTORS_AVX2] = gw_wide_avx2,
	[GW_VECTORS_AVX512] = gw_wide_avx512,
#endif
};

static bool have(enum gw_vectors vectors)
{
	switch (vectors) {
#ifdef __x86_64__
	case GW_VECTORS_AVX2:
		return __builtin_cpu_supports("avx2");
	case GW_VECTORS_AVX512:
		return __builtin_cpu_supports("avx512f");
#endif
	case GW_VECTORS_AUTO:
	case GW_VECTORS_OFF:
		return true;
	default:
		return false;
	}
}

static enum gw_vectors used; /* AUTO: not chosen yet. Threads that choose at once choose the same. */

static enum gw_vectors choose(void)
{
	const char *wish = getenv("GRAPHWIRE_VECTORS");
	if (wish && strcmp(wish, "off") == 0)
		return GW_VECTORS_OFF;
	bool narrow = wish && strcmp(wish, "avx2") == 0;
	if (have(GW_VECTORS_AVX512) && !narrow)
		return GW_VECTORS_AVX512;
	return have(GW_VECTORS_AVX2) ? GW_VECTORS_AVX2 : GW_VECTORS_OFF;
}

bool gw_vectors_set(enum gw_vectors vectors)
{
	if (!have(vectors))
		return false;
	__atomic_store_n(&used, vectors, __ATOMIC_RELAXED);
	return true;
}

enum gw_vectors gw_vectors_used(void)
{
	enum gw_vectors vectors = __atomic_load_n(&used, __ATOMIC_RELAXED);
	if (vectors == GW_VECTORS_AUTO) {
		vectors = choose();
		gw_vectors_set(vectors);
	}
	return vectors;
}

gw_wide_draw gw_wide_function(void)
{
	return functions[gw_vectors_used()];
}
