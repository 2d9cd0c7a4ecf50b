/* Progress of long work: a bar when stderr is a terminal, else a line every few seconds. Called from one thread. */
#ifndef GW_SYSTEM_PROGRESS_H
#define GW_SYSTEM_PROGRESS_H

#include <stdint.h>

struct gw_progress {
	const char *what; /* "loading", "writing part 1" */
	const char *unit; /* "B" prints sizes; anything else counts, e.g. "edges"; NULL: only the time is printed */
	uint64_t total;   /* 0: unknown; after `done` has exceeded it, the total is no longer printed */
	uint64_t start_ns, next_ns;
	int terminal, drawn;
};

void gw_progress_begin(struct gw_progress *progress, const char *what, const char *unit, uint64_t total);
void gw_progress_update(struct gw_progress *progress, uint64_t done); /* cheap: draws a few times a second */
void gw_progress_end(struct gw_progress *progress, uint64_t done);    /* removes the bar, or prints the last line */

#endif
