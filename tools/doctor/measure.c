/* Reads from one endpoint: a sample of its bytes, the time of one row, the rate of many, and the cost of a range.
 *
 *   open: poll group -> connect -> receive buffer -> sample, measure -> close: everything of the group ends with it
 *
 * Rows are read at random places, so that no cache helps. The cost of a range is its time without the time of its
 * bytes. Let t(n) be the time of a range of n bytes among many in flight. Let b be the time of a byte, from the
 * difference of two lengths. The cost is (t(short) - short * b) / b, in bytes. Every wait ends at the deadline. A
 * failure has the endpoint's own text.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/histogram.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "tools/doctor/doctor.h"

#define SLOTS         4u   /* read sets in flight while many rows are read */
#define SPANS         256u /* spans of one read set */
#define SLOT_BYTES    (1u << 20)
#define LANDING_BYTES ((size_t)SLOTS * SLOT_BYTES)
#define SAMPLE_ROW    64u
#define SHORT_BYTES   8u    /* bytes of a neighbour's id in a list */
#define LONG_BYTES    4096u /* a complete list */
#define WARM_ROUNDS   20u
#define ROUNDS_MAX    5000u
#define RANGE_REPEATS 3u
#define READS_NS      (2000 * GW_NS_PER_MS) /* for all reads, after the connect's deadline and the time to measure */
#define LATE_NS       GW_NS_PER_SECOND      /* after the deadline, for the transport to report it */
#define TRIPS         60u /* the deadline of all reads grows by so many times a single read, for distant servers */
#define FAR_NS        (20 * GW_NS_PER_MS) /* with a longer round trip, times measure the network only */

struct measure_slot {
	struct gw_read_set set;
	struct gw_span spans[SPANS];
	uint32_t count, posted;
	bool busy;
};

struct gw_doctor_reader {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint8_t *landing;
	uint64_t deadline_ns;
	uint64_t measure_ns; /* a quarter for single rows, a quarter for many, half for ranges */
	uint64_t drawn;      /* random numbers drawn */
	uint64_t trip_ns;    /* as ping measured it */
	uint32_t row_bytes;
	struct measure_slot slots[SLOTS];
	struct gw_histogram times;
};

/* --- Connecting. --- */

static gw_status doctor_wait_one(struct gw_doctor_reader *reader, struct gw_completion *completion)
{
	for (;;) {
		uint64_t now = gw_now_ns(), end = reader->deadline_ns + LATE_NS;
		if (now >= end)
			return gw_fail(GW_DEADLINE, "no answer within the time given");
		if (gw_poll_group_poll(reader->group, completion, 1, end - now))
			break;
	}
	if (completion->status)
		return gw_fail_text(completion->status,
				    *completion->text ? completion->text : gw_status_text(completion->status));
	return GW_OK;
}

static gw_status doctor_open_steps(struct gw_doctor_reader *reader, const char *scheme,
				   const struct gw_connect_options *options)
{
	const struct gw_transport *transport;
	struct gw_completion completion;
	gw_status status = gw_transport_find(scheme, &transport);
	if (status == GW_OK)
		status = gw_poll_group_create(NULL, &reader->group);
	if (status == GW_OK)
		status = gw_endpoint_connect(reader->group, options, reader, &reader->endpoint);
	if (status == GW_OK)
		status = doctor_wait_one(reader, &completion);
	if (status == GW_OK)
		status = gw_buffer_register(reader->group, reader->landing, LANDING_BYTES, &reader->buffer);
	reader->deadline_ns += reader->measure_ns + READS_NS;
	return status;
}

gw_status gw_doctor_reader_open(const char *scheme, const struct gw_connect_options *options, uint32_t row_bytes,
				uint64_t measure_ms, struct gw_doctor_reader **out)
{
	*out = NULL;
	struct gw_doctor_reader *reader = gw_calloc(1, sizeof(*reader));
	if (!reader)
		return GW_NO_MEMORY;
	reader->deadline_ns = options->deadline_ns;
	reader->row_bytes = row_bytes;
	reader->measure_ns = measure_ms * GW_NS_PER_MS;
	reader->landing = gw_calloc(1, LANDING_BYTES);
	gw_status status = reader->landing ? doctor_open_steps(reader, scheme, options) : GW_NO_MEMORY;
	if (status != GW_OK) {
		char text[GW_ERROR_TEXT_MAX];
		snprintf(text, sizeof(text), "%s", gw_last_error());
		gw_doctor_reader_close(reader);
		return gw_fail_text(status, text);
	}
	*out = reader;
	return GW_OK;
}

void gw_doctor_reader_goodbye(struct gw_doctor_reader *reader)
{
	if (reader)
		gw_endpoint_goodbye(reader->endpoint);
}

