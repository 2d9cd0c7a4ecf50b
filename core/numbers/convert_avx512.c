/* Conversions by AVX-512F. Compiled for every x86-64; runs only if gw_vectors_used() selects it. */
#ifdef __x86_64__
#include <immintrin.h>

#include "core/numbers/convert_private.h"

#define TARGET     __attribute__((target("avx512f")))
#define LANES      16
#define NAME(loop) loop##_avx512

#define HALVES_TO_FLOATS(from, to) (*(to) = (floats)_mm512_cvtph_ps((__m256i) * (from)))
#define FLOATS_TO_HALVES(from, to) (*(to) = (halves)_mm512_cvtps_ph((__m512) * (from), _MM_FROUND_TO_NEAREST_INT))
#define BYTES_TO_SIGNS(from, to)   (*(to) = (signs)_mm512_cvtepi8_epi32((__m128i) * (from)))

#include "core/numbers/convert_kernel.h"

const struct gw_convert_loops gw_convert_avx512 = LOOPS;
#else
typedef int gw_no_convert_avx512; /* C forbids an empty file */
#endif
