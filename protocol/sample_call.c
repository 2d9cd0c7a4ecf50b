/* Encodes and decodes sample requests. Every length from a peer is checked before its use. */
#include "protocol/sample_call.h"

#include <string.h>

#include "core/numbers/rng.h"

static size_t sample_call_padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Where the arrays of a call begin, after its head. */
struct call_layout {
	size_t columns, names, until, from, runs, rows, end;
};

static struct call_layout call_layout_of(const struct gw_sample_call *call)
{
	struct call_layout layout = {.columns = sizeof(*call)};
	layout.names = layout.columns + (size_t)call->column_count * sizeof(uint32_t);
	layout.until = sample_call_padded(layout.names + call->name_bytes);
	layout.from = layout.until + (size_t)call->table_count * sizeof(int64_t);
	layout.runs = layout.from + (call->flags & GW_SAMPLE_WINDOWS ? (size_t)call->table_count * sizeof(int64_t) : 0);
	layout.rows = layout.runs + (size_t)call->run_count * sizeof(struct gw_sample_group_run);
	layout.end = layout.rows + (size_t)call->row_count * sizeof(uint32_t);
	return layout;
}

static void put_bytes(uint8_t *out, const void *bytes, size_t n)
{
	if (n) /* without bytes the pointer may be NULL */
		memcpy(out, bytes, n);
}

void gw_sample_call_add_column(struct gw_sample_call *call, struct gw_sample_arrays *arrays, uint32_t number,
			       const char *name)
{
	assert(call->column_count < GW_SAMPLE_COLUMNS_MAX);
	arrays->columns[call->column_count++] = (struct gw_sample_column){number, name};
	call->name_bytes = (uint16_t)(call->name_bytes + strlen(name) + 1);
}

size_t gw_sample_call_bytes(const struct gw_sample_call *call)
{
	return call_layout_of(call).end;
}

void gw_sample_call_print(const struct gw_sample_call *call, const struct gw_sample_arrays *arrays, void *out)
{
	const struct call_layout layout = call_layout_of(call);
	uint8_t *bytes = out, *name = bytes + layout.names;
	memcpy(bytes, call, sizeof(*call));
	memset(bytes + layout.columns, 0, layout.until - layout.columns);
	for (uint32_t i = 0; i < call->column_count; i++) {
		const struct gw_sample_column *column = &arrays->columns[i];
		memcpy(bytes + layout.columns + i * sizeof(uint32_t), &column->number, sizeof(uint32_t));
		memcpy(name, column->name, strlen(column->name));
		name += strlen(column->name) + 1;
	}
	put_bytes(bytes + layout.until, arrays->until, layout.from - layout.until);
	put_bytes(bytes + layout.from, arrays->from, layout.runs - layout.from);
	put_bytes(bytes + layout.runs, arrays->runs, layout.rows - layout.runs);
	put_bytes(bytes + layout.rows, arrays->rows, layout.end - layout.rows);
}

/* Lists the columns: their numbers ascend, and each has a name. */
static gw_status take_columns(const struct gw_sample_call *call, const uint8_t *bytes, struct gw_sample_arrays *arrays)
{
	const struct call_layout layout = call_layout_of(call);
	const char *name = (const char *)bytes + layout.names, *end = name + call->name_bytes;
	for (uint32_t i = 0; i < call->column_count; i++) {
		struct gw_sample_column *column = &arrays->columns[i];
		memcpy(&column->number, bytes + layout.columns + i * sizeof(uint32_t), sizeof(uint32_t));
		column->name = name;
		size_t length = strnlen(name, (size_t)(end - name));
		if (length == 0 || length == (size_t)(end - name) || (i && column->number <= column[-1].number))
			return gw_fail(GW_PROTOCOL, "sample request whose column %u is malformed", i);
		name += length + 1;
	}
	return name == end ? GW_OK : gw_fail(GW_PROTOCOL, "sample request with names of no column");
}

