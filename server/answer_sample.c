/* The sample request: picks for a prefix of the rows, run by run, as long as the reply has room.
 *
 *   reserve the reply ─▶ a run of rows: which of them fit? ─▶ few picks: at one go
 *                                   └─▶ many: the run's bytes are laid out, then filled, rows by rows ─▶ next run
 *                                            └─▶ a list of many picks: drawn piece by piece
 *
 * The thread has other clients: after SLICE_WORK the handler returns, and goes on from there in its next turn. The
 * reply's bytes do not depend on where that was. Rows come from a peer: each is checked. Fails on a malformed call, a
 * row that is not of this part, and for want of memory.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "protocol/sample_call.h"
#include "sampler/pick_long.h"
#include "server/server.h"

#define REPLY_BYTES_MAX (16u << 20) /* of picks, whatever a client asks for */
#define SLICE_WORK      8192u       /* picks in one turn, about; a row counts as much as ROW_WORK of them */
#define ROW_WORK        4u
#define CHUNK           512u /* picks of a long list that are written at once */
#define SCRATCH_BYTES   34u  /* for each pick of a long list, at most: see sampler/pick_long.c */
#define MIN(a, b)       ((a) < (b) ? (a) : (b))

/* A list of many picks. */
struct long_list {
	struct gw_pick_long pick;
	struct gw_pick_scratch scratch;
	uint64_t begin, left; /* its CSC position; picks that are not written yet */
	bool drawn;
};

/* What is kept from one turn to the next. */
struct sample_work {
	bool begun, last_run;
	uint32_t row;  /* the next of the call */
	uint64_t room; /* of the reply */
	/* The run that is being filled, from `at` of the reply on. */
	uint32_t at, rows, rows_done; /* equal: none is */
	uint64_t edges, edges_done;
	struct long_list *list; /* NULL: none is being drawn */
};

/* One turn's view of the call. */
struct sample_slice {
	const struct gw_adjacency *adjacency;
	struct gw_pick_rule rule;
	uint32_t id_bytes, row_count;
	const uint32_t *rows; /* of the call, at any alignment */
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

static void answer_sample_spend(struct sample_slice *turn, uint64_t work)
{
	turn->budget -= MIN(work, turn->budget);
}

static uint64_t vertex_of(const struct sample_slice *turn, uint32_t row)
{
	uint32_t number;
	memcpy(&number, turn->rows + row, sizeof(number));
	return turn->adjacency->dst_start + number;
}

/* How many picks a row has; none if it is not ours: picking from it is what fails. */
static uint64_t count_picks(const struct sample_slice *turn, uint32_t row)
{
	const struct gw_adjacency *adjacency = turn->adjacency;
	uint64_t at = vertex_of(turn, row) - adjacency->dst_start, answer_sample_begin, end;
	if (at >= adjacency->rows)
		return 0;
	gw_adjacency_list(adjacency, at, &answer_sample_begin, &end);
	return gw_pick_count(&turn->rule, end - answer_sample_begin);
}

/* How many of the next n rows have picks that fit into the reply's room, and how many picks that are: found before
 * anything is picked, so that no request makes the server take more memory than its reply may have. *edges is more than
 * there are where that is few enough. */
static uint32_t count_fitting(const struct sample_slice *turn, uint32_t n, uint64_t *edges)
{
	const struct sample_work *work = turn->work;
	const struct gw_adjacency *adjacency = turn->adjacency;
	uint64_t most =
		turn->rule.fanout == GW_FANOUT_ALL ? UINT64_MAX / 32 : (uint64_t)n * (uint32_t)turn->rule.fanout;
	*edges = most;
	if (most <= SLICE_WORK && gw_sample_run_bytes(n, most, turn->id_bytes) <= work->room)
		return n;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t row = vertex_of(turn, work->row + i) - adjacency->dst_start;
		if (row < adjacency->rows)
			__builtin_prefetch((const uint8_t *)adjacency->indptr +
					   (row * adjacency->columns + adjacency->column) * adjacency->indptr_bytes);
	}
	*edges = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t picks = count_picks(turn, work->row + i);
		if (picks > work->room || gw_sample_run_bytes(i + 1, *edges + picks, turn->id_bytes) > work->room)
			return i;
		*edges += picks;
	}
	return n;
}

