/* Servers that know the key and send false data: catalogs that lack arrays of the graph or belong to another graph
 * with the same id; regions that change during a switch to a better connection; states, lists and numbers of tensors
 * with any wrong bit. The client ends its call with a status and a text, touches only its own memory, and continues
 * when the server tells the truth again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/link/catalog.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "test/support/striped.h"
#include "transport/service_private.h"

#define PARTS 2

/* --- Catalogs. --- */

/* A copy of a client that has received the same catalogs and has not checked them yet. */
static void hear_again(const struct gw_client *from, struct gw_client *out, struct gw_remote *servers)
{
	*out = (struct gw_client){.servers = servers, .server_count = from->server_count};
	for (uint32_t i = 0; i < from->server_count; i++) {
		servers[i] = from->servers[i];
		const struct gw_catalog *catalog = &from->servers[i].catalog;
		servers[i].catalog.arrays = calloc(catalog->count + 1u, sizeof(*catalog->arrays));
		assert_non_null(servers[i].catalog.arrays);
		memcpy(servers[i].catalog.arrays, catalog->arrays, catalog->count * sizeof(*catalog->arrays));
	}
}

static gw_status believe(struct gw_client *client)
{
	gw_status status = gw_remotes_check(client);
	if (status != GW_OK)
		return status;
	status = gw_tensors_build(client);
	gw_tensors_free(client);
	return status;
}

/* Everything in a catalog is checked before its use. */
static void catalogs_are_looked_up_with_care(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 260, PARTS, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = PARTS, .threads = 1};
	struct gw_client *client = open_client(&options), again;
	struct gw_remote servers[PARTS];
	uint32_t count = client->servers[0].catalog.count;
	for (uint32_t s = 0; s < PARTS; s++) {
		for (uint32_t a = 0; a < count; a++) {
			hear_again(client, &again, servers);
			assert_int_equal(believe(&again), GW_OK);
			struct gw_catalog *catalog = &servers[s].catalog;
			const char *key = catalog->arrays[a].key;
			memmove(&catalog->arrays[a], &catalog->arrays[a + 1],
				(count - a - 1) * sizeof(*catalog->arrays));
			catalog->count--;
			/* The client reads only what it needs; it does not need original ids. */
			gw_status status = believe(&again);
			struct gw_place *places = NULL;
			expect(gw_places_find(&again, key, &places), GW_PROTOCOL, key);
			assert_null(places);
			if (status != GW_OK)
				expect(status, GW_PROTOCOL, "");
			for (uint32_t i = 0; i < PARTS; i++)
				free(servers[i].catalog.arrays);
		}
	}
	hear_again(client, &again, servers);
	servers[1].part = 7; /* two parts, and no server of the second one */
	expect(believe(&again), GW_PROTOCOL, "another graph under the id");
	for (uint32_t i = 0; i < PARTS; i++)
		free(servers[i].catalog.arrays);
	gw_client_close(client);
	setup_end(&setup);
}

/* Each number of a description with which a client computes. */
static uint64_t *meta_number(struct gw_graph_meta *meta, uint32_t which)
{
	struct gw_part_meta *part = &meta->parts[which % meta->num_parts];
	switch (which / 7 % 7) {
	case 0:
		return &meta->ntypes[which % meta->num_ntypes].count;
	case 1:
		return &meta->ntypes[which % meta->num_ntypes].starts[1];
	case 2:
		return &meta->etypes[which % meta->num_etypes].count;
	case 3:
		return &meta->etypes[which % meta->num_etypes].starts[1];
	case 4:
		return &part->arrays[which % part->count].shape[0];
	case 5:
		return &part->arrays[which % part->count].shape[1];
	default:
		return &part->arrays[which % part->count].digest;
	}
}

/* An id is a digest, so two graphs may have the same id. */
static void another_graph_under_the_same_id_is_not_believed(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 261, PARTS, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = PARTS, .threads = 1};
	struct gw_client *client = open_client(&options);
	for (uint32_t which = 0; which < 490; which++) {
		uint64_t *number = meta_number(client->servers[1].catalog.meta, which);
		*number += 1;
		expect(gw_remotes_check(client), GW_PROTOCOL, "another graph under the id");
		assert_false(gw_catalog_same_places(&client->servers[0].catalog, &client->servers[1].catalog));
		*number -= 1;
	}
	must(gw_remotes_check(client));
	gw_client_close(client);
	setup_end(&setup);
}

/* --- Tensors. --- */

/* Replaces the handler of one call at all servers; from `begin` on it lies in some answers. */
struct liar {
	gw_handler truth;
	void *context;
	_Atomic uint64_t state; /* 0: it tells the truth */
};

