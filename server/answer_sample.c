/* The sample request: picks for a prefix of the rows, run by run, while the reply has room.
 *
 *   reserve the reply ─▶ a run of rows: which of them fit? ─▶ few picks: in one step
 *                                   └─▶ many: lay out the run's bytes, then fill them, rows by rows ─▶ next run
 *                                            └─▶ a list of many picks: drawn piece by piece
 *
 * That needs the number of picks in advance. A kind that knows only a bound draws as many rows as the bound lets fit,
 * in one step (run_drawn), and fewer if their lists have too many entries together. It does not draw from a list that
 * would take long; the reply ends before that list, and the client reads it.
 *
 * The thread also serves other clients. So the handler returns after SLICE_WORK, and continues there in its next slice.
 * The reply's bytes do not depend on where slices end. Rows come from a peer, so each is checked. Fails on a malformed
 * call, on a row that this part does not have, and if memory runs out.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "protocol/sample_call.h"
#include "sampler/columns.h"
#include "sampler/pick.h"
#include "sampler/pick_long.h"
#include "sampler/picks.h"
#include "server/disk_lists.h"
#include "server/server.h"

#define REPLY_BYTES_MAX (16u << 20) /* of picks, even if a client asks for more */
#define SLICE_WORK      8192u       /* about as many picks in one slice; a row costs as much as ROW_WORK picks */
#define ROW_WORK        4u
#define CHUNK           512u         /* picks of a long list that are written in one step */
#define ENTRIES_MAX     (256u << 10) /* entries of columns, or picks of a list, in one step */
#define SCRATCH_BYTES   34u          /* the most memory for each pick of a long list: sampler/pick_long.c */
#define MIN(a, b)       ((a) < (b) ? (a) : (b))

/* A list of many picks. */
struct long_list {
	struct gw_pick_long pick;
	struct gw_pick_scratch scratch;
	uint64_t begin, left; /* begin: the list's CSC position; left: picks that are not written yet */
	bool drawn;
};

/* The state that is kept between slices. */
struct sample_work {
	bool begun, last_run;
	uint32_t row;                  /* the next row of the call */
	uint32_t group_run, group_row; /* the run of groups that row is in, and the run's first row */
	uint64_t room;                 /* bytes that the reply still has room for */
	/* The run that is being filled, from byte `at` of the reply on. */
	uint32_t at, rows, rows_done; /* equal: no run is being filled */
	uint64_t edges, edges_done;
	struct long_list *list; /* NULL: no list is being drawn */
};

/* One slice of the call. */
struct sample_slice {
	const struct gw_adjacency *adjacency;
	struct gw_draw draw;
	struct gw_columns columns;
	struct gw_column_names names; /* in the call's bytes */
	struct gw_sample_form form;
	uint32_t row_count;
	uint32_t run_count;
	struct gw_sample_arrays arrays; /* of the call, at any alignment */
	struct gw_picks *picks;
	struct gw_reply *reply;
	struct sample_work *work;
	uint64_t budget;
};

static void list_end(struct sample_work *work)
{
	if (work->list)
		gw_pick_scratch_free(&work->list->scratch);
	gw_free(work->list);
	work->list = NULL;
}

static void work_end(void *work)
{
	list_end(work);
}

static void answer_sample_spend(struct sample_slice *slice, uint64_t work)
{
	slice->budget -= MIN(work, slice->budget);
}

static uint64_t vertex_of(const struct sample_slice *slice, uint32_t row)
{
	uint32_t number;
	memcpy(&number, slice->arrays.rows + row, sizeof(number));
	return slice->adjacency->dst_start + number;
}

/* Returns NULL if all rows of the call are in group 0. */
static const uint32_t *groups_of(const struct sample_slice *slice, uint32_t first, uint32_t n, uint32_t *out)
{
	struct sample_work *work = slice->work;
	struct gw_sample_group_run run;
	if (!slice->run_count)
		return NULL;
	for (;;) {
		memcpy(&run, slice->arrays.runs + work->group_run, sizeof(run));
		if (first < work->group_row + run.rows)
			break;
		work->group_row += run.rows;
		work->group_run++;
	}
	uint32_t at = work->group_run, end = work->group_row + run.rows;
	for (uint32_t i = 0; i < n; i++) {
		while (first + i >= end) {
			memcpy(&run, slice->arrays.runs + ++at, sizeof(run));
			end += run.rows;
		}
		out[i] = run.group;
	}
	return out;
}

