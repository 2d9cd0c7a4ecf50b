/* See list_search.h. Fails as reads do, with the error of a file, and with GW_PROTOCOL if offsets are impossible. */
#include "client/batch/list_search.h"

#include "client/engine/engine.h"

/* Entries of a list in one round: of one that is walked, and of one that is bisected. */
#define WALKED    1024u
#define BISECTED  64u
#define ROUND     (128u << 10) /* of all lists in one round */
#define RECORDS   (1u << 20)   /* bytes of degree records in one round */
#define MIN(a, b) ((a) < (b) ? (a) : (b))

struct list_question {
	uint64_t row, src, position;
	uint64_t at, high, end; /* [at, end) remains; what is sought begins in [at, high] */
};

static const struct gw_client *search_client(const struct gw_list_search *search)
{
	return search->answers->job->engine->client;
}

static const struct gw_node_places *search_offsets(const struct gw_list_search *search)
{
	const struct gw_client *client = search_client(search);
	return &client->node_places[GW_IN][client->meta->etypes[search->etype].dst];
}

static uint64_t search_rows(const struct gw_list_search *search)
{
	const struct gw_graph_meta *meta = search_client(search)->meta;
	const uint64_t *starts = meta->ntypes[meta->etypes[search->etype].dst].starts;
	return starts[search->part + 1] - starts[search->part];
}

static const struct gw_list_places *lists_places(const struct gw_list_search *search)
{
	return &search_client(search)->list_places[GW_IN][search->etype];
}

static struct list_question *question_at(const struct gw_list_search *search, uint64_t i)
{
	return (struct list_question *)search->questions.data + i;
}

static uint64_t middle_of(const struct list_question *question)
{
	return question->at + (question->high - question->at) / 2;
}

/* --- Rounds. --- */

static gw_status search_ask(void *owner)
{
	struct gw_list_search *search = owner;
	return search->ask(search);
}

static gw_status search_take(void *owner)
{
	struct gw_list_search *search = owner;
	return search->take(search);
}

static void search_done(void *owner, gw_status status)
{
	const struct gw_list_search *search = owner;
	search->done(search->owner, status);
}

static void search_start(struct gw_list_search *search, gw_status status)
{
	static const struct gw_entry_calls calls = {search_ask, search_take, search_done};
	gw_entry_rounds_start(&search->rounds, search->answers, search->part, &calls, search, status);
}

static gw_status search_post(struct gw_list_search *search, bool single)
{
	const struct gw_place *place = &lists_places(search)->indices[search->part];
	const struct gw_entry_list list = {.firsts = single ? search->wanted.data : NULL,
					   .entries = single ? NULL : search->wanted.data,
					   .column = GW_COLUMN_IDS,
					   .width = place->element_bytes,
					   .n = search->asked_count};
	return gw_entry_rounds_post(&search->rounds, place, &list);
}

static uint32_t record_step(const struct gw_list_search *search)
{
	const struct gw_node_places *offsets = search_offsets(search);
	return offsets->columns * offsets->indptr[search->part].element_bytes;
}

/* Questions whose degree records one round reads. */
static uint64_t records_max(const struct gw_list_search *search)
{
	const uint64_t records = RECORDS / (2 * record_step(search));
	return records ? records : 1;
}

/* The degree records of the rows in `wanted`. */
static gw_status search_post_records(struct gw_list_search *search)
{
	const struct gw_place *place = &search_offsets(search)->indptr[search->part];
	const uint32_t step = record_step(search);
	const struct gw_entry_list list = {
		.firsts = search->wanted.data, .width = 2 * step, .step = step, .n = search->asked_count};
	return gw_entry_rounds_post(&search->rounds, place, &list);
}

/* The begin of a list, or its end, in record i. */
static uint64_t record_offset(const struct gw_list_search *search, uint64_t i, bool end)
{
	const struct gw_node_places *offsets = search_offsets(search);
	const uint8_t width = (uint8_t)offsets->indptr[search->part].element_bytes;
	const uint32_t column = search_client(search)->meta->etypes[search->etype].column;
	const size_t at = column + (end ? offsets->columns : 0);
	uint64_t offset = 0;
	memcpy(&offset, gw_entries_at(&search->rounds.read, i) + at * width, width);
	return offset;
}