void gw_doctor_reader_close(struct gw_doctor_reader *reader)
{
	if (!reader)
		return;
	gw_endpoint_close(reader->endpoint);
	gw_poll_group_destroy(reader->group); /* after this call no read writes into the buffer */
	gw_free(reader->landing);
	gw_free(reader);
}

const struct gw_endpoint *gw_doctor_reader_endpoint(const struct gw_doctor_reader *reader)
{
	return reader->endpoint;
}

/* --- Reading. --- */

static const struct gw_region *region_of(const struct gw_doctor_reader *reader)
{
	return &reader->endpoint->peer.regions[0];
}

/* At a multiple of 8, like arrays. The region has at least `bytes` bytes. */
static uint64_t draw_place(struct gw_doctor_reader *reader, uint32_t bytes)
{
	uint64_t places = region_of(reader)->bytes - bytes + 1;
	return gw_mix64(++reader->drawn) % places & ~UINT64_C(7);
}

static uint32_t fit(const struct gw_doctor_reader *reader, uint32_t bytes)
{
	uint64_t most = region_of(reader)->bytes;
	return bytes < most ? bytes : (uint32_t)most;
}

static void slot_post(struct gw_doctor_reader *reader, struct measure_slot *slot)
{
	slot->posted += (uint32_t)gw_endpoint_readv(reader->endpoint, &slot->set, region_of(reader), reader->buffer,
						    slot->spans + slot->posted, slot->count - slot->posted, true);
}

static void slot_begin(struct gw_doctor_reader *reader, struct measure_slot *slot, uint32_t count)
{
	slot->set = (struct gw_read_set){.cookie = slot, .deadline_ns = reader->deadline_ns};
	slot->count = count;
	slot->posted = 0;
	slot->busy = true;
	slot_post(reader, slot);
}

/* Also posts spans that had no room before. */
static gw_status slots_wait(struct gw_doctor_reader *reader, struct measure_slot **ended)
{
	uint64_t end = reader->deadline_ns + LATE_NS;
	*ended = NULL;
	for (uint64_t now; (now = gw_now_ns()) < end;) {
		struct gw_completion completion;
		for (uint32_t i = 0; i < SLOTS; i++)
			if (reader->slots[i].busy && reader->slots[i].posted < reader->slots[i].count)
				slot_post(reader, &reader->slots[i]);
		size_t n = gw_poll_group_poll(reader->group, &completion, 1, end - now);
		if (n && completion.status)
			return gw_fail_text(completion.status,
					    *completion.text ? completion.text : gw_status_text(completion.status));
		if (n) {
			*ended = completion.cookie;
			(*ended)->busy = false;
			return GW_OK;
		}
		/* The transport does not know a set that has no accepted span yet, so this loop checks the set's
		 * deadline. */
		if (now >= reader->deadline_ns)
			break;
	}
	return gw_fail(GW_DEADLINE, "no answer within the time given");
}

static gw_status read_first_slot_alone(struct gw_doctor_reader *reader, uint32_t count)
{
	struct measure_slot *ended;
	slot_begin(reader, &reader->slots[0], count);
	return slots_wait(reader, &ended);
}

gw_status gw_doctor_reader_ping(struct gw_doctor_reader *reader, uint64_t *ns)
{
	uint32_t row = fit(reader, SAMPLE_ROW);
	uint64_t begun = gw_now_ns();
	reader->slots[0].spans[0] = (struct gw_span){0, 0, row};
	gw_status status = read_first_slot_alone(reader, 1);
	*ns = reader->trip_ns = gw_now_ns() - begun;
	if (status == GW_OK)
		reader->deadline_ns += TRIPS * *ns;
	return status;
}

gw_status gw_doctor_reader_sample(struct gw_doctor_reader *reader, uint8_t out[GW_DOCTOR_SAMPLE_BYTES], uint32_t *used)
{
	uint64_t region = region_of(reader)->bytes;
	uint32_t row = fit(reader, SAMPLE_ROW), rows = GW_DOCTOR_SAMPLE_BYTES / SAMPLE_ROW;
	struct gw_span *spans = reader->slots[0].spans;
	memset(out, 0, GW_DOCTOR_SAMPLE_BYTES);
	*used = row * rows;
	reader->drawn = 0; /* the same places each time */
	for (uint32_t done = 0; done < rows; done += SPANS) {
		for (uint32_t i = 0; i < SPANS; i++)
			spans[i] = (struct gw_span){draw_place(reader, row), (uint64_t)i * row, row};
		if (done == 0) {
			spans[0].remote = 0;
			spans[1].remote = region - row;
		}
		memset(reader->landing, 0, (size_t)SPANS * row);
		gw_status status = read_first_slot_alone(reader, SPANS);
		if (status != GW_OK)
			return status;
		memcpy(out + (size_t)done * row, reader->landing, (size_t)SPANS * row);
	}
	return GW_OK;
}