static gw_status answer_lie(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	struct liar *liar = context;
	gw_status status = liar->truth(liar->context, call, reply, thread);
	uint64_t state = atomic_load(&liar->state);
	if (status != GW_OK || !state)
		return status;
	atomic_store(&liar->state, gw_mix64(state) | 1);
	uint32_t bytes;
	uint8_t *data = gw_reply_data(reply, &bytes);
	for (uint64_t i = 0; i < state % 4 && bytes; i++) {
		uint64_t bit = gw_mix64(state + i + 1) % (8ull * bytes);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (state % 32 < 4 && bytes)
		gw_reply_shrink(reply, (uint32_t)(gw_mix64(state + 9) % bytes + 1));
	return GW_OK;
}

static const uint16_t lies_of[] = {GW_OP_TENSOR_CREATE, GW_OP_TENSOR_COMPLETE, GW_OP_TENSOR_LIST,  GW_OP_TENSOR_COUNT,
				   GW_OP_TENSOR_PULL,   GW_OP_TENSOR_SAVE,     GW_OP_TENSOR_LEASE, GW_OP_TENSOR_DELETE};
#define LIARS (sizeof(lies_of) / sizeof(lies_of[0]))

/* Before any client connects. */
static void liars_begin(const struct setup *setup, struct liar liars[PARTS][LIARS])
{
	for (uint32_t p = 0; p < PARTS; p++) {
		struct gw_service *service = setup->cluster.servers[p]->service;
		for (uint32_t i = 0; i < LIARS; i++) {
			liars[p][i].truth = service->handlers[lies_of[i]].call;
			liars[p][i].context = service->handlers[lies_of[i]].context;
			atomic_store(&liars[p][i].state, 0);
			service->handlers[lies_of[i]].context = &liars[p][i];
			service->handlers[lies_of[i]].call = answer_lie;
		}
	}
}

static void liars_set(struct liar liars[PARTS][LIARS], uint64_t seed)
{
	for (uint32_t p = 0; p < PARTS; p++) {
		for (uint32_t i = 0; i < LIARS; i++)
			atomic_store(&liars[p][i].state, seed ? gw_mix64(seed * 1000 + p * LIARS + i) | 1 : 0);
	}
}

/* Whatever the answer is. */
static void use_tensors(const struct setup *setup, uint64_t seed)
{
	char name[32], folder[300];
	const struct gw_tensor *tensor = NULL;
	struct gw_tensor_list *list = NULL;
	float rows[3 * STRIPED_COLUMNS] = {0};
	int64_t ids[] = {0, 1, 5};
	uint64_t found;
	struct gw_client *client = striped_client(&setup->cluster, "lies", 0);
	snprintf(name, sizeof(name), "lie%d", (int)(seed % 5));
	snprintf(folder, sizeof(folder), "%s/checkpoint", setup->fixture.folder);
	struct gw_tensor_spec spec = striped_spec(name);
	gw_status status =
		seed % 2 ? gw_tensor_open(client, name, GW_OF_JOB, &tensor) : gw_tensor_create(client, &spec, &tensor);
	assert_int_equal(status == GW_OK, tensor != NULL);
	if (tensor && tensor->row_bytes == sizeof(float) * STRIPED_COLUMNS) {
		(void)gw_gather(client, tensor, ids, 3, rows);
		(void)gw_tensor_count_nonzero(client, tensor, &found);
	}
	status = gw_tensor_list(client, &list);
	assert_int_equal(status == GW_OK, list != NULL);
	gw_tensor_list_free(list);
	const struct gw_checkpoint_options options = {.replace = true};
	if (seed % 3 == 0)
		(void)gw_checkpoint(client, folder, &options);
	if (seed % 4 == 0)
		(void)gw_tensor_delete(client, name, GW_OF_JOB);
	gw_client_close(client);
}

#define LIES 300

static void no_lie_about_tensors_is_more_than_an_error(void **state)
{
	(void)state;
	struct setup setup;
	static struct liar liars[PARTS][LIARS];
	setup_begin(&setup, 262, PARTS, NULL);
	liars_begin(&setup, liars);
	for (uint64_t seed = 1; seed <= LIES; seed++) {
		liars_set(liars, seed);
		use_tensors(&setup, seed);
	}
	liars_set(liars, 0);
	uint64_t ended;
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	struct gw_client *client = striped_client(&setup.cluster, "lies", 0);
	must(gw_tensor_end_job(client, "lies", &ended));
	struct gw_tensor_spec spec = striped_spec("true");
	striped_read(client, striped_create(client, &spec), rows);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- A list without an end. --- */

static _Atomic uint64_t pages;

/* The same page for ever. */
static gw_status answer_page(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)call;
	(void)thread;
	bool ascending = *(bool *)context;
	uint64_t page = atomic_fetch_add(&pages, 1);
	struct gw_tensor_listed *listed = gw_calloc(GW_TENSOR_LIST_MAX, sizeof(*listed));
	for (uint32_t i = 0; i < GW_TENSOR_LIST_MAX; i++) {
		listed[i].plan = (struct gw_tensor_plan){.ndim = 1, .shape = {1}};
		snprintf(listed[i].plan.name, sizeof(listed[i].plan.name), "t%08llu",
			 (unsigned long long)(ascending ? page * GW_TENSOR_LIST_MAX + i : i));
	}
	uint8_t *out = gw_reply_extend(reply, GW_TENSOR_LIST_MAX * sizeof(*listed));
	if (out)
		memcpy(out, listed, GW_TENSOR_LIST_MAX * sizeof(*listed));
	gw_free(listed);
	return out ? GW_OK : GW_NO_MEMORY;
}

static void a_list_of_tensors_has_an_end(void **state)
{
	(void)state;
	for (int ascending = 0; ascending < 2; ascending++) {
		struct setup setup;
		struct gw_tensor_list *list;
		bool endless = ascending;
		setup_begin(&setup, 263, 1, NULL);
		struct gw_service *service = setup.cluster.servers[0]->service;
		service->handlers[GW_OP_TENSOR_LIST].context = &endless;
		service->handlers[GW_OP_TENSOR_LIST].call = answer_page;
		struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 1, .threads = 1};
		struct gw_client *client = open_client(&options);
		expect(gw_tensor_list(client, &list), GW_PROTOCOL, ascending ? "more than" : "where it has no place");
		assert_null(list);
		gw_client_close(client);
		setup_end(&setup);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(catalogs_are_looked_up_with_care),
		cmocka_unit_test(another_graph_under_the_same_id_is_not_believed),
		cmocka_unit_test(no_lie_about_tensors_is_more_than_an_error),
		cmocka_unit_test(a_list_of_tensors_has_an_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
