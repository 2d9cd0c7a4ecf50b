/* The loops of convert_private.h, written once over the compiler's vectors. Each file that includes it defines TARGET
 * (an attribute), LANES (numbers in a vector) and NAME(loop), and may define HALVES_TO_FLOATS and FLOATS_TO_HALVES,
 * which convert vectors by instructions for it.
 *
 * Numbers that do not fill a vector are converted in one whose other lanes are 0.
 */
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline)) TARGET

typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int32_t signs __attribute__((vector_size(4 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));
typedef double doubles __attribute__((vector_size(8 * LANES)));
typedef uint64_t longs __attribute__((vector_size(8 * LANES)));
typedef int64_t wholes __attribute__((vector_size(8 * LANES)));
typedef int8_t bytes __attribute__((vector_size(LANES)));

/* Each lane of a mask is 0 or all ones. */
#define CHOOSE(mask, set, unset) (((mask) & (set)) | (~(mask) & (unset)))

#ifndef HALVES_TO_FLOATS
INLINE void halves_to_floats(const halves *from, floats *to)
{
	const words half = __builtin_convertvector(*from, words), size = half & 0x7fffu, sign = (half & 0x8000u) << 16;
	const words normal = (size << 13) + (112u << 23), infinite = normal + (112u << 23);
	/* fraction * 2^-24 is exact: (2^-14 + it) - 2^-14, whose operands are no denormal numbers */
	const floats small = (floats)((size << 13) + (113u << 23)) - 0x1p-14f;
	words bits = CHOOSE((words)(size < 0x400u), (words)small, normal);
	bits = CHOOSE((words)(size >= 0x7c00u), infinite, bits);
	bits |= (words)(size > 0x7c00u) & 0x400000u;
	*to = (floats)(bits | sign);
}
#define HALVES_TO_FLOATS halves_to_floats
#endif

#ifndef FLOATS_TO_HALVES
INLINE void floats_to_halves(const floats *from, halves *to)
{
	const words bits = (words)*from, size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
	const words normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
	/* below 2^-14: the sum's last bit is worth 2^-24, so the addition rounds */
	const words small = (words)((floats)size + 0.5f) - 0x3f000000u;
	words half = CHOOSE((words)(size < 0x38800000u), small, normal);
	half = CHOOSE((words)(size >= 0x47800000u), (words){0} + 0x7c00u, half);
	half = CHOOSE((words)(size > 0x7f800000u), 0x7e00u | (size >> 13 & 0x3ffu), half);
	*to = __builtin_convertvector(half | sign, halves);
}
#define FLOATS_TO_HALVES floats_to_halves
#endif

INLINE void bfloats_to_floats(const halves *from, floats *to)
{
	*to = (floats)(__builtin_convertvector(*from, words) << 16);
}

INLINE void floats_to_bfloats(const floats *from, halves *to)
{
	const words bits = (words)*from, rounded = bits + 0x7fffu + (bits >> 16 & 1u);
	const words out = CHOOSE((words)((bits & 0x7fffffffu) > 0x7f800000u), bits | 0x400000u, rounded);
	*to = __builtin_convertvector(out >> 16, halves);
}

INLINE void doubles_to_floats(const doubles *from, floats *to)
{
	*to = __builtin_convertvector(*from, floats);
}

INLINE void floats_to_doubles(const floats *from, doubles *to)
{
	*to = __builtin_convertvector(*from, doubles);
}

INLINE void doubles_to_odd_floats(const doubles *from, floats *to)
{
	const longs bits = (longs)*from, size = bits & 0x7fffffffffffffffu, exponent = size >> 52;
	const longs fraction = size & 0xfffffffffffffu;
	const longs normal = ((exponent - 896) << 23 | fraction >> 29) | ((longs)((fraction & 0x1fffffff) != 0) & 1);
	/* below 2^-126: a multiple of 2^-149, and the bits that are shifted out */
	const longs whole = fraction | (longs)(exponent > 0) << 63 >> 11;
	longs shift = 926 - exponent;
	shift = CHOOSE((longs)(exponent < 863), (longs){0} + 63, shift);
	shift &= 63;
	const longs small = whole >> shift, lost = (longs)((small << shift) != whole) & 1;
	longs out = CHOOSE((longs)(exponent < 897), small | lost, normal);
	out = CHOOSE((longs)(exponent > 1150), (longs){0} + 0x7f7fffff, out); /* infinite after the next rounding */
	out = CHOOSE((longs)(size >= 0x7ff0000000000000u), 0x7f800000 | fraction >> 29, out);
	out |= (longs)(size > 0x7ff0000000000000u) & 0x400000;
	const words sign = __builtin_convertvector(bits >> 32, words) & 0x80000000u;
	*to = (floats)(__builtin_convertvector(out, words) | sign);
}

INLINE void words_to_wholes(const words *from, wholes *to)
{
	*to = __builtin_convertvector(*from, wholes);
}

#define LOOP(loop, in_vector, in_bytes, out_vector, out_bytes, convert)                                                \
	TARGET static void loop(const void *from, void *to, uint64_t n)                                                \
	{                                                                                                              \
		const uint8_t *in = from;                                                                              \
		uint8_t *out = to;                                                                                     \
		in_vector a;                                                                                           \
		out_vector b;                                                                                          \
		for (; n >= LANES; n -= LANES, in += sizeof(a), out += sizeof(b)) {                                    \
			memcpy(&a, in, sizeof(a));                                                                     \
			convert(&a, &b);                                                                               \
			memcpy(out, &b, sizeof(b));                                                                    \
		}                                                                                                      \
		if (n == 0)                                                                                            \
			return;                                                                                        \
		a = (in_vector){0};                                                                                    \
		memcpy(&a, in, n *(in_bytes));                                                                         \
		convert(&a, &b);                                                                                       \
		memcpy(out, &b, n *(out_bytes));                                                                       \
	}

LOOP(NAME(float16_to_float), halves, 2, floats, 4, HALVES_TO_FLOATS)
LOOP(NAME(bfloat16_to_float), halves, 2, floats, 4, bfloats_to_floats)
LOOP(NAME(float64_to_float), doubles, 8, floats, 4, doubles_to_floats)
LOOP(NAME(float64_to_odd_float), doubles, 8, floats, 4, doubles_to_odd_floats)
LOOP(NAME(float_to_float16), floats, 4, halves, 2, FLOATS_TO_HALVES)
LOOP(NAME(float_to_bfloat16), floats, 4, halves, 2, floats_to_bfloats)
LOOP(NAME(float_to_float64), floats, 4, doubles, 8, floats_to_doubles)
LOOP(NAME(uint32_to_int64), words, 4, wholes, 8, words_to_wholes)

#ifndef BYTES_TO_SIGNS
#define BYTES_TO_SIGNS(from, to) (*(to) = __builtin_convertvector(*(from), signs))
#endif

INLINE void bytes_to_floats(const bytes *from, floats *to, float scale, float offset)
{
	signs whole;
	BYTES_TO_SIGNS(from, &whole);
	const floats scaled = __builtin_convertvector(whole, floats) * scale;
	*to = scaled + offset;
}

TARGET static void NAME(int8_to_float)(const int8_t *from, void *to, uint64_t n, float scale, float offset)
{
	uint8_t *out = to;
	bytes a;
	floats b;
	for (; n >= LANES; n -= LANES, from += sizeof(a), out += sizeof(b)) {
		memcpy(&a, from, sizeof(a));
		bytes_to_floats(&a, &b, scale, offset);
		memcpy(out, &b, sizeof(b));
	}
	if (n == 0)
		return;
	a = (bytes){0};
	memcpy(&a, from, n);
	bytes_to_floats(&a, &b, scale, offset);
	memcpy(out, &b, n * sizeof(float));
}

#define LOOPS                                                                                                          \
	{                                                                                                              \
		.float16_to_float = NAME(float16_to_float), .bfloat16_to_float = NAME(bfloat16_to_float),              \
		.float64_to_float = NAME(float64_to_float), .float_to_float16 = NAME(float_to_float16),                \
		.float_to_bfloat16 = NAME(float_to_bfloat16), .float_to_float64 = NAME(float_to_float64),              \
		.uint32_to_int64 = NAME(uint32_to_int64), .float64_to_odd_float = NAME(float64_to_odd_float),          \
		.int8_to_float = NAME(int8_to_float),                                                                  \
	}
