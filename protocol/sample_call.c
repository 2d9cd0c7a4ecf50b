/* Encodes and decodes sample requests. Every length from a peer is checked before its use. */
#include "protocol/sample_call.h"

#include <string.h>

#include "core/numbers/rng.h"

static size_t sample_call_padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

gw_status gw_sample_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes, struct gw_sample_call *call,
			       const uint32_t **rows)
{
	if (byte_count < sizeof(*call))
		return gw_fail(GW_PROTOCOL, "sample request of %zu bytes is too short", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->sampler_version != GW_SAMPLER_VERSION)
		return gw_fail(GW_VERSION,
			       "sampler version %u here, %u in the request: update one of them, or sample by reads",
			       GW_SAMPLER_VERSION, call->sampler_version);
	if (call->row_count > GW_SAMPLE_ROWS_MAX || byte_count - sizeof(*call) != (size_t)call->row_count * 4)
		return gw_fail(GW_PROTOCOL, "sample request of %u rows in %zu bytes", call->row_count, byte_count);
	if (call->etype >= num_etypes)
		return gw_fail(GW_RANGE, "sample request for edge type %u of %u", call->etype, num_etypes);
	if (call->fanout < GW_FANOUT_ALL || call->fanout > GW_FANOUT_MAX || call->replace > 1)
		return gw_fail(GW_RANGE, "sample request with fanout %d, replace %u", call->fanout, call->replace);
	*rows = (const void *)((const uint8_t *)bytes + sizeof(*call));
	return GW_OK;
}

size_t gw_sample_run_bytes(uint64_t dst_count, uint64_t edge_count, uint32_t id_bytes)
{
	return sizeof(struct gw_sample_run) + sample_call_padded(dst_count * 4) +
	       2 * sample_call_padded(edge_count * id_bytes);
}

/* Zeroes the bytes after the elements, up to the next multiple of 8. */
static void sample_call_pad(uint8_t *array, size_t bytes)
{
	memset(array + bytes, 0, sample_call_padded(bytes) - bytes);
}

void gw_sample_run_begin(uint8_t *out, uint32_t dst_count, uint64_t edge_count, uint32_t id_bytes)
{
	struct gw_sample_run run = {.dst_count = dst_count, .id_bytes = id_bytes, .edge_count = edge_count};
	memcpy(out, &run, sizeof(run));
	out += sizeof(run);
	sample_call_pad(out, (size_t)dst_count * 4);
	out += sample_call_padded((size_t)dst_count * 4);
	sample_call_pad(out, edge_count * id_bytes);
	sample_call_pad(out + sample_call_padded(edge_count * id_bytes), edge_count * id_bytes);
}

void gw_sample_run_counts(uint8_t *run, uint32_t row, uint32_t n, const uint32_t *counts)
{
	if (n) /* without elements the array may be NULL */
		memcpy(run + sizeof(struct gw_sample_run) + (size_t)row * 4, counts, (size_t)n * 4);
}

static void print_ids(uint8_t *out, const uint64_t *ids, uint64_t n, uint32_t id_bytes)
{
	if (id_bytes == 8) {
		memcpy(out, ids, n * 8);
		return;
	}
	uint32_t *narrow = (void *)out;
	for (uint64_t i = 0; i < n; i++)
		narrow[i] = (uint32_t)ids[i];
}

void gw_sample_run_edges(uint8_t *out, uint64_t edge, uint64_t n, const uint64_t *positions, const uint64_t *neighbours)
{
	struct gw_sample_run run;
	if (n == 0) /* the arrays may be NULL */
		return;
	memcpy(&run, out, sizeof(run));
	uint8_t *array = out + sizeof(run) + sample_call_padded((size_t)run.dst_count * 4);
	print_ids(array + edge * run.id_bytes, positions, n, run.id_bytes);
	array += sample_call_padded(run.edge_count * run.id_bytes);
	print_ids(array + edge * run.id_bytes, neighbours, n, run.id_bytes);
}

void gw_sample_run_print(const struct gw_picks *picks, uint32_t id_bytes, uint8_t *out)
{
	gw_sample_run_begin(out, (uint32_t)picks->dst_count, picks->edge_count, id_bytes);
	gw_sample_run_counts(out, 0, (uint32_t)picks->dst_count, picks->counts.data);
	gw_sample_run_edges(out, 0, picks->edge_count, picks->positions.data, picks->neighbours.data);
}

static void parse_ids(uint64_t *out, const uint8_t *bytes, uint64_t n, uint32_t id_bytes)
{
	if (id_bytes == 8) {
		memcpy(out, bytes, n * 8);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint32_t id;
		memcpy(&id, bytes + i * 4, 4);
		out[i] = id;
	}
}

/* Parses one run at `at`; *used is its length in bytes. */
static gw_status parse_run(const uint8_t *at, size_t left, uint64_t rows_left, struct gw_picks *picks, size_t *used)
{
	struct gw_sample_run run;
	if (left < sizeof(run))
		return gw_fail(GW_PROTOCOL, "sample reply ends inside a run");
	memcpy(&run, at, sizeof(run));
	if ((run.id_bytes != 4 && run.id_bytes != 8) || run.dst_count > rows_left || run.edge_count > left)
		return gw_fail(GW_PROTOCOL, "sample reply with a run of %u rows, %llu edges of %u bytes", run.dst_count,
			       (unsigned long long)run.edge_count, run.id_bytes);
	*used = gw_sample_run_bytes(run.dst_count, run.edge_count, run.id_bytes);
	if (*used > left)
		return gw_fail(GW_PROTOCOL, "sample reply ends inside a run");

	uint64_t dst_count = picks->dst_count + run.dst_count, edge_count = picks->edge_count + run.edge_count;
	if (gw_vec_reserve(&picks->counts, dst_count * 4) != GW_OK ||
	    gw_vec_reserve(&picks->positions, edge_count * 8) != GW_OK ||
	    gw_vec_reserve(&picks->neighbours, edge_count * 8) != GW_OK)
		return GW_NO_MEMORY;
	at += sizeof(run);
	uint64_t sum = 0;
	if (run.dst_count > 0) {
		uint32_t *counts = (uint32_t *)picks->counts.data + picks->dst_count;
		memcpy(counts, at, (size_t)run.dst_count * 4);
		for (uint32_t i = 0; i < run.dst_count; i++)
			sum += counts[i];
	}
	if (sum != run.edge_count)
		return gw_fail(GW_PROTOCOL, "sample reply whose counts do not add up");
	picks->dst_count = dst_count;
	if (sum == 0)
		return GW_OK;
	at += sample_call_padded((size_t)run.dst_count * 4);
	parse_ids((uint64_t *)picks->positions.data + picks->edge_count, at, run.edge_count, run.id_bytes);
	at += sample_call_padded(run.edge_count * run.id_bytes);
	parse_ids((uint64_t *)picks->neighbours.data + picks->edge_count, at, run.edge_count, run.id_bytes);
	picks->edge_count = edge_count;
	return GW_OK;
}

gw_status gw_sample_reply_parse(const void *bytes, size_t byte_count, uint32_t rows_max, struct gw_picks *picks,
				uint32_t *answered)
{
	uint64_t before = picks->dst_count;
	const uint8_t *at = bytes;
	while (byte_count > 0) {
		size_t used = 0;
		gw_status status = parse_run(at, byte_count, rows_max - (picks->dst_count - before), picks, &used);
		if (status != GW_OK)
			return status;
		at += used;
		byte_count -= used;
	}
	*answered = (uint32_t)(picks->dst_count - before);
	return GW_OK;
}
