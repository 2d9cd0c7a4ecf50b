/* Posts `depth` batches, then waits for one and posts the next, until the time is over; then waits for the rest.
 * Fails with the transport's errors, or if a batch takes longer than a minute. */
#include "bench/row_stream.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define PATIENCE_NS (60 * GW_NS_PER_SECOND)

static uint64_t *offsets_of(const struct gw_row_stream *s, uint32_t slot)
{
	return s->offsets + (size_t)slot * s->rows.batch;
}

static uint8_t *landing_of(const struct gw_row_stream *s, uint32_t slot)
{
	return s->rows.landing + (size_t)slot * s->rows.batch * s->rows.row_bytes;
}

/* Draws the rows of the next batch: random rows, or runs of neighbours with random starts. */
static void stream_draw(struct gw_row_stream *s, uint64_t *offsets)
{
	uint32_t run = s->rows.run ? s->rows.run : 1;
	uint64_t beginnings = s->rows.rows - run + 1;
	for (uint32_t i = 0; i < s->rows.batch;) {
		uint64_t row = gw_bare_mix(s->next++) % beginnings;
		for (uint32_t end = i + run; i < end && i < s->rows.batch; i++)
			offsets[i] = row++ * s->rows.row_bytes;
	}
}

static gw_status stream_post(struct gw_row_stream *s, uint32_t slot)
{
	const struct gw_region *region = &s->client.endpoint->peer.regions[0];
	struct gw_read_set *set = &s->sets[slot];
	uint64_t *offsets = offsets_of(s, slot);
	*set = (struct gw_read_set){.cookie = set, .deadline_ns = s->deadline_ns};
	stream_draw(s, offsets);
	struct gw_gather gather = {.remote = offsets,
				   .local = (uint64_t)(landing_of(s, slot) - s->rows.landing),
				   .row_bytes = s->rows.row_bytes,
				   .stride = s->rows.row_bytes};
	for (size_t left = s->rows.batch;;) {
		size_t taken = gw_endpoint_gather(s->client.endpoint, set, region, s->buffer, &gather, left, true);
		left -= taken;
		if (!left)
			return GW_OK;
		gather.remote += taken;
		gather.local += taken * gather.stride;
		if (gw_now_ns() > s->deadline_ns)
			return gw_fail(GW_DEADLINE, "no room for a batch of %u rows", s->rows.batch);
		/* Only a batch larger than the transport's queue gets here: it waits for room itself. */
		if (!taken && gw_poll_group_poll(s->client.group, NULL, 0, GW_NS_PER_SECOND))
			return gw_fail(GW_PROTOCOL, "an unexpected completion");
	}
}

static gw_status stream_wait_one(struct gw_row_stream *s, uint32_t *slot)
{
	struct gw_completion completion;
	while (!gw_poll_group_poll(s->client.group, &completion, 1, GW_NS_PER_SECOND)) {
		if (gw_now_ns() > s->deadline_ns + PATIENCE_NS)
			return gw_fail(GW_DEADLINE, "a batch did not come in time");
	}
	*slot = (uint32_t)((struct gw_read_set *)completion.cookie - s->sets);
	return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
}

gw_status gw_row_stream_begin(struct gw_row_stream *s, const struct gw_row_bed *bed, const struct gw_bare_rows *rows)
{
	assert(rows->depth > 0 && rows->depth <= ROW_DEPTH_MAX);
	if (rows->rows <= rows->run)
		return gw_fail(GW_INVALID, "a table of %llu rows has no runs of %u", (unsigned long long)rows->rows,
			       rows->run);
	*s = (struct gw_row_stream){.rows = *rows};
	s->offsets = gw_calloc((size_t)rows->depth * rows->batch, sizeof(*s->offsets));
	gw_status status = s->offsets ? gw_row_client_open(bed, &s->client) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_buffer_register(s->client.group, rows->landing,
					    (uint64_t)rows->depth * rows->batch * rows->row_bytes, &s->buffer);
	if (status != GW_OK)
		gw_row_stream_end(s);
	return status;
}

void gw_row_stream_end(struct gw_row_stream *s)
{
	/* Closing the connection ends reads that a failure has left open; free their buffer only then. */
	gw_endpoint_close(s->client.endpoint);
	s->client.endpoint = NULL;
	gw_buffer_release(s->buffer);
	gw_row_client_close(&s->client);
	gw_free(s->offsets);
	*s = (struct gw_row_stream){0};
}

gw_status gw_row_stream_verify(struct gw_row_stream *s)
{
	gw_status status = GW_OK;
	uint32_t row_bytes = s->rows.row_bytes;
	s->deadline_ns = gw_now_ns() + PATIENCE_NS;
	for (uint32_t round = 0; round < 3 && status == GW_OK; round++) {
		uint32_t slot = round % s->rows.depth, done;
		const uint8_t *rows = landing_of(s, slot);
		const uint64_t *offsets = offsets_of(s, slot);
		memset(landing_of(s, slot), 0, (size_t)s->rows.batch * row_bytes);
		status = stream_post(s, slot);
		if (status == GW_OK)
			status = stream_wait_one(s, &done);
		for (uint32_t i = 0; i < s->rows.batch && status == GW_OK; i++)
			if (memcmp(rows + (size_t)i * row_bytes, s->rows.table + offsets[i], row_bytes) != 0)
				status = gw_fail(GW_DIGEST, "row %u of a gather is wrong", i);
	}
	return status;
}

gw_status gw_row_stream_run(struct gw_row_stream *s, double *bytes_per_second, uint64_t *batches)
{
	gw_status status = GW_OK;
	uint64_t done = 0, begun, elapsed = 0;
	double limit_ns = s->rows.seconds * 1e9;
	s->deadline_ns = gw_now_ns() + (uint64_t)limit_ns + PATIENCE_NS;
	for (uint32_t slot = 0; slot < s->rows.depth && status == GW_OK; slot++)
		status = stream_post(s, slot);
	begun = gw_now_ns();
	while (status == GW_OK && (double)(elapsed = gw_now_ns() - begun) < limit_ns) {
		uint32_t slot;
		status = stream_wait_one(s, &slot);
		if (status == GW_OK)
			status = stream_post(s, slot);
		done++;
	}
	for (uint32_t i = 0, slot; i < s->rows.depth && status == GW_OK; i++)
		status = stream_wait_one(s, &slot);
	*bytes_per_second = (double)done * s->rows.batch * s->rows.row_bytes / ((double)(elapsed ? elapsed : 1) * 1e-9);
	if (batches)
		*batches = done;
	return status;
}
