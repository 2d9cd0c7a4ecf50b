/* Eight lanes in a vector: AVX2. Compiled for every x86-64; runs only if gw_vectors_used() selects it. */
#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx2")))
#define WIDTH  8
#define VECTOR static inline __attribute__((always_inline)) TARGET

typedef __m256i vec;

VECTOR vec vec_load(const uint32_t *from)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

VECTOR void vec_store(uint32_t *to, vec a)
{
	_mm256_storeu_si256((__m256i *)(void *)to, a);
}

VECTOR vec vec_set(uint32_t value)
{
	return _mm256_set1_epi32((int)value);
}

VECTOR vec vec_add(vec a, vec b)
{
	return _mm256_add_epi32(a, b);
}

VECTOR vec vec_xor(vec a, vec b)
{
	return _mm256_xor_si256(a, b);
}

VECTOR vec vec_min(vec a, vec b)
{
	return _mm256_min_epu32(a, b);
}

VECTOR vec vec_max(vec a, vec b)
{
	return _mm256_max_epu32(a, b);
}

/* Returns the low halves of the products; the high halves go to *high. */
VECTOR vec vec_multiply(vec a, vec b, vec *high)
{
	vec even = _mm256_mul_epu32(a, b);
	vec odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
	*high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
	return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

VECTOR uint32_t vec_equal(vec a, vec b)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)));
}

VECTOR uint32_t vec_less(vec a, vec b)
{
	return vec_equal(vec_max(a, b), a) ^ 0xff;
}

VECTOR vec vec_choose(uint32_t bits, vec set, vec unset)
{
	const vec each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	vec chosen = _mm256_cmpeq_epi32(_mm256_and_si256(vec_set(bits), each), each);
	return _mm256_blendv_epi8(unset, set, chosen);
}

#include "sampler/lanes/wide_kernel.h"
#include "sampler/lanes/wide_table_kernel.h"

TARGET uint32_t gw_wide_avx2(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			     const struct gw_network *network)
{
	return draw_lanes(wide, key, fanout, replace, network);
}

TARGET void gw_table_draw_avx2(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			       gw_table_row *words)
{
	draw_columns(lanes, key, blocks, columns, words);
}

TARGET uint32_t gw_table_sort_avx2(gw_table_row *picks, const struct gw_network *network)
{
	return sort_columns(picks, network);
}
#else
typedef int gw_no_avx2; /* C forbids an empty file */
#endif
