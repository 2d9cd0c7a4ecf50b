/* Moves rows of features and other arrays to the parts of their nodes and edges, several arrays at a time.
 *
 *   arrays of the input -> one job for each array and part -> rows gathered in the order of old ids, a block at a time,
 *   to a stream of the writer -> unmap the pages that were read
 *
 * Strings move as offsets and bytes. An alias table keeps its thresholds; its aliases follow the edges to the new
 * places in the list. The plan's weights get new tables, a block of lists at a time, and its times of sources are
 * gathered by the sources. If the input has no orig_id, its ids become orig_id. A graph that stays in one part gets the
 * inverse of orig_id for edges (core/graph/inverse.h). Fails with the writer's errors.
 */
#include <string.h>

#include "core/files/filemap.h"
#include "core/graph/alias.h"
#include "core/graph/inverse.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/partition/split.h"

#define BLOCK_BYTES (1u << 20)
#define DROP_BYTES  (32ull << 20) /* bytes of the mapped input that are unmapped at a time */
#define TABLE_EDGES (64u << 10)   /* edges whose alias tables are built at a time; more for a longer list */
#define TABLE_ROWS  (64u << 10)

enum job_kind {
	JOB_ROWS,
	JOB_STRINGS,
	JOB_NAMES,
	JOB_ALIAS,
	JOB_WEIGHT,
	JOB_SOURCE,
	JOB_ORIGIN,
	JOB_INVERSE,
	JOB_TRAINER
};

struct job {
	enum job_kind kind;
	uint32_t part, type;
	const struct gw_array *array; /* an array of the input; for strings, the offsets; for INVERSE, orig_id, or NULL
					 for the input's ids */
	const struct gw_array *bytes; /* the bytes, for strings */
	const struct gw_numbers *from;
	uint64_t begin, count;              /* rows from[begin ... begin + count) of the input, in this order */
	const struct gw_split_lists *lists; /* for edges, else NULL */
	char key[GW_KEY_MAX];
};

struct jobs {
	struct gw_split *split;
	struct job *jobs;
	uint32_t count, room;
};

static bool split_rows_ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);
	return length > tail && strcmp(text + length - tail, suffix) == 0;
}

/* Drops the stream of a failed job. */
static gw_status split_rows_finish(struct gw_split *split, struct gw_array_stream *stream, gw_status status,
				   uint64_t bytes)
{
	if (status != GW_OK) {
		gw_writer_drop(stream);
		return status;
	}
	__atomic_fetch_add(&split->bytes, bytes, __ATOMIC_RELAXED);
	return gw_writer_end(stream);
}

static void copy_row(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	if (bytes == 4)
		memcpy(to, from, 4);
	else if (bytes == 8)
		memcpy(to, from, 8);
	else if (bytes == 1)
		*to = *from;
	else
		memcpy(to, from, bytes);
}

static gw_status split_rows_gather(const struct job *job, struct gw_array_stream *stream, uint8_t *block, bool mapped)
{
	const uint8_t *data = job->array->data, *dropped = data;
	uint64_t row_bytes = job->array->row_bytes, used = 0;
	for (uint64_t i = 0; i < job->count; i++) {
		const uint8_t *row = data + gw_numbers_get(job->from, job->begin + i) * row_bytes;
		gw_status status = GW_OK;
		if (row_bytes > BLOCK_BYTES) {
			status = gw_writer_append(stream, row, row_bytes);
		} else {
			if (used + row_bytes > BLOCK_BYTES) {
				status = gw_writer_append(stream, block, used);
				used = 0;
			}
			copy_row(block + used, row, row_bytes);
			used += row_bytes;
		}
		if (status != GW_OK)
			return status;
		if (mapped && row > dropped + DROP_BYTES) {
			gw_filemap_drop(dropped, row);
			dropped = row;
		}
	}
	return gw_writer_append(stream, block, used);
}

