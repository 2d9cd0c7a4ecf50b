/* Chooses the vectors at run time, and makes the sorting networks that all widths share. Nothing here fails. */
#include "sampler/lanes/wide.h"

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

static const gw_wide_draw functions[GW_VECTORS_COUNT] = {
#if defined(__x86_64__) || defined(__aarch64__)
	[GW_VECTORS_FOUR] = gw_wide_four,
#endif
#ifdef __x86_64__
	[GW_VECTORS_AVX2] = gw_wide_avx2,
	[GW_VECTORS_AVX512] = gw_wide_avx512,
#endif
};

static const char *const names[GW_VECTORS_COUNT] = {"auto", "off", "four", "avx2", "avx512"};

static bool have(enum gw_vectors vectors)
{
#ifdef __x86_64__
	if (vectors == GW_VECTORS_AVX2)
		return __builtin_cpu_supports("avx2");
	if (vectors == GW_VECTORS_AVX512)
		return __builtin_cpu_supports("avx512f");
#endif
	return vectors <= GW_VECTORS_OFF || functions[vectors];
}

static enum gw_vectors used; /* AUTO: not chosen yet. Threads that choose at once choose the same. */

static enum gw_vectors choose(void)
{
	const char *wish = getenv("GRAPHWIRE_VECTORS");
	for (enum gw_vectors v = GW_VECTORS_OFF; wish && v < GW_VECTORS_COUNT; v++) {
		if (strcmp(wish, names[v]) == 0 && have(v))
			return v;
	}
	enum gw_vectors widest = GW_VECTORS_COUNT - 1;
	while (!have(widest))
		widest--;
	return widest;
}

const char *gw_vectors_name(enum gw_vectors vectors)
{
	return vectors < GW_VECTORS_COUNT ? names[vectors] : "?";
}

bool gw_vectors_set(enum gw_vectors vectors)
{
	if (vectors >= GW_VECTORS_COUNT || !have(vectors))
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
