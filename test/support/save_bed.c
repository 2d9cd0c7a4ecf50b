/* The bed of the tests of checkpoints: see save_bed.h. */
#include "test/support/save_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/graph/json.h"
#include "core/numbers/rng.h"
#include "test/support/scratch.h"

struct setup save_bed;
char save_bed_scratch[64];

const char *save_bed_path(const char *name)
{
	static char paths[4][160];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", save_bed_scratch, name);
	return path;
}

struct gw_client *save_bed_open_folder(const char *folder)
{
	struct gw_client_options options = {.part_config = folder, .threads = 2, .job = "kept-job"};
	return open_client(&options);
}

struct gw_client *save_bed_open_servers(void)
{
	struct gw_client_options options = {.servers = save_bed.cluster.list,
					    .server_count = SAVE_BED_PARTS,
					    .transport = cluster_is_rdma() ? "verbs" : "tcp",
					    .threads = 2,
					    .job = "served-job"};
	return open_client(&options);
}

const char *const save_bed_names[TENSORS] = {"emb/trained", "edges", "half", "words"};
const struct gw_optimizer save_bed_optimizers[2] = {
	{.kind = GW_ADAM, .combine = GW_COMBINE_SUM, .rate = 0.1f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.99f},
	{.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 0.1f, .eps = 1e-10f}};

void save_bed_create(struct gw_client *client, const struct gw_tensor *tensors[TENSORS])
{
	struct gw_tensor_spec specs[TENSORS] = {
		{.dtype = GW_FLOAT32,
		 .placement = GW_PLACE_NODES,
		 .ndim = 2,
		 .shape = {0, SAVE_BED_COLUMNS},
		 .initial = GW_INITIAL_NORMAL,
		 .high = 0.5,
		 .seed = 0x8000000000000005ull},
		{.dtype = GW_FLOAT32, .placement = GW_PLACE_EDGES, .type = FIXTURE_WRITES, .ndim = 2, .shape = {0, 3}},
		{.dtype = GW_BFLOAT16, .placement = GW_PLACE_EVEN, .ndim = 3, .shape = {1001, 3, 5}},
		{.dtype = GW_INT64, .placement = GW_PLACE_STRIPED, .ndim = 1, .shape = {777}, .lifetime = GW_KEPT}};
	must(gw_node_type(client, "author", &specs[TRAINED].type));
	for (int t = 0; t < TENSORS; t++) {
		specs[t].name = save_bed_names[t];
		must(gw_tensor_create(client, &specs[t], &tensors[t]));
	}
}

void save_bed_open(struct gw_client *client, const struct gw_tensor *tensors[TENSORS])
{
	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_open(client, save_bed_names[t], t == WORDS ? GW_KEPT : GW_OF_JOB, &tensors[t]));
}

int64_t *save_bed_ids(uint64_t n)
{
	int64_t *ids = malloc((n ? n : 1) * sizeof(*ids));
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	return ids;
}

uint8_t *save_bed_rows(struct gw_client *client, const struct gw_tensor *tensor)
{
	int64_t *ids = save_bed_ids(tensor->shape[0]);
	uint8_t *rows = malloc(tensor->shape[0] * tensor->row_bytes);
	must(gw_gather(client, tensor, ids, tensor->shape[0], rows));
	free(ids);
	return rows;
}

void save_bed_compare_moved(struct gw_client *one, struct gw_client *other, const struct gw_tensor *a,
			    const struct gw_tensor *b, uint64_t (*find)(void *names, uint64_t row_of_a), void *names)
{
	uint8_t *rows_a = save_bed_rows(one, a), *rows_b = save_bed_rows(other, b);
	uint64_t n = a->shape[0], moved = 0;
	assert_int_equal(b->shape[0], n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t k = find(names, i);
		assert_true(k < n);
		moved += k != i;
		assert_memory_equal(rows_a + i * a->row_bytes, rows_b + k * b->row_bytes, a->row_bytes);
	}
	assert_true(moved > n / 4);
	free(rows_a);
	free(rows_b);
}

void save_bed_push(struct gw_client *client, const struct gw_tensor *tensor, const struct gw_optimizer *optimizer,
		   uint64_t key)
{
	uint64_t n = tensor->shape[0], columns = tensor->shape[1];
	int64_t *ids = save_bed_ids(n);
	float *gradients = malloc(n * columns * sizeof(float));
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)(gw_mix64(key + i) % n); /* equal ones among them */
	for (uint64_t i = 0; i < n * columns; i++)
		gradients[i] = (float)(gw_mix64(key ^ i) % 100) / 50 - 1;
	must(gw_push(client, tensor, ids, n, gradients, optimizer));
	free(ids);
	free(gradients);
}

void save_bed_train(struct gw_client *client, const struct gw_tensor *tensors[TENSORS], uint64_t key)
{
	save_bed_push(client, tensors[TRAINED], &save_bed_optimizers[0], key);
	save_bed_push(client, tensors[EDGES], &save_bed_optimizers[1], key + 1);
}

void save_bed_fill(struct gw_client *client, const struct gw_tensor *tensor, uint8_t with)
{
	int64_t *ids = save_bed_ids(tensor->shape[0]);
	uint8_t *rows = malloc(tensor->shape[0] * tensor->row_bytes);
	for (uint64_t i = 0; i < tensor->shape[0] * tensor->row_bytes; i++)
		rows[i] = (uint8_t)(i * 31 + with);
	must(gw_update(client, tensor, ids, tensor->shape[0], rows));
	free(ids);
	free(rows);
}

void save_bed_check_rows(struct gw_client *client, const struct gw_tensor *tensor, const uint8_t *expected)
{
	uint8_t *rows = save_bed_rows(client, tensor);
	assert_memory_equal(rows, expected, tensor->shape[0] * tensor->row_bytes);
	free(rows);
}

void save_bed_change_json(const char *folder, const char *from, const char *to)
{
	static char text[1 << 16];
	char name[64];
	snprintf(name, sizeof(name), "%s/checkpoint.json", folder);
	FILE *file = fopen(save_bed_path(name), "r+");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	char *at = strstr(text, from);
	assert_non_null(at);
	char *edited = malloc(strlen(text) + strlen(to) + 1);
	assert_non_null(edited);
	sprintf(edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	gw_json_digest_set(edited, strlen(edited));
	rewind(file);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	fputs(edited, file);
	fclose(file);
	free(edited);
}

int save_bed_begin(void **state)
{
	(void)state;
	gw_scratch_make_in_memory("checkpoint", save_bed_scratch);
	setup_begin(&save_bed, 3, SAVE_BED_PARTS, "epoll");
	return 0;
}

int save_bed_end(void **state)
{
	(void)state;
	setup_end(&save_bed);
	return 0;
}