static gw_status split_rows_run(struct gw_split *split, const struct job *job)
{
	const struct gw_array_meta *meta = job->array->meta;
	uint64_t shape[GW_DIMS_MAX];
	struct gw_array_stream *stream;
	memcpy(shape, meta->shape, sizeof(shape));
	shape[0] = job->count;
	gw_status status = gw_writer_begin(split->writer, job->part, job->key, meta->dtype, meta->ndim, shape, &stream);
	if (status != GW_OK)
		return status;
	uint8_t *block = gw_malloc(BLOCK_BYTES);
	status = block ? split_rows_gather(job, stream, block, !gw_part_arena(split->part)) : GW_NO_MEMORY;
	gw_free(block);
	return split_rows_finish(split, stream, status, gw_writer_bytes(stream));
}

static gw_status run_strings(struct gw_split *split, const struct job *job)
{
	const uint64_t *offsets = (const uint64_t *)job->array->data;
	struct gw_array_stream *stream;
	uint64_t sum = 0, shape = job->count + 1;
	gw_status status = gw_writer_begin(split->writer, job->part, job->key, GW_UINT64, 1, &shape, &stream);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i <= job->count && status == GW_OK; i++) {
		status = gw_writer_append(stream, &sum, sizeof(sum));
		if (i < job->count) {
			uint64_t row = gw_numbers_get(job->from, job->begin + i);
			sum += offsets[row + 1] - offsets[row];
		}
	}
	status = split_rows_finish(split, stream, status, shape * sizeof(uint64_t));
	if (status != GW_OK)
		return status;

	char key[GW_KEY_MAX];
	snprintf(key, sizeof(key), "%.*s.bytes", (int)(strlen(job->key) - strlen(".offsets")), job->key);
	status = gw_writer_begin(split->writer, job->part, key, GW_UINT8, 1, &sum, &stream);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < job->count && status == GW_OK; i++) {
		uint64_t row = gw_numbers_get(job->from, job->begin + i);
		status = gw_writer_append(stream, job->bytes->data + offsets[row], offsets[row + 1] - offsets[row]);
	}
	return split_rows_finish(split, stream, status, sum);
}

static gw_status run_names(struct gw_split *split, const struct job *job)
{
	char key[GW_KEY_MAX];
	snprintf(key, sizeof(key), "%.*s", (int)(strlen(job->key) - strlen(".offsets")), job->key);
	__atomic_fetch_add(&split->bytes, job->array->rows * sizeof(uint64_t) + job->bytes->rows, __ATOMIC_RELAXED);
	return gw_writer_strings(split->writer, job->part, key, (const uint64_t *)job->array->data,
				 job->array->rows - 1, (const char *)job->bytes->data);
}

/* Entries follow their edges, and aliases point to the new places. room: [3 * edges]. */
static void move_aliases(const struct job *job, uint64_t row, uint32_t *room, uint64_t old_first)
{
	const struct gw_split_lists *lists = job->lists;
	const uint32_t *table = (const uint32_t *)job->array->data;
	uint64_t first = lists->offsets[row], n = lists->offsets[row + 1] - first;
	uint32_t *place = room + 2 * n; /* the new place of each old position in the list */
	for (uint64_t i = 0; i < n; i++)
		place[gw_numbers_get(&lists->at, first + i) - old_first] = (uint32_t)i;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = gw_numbers_get(&lists->at, first + i);
		uint32_t alias = table[2 * at + 1];
		room[2 * i] = table[2 * at];
		room[2 * i + 1] = alias == GW_ALIAS_NONE ? GW_ALIAS_NONE : place[alias];
	}
}

static uint64_t longest_list(const struct gw_split_lists *lists)
{
	uint64_t longest = 0;
	for (uint64_t row = 0; row < lists->rows; row++) {
		uint64_t n = lists->offsets[row + 1] - lists->offsets[row];
		longest = n > longest ? n : longest;
	}
	return longest;
}