static gw_status search_begin(struct gw_list_search *search, uint64_t n)
{
	const struct gw_client *client = search_client(search);
	search->n = n;
	search->first = 0;
	search->sorted = client->meta->etypes[search->etype].order == GW_ORDER_SRC;
	uint64_t room = n > ROUND ? n : ROUND;
	if (gw_vec_reserve(&search->questions, n * sizeof(struct list_question)) != GW_OK ||
	    gw_vec_reserve(&search->asked, room * sizeof(uint64_t)) != GW_OK ||
	    gw_vec_reserve(&search->wanted, room * sizeof(struct gw_column_read)) != GW_OK)
		return GW_NO_MEMORY;
	return GW_OK;
}

static void round_add(struct gw_list_search *search, uint64_t question, uint64_t first)
{
	((uint64_t *)search->asked.data)[search->asked_count] = question;
	((uint64_t *)search->wanted.data)[search->asked_count++] = first;
}

/* --- Ends of edges. --- */

static gw_status take_edge_sources(struct gw_list_search *search)
{
	const uint8_t width = (uint8_t)lists_places(search)->indices[search->part].element_bytes;
	gw_status status = GW_OK;
	for (uint64_t i = search->first; i < search->first + search->asked_count && status == GW_OK; i++) {
		const struct list_question *question = question_at(search, i);
		status = search->found(search->owner, i, question->row, question->position,
				       gw_entries_id(&search->rounds.read, width, i - search->first));
	}
	search->first += search->asked_count;
	return status;
}

static gw_status ask_edge_sources(struct gw_list_search *search)
{
	if (search->first == search->n)
		return GW_END;
	search->asked_count = 0;
	for (uint64_t i = search->first; i < search->n && search->asked_count < ROUND; i++)
		round_add(search, i, question_at(search, i)->position);
	search->take = take_edge_sources;
	return search_post(search, true);
}

/* The first row whose list ends after the position is in [at, high]. */
static gw_status take_row_ends(struct gw_list_search *search)
{
	const uint64_t *asked = search->asked.data;
	for (uint64_t i = 0; i < search->asked_count; i++) {
		struct list_question *question = question_at(search, asked[i]);
		uint64_t middle = middle_of(question);
		if (record_offset(search, i, true) <= question->position)
			question->at = middle + 1;
		else
			question->high = middle;
	}
	return GW_OK;
}

static gw_status ask_row_ends(struct gw_list_search *search)
{
	const uint64_t most = records_max(search);
	search->asked_count = 0;
	for (uint64_t i = search->first; i < search->n && search->asked_count < most; i++) {
		const struct list_question *question = question_at(search, i);
		if (question->at < question->high)
			round_add(search, i, middle_of(question));
		else if (i == search->first)
			search->first++;
	}
	search->take = take_row_ends;
	if (search->asked_count)
		return search_post_records(search);
	search->first = 0;
	for (uint64_t i = 0; i < search->n; i++) {
		struct list_question *question = question_at(search, i);
		question->row = question->at;
		if (question->row == search_rows(search))
			return gw_fail(GW_PROTOCOL, "position %llu is in none of its lists",
				       (unsigned long long)question->position);
	}
	search->ask = ask_edge_sources;
	return ask_edge_sources(search);
}

void gw_list_search_ends(struct gw_list_search *search, const uint64_t *positions, uint64_t n)
{
	gw_status status = search_begin(search, n);
	for (uint64_t i = 0; i < n && status == GW_OK; i++)
		*question_at(search, i) = (struct list_question){.position = positions[i], .high = search_rows(search)};
	search->ask = ask_row_ends;
	search_start(search, status);
}

/* --- Edges of lists. --- */

static bool is_bisected(const struct gw_list_search *search, const struct list_question *question)
{
	return search->sorted && !search->every && question->high - question->at > BISECTED;
}