static uint32_t group_of(const struct sample_slice *slice, uint32_t row)
{
	uint32_t group = 0;
	groups_of(slice, row, 1, &group);
	return group;
}

/* 0 for a row that this part does not have; pick_rows then fails. */
static uint64_t count_picks(const struct sample_slice *slice, uint32_t row)
{
	const struct gw_adjacency *adjacency = slice->adjacency;
	uint64_t at = vertex_of(slice, row) - adjacency->dst_start, begin, end;
	if (at >= adjacency->rows)
		return 0;
	gw_adjacency_list(adjacency, at, &begin, &end);
	return gw_pick_count(&slice->draw.rule, end - begin);
}

/* Returns how many of the next n rows have picks that fit into the reply's room; *edges: the number of these picks. The
 * handler computes this before it picks anything, so no request makes the server use more memory than its reply may
 * have. If an upper bound of the number fits, *edges is that bound. */
static uint32_t count_fitting(const struct sample_slice *slice, uint32_t n, uint64_t *edges)
{
	const struct sample_work *work = slice->work;
	const struct gw_adjacency *adjacency = slice->adjacency;
	uint64_t most = slice->draw.rule.fanout == GW_FANOUT_ALL ? UINT64_MAX / 32
								 : (uint64_t)n * (uint32_t)slice->draw.rule.fanout;
	*edges = most;
	if (most <= SLICE_WORK && gw_sample_run_bytes(n, most, slice->form) <= work->room)
		return n;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t row = vertex_of(slice, work->row + i) - adjacency->dst_start;
		if (row < adjacency->rows)
			__builtin_prefetch((const uint8_t *)adjacency->indptr +
					   (row * adjacency->columns + adjacency->column) * adjacency->indptr_bytes);
	}
	*edges = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t picks = count_picks(slice, work->row + i);
		if (picks > work->room || gw_sample_run_bytes(i + 1, *edges + picks, slice->form) > work->room)
			return i;
		*edges += picks;
	}
	return n;
}

static gw_status pick_rows(struct sample_slice *slice, uint32_t first, uint32_t n)
{
	const struct gw_picks_memory memory = {
		.adjacency = slice->adjacency, .columns = &slice->columns, .entries_max = ENTRIES_MAX};
	uint64_t vertices[GW_SAMPLE_RUN_ROWS];
	uint32_t groups[GW_SAMPLE_RUN_ROWS];
	for (uint32_t i = 0; i < n; i++)
		vertices[i] = vertex_of(slice, first + i);
	gw_status status = gw_picks_from_memory(slice->picks, &memory, &slice->draw, vertices,
						groups_of(slice, first, n, groups), n);
	if (status != GW_OK)
		return status;
	answer_sample_spend(slice, (uint64_t)n * ROW_WORK + slice->picks->edge_count + slice->picks->entry_count);
	uint64_t *positions = slice->picks->positions.data;
	for (uint64_t i = 0; slice->adjacency->eid && i < slice->picks->edge_count; i++)
		positions[i] = slice->adjacency->eid[positions[i]];
	return GW_OK;
}

static gw_status print_picks(struct sample_slice *slice, uint32_t n)
{
	struct sample_work *work = slice->work;
	size_t bytes = gw_sample_run_bytes(n, slice->picks->edge_count, slice->form);
	uint8_t *out = gw_reply_extend(slice->reply, (uint32_t)bytes);
	if (!out)
		return GW_NO_MEMORY;
	gw_sample_run_print(slice->picks, slice->form, out);
	work->room -= bytes;
	work->row += n;
	return GW_OK;
}

/* The usual run: few picks, in one step. */
static gw_status run_at_once(struct sample_slice *slice, uint32_t n)
{
	gw_status status = pick_rows(slice, slice->work->row, n);
	return status == GW_OK ? print_picks(slice, n) : status;
}

/* How many of the next rows a kind that knows only a bound draws in one step; 0: the reply has no room for the next
 * row, or its list is too long. */
static uint32_t count_drawn(const struct sample_slice *slice)
{
	const struct sample_work *work = slice->work;
	const struct gw_adjacency *adjacency = slice->adjacency;
	uint32_t n = MIN(slice->row_count - work->row, GW_SAMPLE_RUN_ROWS);
	uint64_t edges = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t row = vertex_of(slice, work->row + i) - adjacency->dst_start, begin = 0, end = 0;
		if (row < adjacency->rows)
			gw_adjacency_list(adjacency, row, &begin, &end);
		uint64_t bound = gw_draw_bound(&slice->draw, end - begin);
		if (bound > ENTRIES_MAX || (i > 0 && edges + bound > SLICE_WORK) ||
		    gw_sample_run_bytes(i + 1, edges + bound, slice->form) > work->room)
			return i;
		edges += bound;
	}
	return n;
}

