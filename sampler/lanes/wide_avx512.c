/* Sixteen lanes in one vector: AVX-512F. Compiled for every x86-64; runs only if gw_vectors_used() selects it. */
#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx512f")))
#define WIDTH  16
#define VECTOR static inline __attribute__((always_inline)) TARGET

typedef __m512i vec;

VECTOR vec vec_load(const uint32_t *from)
{
	return _mm512_loadu_si512(from);
}

VECTOR void vec_store(uint32_t *to, vec a)
{
	_mm512_storeu_si512(to, a);
}

VECTOR vec vec_set(uint32_t value)
{
	return _mm512_set1_epi32((int)value);
}

VECTOR vec vec_add(vec a, vec b)
{
	return _mm512_add_epi32(a, b);
}

VECTOR vec vec_xor(vec a, vec b)
{
	return _mm512_xor_si512(a, b);
}

VECTOR vec vec_min(vec a, vec b)
{
	return _mm512_min_epu32(a, b);
}

VECTOR vec vec_max(vec a, vec b)
{
	return _mm512_max_epu32(a, b);
}

/* Returns the low halves of the products; the high halves go to *high. */
VECTOR vec vec_multiply(vec a, vec b, vec *high)
{
	vec even = _mm512_mul_epu32(a, b);
	vec odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
	*high = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
	return _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
}

VECTOR uint32_t vec_less(vec a, vec b)
{
	return _mm512_cmplt_epu32_mask(a, b);
}

VECTOR uint32_t vec_equal(vec a, vec b)
{
	return _mm512_cmpeq_epi32_mask(a, b);
}

VECTOR vec vec_choose(uint32_t bits, vec set, vec unset)
{
	return _mm512_mask_blend_epi32((__mmask16)bits, unset, set);
}

#include "sampler/lanes/wide_kernel.h"
#include "sampler/lanes/wide_table_kernel.h"

TARGET uint32_t gw_wide_avx512(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			       const struct gw_network *network)
{
	return draw_lanes(wide, key, fanout, replace, network);
}

TARGET void gw_table_draw_avx512(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks,
				 gw_table_row *columns, gw_table_row *words)
{
	draw_columns(lanes, key, blocks, columns, words);
}

TARGET uint32_t gw_table_sort_avx512(gw_table_row *picks, const struct gw_network *network)
{
	return sort_columns(picks, network);
}
#else
typedef int gw_no_avx512; /* C forbids an empty file */
#endif
