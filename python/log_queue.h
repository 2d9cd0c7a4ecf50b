/* The library's log lines, on their way to Python (graphwire/_base/log.py).
 *
 *   any thread of the library -> the queue -> log_take(), in a thread of Python that holds the GIL
 *
 * Why a queue, and no callback into Python: a callback would need the GIL. A thread of the library would then wait for
 * Python code, which slows reads down; it would not return while the interpreter ends; and a handler that waits for the
 * library would stop it for ever.
 *
 * Fork: the child forgets the lines in its copy of the queue, because the parent prints them.
 */
#ifndef PYTHON_LOG_QUEUE_H
#define PYTHON_LOG_QUEUE_H

#include <stdbool.h>

#include <graphwire/log.h>

#define LOG_QUEUE_MAX 1000 /* lines; further lines are counted and dropped */

struct log_entry {
	struct log_entry *next;
	enum gw_log_level level;
	double time;      /* seconds since 1970, when the line was logged */
	uint64_t dropped; /* lines that were dropped since the entry before */
	char line[];
};

/* Sends the lines of this process to the queue, and back to stderr. */
gw_status log_begin(void);
gw_status log_end(void);

/* Whether the queue has an entry. */
bool log_waits(void);

/* Moves the oldest entry to *to, or NULL if the queue is empty. The caller owns it; *to must be NULL. Any thread. */
void log_take(struct log_entry **to);
void log_entry_end(struct log_entry **entry);

#endif