/* The next rows of a kind that knows only a bound of the number of picks. */
static gw_status run_drawn(struct sample_slice *slice)
{
	struct sample_work *work = slice->work;
	uint32_t n = count_drawn(slice);
	gw_status status = n ? pick_rows(slice, work->row, n) : GW_OK;
	while (status == GW_LIMIT) { /* fewer rows need fewer entries */
		n = (uint32_t)slice->picks->dst_count;
		status = n ? pick_rows(slice, work->row, n) : GW_OK;
	}
	if (status == GW_OK && n)
		status = print_picks(slice, n);
	work->last_run = n == 0 || work->row == slice->row_count;
	return status;
}

static gw_status run_begin(struct sample_slice *slice)
{
	struct sample_work *work = slice->work;
	uint32_t n = MIN(slice->row_count - work->row, GW_SAMPLE_RUN_ROWS);
	uint64_t edges;
	uint32_t fitting = count_fitting(slice, n, &edges);
	work->last_run = fitting < n || work->row + n == slice->row_count;
	answer_sample_spend(slice, fitting);
	if (fitting == 0)
		return GW_OK;
	if (edges <= SLICE_WORK)
		return run_at_once(slice, fitting);
	size_t bytes = gw_sample_run_bytes(fitting, edges, slice->form);
	gw_reply_data(slice->reply, &work->at);
	uint8_t *out = gw_reply_extend(slice->reply, (uint32_t)bytes);
	if (!out)
		return GW_NO_MEMORY;
	gw_sample_run_begin(out, fitting, edges, slice->form);
	work->room -= bytes;
	work->rows = fitting;
	work->rows_done = 0;
	work->edges = edges;
	work->edges_done = 0;
	return GW_OK;
}

static uint8_t *run_of(const struct sample_slice *slice)
{
	uint32_t bytes;
	return gw_reply_data(slice->reply, &bytes) + slice->work->at;
}

/* In the order of the run's rows. */
static void write_edges(struct sample_slice *slice, const uint64_t *positions, const uint64_t *neighbours, uint64_t n)
{
	struct sample_work *work = slice->work;
	assert(n <= work->edges - work->edges_done);
	gw_sample_run_edges(run_of(slice), slice->form, work->edges_done, n, positions, neighbours);
	work->edges_done += n;
}

static gw_status list_begin(struct sample_slice *slice, uint32_t row, uint32_t picks)
{
	struct sample_work *work = slice->work;
	const struct gw_adjacency *adjacency = slice->adjacency;
	uint64_t vertex = vertex_of(slice, row), begin, end;
	gw_adjacency_list(adjacency, vertex - adjacency->dst_start, &begin, &end);
	if (end < begin || end > adjacency->edges)
		return gw_fail(GW_RANGE, "vertex %llu: its list ends at %llu of %llu", (unsigned long long)vertex,
			       (unsigned long long)end, (unsigned long long)adjacency->edges);
	work->list = gw_calloc(1, sizeof(*work->list));
	if (!work->list)
		return GW_NO_MEMORY;
	work->list->begin = begin;
	work->list->left = picks;
	gw_sample_run_counts(run_of(slice), work->rows_done, 1, &picks);
	return gw_pick_long_begin(&work->list->pick, &slice->draw.rule, vertex, group_of(slice, row), end - begin,
				  &work->list->scratch);
}

static void list_go_on(struct sample_slice *slice)
{
	const struct gw_adjacency *adjacency = slice->adjacency;
	struct sample_work *work = slice->work;
	struct long_list *list = work->list;
	if (!list->drawn) {
		list->drawn = gw_pick_long_run(&list->pick, slice->budget);
		answer_sample_spend(slice, slice->budget);
		return;
	}
	uint64_t positions[CHUNK], neighbours[CHUNK], n = MIN(list->left, CHUNK);
	gw_pick_long_take(&list->pick, positions, n);
	for (uint64_t i = 0; i < n; i++) {
		positions[i] += list->begin;
		__builtin_prefetch((const uint8_t *)adjacency->indices + positions[i] * adjacency->index_bytes);
	}
	for (uint64_t i = 0; i < n; i++) {
		neighbours[i] = gw_load_id(adjacency->indices, adjacency->index_bytes, positions[i]);
		positions[i] = adjacency->eid ? adjacency->eid[positions[i]] : positions[i];
	}
	write_edges(slice, positions, neighbours, n);
	list->left -= n;
	answer_sample_spend(slice, n);
	if (list->left)
		return;
	list_end(work);
	work->rows_done++;
	work->row++;
}

