/* repeat: slice of the ceiling, slice of the case, slice of the case, slice of the ceiling, ... -> medians of the
 * repeat's rounds -> the series; medians of the slices -> one or two modes of waking up.
 */
#include "bench/rounds.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"

#define SLICE_ROUNDS 100u /* a few milliseconds */
#define SHARE_MIN    0.1  /* least share of the slices in the smaller group */
#define STRAY_SHARE  0.05 /* share of the slowest slices, which other work disturbed: ignored */
#define RATIO_MIN    (4.0 / 3)
#define SEPARATION                                                                                                     \
	5.0 /* least distance of the groups, in deviations; a bell curve cut in two has 2.7, a flat curve 3.5 */
#define MODE_TEXT_MAX 64

static uint32_t slices_of(uint32_t count)
{
	return (count + SLICE_ROUNDS - 1) / SLICE_ROUNDS;
}

static gw_status run_slice(struct gw_rounds_side *side, gw_rounds_measure measure, void *context, uint32_t rounds,
			   double *microseconds)
{
	double sorted[SLICE_ROUNDS];
	gw_status status = measure(context, rounds, microseconds);
	if (status != GW_OK)
		return status;
	memcpy(sorted, microseconds, rounds * sizeof(*sorted));
	side->slices[side->slice_count++] = gw_bench_quantile(sorted, rounds, 0.5);
	return GW_OK;
}

static void summarize(struct gw_rounds_side *side, double *microseconds, uint32_t count)
{
	gw_bench_series_add(&side->p99, gw_bench_quantile(microseconds, count, 0.99));
	gw_bench_series_add(&side->p50, gw_bench_quantile(microseconds, count, 0.5));
}

static gw_status run_repeat(struct gw_rounds *rounds, uint32_t count, gw_rounds_measure ceiling,
			    gw_rounds_measure value, void *context, double *microseconds)
{
	struct gw_rounds_side *sides[] = {&rounds->ceiling, &rounds->value};
	gw_status status = GW_OK;
	for (uint32_t slice = 0; slice < slices_of(count) && status == GW_OK; slice++) {
		uint32_t done = slice * SLICE_ROUNDS, left = count - done,
			 n = left < SLICE_ROUNDS ? left : SLICE_ROUNDS;
		for (uint32_t turn = 0; turn < 2 && status == GW_OK; turn++) {
			uint32_t who = (slice + turn) % 2;
			status = run_slice(sides[who], who ? value : ceiling, context, n,
					   microseconds + (size_t)who * count + done);
		}
	}
	for (uint32_t who = 0; who < 2 && status == GW_OK; who++)
		summarize(sides[who], microseconds + (size_t)who * count, count);
	return status;
}

gw_status gw_rounds_run(struct gw_rounds *rounds, const struct gw_bench *bench, uint32_t count,
			gw_rounds_measure ceiling, gw_rounds_measure value, void *context)
{
	size_t slices = (size_t)bench->repeats * slices_of(count);
	rounds->value.p50.count = rounds->value.p99.count = 0;
	rounds->ceiling.p50.count = rounds->ceiling.p99.count = 0;
	rounds->value.slice_count = rounds->ceiling.slice_count = 0;
	rounds->value.slices = gw_calloc(slices, sizeof(double));
	rounds->ceiling.slices = gw_calloc(slices, sizeof(double));
	double *microseconds = gw_calloc(2ul * count, sizeof(double));
	gw_status status = GW_NO_MEMORY;
	if (rounds->value.slices && rounds->ceiling.slices && microseconds)
		status = GW_OK;
	for (unsigned i = 0; i < bench->repeats && status == GW_OK; i++)
		status = run_repeat(rounds, count, ceiling, value, context, microseconds);
	gw_free(microseconds);
	return status;
}

void gw_rounds_free(struct gw_rounds *rounds)
{
	gw_free(rounds->value.slices);
	gw_free(rounds->ceiling.slices);
	rounds->value.slices = rounds->ceiling.slices = NULL;
}

/* ---- modes ---- */

/* Sums of the values, and of their squares, from 0 to some index. The difference of two gives the deviation of any
 * range. */
struct sums {
	double count, sum, squares;
};

static double mean(struct sums s)
{
	return s.sum / s.count;
}

static double variance(struct sums s)
{
	double v = s.squares / s.count - mean(s) * mean(s);
	return v > 0 ? v : 0;
}