/* Checks that the runs of groups cover the rows, and that each group is in the table, if a table exists. */
static gw_status check_groups(const struct gw_sample_call *call, const struct gw_sample_arrays *arrays)
{
	uint64_t rows = 0;
	for (uint32_t i = 0; i < call->run_count; i++) {
		struct gw_sample_group_run run;
		memcpy(&run, arrays->runs + i, sizeof(run));
		if (call->table_count && run.group >= call->table_count)
			return gw_fail(GW_PROTOCOL, "sample request with group %u of %u", run.group, call->table_count);
		rows += run.rows;
	}
	if (call->run_count && rows != call->row_count)
		return gw_fail(GW_PROTOCOL, "sample request of %u rows with groups for %llu", call->row_count,
			       (unsigned long long)rows);
	return GW_OK;
}

gw_status gw_sample_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes, struct gw_sample_call *call,
			       struct gw_sample_arrays *arrays)
{
	if (byte_count < sizeof(*call))
		return gw_fail(GW_PROTOCOL, "sample request of %zu bytes is too short", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->sampler_version != GW_SAMPLER_VERSION)
		return gw_fail(GW_VERSION,
			       "sampler version %u here, %u in the request: update one of them, or sample by reads",
			       GW_SAMPLER_VERSION, call->sampler_version);
	if (call->row_count > GW_SAMPLE_ROWS_MAX || call->table_count > GW_GROUPS_MAX ||
	    call->run_count > GW_GROUPS_MAX || call->column_count > GW_SAMPLE_COLUMNS_MAX ||
	    byte_count != gw_sample_call_bytes(call))
		return gw_fail(GW_PROTOCOL, "sample request of %u rows, %u columns, %u groups in %u runs in %zu bytes",
			       call->row_count, call->column_count, call->table_count, call->run_count, byte_count);
	if (call->etype >= num_etypes)
		return gw_fail(GW_RANGE, "sample request for edge type %u of %u", call->etype, num_etypes);
	if (call->fanout < GW_FANOUT_ALL || call->fanout > GW_FANOUT_MAX)
		return gw_fail(GW_RANGE, "sample request with fanout %d", call->fanout);
	if (call->flags & ~(uint32_t)GW_SAMPLE_FLAGS)
		return gw_fail(GW_UNSUPPORTED, "sample request with flags 0x%x: this server knows 0x%x", call->flags,
			       GW_SAMPLE_FLAGS);
	const struct call_layout layout = call_layout_of(call);
	const uint8_t *at = bytes;
	arrays->until = (const void *)(at + layout.until);
	arrays->from = call->flags & GW_SAMPLE_WINDOWS ? (const void *)(at + layout.from) : NULL;
	arrays->runs = (const void *)(at + layout.runs);
	arrays->rows = (const void *)(at + layout.rows);
	gw_status status = take_columns(call, at, arrays);
	return status == GW_OK ? check_groups(call, arrays) : status;
}

/* Where the arrays of a run begin. */
struct run_layout {
	size_t edges, neighbours, end;
};

static struct run_layout run_layout_of(uint64_t dst_count, uint64_t edge_count, struct gw_sample_form form)
{
	struct run_layout layout = {.edges = sizeof(struct gw_sample_run) + sample_call_padded(dst_count * 4)};
	const size_t bytes = sample_call_padded(edge_count * form.id_bytes);
	layout.neighbours = layout.edges + (form.no_edges ? 0 : bytes);
	layout.end = layout.neighbours + bytes;
	return layout;
}

size_t gw_sample_run_bytes(uint64_t dst_count, uint64_t edge_count, struct gw_sample_form form)
{
	return run_layout_of(dst_count, edge_count, form).end;
}

static void sample_call_pad(uint8_t *array, size_t bytes)
{
	memset(array + bytes, 0, sample_call_padded(bytes) - bytes);
}