/* Continues a run with many picks: with the next rows that together fill a slice, or with one long list. */
static gw_status run_go_on(struct sample_slice *slice)
{
	struct sample_work *work = slice->work;
	if (work->list) {
		list_go_on(slice);
		return GW_OK;
	}
	uint64_t picks = count_picks(slice, work->row);
	if (picks > SLICE_WORK)
		return list_begin(slice, work->row, (uint32_t)picks);
	uint32_t n = 1;
	while (n < work->rows - work->rows_done && picks <= SLICE_WORK) {
		picks += count_picks(slice, work->row + n);
		n += picks <= SLICE_WORK;
	}
	gw_status status = pick_rows(slice, work->row, n);
	if (status != GW_OK)
		return status;
	gw_sample_run_counts(run_of(slice), work->rows_done, n, slice->picks->counts.data);
	write_edges(slice, slice->picks->positions.data, slice->picks->neighbours.data, slice->picks->edge_count);
	work->rows_done += n;
	work->row += n;
	return GW_OK;
}

/* Reserves the most memory that the reply, and the draw of its longest list, can use. */
static gw_status answer_sample_begin(struct sample_slice *slice, uint32_t reply_bytes_max)
{
	struct sample_work *work = slice->work;
	uint64_t rows = slice->row_count, runs = rows / GW_SAMPLE_RUN_ROWS + 1, bytes = REPLY_BYTES_MAX, scratch = 0;
	if (slice->draw.rule.fanout != GW_FANOUT_ALL) {
		uint64_t fanout = (uint32_t)slice->draw.rule.fanout;
		bytes = gw_sample_run_bytes(rows, rows * fanout, slice->form) +
			runs * (gw_sample_run_bytes(0, 0, slice->form) + 32); /* the runs' headers and padding */
		scratch = fanout > SLICE_WORK ? fanout * SCRATCH_BYTES : 0;
	}
	work->room = MIN(reply_bytes_max, REPLY_BYTES_MAX);
	bytes = MIN(bytes, work->room);
	gw_status status =
		rows ? gw_reply_reserve(slice->reply, bytes + MIN(scratch, bytes * SCRATCH_BYTES / 8)) : GW_OK;
	work->begun = status == GW_OK;
	work->last_run = rows == 0;
	return status;
}

/* Exactly those that the kind draws with. */
static gw_status take_names(const struct gw_server *server, const struct gw_sample_call *call,
			    struct sample_slice *slice)
{
	const struct gw_sampling_kind *kind = slice->draw.kind;
	uint32_t nameable = gw_columns_nameable(), bits = 0;
	slice->names.meta = server->meta;
	slice->names.etype = call->etype;
	slice->names.pick = kind->pick;
	for (uint32_t i = 0; i < call->column_count; i++) {
		const struct gw_sample_column *column = &slice->arrays.columns[i];
		if (column->number >= GW_COLUMN_COUNT || !(nameable & GW_COLUMN_BIT(column->number)))
			return gw_fail(GW_UNSUPPORTED, "sample request with column %u: this server does not know it",
				       column->number);
		if (strlen(column->name) > GW_COLUMN_NAME_MAX)
			return gw_fail(GW_PROTOCOL, "sample request with a %s's name of %zu bytes",
				       gw_column_name(column->number), strlen(column->name));
		slice->names.of[column->number] = column->name;
		bits |= GW_COLUMN_BIT(column->number);
	}
	if (!gw_sampling_kind_takes(kind, bits))
		return gw_fail(GW_PROTOCOL, "sample request of kind %s with columns 0x%x: it draws with 0x%x",
			       kind->name, bits, kind->columns & nameable);
	if (bits && call->flags & GW_SAMPLE_BY_SOURCE) /* columns have the order of in-lists */
		return gw_fail(GW_UNSUPPORTED, "sample request of kind %s for out-edges: they have no columns",
			       kind->name);
	slice->draw.names = &slice->names;
	return GW_OK;
}