static gw_status run_alias(struct gw_split *split, const struct job *job)
{
	const struct gw_split_lists *lists = job->lists;
	uint64_t shape[2] = {job->count, 2}, longest = longest_list(lists), old_first, old_end;
	struct gw_array_stream *stream;
	gw_status status = gw_writer_begin(split->writer, job->part, job->key, GW_UINT32, 2, shape, &stream);
	if (status != GW_OK)
		return status;
	uint32_t *room = gw_malloc(longest * 3 * sizeof(*room));
	status = room ? GW_OK : GW_NO_MEMORY;
	for (uint64_t row = 0; row < lists->rows && status == GW_OK; row++) {
		uint64_t n = lists->offsets[row + 1] - lists->offsets[row];
		uint64_t old = gw_numbers_get(&split->old_id[lists->row_type], lists->row_start + row);
		gw_adjacency_list(lists->from, old, &old_first, &old_end);
		move_aliases(job, row, room, old_first);
		status = gw_writer_append(stream, room, n * 2 * sizeof(*room));
	}
	gw_free(room);
	return split_rows_finish(split, stream, status, job->count * 2 * sizeof(uint32_t));
}

/* Memory for the tables of a block of lists. */
struct table_block {
	uint64_t edges;    /* room */
	uint64_t *indptr;  /* [TABLE_ROWS + 1], from 0 */
	uint8_t *weights;  /* [edges] of the job's dtype */
	uint32_t *entries; /* [edges, 2] */
};

/* Builds and writes the tables of the lists from `row` on, as many as fit. Sets *next to the first list that does not.
 * */
static gw_status write_tables(const struct job *job, struct gw_array_stream *stream, const struct table_block *block,
			      uint64_t row, uint64_t *next)
{
	const struct gw_split_lists *lists = job->lists;
	uint64_t first = lists->offsets[row], bytes = job->array->row_bytes, rows = 0;
	block->indptr[0] = 0;
	while (row + rows < lists->rows && rows < TABLE_ROWS &&
	       lists->offsets[row + rows + 1] - first <= block->edges) {
		rows++;
		block->indptr[rows] = lists->offsets[row + rows] - first;
	}
	uint64_t edges = block->indptr[rows];
	for (uint64_t i = 0; i < edges; i++)
		copy_row(block->weights + i * bytes, job->array->data + gw_numbers_get(&lists->at, first + i) * bytes,
			 bytes);
	gw_status status =
		gw_alias_build(block->indptr, rows, job->array->meta->dtype, block->weights, 1, block->entries);
	*next = row + rows;
	return status != GW_OK ? status : gw_writer_append(stream, block->entries, edges * 2 * sizeof(uint32_t));
}

static gw_status run_weight(struct gw_split *split, const struct job *job)
{
	const struct gw_split_lists *lists = job->lists;
	uint64_t shape[2] = {job->count, 2}, longest = longest_list(lists), next = 0;
	struct table_block block = {.edges = longest > TABLE_EDGES ? longest : TABLE_EDGES};
	struct gw_array_stream *stream;
	gw_status status = gw_writer_begin(split->writer, job->part, job->key, GW_UINT32, 2, shape, &stream);
	if (status != GW_OK)
		return status;
	block.indptr = gw_malloc((TABLE_ROWS + 1) * sizeof(*block.indptr));
	block.weights = gw_malloc(block.edges * job->array->row_bytes);
	block.entries = gw_malloc(block.edges * 2 * sizeof(*block.entries));
	status = block.indptr && block.weights && block.entries ? GW_OK : GW_NO_MEMORY;
	while (status == GW_OK && next < lists->rows)
		status = write_tables(job, stream, &block, next, &next);
	gw_free(block.indptr);
	gw_free(block.weights);
	gw_free(block.entries);
	return split_rows_finish(split, stream, status, job->count * 2 * sizeof(uint32_t));
}