void gw_sample_run_begin(uint8_t *out, uint32_t dst_count, uint64_t edge_count, struct gw_sample_form form)
{
	struct gw_sample_run run = {.dst_count = dst_count, .id_bytes = form.id_bytes, .edge_count = edge_count};
	const struct run_layout layout = run_layout_of(dst_count, edge_count, form);
	memcpy(out, &run, sizeof(run));
	sample_call_pad(out + sizeof(run), (size_t)dst_count * 4);
	if (!form.no_edges)
		sample_call_pad(out + layout.edges, edge_count * form.id_bytes);
	sample_call_pad(out + layout.neighbours, edge_count * form.id_bytes);
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

void gw_sample_run_edges(uint8_t *out, struct gw_sample_form form, uint64_t edge, uint64_t n, const uint64_t *positions,
			 const uint64_t *neighbours)
{
	struct gw_sample_run run;
	if (n == 0) /* the arrays may be NULL */
		return;
	memcpy(&run, out, sizeof(run));
	const struct run_layout layout = run_layout_of(run.dst_count, run.edge_count, form);
	if (!form.no_edges)
		print_ids(out + layout.edges + edge * form.id_bytes, positions, n, form.id_bytes);
	print_ids(out + layout.neighbours + edge * form.id_bytes, neighbours, n, form.id_bytes);
}

void gw_sample_run_print(const struct gw_picks *picks, struct gw_sample_form form, uint8_t *out)
{
	gw_sample_run_begin(out, (uint32_t)picks->dst_count, picks->edge_count, form);
	gw_sample_run_counts(out, 0, (uint32_t)picks->dst_count, picks->counts.data);
	gw_sample_run_edges(out, form, 0, picks->edge_count, picks->positions.data, picks->neighbours.data);
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

static gw_status parse_run(const uint8_t *at, size_t left, uint64_t rows_left, bool no_edges, struct gw_picks *picks,
			   size_t *used)
{
	struct gw_sample_run run;
	if (left < sizeof(run))
		return gw_fail(GW_PROTOCOL, "sample reply ends inside a run");
	memcpy(&run, at, sizeof(run));
	if ((run.id_bytes != 4 && run.id_bytes != 8) || run.dst_count > rows_left || run.edge_count > left)
		return gw_fail(GW_PROTOCOL, "sample reply with a run of %u rows, %llu edges of %u bytes", run.dst_count,
			       (unsigned long long)run.edge_count, run.id_bytes);
	const struct gw_sample_form form = {run.id_bytes, no_edges};
	const struct run_layout layout = run_layout_of(run.dst_count, run.edge_count, form);
	*used = layout.end;
	if (*used > left)
		return gw_fail(GW_PROTOCOL, "sample reply ends inside a run");

	uint64_t dst_count = picks->dst_count + run.dst_count, edge_count = picks->edge_count + run.edge_count;
	if (gw_vec_reserve(&picks->counts, dst_count * 4) != GW_OK ||
	    (!no_edges && gw_vec_reserve(&picks->positions, edge_count * 8) != GW_OK) ||
	    gw_vec_reserve(&picks->neighbours, edge_count * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t sum = 0;
	if (run.dst_count > 0) {
		uint32_t *counts = (uint32_t *)picks->counts.data + picks->dst_count;
		memcpy(counts, at + sizeof(run), (size_t)run.dst_count * 4);
		for (uint32_t i = 0; i < run.dst_count; i++)
			sum += counts[i];
	}
	if (sum != run.edge_count)
		return gw_fail(GW_PROTOCOL, "sample reply whose counts do not add up");
	picks->dst_count = dst_count;
	if (sum == 0)
		return GW_OK;
	if (!no_edges)
		parse_ids((uint64_t *)picks->positions.data + picks->edge_count, at + layout.edges, run.edge_count,
			  run.id_bytes);
	parse_ids((uint64_t *)picks->neighbours.data + picks->edge_count, at + layout.neighbours, run.edge_count,
		  run.id_bytes);
	picks->edge_count = edge_count;
	return GW_OK;
}

gw_status gw_sample_reply_parse(const void *bytes, size_t byte_count, uint32_t rows_max, bool no_edges,
				struct gw_picks *picks, uint32_t *answered)
{
	uint64_t before = picks->dst_count;
	const uint8_t *at = bytes;
	while (byte_count > 0) {
		size_t used = 0;
		gw_status status =
			parse_run(at, byte_count, rows_max - (picks->dst_count - before), no_edges, picks, &used);
		if (status != GW_OK)
			return status;
		at += used;
		byte_count -= used;
	}
	*answered = (uint32_t)(picks->dst_count - before);
	return GW_OK;
}