/* --- Measuring. --- */

static gw_status measure_latency(struct gw_doctor_reader *reader, uint32_t bytes, struct gw_doctor_figures *out)
{
	uint64_t start = gw_now_ns(), warm = start + reader->measure_ns / 40, end = start + reader->measure_ns / 4;
	gw_histogram_clear(&reader->times);
	for (uint32_t round = 0; round < ROUNDS_MAX + WARM_ROUNDS; round++) {
		reader->slots[0].spans[0] = (struct gw_span){draw_place(reader, bytes), 0, bytes};
		uint64_t begun = gw_now_ns();
		gw_status status = read_first_slot_alone(reader, 1);
		if (status != GW_OK)
			return status;
		uint64_t now = gw_now_ns();
		if (round >= WARM_ROUNDS || now >= warm)
			gw_histogram_add(&reader->times, now - begun);
		if (now >= end)
			break;
	}
	out->p50_us = (double)gw_histogram_quantile(&reader->times, 0.5) * 1e-3;
	out->p99_us = (double)gw_histogram_quantile(&reader->times, 0.99) * 1e-3;
	return GW_OK;
}

static void slot_fill(struct gw_doctor_reader *reader, struct measure_slot *slot, uint32_t bytes, uint32_t count)
{
	uint64_t base = (uint64_t)(slot - reader->slots) * SLOT_BYTES;
	for (uint32_t i = 0; i < count; i++)
		slot->spans[i] = (struct gw_span){draw_place(reader, bytes), base + (uint64_t)i * bytes, bytes};
}

/* For about the given time, with SLOTS read sets in flight. The result is the time of one range. */
static gw_status doctor_stream(struct gw_doctor_reader *reader, uint32_t bytes, uint64_t budget_ns,
			       double *seconds_each)
{
	uint32_t count = SLOT_BYTES / bytes < SPANS ? SLOT_BYTES / bytes : SPANS, open = 0;
	uint64_t ranges = 0, begun = gw_now_ns(), end = begun + budget_ns;
	for (uint32_t i = 0; i < SLOTS; i++, open++) {
		slot_fill(reader, &reader->slots[i], bytes, count);
		slot_begin(reader, &reader->slots[i], count);
	}
	uint64_t now = begun;
	while (open > 0) {
		struct measure_slot *slot;
		gw_status status = slots_wait(reader, &slot);
		if (status != GW_OK)
			return status;
		ranges += slot->count;
		now = gw_now_ns();
		if (now >= end) {
			open--;
			continue;
		}
		slot_fill(reader, slot, bytes, count);
		slot_begin(reader, slot, count);
	}
	*seconds_each = (double)(now - begun) / (double)GW_NS_PER_SECOND / (double)ranges;
	return GW_OK;
}

/* Takes each length's best time of a few alternating rounds: other work on the machine only adds time. */
static gw_status measure_range(struct gw_doctor_reader *reader, double *bytes)
{
	uint32_t length = fit(reader, LONG_BYTES);
	uint64_t budget_ns = reader->measure_ns / (UINT64_C(4) * RANGE_REPEATS);
	double brief = INFINITY, lengthy = INFINITY;
	*bytes = NAN;
	if (length < LONG_BYTES || reader->trip_ns >= FAR_NS)
		return GW_OK;
	for (uint32_t i = 0; i < RANGE_REPEATS; i++) {
		double seconds;
		gw_status status = doctor_stream(reader, SHORT_BYTES, budget_ns, &seconds);
		if (status != GW_OK)
			return status;
		brief = fmin(brief, seconds);
		status = doctor_stream(reader, length, budget_ns, &seconds);
		if (status != GW_OK)
			return status;
		lengthy = fmin(lengthy, seconds);
	}
	double a_byte = (lengthy - brief) / (length - SHORT_BYTES);
	double besides = brief - SHORT_BYTES * a_byte;
	if (a_byte > 0 && besides >= 0)
		*bytes = besides / a_byte;
	return GW_OK;
}

gw_status gw_doctor_reader_measure(struct gw_doctor_reader *reader, struct gw_doctor_figures *out)
{
	double seconds_each = 0;
	*out = (struct gw_doctor_figures){.row_bytes = fit(reader, reader->row_bytes)};
	gw_status status = measure_latency(reader, out->row_bytes, out);
	if (status == GW_OK)
		status = doctor_stream(reader, out->row_bytes, reader->measure_ns / 4, &seconds_each);
	if (status == GW_OK)
		status = measure_range(reader, &out->range_cost_bytes);
	if (status != GW_OK)
		return status;
	out->rows_per_second = seconds_each > 0 ? 1 / seconds_each : 0;
	out->bytes_per_second = out->rows_per_second * out->row_bytes;
	return GW_OK;
}
