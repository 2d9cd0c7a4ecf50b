/* Lines for a descriptor whose reader may stop reading: the other end of a full pipe, a terminal that is paused.
 *
 *   gw_lines_put -> the ring -> a thread of its own -> write(2)
 *
 * Only that thread ever waits for the reader. gw_lines_put gives it GW_LINES_PATIENCE_MS to write the line, and more
 * while the descriptor takes lines, so that a line is out when the call returns, and not lost if the program crashes
 * next. Once that time has passed, the reader
 * counts as stalled, and lines only join the ring, until it is empty again. Lines that find no room are counted; the
 * next line that gets through is preceded by their number.
 *
 * The ring is static memory: a line needs no allocation. Threads: any. Fork: the child begins with an empty ring,
 * because the parent writes what is in its own. Exit: the rest of the lines gets GW_LINES_EXIT_MS.
 */
#ifndef GW_ERRORS_LINES_H
#define GW_ERRORS_LINES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_LINES_BYTES_MAX   16384 /* of one line; the rest of a longer one is cut */
#define GW_LINES_PATIENCE_MS 10
#define GW_LINES_LATE_MS     1000 /* the thread has at most this, while the descriptor takes lines */
#define GW_LINES_EXIT_MS     1000

/* Static, and initialized by GW_LINES. */
struct gw_lines {
	int fd;
	char *ring;
	size_t ring_bytes;
	/* Writes the line that reports `lost` lines to out, which has GW_LINES_BYTES_MAX; returns its bytes. NULL:
	 * losses are not reported. */
	size_t (*describe_lost)(char *out, uint64_t lost);
	/* own */
	pthread_mutex_t lock;
	pthread_cond_t put_some; /* there is a line in the ring */
	pthread_cond_t out_some; /* the thread has finished one */
	size_t first, used;      /* of the ring */
	uint64_t put, out;       /* lines that joined the ring; of these, written or failed */
	uint64_t lost;           /* since the last line that joined */
	int error;               /* of the last write; 0: it worked */
	bool begun, runs, stalled;
	struct gw_lines *next;
};

#define GW_LINES(fd_, ring_, describe_lost_)                                                                           \
	{                                                                                                              \
		.fd = (fd_), .ring = (ring_), .ring_bytes = sizeof(ring_), .describe_lost = (describe_lost_),          \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                                      \
	}

/* Takes a line, with its line end. If the descriptor takes nothing, waits for GW_LINES_PATIENCE_MS at most, and not at
 * all while the reader is stalled. */
void gw_lines_put(struct gw_lines *lines, const char *line, size_t bytes);

/* Waits until all lines are written, for `ms` at most. Returns 0, the errno value of the last write if that failed, or
 * ETIMEDOUT. */
int gw_lines_drain(struct gw_lines *lines, uint32_t ms);

/* Replaces GW_LINES_EXIT_MS, which all gw_lines of the process share, for a program that has less time at its end. */
void gw_lines_limit_exit(uint32_t ms);

#endif