static struct sums with(struct sums s, double value)
{
	return (struct sums){s.count + 1, s.sum + value, s.squares + value * value};
}

static struct sums without(struct sums all, struct sums s)
{
	return (struct sums){all.count - s.count, all.sum - s.sum, all.squares - s.squares};
}

/* Returns the index that cuts the sorted values into the two groups with the least deviation within them. Uses
 * logarithms, since a few times are far above the others. */
static size_t best_cut(const double *sorted, size_t count, struct sums all, struct sums *lower)
{
	struct sums sums = {0};
	size_t cut = 0;
	double least = INFINITY;
	for (size_t i = 1; i < count; i++) {
		sums = with(sums, log(sorted[i - 1]));
		struct sums rest = without(all, sums);
		double within = sums.count * variance(sums) + rest.count * variance(rest);
		if (within < least) {
			least = within;
			cut = i;
			*lower = sums;
		}
	}
	return cut;
}

struct gw_rounds_modes gw_rounds_find_modes(double *values, size_t count)
{
	struct gw_rounds_modes modes = {0};
	struct sums all = {0}, lower = {0};
	if ((double)count < 2 / SHARE_MIN)
		return modes;
	gw_bench_quantile(values, count, 0); /* sorts the values */
	count -= (size_t)((double)count * STRAY_SHARE);
	for (size_t i = 0; i < count; i++)
		all = with(all, log(values[i]));
	size_t cut = best_cut(values, count, all, &lower);
	struct sums upper = without(all, lower);
	modes.low_us = values[cut / 2];
	modes.high_us = values[cut + (count - cut) / 2];
	modes.high_share = (double)(count - cut) / (double)count;
	double apart = mean(upper) - mean(lower), deviation = sqrt((variance(lower) + variance(upper)) / 2);
	modes.two = modes.high_share >= SHARE_MIN && modes.high_share <= 1 - SHARE_MIN &&
		    modes.high_us >= RATIO_MIN * modes.low_us && apart >= SEPARATION * deviation;
	return modes;
}

/* ---- reporting ---- */

/* Appends a text about two modes, if there are two: "; the rows are bimodal: 62 % at 7.1 us, 38 % at 19.3 us". */
static void say_modes(char *note, size_t bytes, const char *what, const struct gw_rounds_modes *modes)
{
	size_t used = strlen(note);
	if (modes->two)
		snprintf(note + used, bytes - used, "; %s bimodal: %.0f %% at %.4g us, %.0f %% at %.4g us", what,
			 100 * (1 - modes->high_share), modes->low_us, 100 * modes->high_share, modes->high_us);
}

static const char *modes_text(char text[MODE_TEXT_MAX], const struct gw_rounds_modes *modes)
{
	snprintf(text, MODE_TEXT_MAX, modes->two ? "%.4g and %.4g us" : "no", modes->low_us, modes->high_us);
	return text;
}

void gw_rounds_report(struct gw_bench *bench, struct gw_rounds *rounds, const char *title, const char *placement,
		      const char *ceiling_is, struct gw_bench_field more)
{
	char note[320], text[MODE_TEXT_MAX], ceiling_text[MODE_TEXT_MAX];
	double p99 = gw_bench_series_median(&rounds->value.p99);
	double bare_p99 = gw_bench_series_median(&rounds->ceiling.p99);
	struct gw_rounds_modes modes = gw_rounds_find_modes(rounds->value.slices, rounds->value.slice_count);
	struct gw_rounds_modes bare = gw_rounds_find_modes(rounds->ceiling.slices, rounds->ceiling.slice_count);
	snprintf(note, sizeof(note), "99 of 100 rows within %.4g us; the %s within %.4g us", p99, ceiling_is, bare_p99);
	say_modes(note, sizeof(note), "the rows are", &modes);
	say_modes(note, sizeof(note), "the ceiling is", &bare);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "us",
		.values = &rounds->value.p50,
		.ceilings = &rounds->ceiling.p50,
		.lower_is_better = true,
		.verified = true,
		.fields = {{"p50_us", gw_bench_series_median(&rounds->value.p50), NULL},
			   {"p99_us", p99, NULL},
			   {"ceiling_p99_us", bare_p99, NULL},
			   {"placement", 0, placement},
			   {"bimodal", 0, modes_text(text, &modes)},
			   {"ceiling_bimodal", 0, modes_text(ceiling_text, &bare)},
			   more},
		.note = note,
	};
	gw_bench_report(bench, &result);
}
