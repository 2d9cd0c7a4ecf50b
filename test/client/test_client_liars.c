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
#include <jansson.h>

#include "client/link/catalog.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "test/support/striped.h"
#include "transport/service/service_backend.h"

#define PARTS 2

/* --- Catalogs. --- */

/* A copy of a client that has received the same catalogs. */
static void hear_again(const struct gw_client *from, struct gw_client *out, struct gw_remote *servers)
{
	*out = (struct gw_client){.servers = servers, .server_count = from->server_count, .own_meta = from->own_meta};
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
	client->meta = client->own_meta;
	gw_status status = gw_tensors_build(client);
	gw_tensors_free(client);
	return status;
}

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
			assert_int_equal(gw_remotes_check(&again), GW_OK);
			assert_int_equal(believe(&again), GW_OK);
			struct gw_catalog *catalog = &servers[s].catalog;
			const char *key = catalog->arrays[a].meta->key;
			memmove(&catalog->arrays[a], &catalog->arrays[a + 1],
				(count - a - 1) * sizeof(*catalog->arrays));
			catalog->count--;
			expect(gw_remotes_check(&again), GW_PROTOCOL, "another graph under the id");
			/* The client reads only what it needs; it does not need original ids. */
			gw_status status = believe(&again);
			struct gw_place *places = NULL;
			expect(gw_places_find(&again, key, &places), GW_PROTOCOL, key);
			assert_null(places);
			if (status != GW_OK)
				expect(status, GW_PROTOCOL, "");
			for (uint32_t i = 0; i < PARTS; i++)
				free(servers[i].catalog.arrays);
			gw_free(again.parts);
		}
	}
	hear_again(client, &again, servers);
	servers[1].part = servers[1].catalog.part = 7; /* two parts, and no server of the second one */
	expect(gw_remotes_check(&again), GW_PROTOCOL, "another graph under the id");
	for (uint32_t i = 0; i < PARTS; i++)
		free(servers[i].catalog.arrays);
	gw_free(again.parts);
	gw_client_close(client);
	setup_end(&setup);
}

/* Replaces the answers to requests for the catalog at one server: it lies about its part, but keeps the graph's id. */
struct catalog_liar {
	gw_handler truth;
	void *context;
	_Atomic uint32_t which; /* the lie; UINT32_MAX: the truth */
};

/* A digit of a digest, or a letter of a key. */
static json_t *other_text(const json_t *text)
{
	char *copy = strdup(json_string_value(text));
	char *last = copy + strlen(copy) - 1;
	*last = *last == '7' ? '8' : '7';
	json_t *other = json_string(copy);
	free(copy);
	return other;
}

static void lie_about_the_graph(json_t *root, uint32_t which)
{
	json_t *arrays = json_object_get(root, "arrays");
	json_t *array = json_array_get(arrays, which / 6 % json_array_size(arrays)), *shape = json_array_get(array, 4);
	const char *dtype = json_string_value(json_array_get(array, 3));
	switch (which % 6) {
	case 0:
		json_object_set_new(root, "book_digest", other_text(json_object_get(root, "book_digest")));
		break;
	case 1:
		json_array_set_new(array, 0, other_text(json_array_get(array, 0)));
		break;
	case 2:
		json_array_set_new(array, 3, json_string(strcmp(dtype, "uint32") == 0 ? "int32" : "uint32"));
		break;
	case 3: /* fewer rows: the array still fits into its region */
		json_array_set_new(shape, 0, json_integer(json_integer_value(json_array_get(shape, 0)) - 1));
		break;
	case 4:
		json_array_set_new(array, 5, other_text(json_array_get(array, 5)));
		break;
	default:
		json_array_remove(arrays, which / 6 % json_array_size(arrays));
	}
}

static gw_status answer_another_graph(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct catalog_liar *liar = context;
	gw_status status = liar->truth(liar->context, call, reply);
	uint32_t bytes, which = atomic_load(&liar->which);
	const uint8_t *data = gw_reply_data(reply, &bytes);
	if (status != GW_OK || which == UINT32_MAX)
		return status;
	json_t *root = json_loadb((const char *)data, bytes, 0, NULL);
	assert_non_null(root);
	lie_about_the_graph(root, which);
	char *text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	gw_reply_shrink(reply, bytes);
	uint8_t *out = gw_reply_extend(reply, (uint32_t)strlen(text));
	assert_non_null(out);
	memcpy(out, text, strlen(text));
	free(text);
	return status;
}

/* An id is a digest, and a server may send any. */
static void another_graph_under_the_same_id_is_not_believed(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 261, PARTS, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = 1, .transport = "tcp"};
	struct gw_client *client;
	uint32_t texts = 0; /* which checks refused */
	struct catalog_liar liars[PARTS];
	for (uint32_t p = 0; p < PARTS; p++) {
		struct gw_service *service = setup.cluster.servers[p]->service;
		liars[p].truth = service->handlers[GW_OP_CATALOG].call;
		liars[p].context = service->handlers[GW_OP_CATALOG].context;
		atomic_store(&liars[p].which, UINT32_MAX);
		service->handlers[GW_OP_CATALOG].context = &liars[p];
		service->handlers[GW_OP_CATALOG].call = answer_another_graph;
	}
	for (uint32_t p = 0; p < PARTS; p++) {
		uint32_t lies = 6 * setup.cluster.servers[p]->meta->parts[p].count;
		for (uint32_t which = 0; which < lies; which++) {
			atomic_store(&liars[p].which, which);
			expect(gw_client_open(&options, &client), GW_PROTOCOL, "");
			assert_null(client);
			assert_null(strstr(gw_last_error(), "not JSON"));
			texts |= strstr(gw_last_error(), "the arrays give") ? 1
				 : strstr(gw_last_error(), "under the id")  ? 2
									    : 4;
		}
		atomic_store(&liars[p].which, UINT32_MAX);
	}
	assert_int_equal(texts, 7);
	client = open_client(&options);
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

static gw_status answer_lie(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct liar *liar = context;
	gw_status status = liar->truth(liar->context, call, reply);
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
static gw_status answer_page(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)call;
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
