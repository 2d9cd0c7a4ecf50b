/* Draws from alias tables by the vectors in use, and in portable code. Nothing here fails. */
#include "sampler/lanes/wide_table.h"

#include "core/numbers/rng.h"

static void draw_plainly(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			 gw_table_row *words)
{
	for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++) {
		uint64_t instance = (uint64_t)lanes->instance_high[lane] << 32 | lanes->instance_low[lane];
		uint64_t degree = lanes->degree[lane];
		for (uint32_t draw = 0; draw < 2 * blocks; draw++) {
			uint32_t block = lanes->block[lane] + draw / 2;
			struct gw_words drawn = gw_philox_in(key, instance, lanes->group[lane], block);
			uint64_t high = drawn.word[draw % 2 ? 2 : 0], low = drawn.word[draw % 2 ? 3 : 1];
			uint64_t product = high * degree + (low * degree >> 32);
			columns[draw][lane] = (uint32_t)(product >> 32);
			words[draw][lane] = (uint32_t)product;
		}
	}
}

static uint32_t sort_plainly(gw_table_row *picks, const struct gw_network *network)
{
	uint32_t repeats = 0;
	for (uint32_t i = 0; i < network->count; i++) {
		uint32_t *low = picks[network->pairs[i].low], *high = picks[network->pairs[i].high];
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++) {
			uint32_t a = low[lane], b = high[lane];
			low[lane] = a < b ? a : b;
			high[lane] = a < b ? b : a;
		}
	}
	for (uint32_t i = 1; i < network->n; i++) {
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++)
			repeats |= (uint32_t)(picks[i - 1][lane] == picks[i][lane]) << lane;
	}
	return repeats;
}

const struct gw_table_functions *gw_table_functions(void)
{
	static const struct gw_table_functions functions[GW_VECTORS_COUNT] = {
		[GW_VECTORS_OFF] = {draw_plainly, sort_plainly},
#if defined(__x86_64__) || defined(__aarch64__)
		[GW_VECTORS_FOUR] = {gw_table_draw_four, gw_table_sort_four},
#endif
#ifdef __x86_64__
		[GW_VECTORS_AVX2] = {gw_table_draw_avx2, gw_table_sort_avx2},
		[GW_VECTORS_AVX512] = {gw_table_draw_avx512, gw_table_sort_avx512},
#endif
	};
	return &functions[gw_vectors_used()];
}
