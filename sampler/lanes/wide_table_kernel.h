/* Draws from alias tables in lanes (wide_table.h), over the vector operations that wide_kernel.h describes. */
#include "sampler/lanes/wide_table.h"

/* The column and the word of the draw w = high << 32 | low: the product w * degree, without its lowest 32 bits, is
 * high * degree + (low * degree >> 32). Its upper half is the column, its lower half the word. */
INLINE void split_draw(vec high, vec low, vec degree, vec *column, vec *word)
{
	vec carry_from, high_column;
	vec_multiply(low, degree, &carry_from);
	vec sum = vec_add(vec_multiply(high, degree, &high_column), carry_from);
	*word = sum;
	*column = vec_add(high_column, vec_choose(vec_less(sum, carry_from), vec_set(1), vec_set(0)));
}

INLINE void draw_columns(const struct gw_table_lanes *lanes, uint64_t key, uint32_t blocks, gw_table_row *columns,
			 gw_table_row *words)
{
	for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane += WIDTH) {
		vec block = vec_load(lanes->block + lane), degree = vec_load(lanes->degree + lane);
		vec low = vec_load(lanes->instance_low + lane), high = vec_load(lanes->instance_high + lane);
		vec group = vec_load(lanes->group + lane), drawn[4], column, word;
		for (uint32_t draw = 0; draw < 2 * blocks; draw++) {
			if (draw % 2 == 0) {
				philox(block, low, high, group, key, drawn);
				block = vec_add(block, vec_set(1));
			}
			split_draw(drawn[draw % 2 ? 2 : 0], drawn[draw % 2 ? 3 : 1], degree, &column, &word);
			vec_store(columns[draw] + lane, column);
			vec_store(words[draw] + lane, word);
		}
	}
}

/* Sorts each lane; returns a bit for each lane with equal picks. */
INLINE uint32_t sort_columns(gw_table_row *picks, const struct gw_network *network)
{
	uint32_t repeats = 0;
	for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane += WIDTH) {
		for (uint32_t i = 0; i < network->count; i++) {
			uint32_t *low = picks[network->pairs[i].low] + lane;
			uint32_t *high = picks[network->pairs[i].high] + lane;
			vec a = vec_load(low), b = vec_load(high);
			vec_store(low, vec_min(a, b));
			vec_store(high, vec_max(a, b));
		}
		for (uint32_t i = 1; i < network->n; i++)
			repeats |= vec_equal(vec_load(picks[i - 1] + lane), vec_load(picks[i] + lane)) << lane;
	}
	return repeats;
}
