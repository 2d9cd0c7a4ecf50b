/* Progress on stderr: one line redrawn in place on a terminal, a new line every few seconds elsewhere. */
#include "core/system/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/errors/units.h"
#include "core/system/clock.h"

#define DRAW_EVERY_NS (100 * GW_NS_PER_MS)
#define LINE_EVERY_NS (5 * GW_NS_PER_SECOND)
#define BAR_CELLS     24u
#define LINE_BYTES    256u
#define COLUMNS_USUAL 80 /* columns of a terminal that reports none */
#define CLEAR_LINE    "\r\033[K"

static char *progress_amount(const struct gw_progress *progress, char text[GW_UNIT_TEXT_MAX], double value)
{
	return strcmp(progress->unit, "B") == 0 ? gw_text_bytes(text, value) : gw_text_count(text, value);
}

static const char *unit_suffix(const struct gw_progress *progress)
{
	return strcmp(progress->unit, "B") == 0 ? "" : progress->unit;
}

/* Totals may be estimates, where an exact total would cost a computation. A total that is exceeded counts as
 * unknown. */
static bool knows_total(const struct gw_progress *progress, uint64_t done)
{
	return progress->total > 0 && done <= progress->total;
}

static double progress_share_of(const struct gw_progress *progress, uint64_t done)
{
	return done < progress->total ? (double)done / (double)progress->total : 1;
}

/* "" if the total is unknown or stderr is no terminal. */
static void write_bar(const struct gw_progress *progress, uint64_t done, char bar[BAR_CELLS + 4])
{
	uint32_t cells = (uint32_t)(progress_share_of(progress, done) * BAR_CELLS);
	bar[0] = 0;
	if (!knows_total(progress, done) || !progress->terminal)
		return;
	bar[0] = '[';
	memset(bar + 1, '#', cells);
	memset(bar + 1 + cells, '.', BAR_CELLS - cells);
	memcpy(bar + 1 + BAR_CELLS, "] ", 3);
}

static int write_line(const struct gw_progress *progress, uint64_t done, uint64_t now_ns, const char *bar, char *line,
		      size_t bytes)
{
	char done_text[GW_UNIT_TEXT_MAX], total_text[GW_UNIT_TEXT_MAX], rate_text[GW_UNIT_TEXT_MAX];
	char of[GW_UNIT_TEXT_MAX + 16] = "";
	double seconds = (double)(now_ns - progress->start_ns) / (double)GW_NS_PER_SECOND;
	double rate = seconds > 0 ? (double)done / seconds : 0;
	if (!progress->unit)
		return snprintf(line, bytes, "%s: %s", progress->what, gw_text_duration(done_text, seconds));
	const char *unit = unit_suffix(progress), *space = *unit ? " " : "";
	if (knows_total(progress, done))
		snprintf(of, sizeof(of), " of %s (%.0f %%)",
			 progress_amount(progress, total_text, (double)progress->total),
			 progress_share_of(progress, done) * 100);
	return snprintf(line, bytes, "%s %s%s%s%s%s, %s%s%s/s", progress->what, bar,
			progress_amount(progress, done_text, (double)done), of, space, unit,
			progress_amount(progress, rate_text, rate), space, unit);
}

/* A line that a terminal wraps cannot be redrawn. A long line first loses its bar, and is then cut. */
static void progress_draw(const struct gw_progress *progress, uint64_t done, uint64_t now_ns)
{
	char bar[BAR_CELLS + 4], line[LINE_BYTES];
	struct winsize size = {0};
	size_t width = sizeof(line);
	write_bar(progress, done, bar);
	if (progress->terminal && (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0))
		size.ws_col = COLUMNS_USUAL;
	if (progress->terminal && size.ws_col < width)
		width = size.ws_col;
	if (write_line(progress, done, now_ns, bar, line, width) >= (int)width)
		write_line(progress, done, now_ns, "", line, width);
	if (progress->terminal)
		fprintf(stderr, CLEAR_LINE "%s", line);
	else
		fprintf(stderr, "%s\n", line);
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
	progress_draw(progress, done, now_ns);
}

void gw_progress_end(struct gw_progress *progress, uint64_t done)
{
	if (!progress->drawn)
		return; /* too short to report */
	if (progress->terminal) {
		fputs(CLEAR_LINE, stderr);
		fflush(stderr);
	} else {
		progress_draw(progress, done, gw_now_ns());
	}
	progress->drawn = 0;
}