static gw_status find_columns(const struct gw_server *server, struct sample_slice *slice)
{
	const struct gw_array_meta *arrays[GW_COLUMN_COUNT] = {NULL};
	char key[GW_COLUMN_KEY_MAX];
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (!(slice->draw.kind->columns & GW_COLUMN_BIT(c)) || !gw_column_key(&slice->names, c, key))
			continue;
		const struct gw_array *array = gw_part_array(server->part, key);
		if (array && array->apart == GW_ARRAY_ON_DISK)
			return gw_fail(GW_UNSUPPORTED, "\"%s\" stays on disk (serve --on-disk): upgrade the client",
				       key);
		if (array && array->apart)
			return gw_column_fail_mutable(&slice->names, c);
		arrays[c] = array ? array->meta : NULL;
		slice->columns.at[c] = array ? array->data : NULL;
	}
	return gw_column_forms(&slice->names, slice->draw.kind, arrays, slice->draw.forms);
}

static gw_status find_draw(const struct gw_server *server, const struct gw_sample_call *call,
			   struct sample_slice *slice, struct gw_vec *times)
{
	const struct gw_edge_type *type = &server->meta->etypes[call->etype];
	bool out = call->flags & GW_SAMPLE_BY_SOURCE;
	char text[GW_EDGE_FOLDER_MAX + 1];
	slice->adjacency =
		out ? gw_part_out_adjacency(server->part, call->etype) : gw_part_adjacency(server->part, call->etype);
	if (!slice->adjacency)
		return gw_fail(GW_UNSUPPORTED, "edge type %s is not stored by source",
			       gw_meta_etype_text(server->meta, call->etype, text));
	bool no_edges = call->flags & GW_SAMPLE_NO_EDGES;
	bool wide_edges = slice->adjacency->indptr_bytes == 8 || (out && type->count > UINT32_MAX);
	slice->form.no_edges = no_edges;
	slice->form.id_bytes = slice->adjacency->index_bytes == 8 || (!no_edges && wide_edges) ? 8 : 4;
	slice->row_count = call->row_count;
	slice->run_count = call->run_count;
	slice->draw = (struct gw_draw){
		.rule = {.key = call->key, .fanout = call->fanout, .replace = call->flags & GW_SAMPLE_REPLACE},
		.kind = gw_sampling_kind_at(call->kind),
		.groups = {.count = call->table_count, .strict_ends = call->flags & GW_SAMPLE_STRICT_ENDS},
	};
	slice->draw.forms[GW_COLUMN_IDS].entry_bytes = slice->adjacency->index_bytes;
	if (!slice->draw.kind)
		return gw_fail(GW_UNSUPPORTED, "sample request of kind %u: this server does not know it", call->kind);
	if (gw_vec_reserve(times, 2 * (size_t)call->table_count * sizeof(int64_t)) != GW_OK)
		return GW_NO_MEMORY;
	int64_t *until = times->data, *from = until + call->table_count;
	if (call->table_count) { /* copied, because a request may lie at any alignment */
		memcpy(until, slice->arrays.until, call->table_count * sizeof(*until));
		slice->draw.groups.until = until;
	}
	if (call->table_count && slice->arrays.from) {
		memcpy(from, slice->arrays.from, call->table_count * sizeof(*from));
		slice->draw.groups.from = from;
	}
	gw_status status = gw_disk_lists_refuse(server->meta, call->etype, slice->adjacency);
	if (status == GW_OK)
		status = take_names(server, call, slice);
	return status == GW_OK ? find_columns(server, slice) : status;
}

gw_status gw_server_sample(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_server *server = context;
	struct gw_server_thread *own = &server->threads[call->thread];
	struct gw_sample_call sample;
	struct sample_slice slice = {.picks = &own->picks, .reply = reply, .budget = SLICE_WORK};
	gw_status status =
		gw_sample_call_parse(call->bytes, call->byte_count, server->meta->num_etypes, &sample, &slice.arrays);
	if (status == GW_OK)
		status = find_draw(server, &sample, &slice, &own->group_times);
	if (status != GW_OK)
		return status;
	slice.work = gw_reply_work(reply, sizeof(*slice.work), work_end);
	if (!slice.work)
		return GW_NO_MEMORY;
	struct sample_work *work = slice.work;
	if (!work->begun)
		status = answer_sample_begin(&slice, sample.reply_bytes_max);
	while (status == GW_OK) {
		bool filling = work->rows_done < work->rows;
		if (!filling && work->last_run)
			return GW_OK;
		if (!slice.budget)
			return GW_AGAIN;
		if (!gw_draw_is_uniform(&slice.draw))
			status = run_drawn(&slice);
		else
			status = filling ? run_go_on(&slice) : run_begin(&slice);
	}
	return status;
}