gw_status gw_split_write_numbers(struct gw_split *split, uint32_t part, const char *key, gw_dtype dtype,
				 const struct gw_numbers *numbers, uint64_t begin, uint64_t count,
				 const struct gw_numbers *map)
{
	struct gw_array_stream *stream;
	uint64_t memory[1024];
	struct gw_numbers block = {.data = memory, .bytes = dtype == GW_UINT32 ? 4 : 8};
	uint32_t used = 0;
	gw_status status = gw_writer_begin(split->writer, part, key, dtype, 1, &count, &stream);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < count && status == GW_OK; i++) {
		uint64_t value = gw_numbers_get(numbers, begin + i);
		gw_numbers_put(&block, used++, map ? gw_numbers_get(map, value) : value);
		if (used == 1024 || i + 1 == count) {
			status = gw_writer_append(stream, block.data, (size_t)used * block.bytes);
			used = 0;
		}
	}
	return split_rows_finish(split, stream, status, count * block.bytes);
}

static gw_status run_original_ids(struct gw_split *split, const struct job *job)
{
	gw_dtype dtype = job->lists ? gw_edge_origin_dtype(split->in->etypes[job->type].count) : GW_INT64;
	return gw_split_write_numbers(split, job->part, job->key, dtype, job->from, job->begin, job->count, NULL);
}

/* The time of each edge's source, from the times of the nodes. */
static gw_status run_source(struct gw_split *split, const struct job *job)
{
	const struct gw_time_column *times = &gw_split_time_order(split, job->type)->column;
	const struct gw_adjacency *from = job->lists->from;
	uint64_t bytes = gw_dtype_bytes(times->dtype);
	struct gw_array_stream *stream;
	gw_status status = gw_writer_begin(split->writer, job->part, job->key, times->dtype, 1, &job->count, &stream);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < job->count && status == GW_OK; i++) {
		uint64_t source = gw_load_id(from->indices, from->index_bytes, gw_numbers_get(job->from, i));
		status = gw_writer_append(stream, (const uint8_t *)times->data + source * bytes, bytes);
	}
	return split_rows_finish(split, stream, status, job->count * bytes);
}

static uint64_t split_rows_origin_of(const void *context, uint64_t position)
{
	const struct job *job = context;
	uint64_t row = gw_numbers_get(job->from, job->begin + position);
	return job->array ? gw_load_id(job->array->data, (uint8_t)job->array->row_bytes, row) : row;
}

static gw_status run_inverse(struct gw_split *split, const struct job *job)
{
	uint64_t rows;
	gw_status status = gw_inverse_write(split->writer, job->key, split_rows_origin_of, job, job->count, 1, &rows);
	__atomic_fetch_add(&split->bytes, rows * gw_number_bytes(job->count), __ATOMIC_RELAXED);
	return status;
}

static gw_status run_trainer(struct gw_split *split, const struct job *job)
{
	const struct gw_split_lists *lists = job->lists;
	uint32_t ntype = lists ? lists->row_type : job->type;
	const struct gw_numbers *old_id = &split->old_id[ntype];
	uint64_t first = split->schema->ntypes[ntype].starts[job->part];
	uint64_t rows = split->schema->ntypes[ntype].starts[job->part + 1] - first;
	struct gw_array_stream *stream;
	gw_status status = gw_writer_begin(split->writer, job->part, job->key, GW_INT64, 1, &job->count, &stream);
	if (status != GW_OK)
		return status;
	for (uint64_t row = 0; row < rows && status == GW_OK; row++) {
		int64_t trainer = split->assignment->piece[ntype][gw_numbers_get(old_id, first + row)];
		uint64_t n = lists ? lists->offsets[row + 1] - lists->offsets[row] : 1;
		for (uint64_t i = 0; i < n && status == GW_OK; i++)
			status = gw_writer_append(stream, &trainer, sizeof(trainer));
	}
	return split_rows_finish(split, stream, status, job->count * sizeof(int64_t));
}

