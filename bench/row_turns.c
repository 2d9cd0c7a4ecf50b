/* Requests a row, polls until it has come, compares it, requests the next. Fails with the transport's errors, if a
 * row differs from the table's, or if a row takes longer than a minute. */
#include "bench/row_turns.h"

#include <string.h>

#include "core/system/clock.h"

#define PATIENCE_NS (60 * GW_NS_PER_SECOND)

gw_status gw_row_rounds_begin(struct gw_row_rounds *turns, const struct gw_row_bed *bed,
			      const struct gw_bare_rows *rows)
{
	*turns = (struct gw_row_rounds){.rows = *rows};
	gw_status status = gw_row_client_open(bed, &turns->client);
	if (status == GW_OK)
		status = gw_buffer_register(turns->client.group, rows->landing, rows->row_bytes, &turns->buffer);
	if (status != GW_OK)
		gw_row_rounds_end(turns);
	return status;
}

void gw_row_rounds_end(struct gw_row_rounds *turns)
{
	/* Closing the connection ends a read that a failure has left open; free its buffer only then. */
	gw_endpoint_close(turns->client.endpoint);
	turns->client.endpoint = NULL;
	gw_buffer_release(turns->buffer);
	gw_row_client_close(&turns->client);
	*turns = (struct gw_row_rounds){0};
}

static gw_status one_row(struct gw_row_rounds *turns, double *microseconds)
{
	const struct gw_bare_rows *rows = &turns->rows;
	struct gw_endpoint *endpoint = turns->client.endpoint;
	uint64_t offset = gw_bare_mix(turns->next++) % rows->rows * rows->row_bytes;
	struct gw_span span = {offset, 0, rows->row_bytes};
	struct gw_completion completion;
	uint64_t begun = gw_now_ns();
	struct gw_read_set set = {.cookie = &set, .deadline_ns = begun + PATIENCE_NS};
	if (gw_endpoint_readv(endpoint, &set, &endpoint->peer.regions[0], turns->buffer, &span, 1, true) != 1)
		return gw_fail(GW_AGAIN, "no room for one row");
	while (!gw_poll_group_poll(turns->client.group, &completion, 1, GW_NS_PER_SECOND))
		;
	*microseconds = (double)(gw_now_ns() - begun) * 1e-3;
	if (completion.status)
		return gw_fail_text(completion.status, completion.text);
	if (memcmp(rows->landing, rows->table + offset, rows->row_bytes) != 0)
		return gw_fail(GW_DIGEST, "the row at %llu is wrong", (unsigned long long)offset);
	return GW_OK;
}

gw_status gw_row_rounds_run(struct gw_row_rounds *turns, uint64_t rounds, double seconds, double *microseconds,
			    uint64_t *done)
{
	uint64_t end = seconds > 0 ? gw_now_ns() + (uint64_t)(seconds * 1e9) : GW_NO_DEADLINE;
	gw_status status = GW_OK;
	*done = 0;
	while (*done < rounds && status == GW_OK && (*done == 0 || gw_now_ns() < end)) {
		status = one_row(turns, &microseconds[*done]);
		*done += status == GW_OK;
	}
	return status;
}
