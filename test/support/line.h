/* A client's line to one server, for tests of what goes wrong on it: one part behind a relay, and a client of one
 * thread, so one connection. */
#ifndef GW_TEST_LINE_H
#define GW_TEST_LINE_H

#include "test/support/client_setup.h"
#include "test/support/relay.h"

#define LONG_MS  600000l /* a limit that no test may wait for */
#define SHORT_MS 250l

/* A stretch in which no wait may last as long as LONG_MS: generous, since the machine may be busy. */
void clock_begin(void);
void clock_check(void);
void sleep_ms(long ms);

struct line {
	struct setup setup;
	struct relay relay;
	const char *list[1];
	struct gw_client *client;
	const struct gw_tensor *feat;
	uint64_t n; /* papers: ids, and rows of expected and out */
	int64_t *ids;
	uint8_t *expected, *out;
};

/* scale: of the graph. The list of servers, and one thread unless others are asked for, are the line's. */
void line_begin(struct line *line, uint64_t scale, struct gw_client_options options);
void line_end(struct line *line);
/* Gathers all rows into out, which is filled with something else before. */
gw_status line_gather(struct line *line);
/* The same, which must go well; on a machine so busy that a short deadline passes, once more. */
void line_works(struct line *line);
/* So must another operation. */
#define LINE_WORKS(operation)                                                                                          \
	do {                                                                                                           \
		gw_status line_status = GW_DEADLINE;                                                                   \
		for (int tries = 0; tries < 100 && line_status == GW_DEADLINE; tries++)                                \
			line_status = (operation);                                                                     \
		if (line_status)                                                                                       \
			fail_msg("%s", gw_last_error());                                                               \
	} while (0)
/* From now on the one connection gets only so many bytes more. */
void line_hold(struct line *line, int64_t more);

#endif