static gw_status run_job(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct jobs *jobs = context;
	gw_status status = GW_OK;
	for (uint64_t i = begin; i < end && status == GW_OK; i++) {
		const struct job *job = &jobs->jobs[i];
		if (job->kind == JOB_ROWS)
			status = split_rows_run(jobs->split, job);
		else if (job->kind == JOB_STRINGS)
			status = run_strings(jobs->split, job);
		else if (job->kind == JOB_NAMES)
			status = run_names(jobs->split, job);
		else if (job->kind == JOB_ALIAS)
			status = run_alias(jobs->split, job);
		else if (job->kind == JOB_WEIGHT)
			status = run_weight(jobs->split, job);
		else if (job->kind == JOB_SOURCE)
			status = run_source(jobs->split, job);
		else if (job->kind == JOB_TRAINER)
			status = run_trainer(jobs->split, job);
		else if (job->kind == JOB_INVERSE)
			status = run_inverse(jobs->split, job);
		else
			status = run_original_ids(jobs->split, job);
		if (status != GW_OK)
			status = gw_context(status, "part %u: %s", job->part, job->key);
	}
	(void)thread;
	return status;
}

static gw_status add_job(struct jobs *jobs, struct job job)
{
	if (jobs->count == jobs->room) {
		uint32_t room = jobs->room ? jobs->room * 2 : 32;
		struct job *more = gw_realloc(jobs->jobs, room, sizeof(*more));
		if (!more)
			return GW_NO_MEMORY;
		jobs->jobs = more;
		jobs->room = room;
	}
	jobs->jobs[jobs->count++] = job;
	return GW_OK;
}

static bool is_made_anew(const struct gw_split *split, const struct gw_array_key *key)
{
	const struct gw_plan_weights *weights = &split->plan->weights;
	const struct gw_time_order *time = key->edge ? gw_split_time_order(split, key->type) : NULL;
	if (time && time->of_source && strcmp(key->name, time->name) == 0)
		return true;
	if (split->in->minor >= GW_FORMAT_MINOR_TIMES && gw_name_is_of_times(key->edge, key->name))
		return !gw_name_ends_in(key->name, GW_TIME_SOURCE_TAIL); /* these follow their edges */
	for (uint32_t i = 0; i < weights->count; i++) {
		size_t length = strlen(weights->list[i].name);
		if (key->edge && weights->list[i].etype == key->type &&
		    strncmp(key->name, weights->list[i].name, length) == 0 && strcmp(key->name + length, ".alias") == 0)
			return true;
	}
	return false;
}

/* Other code writes it, it is made anew, or it is the second half of strings. */
static bool skip(const struct gw_split *split, const struct gw_array_key *key)
{
	if (key->out || split_rows_ends_with(key->name, ".bytes") || is_made_anew(split, key))
		return true;
	if (key->edge && (strcmp(key->name, "indices") == 0 || strcmp(key->name, GW_INVERSE_NAME) == 0))
		return true;
	if (!key->edge && (strcmp(key->name, "indptr") == 0 || strcmp(key->name, "out_indptr") == 0))
		return true;
	if (!key->edge && split->in->minor >= GW_FORMAT_MINOR_IDS && gw_name_is_node_ids(key->name))
		return true;
	return split->plan->trainers > 1 && strcmp(key->name, GW_PLAN_TRAINER_ID) == 0;
}

/* origin: make orig_id. */
static gw_status add_made(struct jobs *jobs, const struct job *base, const char *folder, bool origin)
{
	const struct gw_split *split = jobs->split;
	const char *of = base->lists ? "edge" : "node";
	struct job made = *base;
	gw_status status = GW_OK;
	snprintf(made.key, sizeof(made.key), "%s/%s/orig_id", of, folder);
	made.array = gw_part_array(split->part, made.key);
	if (origin) {
		made.kind = JOB_ORIGIN;
		status = add_job(jobs, made);
	}
	if (status == GW_OK && base->lists && split->plan->parts == 1 && (origin || made.array)) {
		made.kind = JOB_INVERSE;
		status = add_job(jobs, made);
	}
	if (status == GW_OK && split->plan->trainers > 1) {
		made.kind = JOB_TRAINER;
		snprintf(made.key, sizeof(made.key), "%s/%s/" GW_PLAN_TRAINER_ID, of, folder);
		status = add_job(jobs, made);
	}
	return status;
}

