/* Chooses the vector instructions: see vectors.h. Nothing here fails. */
#include "core/numbers/vectors.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>

static const char *const names[GW_VECTORS_COUNT] = {"auto", "off", "four", "avx2", "avx512"};

#ifdef __x86_64__
/* clang's __builtin_cpu_supports does not know f16c. */
static bool has_f16c(void)
{
	unsigned eax, ebx, ecx, edx;
	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
#endif

static bool have(enum gw_vectors vectors)
{
#ifdef __x86_64__
	if (vectors == GW_VECTORS_AVX2)
		return __builtin_cpu_supports("avx2") && has_f16c();
	if (vectors == GW_VECTORS_AVX512)
		return __builtin_cpu_supports("avx512f");
	return true;
#elif defined(__aarch64__)
	return vectors <= GW_VECTORS_FOUR;
#else
	return vectors <= GW_VECTORS_OFF;
#endif
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
