/* Progress on stderr: one line redrawn in place on a terminal, a new line every few seconds elsewhere. */
#include "core/base/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/options.h"

#define DRAW_EVERY_NS (100 * GW_NS_PER_MS)
#define LINE_EVERY_NS (5 * GW_NS_PER_SECOND)
#define BAR_CELLS     24u
#define CLEAR_LINE    "\r\033[K"

static char *amount(const struct gw_progress *progress, char text[GW_UNIT_TEXT_MAX], double value)
{
	return strcmp(progress->unit, "B") == 0 ? gw_text_bytes(text, value) : gw_text_count(text, value);
}

static const char *unit_suffix(const struct gw_progress *progress)
{
	return strcmp(progress->unit, "B") == 0 ? "" : progress->unit;
}

static void draw(const struct gw_progress *progress, uint64_t done, uint64_t now_ns, const char *before,
		 const char *after)
{
	char done_text[GW_UNIT_TEXT_MAX], total_text[GW_UNIT_TEXT_MAX], rate_text[GW_UNIT_TEXT_MAX];
	char bar[BAR_CELLS + 3] = "", of[GW_UNIT_TEXT_MAX + 16] = "";
	double seconds = (double)(now_ns - progress->start_ns) / (double)GW_NS_PER_SECOND;
	double rate = seconds > 0 ? (double)done / seconds : 0;
	if (!progress->unit) {
		fprintf(stderr, "%s%s: %s%s", before, progress->what, gw_text_duration(done_text, seconds), after);
		fflush(stderr);
		return;
	}
	const char *unit = unit_suffix(progress), *space = *unit ? " " : "";
	if (progress->total) {
		double share = done < progress->total ? (double)done / (double)progress->total : 1;
		snprintf(of, sizeof(of), " of %s (%.0f %%)", amount(progress, total_text, (double)progress->total),
			 share * 100);
		if (progress->terminal) {
			uint32_t cells = (uint32_t)(share * BAR_CELLS);
			bar[0] = '[';
			memset(bar + 1, '#', cells);
			memset(bar + 1 + cells, '.', BAR_CELLS - cells);
			memcpy(bar + 1 + BAR_CELLS, "]", 2);
		}
	}
	fprintf(stderr, "%s%s %s%s%s%s%s%s, %s%s%s/s%s", before, progress->what, bar, *bar ? " " : "",
		amount(progress, done_text, (double)done), of, space, unit, amount(progress, rate_text, rate), space,
		unit, after);
	fflush(stderr);
}

void gw_progress_begin(struct gw_progress *progress, const char *what, const char *unit, uint64_t total)
{
	*progress = (struct gw_progress){.what = what, .unit = unit, .total = total, .start_ns = gw_now_ns()};
	progress->terminal = isatty(STDERR_FILENO);
	progress->next_ns = progress->start_ns + (progress->terminal ? DRAW_EVERY_NS : LINE_EVERY_NS);
}

void gw_progress_update(struct gw_progress *progress, uint64_t done)
{
	uint64_t now_ns = gw_now_ns();
	if (now_ns < progress->next_ns)
		return;
	progress->next_ns = now_ns + (progress->terminal ? DRAW_EVERY_NS : LINE_EVERY_NS);
	progress->drawn = 1;
	if (progress->terminal)
		draw(progress, done, now_ns, CLEAR_LINE, "");
	else
		draw(progress, done, now_ns, "", "\n");
}

void gw_progress_end(struct gw_progress *progress, uint64_t done)
{
	if (!progress->drawn)
		return; /* too short to speak of */
	if (progress->terminal) {
		fputs(CLEAR_LINE, stderr);
		fflush(stderr);
	} else {
		draw(progress, done, gw_now_ns(), "", "\n");
	}
	progress->drawn = 0;
}
