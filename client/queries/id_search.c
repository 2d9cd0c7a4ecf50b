/* See id_search.h. Fails as reads do, with the error of a file, and with GW_PROTOCOL if a bucket is impossible. */
#include "client/queries/id_search.h"

#include <string.h>

#include "client/engine/engine.h"
#include "core/graph/id_index.h"

#define WINDOW    64u /* entries of a bucket in one round; at least two */
#define MIN(a, b) ((a) < (b) ? (a) : (b))

struct id_bucket {
	uint64_t at, end; /* entries that remain */
};

static const struct gw_client *id_search_client(const struct gw_id_search *search)
{
	return search->answers->job->engine->client;
}

static const struct gw_id_places *id_search_places(const struct gw_id_search *search)
{
	return &id_search_client(search)->id_places[search->ntype];
}

static uint32_t id_search_words(const struct gw_id_search *search)
{
	return gw_id_key_words((enum gw_id_form)id_search_places(search)->form);
}

bool gw_id_index_is_on_disk(const struct gw_client *client, uint32_t part, uint32_t ntype)
{
	const struct gw_id_places *places = &client->id_places[ntype];
	return places->nodes ? places->nodes[part].on_disk
			     : places->entries[part].on_disk || places->buckets[part].on_disk;
}

/* --- Dense ids. --- */

static gw_status ask_dense(struct gw_id_search *search)
{
	const struct gw_place *place = &id_search_places(search)->nodes[search->part];
	const struct gw_entry_list list = {.firsts = search->keys, .width = place->element_bytes, .n = search->n};
	if (search->located)
		return GW_END;
	search->located = true;
	return gw_entry_rounds_post(&search->rounds, place, &list);
}

static gw_status take_dense(struct gw_id_search *search)
{
	const uint8_t width = (uint8_t)id_search_places(search)->nodes[search->part].element_bytes;
	for (uint64_t i = 0; i < search->n; i++)
		search->nodes[i] = gw_entries_id(&search->rounds.read, width, i);
	return GW_OK;
}

/* --- Buckets. --- */

static gw_status ask_buckets(struct gw_id_search *search)
{
	const struct gw_id_places *places = id_search_places(search);
	const struct gw_place *place = &places->buckets[search->part];
	const uint32_t words = id_search_words(search), parts = id_search_client(search)->meta->num_parts;
	uint64_t *wanted = search->wanted.data;
	for (uint64_t i = 0; i < search->n; i++)
		wanted[i] = gw_id_key_bucket(search->keys[i * words], parts, places->bucket_counts[search->part]);
	const struct gw_entry_list list = {
		.firsts = wanted, .width = 2 * place->element_bytes, .step = place->element_bytes, .n = search->n};
	return gw_entry_rounds_post(&search->rounds, place, &list);
}

static gw_status take_buckets(struct gw_id_search *search)
{
	const struct gw_id_places *places = id_search_places(search);
	const uint32_t width = places->buckets[search->part].element_bytes;
	const uint64_t rows = places->rows[search->part];
	struct id_bucket *buckets = search->buckets.data;
	for (uint64_t i = 0; i < search->n; i++) {
		const uint8_t *record = gw_entries_at(&search->rounds.read, i);
		buckets[i] = (struct id_bucket){0};
		memcpy(&buckets[i].at, record, width);
		memcpy(&buckets[i].end, record + width, width);
		if (buckets[i].at > buckets[i].end || buckets[i].end > rows)
			return gw_fail(GW_PROTOCOL,
				       "a bucket of the id index is impossible: [%llu, %llu) of %llu entries",
				       (unsigned long long)buckets[i].at, (unsigned long long)buckets[i].end,
				       (unsigned long long)rows);
		search->nodes[i] = GW_ID_MISSING;
	}
	search->located = true;
	return GW_OK;
}

/* --- Entries. --- */

static gw_status ask_windows(struct gw_id_search *search)
{
	const struct gw_place *place = &id_search_places(search)->entries[search->part];
	const struct id_bucket *buckets = search->buckets.data;
	struct gw_column_read *wanted = search->wanted.data;
	search->asked_count = 0;
	for (uint64_t i = 0; i < search->n; i++) {
		if (buckets[i].at == buckets[i].end)
			continue;
		((uint64_t *)search->asked.data)[search->asked_count] = i;
		wanted[search->asked_count++] = (struct gw_column_read){GW_COLUMN_IDS, buckets[i].at,
									MIN(buckets[i].end - buckets[i].at, WINDOW)};
	}
	const struct gw_entry_list list = {.entries = wanted,
					   .column = GW_COLUMN_IDS,
					   .width = (id_search_words(search) + 1) * (uint32_t)sizeof(uint64_t),
					   .n = search->asked_count};
	return search->asked_count ? gw_entry_rounds_post(&search->rounds, place, &list) : GW_END;
}

/* A window whose last entry has the key does not say whether further nodes share the id: the next one begins there. */
static gw_status take_windows(struct gw_id_search *search)
{
	const struct gw_column_read *wanted = search->wanted.data;
	const uint32_t words = id_search_words(search);
	for (uint64_t k = 0; k < search->asked_count; k++) {
		const uint64_t i = ((const uint64_t *)search->asked.data)[k], count = wanted[k].count;
		struct id_bucket *bucket = (struct id_bucket *)search->buckets.data + i;
		uint64_t at;
		search->nodes[i] =
			gw_id_entries_find((const uint64_t *)(const void *)gw_entries_at(&search->rounds.read, k),
					   count, search->keys + i * words, words, &at);
		bool goes_on = bucket->end - bucket->at > count && at + 1 >= count;
		bucket->at = goes_on ? bucket->at + at : bucket->end;
	}
	return GW_OK;
}

/* --- Both. --- */

static gw_status id_search_ask(void *owner)
{
	struct gw_id_search *search = owner;
	if (id_search_places(search)->nodes)
		return ask_dense(search);
	return search->located ? ask_windows(search) : ask_buckets(search);
}

static gw_status id_search_take(void *owner)
{
	struct gw_id_search *search = owner;
	if (id_search_places(search)->nodes)
		return take_dense(search);
	return search->located ? take_windows(search) : take_buckets(search);
}

static void id_search_done(void *owner, gw_status status)
{
	const struct gw_id_search *search = owner;
	search->done(search->owner, status);
}

void gw_id_search_start(struct gw_id_search *search)
{
	static const struct gw_entry_calls calls = {id_search_ask, id_search_take, id_search_done};
	search->located = false;
	gw_status status = GW_OK;
	if (gw_vec_reserve(&search->buckets, search->n * sizeof(struct id_bucket)) != GW_OK ||
	    gw_vec_reserve(&search->wanted, search->n * sizeof(struct gw_column_read)) != GW_OK ||
	    gw_vec_reserve(&search->asked, search->n * sizeof(uint64_t)) != GW_OK)
		status = GW_NO_MEMORY;
	gw_entry_rounds_start(&search->rounds, search->answers, search->part, &calls, search, status);
}

void gw_id_search_cancel(struct gw_id_search *search)
{
	gw_entries_cancel(&search->rounds.read);
}

void gw_id_search_free(struct gw_id_search *search)
{
	gw_vec_free(&search->buckets);
	gw_vec_free(&search->wanted);
	gw_vec_free(&search->asked);
	gw_entries_free(&search->rounds.read);
}
