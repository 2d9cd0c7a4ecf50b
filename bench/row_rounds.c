/* Request a row, poll until it arrives, compare it, request the next. Fails when the transport fails, when a row
 * differs from the table, or when a row takes longer than a minute.
 */
#include "bench/row_rounds.h"

#include <string.h>

#include "core/system/clock.h"

#define PATIENCE_NS (60 * GW_NS_PER_SECOND)

gw_status gw_row_rounds_begin(struct gw_row_rounds *reader, const struct gw_row_bed *bed,
			      const struct gw_bare_rows *rows)
{
	*reader = (struct gw_row_rounds){.rows = *rows};
	gw_status status = gw_row_client_open(bed, &reader->client);
	if (status == GW_OK)
		status = gw_buffer_register(reader->client.group, rows->landing, rows->row_bytes, &reader->buffer);
	if (status != GW_OK)
		gw_row_rounds_end(reader);
	return status;
}

void gw_row_rounds_end(struct gw_row_rounds *reader)
{
	/* After a failure a read may be open: close its connection before releasing its buffer. */
	gw_endpoint_close(reader->client.endpoint);
	reader->client.endpoint = NULL;
	gw_buffer_release(reader->buffer);
	gw_row_client_close(&reader->client);
	*reader = (struct gw_row_rounds){0};
}

static gw_status one_row(struct gw_row_rounds *reader, double *microseconds)
{
	const struct gw_bare_rows *rows = &reader->rows;
	struct gw_endpoint *endpoint = reader->client.endpoint;
	uint64_t offset = gw_bare_mix(reader->next++) % rows->rows * rows->row_bytes;
	struct gw_span span = {offset, 0, rows->row_bytes};
	struct gw_completion completion;
	uint64_t begun = gw_now_ns();
	struct gw_read_set set = {.cookie = &set, .deadline_ns = begun + PATIENCE_NS};
	if (gw_endpoint_readv(endpoint, &set, &endpoint->peer.regions[0], reader->buffer, &span, 1, true) != 1)
		return gw_fail(GW_AGAIN, "no room for one row");
	while (!gw_poll_group_poll(reader->client.group, &completion, 1, GW_NS_PER_SECOND))
		;
	*microseconds = (double)(gw_now_ns() - begun) * 1e-3;
	if (completion.status)
		return gw_fail_text(completion.status, completion.text);
	if (memcmp(rows->landing, rows->table + offset, rows->row_bytes) != 0)
		return gw_fail(GW_DIGEST, "the row at %llu is wrong", (unsigned long long)offset);
	return GW_OK;
}

gw_status gw_row_rounds_run(struct gw_row_rounds *reader, uint64_t rounds, double seconds, double *microseconds,
			    uint64_t *done)
{
	uint64_t end = seconds > 0 ? gw_now_ns() + (uint64_t)(seconds * 1e9) : GW_NO_DEADLINE;
	gw_status status = GW_OK;
	*done = 0;
	while (*done < rounds && status == GW_OK && (*done == 0 || gw_now_ns() < end)) {
		status = one_row(reader, &microseconds[*done]);
		*done += status == GW_OK;
	}
	return status;
}
