/* Conversions by AVX2 and F16C. Compiled for every x86-64; runs only if gw_vectors_used() selects it. */
#ifdef __x86_64__
#include <immintrin.h>

#include "core/numbers/convert_private.h"

#define TARGET     __attribute__((target("avx2,f16c")))
#define LANES      8
#define NAME(loop) loop##_avx2

#define HALVES_TO_FLOATS(from, to) (*(to) = (floats)_mm256_cvtph_ps((__m128i) * (from)))
#define FLOATS_TO_HALVES(from, to) (*(to) = (halves)_mm256_cvtps_ph((__m256) * (from), _MM_FROUND_TO_NEAREST_INT))
#define BYTES_TO_SIGNS(from, to)   (*(to) = (signs)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(from))))

#include "core/numbers/convert_kernel.h"

const struct gw_convert_loops gw_convert_avx2 = LOOPS;
#else
typedef int gw_no_convert_avx2; /* C forbids an empty file */
#endif