/* Picks from the next n rows. */
static gw_status pick_rows(struct sample_slice *turn, uint32_t first, uint32_t n)
{
	uint64_t vertices[GW_SAMPLE_RUN_ROWS];
	for (uint32_t i = 0; i < n; i++)
		vertices[i] = vertex_of(turn, first + i);
	gw_status status = gw_picks_from_memory(turn->picks, turn->adjacency, &turn->rule, vertices, n);
	if (status == GW_OK)
		answer_sample_spend(turn, (uint64_t)n * ROW_WORK + turn->picks->edge_count);
	return status;
}

/* The usual run: few picks, at one go. */
static gw_status run_at_once(struct sample_slice *turn, uint32_t n)
{
	struct sample_work *work = turn->work;
	gw_status status = pick_rows(turn, work->row, n);
	if (status != GW_OK)
		return status;
	size_t bytes = gw_sample_run_bytes(n, turn->picks->edge_count, turn->id_bytes);
	uint8_t *out = gw_reply_extend(turn->reply, (uint32_t)bytes);
	if (!out)
		return GW_NO_MEMORY;
	gw_sample_run_print(turn->picks, turn->id_bytes, out);
	work->room -= bytes;
	work->row += n;
	return GW_OK;
}

static gw_status run_begin(struct sample_slice *turn)
{
	struct sample_work *work = turn->work;
	uint32_t n = MIN(turn->row_count - work->row, GW_SAMPLE_RUN_ROWS);
	uint64_t edges;
	uint32_t fitting = count_fitting(turn, n, &edges);
	work->last_run = fitting < n || work->row + n == turn->row_count;
	answer_sample_spend(turn, fitting);
	if (fitting == 0)
		return GW_OK;
	if (edges <= SLICE_WORK)
		return run_at_once(turn, fitting);
	size_t bytes = gw_sample_run_bytes(fitting, edges, turn->id_bytes);
	gw_reply_data(turn->reply, &work->at);
	uint8_t *out = gw_reply_extend(turn->reply, (uint32_t)bytes);
	if (!out)
		return GW_NO_MEMORY;
	gw_sample_run_begin(out, fitting, edges, turn->id_bytes);
	work->room -= bytes;
	work->rows = fitting;
	work->rows_done = 0;
	work->edges = edges;
	work->edges_done = 0;
	return GW_OK;
}

static uint8_t *run_of(const struct sample_slice *turn)
{
	uint32_t bytes;
	return gw_reply_data(turn->reply, &bytes) + turn->work->at;
}

/* Picks of the run, in the order of its rows. */
static void write_edges(struct sample_slice *turn, const uint64_t *positions, const uint64_t *neighbours, uint64_t n)
{
	struct sample_work *work = turn->work;
	assert(n <= work->edges - work->edges_done);
	gw_sample_run_edges(run_of(turn), work->edges_done, n, positions, neighbours);
	work->edges_done += n;
}

static gw_status list_begin(struct sample_slice *turn, uint32_t row, uint32_t picks)
{
	struct sample_work *work = turn->work;
	const struct gw_adjacency *adjacency = turn->adjacency;
	uint64_t vertex = vertex_of(turn, row), answer_sample_begin, end;
	gw_adjacency_list(adjacency, vertex - adjacency->dst_start, &answer_sample_begin, &end);
	if (end < answer_sample_begin || end > adjacency->edges)
		return gw_fail(GW_RANGE, "vertex %llu: its list ends at %llu of %llu", (unsigned long long)vertex,
			       (unsigned long long)end, (unsigned long long)adjacency->edges);
	work->list = gw_calloc(1, sizeof(*work->list));
	if (!work->list)
		return GW_NO_MEMORY;
	work->list->begin = answer_sample_begin;
	work->list->left = picks;
	gw_sample_run_counts(run_of(turn), work->rows_done, 1, &picks);
	return gw_pick_long_begin(&work->list->pick, &turn->rule, vertex, end - answer_sample_begin,
				  &work->list->scratch);
}

