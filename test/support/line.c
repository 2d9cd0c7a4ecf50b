/* See line.h. Fails the test when it cannot begin. */
#include "test/support/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/system/clock.h"

static uint64_t start_ns;

void clock_begin(void)
{
	start_ns = gw_now_ns();
}

void clock_check(void)
{
	uint64_t ms = (gw_now_ns() - start_ns) / GW_NS_PER_MS;
	if (ms >= (uint64_t)LONG_MS / 3)
		fail_msg("it took %llu ms", (unsigned long long)ms);
}

void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

void line_begin(struct line *line, uint64_t scale, struct gw_client_options options)
{
	setup_begin_open(&line->setup, 51, 1, scale);
	relay_begin(&line->relay, &line->setup.cluster.addresses[0]);
	line->list[0] = line->relay.text;
	options.servers = line->list;
	options.server_count = 1;
	options.threads = options.threads ? options.threads : 1;
	options.insecure = true; /* who stands behind a relay has no key there */
	line->client = open_client(&options);
	line->feat = node_tensor(line->client, "paper", "feat");
	line->n = line->feat->shape[0];
	line->ids = calloc(line->n, sizeof(*line->ids));
	line->expected = calloc(line->n, line->feat->row_bytes);
	line->out = calloc(line->n, line->feat->row_bytes);
	for (uint64_t i = 0; i < line->n; i++)
		line->ids[i] = (int64_t)i;
	LINE_WORKS(gw_gather(line->client, line->feat, line->ids, line->n, line->expected));
}

void line_end(struct line *line)
{
	gw_client_close(line->client);
	relay_end(&line->relay);
	setup_end(&line->setup);
	free(line->ids);
	free(line->expected);
	free(line->out);
}

gw_status line_gather(struct line *line)
{
	memset(line->out, 0xee, line->n * line->feat->row_bytes);
	return gw_gather(line->client, line->feat, line->ids, line->n, line->out);
}

void line_works(struct line *line)
{
	LINE_WORKS(line_gather(line));
	assert_memory_equal(line->out, line->expected, line->n * line->feat->row_bytes);
}

void line_hold(struct line *line, int64_t more)
{
	relay_hold_after(&line->relay, (int64_t)atomic_load(&line->relay.answer_bytes) + more);
}