static gw_status take_window(struct gw_list_search *search, uint64_t asked, uint64_t count)
{
	const uint64_t question_number = ((const uint64_t *)search->asked.data)[asked];
	struct list_question *question = question_at(search, question_number);
	const uint8_t width = (uint8_t)lists_places(search)->indices[search->part].element_bytes;
	const uint8_t *ids = gw_entries_at(&search->rounds.read, asked);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t src = 0, position = question->at + i;
		memcpy(&src, ids + i * width, width);
		if (search->every || src == question->src) {
			gw_status status = search->found(search->owner, question_number, question->row, position, src);
			if (status != GW_OK)
				return status;
		} else if (search->sorted && src > question->src) {
			question->end = position;
		}
	}
	question->at = question->high = MIN(question->at + count, question->end);
	return GW_OK;
}

static gw_status take_entries(struct gw_list_search *search)
{
	const struct gw_column_read *wanted = search->wanted.data;
	const uint8_t width = (uint8_t)lists_places(search)->indices[search->part].element_bytes;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < search->asked_count && status == GW_OK; i++) {
		struct list_question *question = question_at(search, ((const uint64_t *)search->asked.data)[i]);
		if (!is_bisected(search, question))
			status = take_window(search, i, wanted[i].count);
		else if (gw_entries_id(&search->rounds.read, width, i) < question->src)
			question->at = wanted[i].first + 1;
		else
			question->high = wanted[i].first;
	}
	return status;
}

static gw_status ask_entries(struct gw_list_search *search)
{
	struct gw_column_read *wanted = search->wanted.data;
	uint64_t entries = 0, window = search->sorted && !search->every ? BISECTED : WALKED;
	search->asked_count = 0;
	while (search->first < search->n &&
	       question_at(search, search->first)->at == question_at(search, search->first)->end)
		search->first++;
	for (uint64_t i = search->first; i < search->n && entries < ROUND; i++) {
		const struct list_question *question = question_at(search, i);
		if (question->at == question->end)
			continue;
		struct gw_column_read read = {.column = GW_COLUMN_IDS, .first = question->at};
		read.count = MIN(question->end - question->at, window);
		if (is_bisected(search, question))
			read = (struct gw_column_read){GW_COLUMN_IDS, middle_of(question), 1};
		((uint64_t *)search->asked.data)[search->asked_count] = i;
		wanted[search->asked_count++] = read;
		entries += read.count;
	}
	search->take = take_entries;
	return search->asked_count ? search_post(search, false) : GW_END;
}

static gw_status take_offsets(struct gw_list_search *search)
{
	const uint64_t edges = lists_places(search)->edges[search->part];
	for (uint64_t i = 0; i < search->asked_count; i++) {
		struct list_question *question = question_at(search, search->first + i);
		question->at = record_offset(search, i, false);
		question->high = question->end = record_offset(search, i, true);
		if (question->at > question->end || question->end > edges)
			return gw_fail(GW_PROTOCOL, "offsets %llu and %llu of row %llu in a list of %llu edges",
				       (unsigned long long)question->at, (unsigned long long)question->end,
				       (unsigned long long)question->row, (unsigned long long)edges);
	}
	search->first += search->asked_count;
	if (search->first == search->n) {
		search->first = 0;
		search->ask = ask_entries;
	}
	return GW_OK;
}

static gw_status ask_offsets(struct gw_list_search *search)
{
	search->asked_count = MIN(search->n - search->first, records_max(search));
	for (uint64_t i = 0; i < search->asked_count; i++)
		((uint64_t *)search->wanted.data)[i] = question_at(search, search->first + i)->row;
	search->take = take_offsets;
	return search_post_records(search);
}

void gw_list_search_edges(struct gw_list_search *search, const uint64_t *rows, const uint64_t *srcs, uint64_t n)
{
	gw_status status = search_begin(search, n);
	search->every = !srcs;
	for (uint64_t i = 0; i < n && status == GW_OK; i++)
		*question_at(search, i) = (struct list_question){.row = rows[i], .src = srcs ? srcs[i] : 0};
	search->ask = ask_offsets;
	search_start(search, status);
}

/* --- The end. --- */

void gw_list_search_cancel(struct gw_list_search *search)
{
	gw_entries_cancel(&search->rounds.read);
}

void gw_list_search_free(struct gw_list_search *search)
{
	gw_vec_free(&search->questions);
	gw_vec_free(&search->asked);
	gw_vec_free(&search->wanted);
	gw_entries_free(&search->rounds.read);
}