static gw_status add_source(struct jobs *jobs, const struct job *base, const char *folder)
{
	const struct gw_time_order *time = gw_split_time_order(jobs->split, base->type);
	struct job job = *base;
	if (!time || !time->of_source)
		return GW_OK;
	job.kind = JOB_SOURCE;
	snprintf(job.key, sizeof(job.key), "edge/%s/%s", folder, time->name);
	return add_job(jobs, job);
}

static gw_status add_tables(struct jobs *jobs, const struct job *base, const char *folder)
{
	const struct gw_plan_weights *weights = &jobs->split->plan->weights;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < weights->count && status == GW_OK; i++) {
		const struct gw_plan_weight *weight = &weights->list[i];
		struct job job = *base;
		if (weight->etype != base->type)
			continue;
		job.kind = JOB_WEIGHT;
		job.array = weight->array;
		snprintf(job.key, sizeof(job.key), "edge/%s/%s.alias", folder, weight->name);
		status = add_job(jobs, job);
	}
	return status;
}

static gw_status add_type(struct jobs *jobs, const struct job *base, const char *folder)
{
	struct gw_split *split = jobs->split;
	const struct gw_array *array;
	bool edge = base->lists != NULL, has_origin = false, has_rows = false;
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && (array = gw_part_array_at(split->part, i)); i++) {
		struct gw_array_key key;
		struct job job = *base;
		status = gw_array_key_parse(split->in, array->meta->key, &key);
		if (status != GW_OK || key.edge != edge || key.type != base->type || skip(split, &key))
			continue;
		snprintf(job.key, sizeof(job.key), "%s", array->meta->key);
		job.array = array;
		bool names = split_rows_ends_with(key.name, ".names.offsets");
		has_rows |= strcmp(key.name, "rel") != 0 && !names;
		has_origin |= strcmp(key.name, "orig_id") == 0 || strcmp(key.name, "orig_id.offsets") == 0;
		if (edge && split_rows_ends_with(key.name, ".alias")) {
			job.kind = JOB_ALIAS;
		} else if (split_rows_ends_with(key.name, ".offsets")) {
			char bytes[GW_KEY_MAX];
			snprintf(bytes, sizeof(bytes), "%.*s.bytes", (int)(strlen(job.key) - strlen(".offsets")),
				 job.key);
			job.kind = names ? JOB_NAMES : JOB_STRINGS;
			job.bytes = gw_part_array(split->part, bytes);
		}
		status = add_job(jobs, job);
	}
	return status != GW_OK ? status : add_made(jobs, base, folder, !has_origin && (!edge || has_rows));
}

static gw_status run_jobs(struct jobs *jobs, gw_status status)
{
	if (status == GW_OK)
		status = gw_parallel_for(jobs->split->threads, jobs->count, 1, run_job, jobs);
	gw_free(jobs->jobs);
	return status;
}

gw_status gw_split_node_rows(struct gw_split *split)
{
	struct jobs jobs = {.split = split};
	gw_status status = GW_OK;
	for (uint32_t t = 0; status == GW_OK && t < split->schema->num_ntypes; t++) {
		const struct gw_node_type *type = &split->schema->ntypes[t];
		for (uint32_t p = 0; status == GW_OK && p < split->plan->parts; p++) {
			struct job base = {.part = p,
					   .type = t,
					   .from = &split->old_id[t],
					   .begin = type->starts[p],
					   .count = type->starts[p + 1] - type->starts[p]};
			status = add_type(&jobs, &base, type->name);
		}
	}
	return run_jobs(&jobs, status);
}

gw_status gw_split_edge_rows(struct gw_split *split, const struct gw_split_lists *lists)
{
	struct jobs jobs = {.split = split};
	struct job base = {.part = lists->part,
			   .type = lists->etype,
			   .from = &lists->at,
			   .count = lists->offsets[lists->rows],
			   .lists = lists};
	const char *folder = split->schema->etypes[lists->etype].folder;
	gw_status status = add_type(&jobs, &base, folder);
	if (status == GW_OK)
		status = add_source(&jobs, &base, folder);
	return run_jobs(&jobs, status != GW_OK ? status : add_tables(&jobs, &base, folder));
}