static void list_go_on(struct sample_slice *turn)
{
	const struct gw_adjacency *adjacency = turn->adjacency;
	struct sample_work *work = turn->work;
	struct long_list *list = work->list;
	if (!list->drawn) {
		list->drawn = gw_pick_long_run(&list->pick, turn->budget);
		answer_sample_spend(turn, turn->budget);
		return;
	}
	uint64_t positions[CHUNK], neighbours[CHUNK], n = MIN(list->left, CHUNK);
	gw_pick_long_take(&list->pick, positions, n);
	for (uint64_t i = 0; i < n; i++) {
		positions[i] += list->begin;
		__builtin_prefetch((const uint8_t *)adjacency->indices + positions[i] * adjacency->index_bytes);
	}
	for (uint64_t i = 0; i < n; i++)
		neighbours[i] = gw_load_id(adjacency->indices, adjacency->index_bytes, positions[i]);
	write_edges(turn, positions, neighbours, n);
	list->left -= n;
	answer_sample_spend(turn, n);
	if (list->left)
		return;
	list_end(work);
	work->rows_done++;
	work->row++;
}

/* More of a run with many picks: the next rows that are a slice together, or a list that is one alone. */
static gw_status run_go_on(struct sample_slice *turn)
{
	struct sample_work *work = turn->work;
	if (work->list) {
		list_go_on(turn);
		return GW_OK;
	}
	uint64_t picks = count_picks(turn, work->row);
	if (picks > SLICE_WORK)
		return list_begin(turn, work->row, (uint32_t)picks);
	uint32_t n = 1;
	while (n < work->rows - work->rows_done && picks <= SLICE_WORK) {
		picks += count_picks(turn, work->row + n);
		n += picks <= SLICE_WORK;
	}
	gw_status status = pick_rows(turn, work->row, n);
	if (status != GW_OK)
		return status;
	gw_sample_run_counts(run_of(turn), work->rows_done, n, turn->picks->counts.data);
	write_edges(turn, turn->picks->positions.data, turn->picks->neighbours.data, turn->picks->edge_count);
	work->rows_done += n;
	work->row += n;
	return GW_OK;
}

/* The most that the reply and the drawing of its longest list can take. */
static gw_status answer_sample_begin(struct sample_slice *turn, uint32_t reply_bytes_max)
{
	struct sample_work *work = turn->work;
	uint64_t rows = turn->row_count, runs = rows / GW_SAMPLE_RUN_ROWS + 1, bytes = REPLY_BYTES_MAX, scratch = 0;
	if (turn->rule.fanout != GW_FANOUT_ALL) {
		uint64_t fanout = (uint32_t)turn->rule.fanout;
		bytes = gw_sample_run_bytes(rows, rows * fanout, turn->id_bytes) +
			runs * (gw_sample_run_bytes(0, 0, turn->id_bytes) + 32); /* their headers and padding */
		scratch = fanout > SLICE_WORK ? fanout * SCRATCH_BYTES : 0;
	}
	work->room = MIN(reply_bytes_max, REPLY_BYTES_MAX);
	bytes = MIN(bytes, work->room);
	gw_status status =
		rows ? gw_reply_reserve(turn->reply, bytes + MIN(scratch, bytes * SCRATCH_BYTES / 8)) : GW_OK;
	work->begun = status == GW_OK;
	work->last_run = rows == 0;
	return status;
}

gw_status gw_server_sample(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	const struct gw_server *server = context;
	struct gw_sample_call sample;
	struct sample_slice turn = {.picks = &server->threads[thread].picks, .reply = reply, .budget = SLICE_WORK};
	gw_status status =
		gw_sample_call_parse(call->bytes, call->byte_count, server->meta->num_etypes, &sample, &turn.rows);
	if (status != GW_OK)
		return status;
	turn.adjacency = gw_part_adjacency(server->part, sample.etype);
	turn.id_bytes = turn.adjacency->index_bytes == 8 || turn.adjacency->indptr_bytes == 8 ? 8 : 4;
	turn.rule = (struct gw_pick_rule){.key = sample.key, .fanout = sample.fanout, .replace = sample.replace != 0};
	turn.row_count = sample.row_count;
	turn.work = gw_reply_work(reply, sizeof(*turn.work), work_end);
	if (!turn.work)
		return GW_NO_MEMORY;
	struct sample_work *work = turn.work;
	if (!work->begun)
		status = answer_sample_begin(&turn, sample.reply_bytes_max);
	while (status == GW_OK) {
		bool filling = work->rows_done < work->rows;
		if (!filling && work->last_run)
			return GW_OK;
		if (!turn.budget)
			return GW_AGAIN;
		status = filling ? run_go_on(&turn) : run_begin(&turn);
	}
	return status;
}
