/* Four lanes in a vector, on every supported machine: SSE4.1 (x86-64-v2) or NEON (aarch64). */
#include "sampler/lanes/wide.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define WIDTH  4
#define VECTOR static inline __attribute__((always_inline)) TARGET

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.1")))

typedef __m128i vec;

VECTOR vec vec_load(const uint32_t *from)
{
	return _mm_loadu_si128((const __m128i *)(const void *)from);
}

VECTOR void vec_store(uint32_t *to, vec a)
{
	_mm_storeu_si128((__m128i *)(void *)to, a);
}

VECTOR vec vec_set(uint32_t value)
{
	return _mm_set1_epi32((int)value);
}

VECTOR vec vec_add(vec a, vec b)
{
	return _mm_add_epi32(a, b);
}

VECTOR vec vec_xor(vec a, vec b)
{
	return _mm_xor_si128(a, b);
}

VECTOR vec vec_min(vec a, vec b)
{
	return _mm_min_epu32(a, b);
}

VECTOR vec vec_max(vec a, vec b)
{
	return _mm_max_epu32(a, b);
}

/* Returns the low halves of the products; the high halves go to *high. */
VECTOR vec vec_multiply(vec a, vec b, vec *high)
{
	vec even = _mm_mul_epu32(a, b), odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));
	*high = _mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xcc);
	return _mm_blend_epi16(even, _mm_slli_epi64(odd, 32), 0xcc);
}

VECTOR uint32_t vec_equal(vec a, vec b)
{
	return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(a, b)));
}

VECTOR uint32_t vec_less(vec a, vec b)
{
	return vec_equal(vec_max(a, b), a) ^ 0xf;
}

VECTOR vec vec_choose(uint32_t bits, vec set, vec unset)
{
	const vec each = _mm_setr_epi32(1, 2, 4, 8);
	vec chosen = _mm_cmpeq_epi32(_mm_and_si128(vec_set(bits), each), each);
	return _mm_blendv_epi8(unset, set, chosen);
}
#else
#include <arm_neon.h>

#define TARGET

typedef uint32x4_t vec;

static const uint32_t each_lane[4] = {1, 2, 4, 8};

VECTOR vec vec_load(const uint32_t *from)
{
	return vld1q_u32(from);
}

VECTOR void vec_store(uint32_t *to, vec a)
{
	vst1q_u32(to, a);
}

VECTOR vec vec_set(uint32_t value)
{
	return vdupq_n_u32(value);
}

VECTOR vec vec_add(vec a, vec b)
{
	return vaddq_u32(a, b);
}

VECTOR vec vec_xor(vec a, vec b)
{
	return veorq_u32(a, b);
}

VECTOR vec vec_min(vec a, vec b)
{
	return vminq_u32(a, b);
}

VECTOR vec vec_max(vec a, vec b)
{
	return vmaxq_u32(a, b);
}

/* Returns the low halves of the products; the high halves go to *high. */
VECTOR vec vec_multiply(vec a, vec b, vec *high)
{
	vec first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), vget_low_u32(b)));
	vec second = vreinterpretq_u32_u64(vmull_high_u32(a, b));
	*high = vuzp2q_u32(first, second);
	return vuzp1q_u32(first, second);
}

VECTOR uint32_t vec_equal(vec a, vec b)
{
	return vaddvq_u32(vandq_u32(vceqq_u32(a, b), vld1q_u32(each_lane)));
}

VECTOR uint32_t vec_less(vec a, vec b)
{
	return vaddvq_u32(vandq_u32(vcltq_u32(a, b), vld1q_u32(each_lane)));
}

VECTOR vec vec_choose(uint32_t bits, vec set, vec unset)
{
	return vbslq_u32(vtstq_u32(vec_set(bits), vld1q_u32(each_lane)), set, unset);
}
#endif

#include "sampler/lanes/wide_kernel.h"
#include "sampler/lanes/wide_table_kernel.h"

TARGET uint32_t gw_wide_four(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			     const struct gw_network *network)
{
	return draw_lanes(wide, key, fanout, replace, network);
}

TARGET void gw_table_draw_four(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			       gw_table_row *words)
{
	draw_columns(lanes, key, blocks, columns, words);
}

TARGET uint32_t gw_table_sort_four(gw_table_row *picks, const struct gw_network *network)
{
	return sort_columns(picks, network);
}
#endif
