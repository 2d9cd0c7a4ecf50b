/* Checkpoints while trainers write, in the background, and while another program replaces them. The oracle is a tensor
 * of which every row grows by one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "test/support/save_bed.h"

/* A trainer adds one to every row of a tensor, over and over, during a checkpoint. Each row of the checkpoint is a
 * value that the row had, no older than the last addition that was acknowledged before the checkpoint. */
struct adder {
	struct gw_client *client;
	const struct gw_tensor *tensor;
	atomic_uint acknowledged;
	atomic_bool stop;
};

static void *add_ones(void *context)
{
	struct adder *adder = context;
	uint64_t n = adder->tensor->shape[0];
	const struct gw_optimizer optimizer = {.kind = GW_SGD, .rate = -1};
	int64_t *ids = save_bed_ids(n);
	float *ones = malloc(n * SAVE_BED_COLUMNS * sizeof(float));
	for (uint64_t i = 0; i < n * SAVE_BED_COLUMNS; i++)
		ones[i] = 1;
	while (!atomic_load(&adder->stop)) {
		must(gw_push(adder->client, adder->tensor, ids, n, ones, &optimizer));
		atomic_fetch_add(&adder->acknowledged, 1);
	}
	free(ids);
	free(ones);
	return NULL;
}

static void while_a_trainer_pushes(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers(), *trainer = save_bed_open_servers();
	struct adder adder = {.client = trainer};
	struct gw_tensor_spec spec = {.name = "ones", .dtype = GW_FLOAT32, .ndim = 2, .shape = {0, SAVE_BED_COLUMNS}};
	const struct gw_tensor *tensor;
	must(gw_tensor_create(client, &spec, &tensor));
	must(gw_tensor_create(trainer, &spec, &adder.tensor));
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, add_ones, &adder), 0);
	for (int round = 0; round < 3; round++) {
		unsigned before = atomic_load(&adder.acknowledged);
		while (atomic_load(&adder.acknowledged) == before)
			usleep(100);
		before = atomic_load(&adder.acknowledged);
		const struct gw_checkpoint_options options = {.replace = true};
		struct gw_ticket *ticket;
		if (round == 0) {
			must(gw_checkpoint(client, save_bed_path("trained"), &options));
		} else { /* in the background, from the trainer's own client */
			must(gw_checkpoint_start(trainer, save_bed_path("trained"), &options, &ticket));
			must(gw_wait(ticket, -1));
		}
		unsigned after = atomic_load(&adder.acknowledged) + 1; /* one more push may have started */
		for (int p = 0; p < SAVE_BED_PARTS; p++) {
			char name[64];
			struct gw_npy_file file;
			snprintf(name, sizeof(name), "trained/tensor0/part%d/rows.npy", p);
			must(gw_npy_open(save_bed_path(name), &file));
			const float *rows = file.data;
			for (uint64_t i = 0; i < file.npy.shape[0] * SAVE_BED_COLUMNS; i++) {
				assert_true(rows[i] >= (float)before && rows[i] <= (float)after);
				assert_true(rows[i] == rows[i / SAVE_BED_COLUMNS * SAVE_BED_COLUMNS]);
			}
			gw_npy_close(&file);
		}
	}
	atomic_store(&adder.stop, true);
	pthread_join(thread, NULL);
	must(gw_tensor_delete(client, "ones", GW_OF_JOB));
	gw_client_close(trainer);
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("trained")));
}

#define MIDST      600
#define MIDST_HELD 100 /* a row of the first part */

static const struct gw_tensor *create_midst(struct gw_client *client, const char *name)
{
	const struct gw_tensor *tensor;
	struct gw_tensor_spec spec = {.name = name,
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_EVEN,
				      .ndim = 2,
				      .shape = {MIDST, SAVE_BED_COLUMNS}};
	must(gw_tensor_create(client, &spec, &tensor));
	return tensor;
}

/* Pushes to all rows except the locked one, with other gradients each time. */
static void push_midst(struct gw_client *client, const struct gw_tensor *tensor, int time)
{
	int64_t *ids = save_bed_ids(MIDST);
	float *gradients = calloc((size_t)MIDST * SAVE_BED_COLUMNS, sizeof(float));
	for (int i = 0; i < MIDST * SAVE_BED_COLUMNS; i++)
		gradients[i] = (float)(i % (7 + 4 * time)) - 3;
	ids[MIDST_HELD] = MIDST_HELD - 1;
	must(gw_push(client, tensor, ids, MIDST, gradients, &save_bed_optimizers[0]));
	free(ids);
	free(gradients);
}

/* The test locks a row of the first part while the checkpoint is written, and trains the tensor for the first time
 * meanwhile. The checkpoint has each row as it was before or after the training, with the matching state of the
 * optimizer, so training continues from there with the same results. */
static void pushes_in_the_midst(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers(), *trainer = save_bed_open_servers();
	const struct gw_tensor *tensor = create_midst(client, "midst"), *other = create_midst(client, "other");
	const char *one_name = "midst";
	const struct gw_checkpoint_options options = {.names = &one_name, .name_count = 1};
	struct gw_tensor_listed listed;
	struct gw_service_counters counters;
	struct gw_shard *shard;
	struct gw_ticket *ticket;
	const struct gw_server *server = save_bed.cluster.servers[0];
	assert_int_equal(gw_tensor_table_list(server->tensors, "served-job", NULL, NULL, &listed, 1), 1);
	assert_string_equal(listed.plan.name, "midst");
	must(gw_tensor_table_find(server->tensors, listed.epoch, &shard));
	const struct gw_row_format *format = gw_row_store_format(shard->store);
	uint8_t *row = (uint8_t *)gw_arena_base(gw_row_store_arena(shard->store)) + MIDST_HELD * (size_t)format->stride;
	uint64_t sequence, waits;
	assert_true(gw_row_try_lock(format, row, &sequence));
	gw_service_counters(server->service, &counters);
	waits = counters.deferred;
	must(gw_checkpoint_start(client, save_bed_path("midst"), &options, &ticket));
	do {
		usleep(100);
		gw_service_counters(server->service, &counters);
	} while (counters.deferred < waits + 3);
	/* A separate connection, because the checkpoint's own waits for the row. */
	push_midst(trainer, create_midst(trainer, "midst"), 0);
	gw_row_unlock(format, row, sequence);
	gw_shard_unref(server->tensors, shard);
	must(gw_wait(ticket, -1));

	float *then[2], *later[2], *saved, *on; /* with and without training during the checkpoint */
	then[0] = (float *)(void *)save_bed_rows(client, tensor);
	then[1] = (float *)(void *)save_bed_rows(client, other);
	push_midst(client, tensor, 1);
	push_midst(client, other, 1);
	later[0] = (float *)(void *)save_bed_rows(client, tensor);
	later[1] = (float *)(void *)save_bed_rows(client, other);
	must(gw_restore(client, save_bed_path("midst"), NULL, 0));
	saved = (float *)(void *)save_bed_rows(client, tensor);
	push_midst(client, tensor, 1);
	on = (float *)(void *)save_bed_rows(client, tensor);
	for (size_t i = 0; i < MIDST; i++) {
		size_t at = i * SAVE_BED_COLUMNS, bytes = SAVE_BED_COLUMNS * sizeof(float);
		int before = memcmp(saved + at, then[0] + at, bytes) != 0;
		assert_memory_equal(saved + at, then[before] + at, bytes);
		assert_memory_equal(on + at, later[before] + at, bytes);
	}
	for (int i = 0; i < 2; i++) {
		free(then[i]);
		free(later[i]);
	}
	free(saved);
	free(on);
	must(gw_tensor_delete(client, "midst", GW_OF_JOB));
	must(gw_tensor_delete(client, "other", GW_OF_JOB));
	gw_client_close(trainer);
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("midst")));
}

/* A checkpoint in the background copies its arguments, and writes the same files as the call in the foreground. */
static void in_the_background(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers();
	const struct gw_tensor *tensors[TENSORS];
	struct gw_ticket *ticket;
	char name[32], folder[128];
	const char *one_name = name;
	struct gw_checkpoint_options options = {.names = &one_name, .name_count = 1};
	save_bed_create(client, tensors);
	save_bed_train(client, tensors, 1);
	uint8_t *then = save_bed_rows(client, tensors[TRAINED]);
	snprintf(name, sizeof(name), "%s", save_bed_names[TRAINED]);
	snprintf(folder, sizeof(folder), "%s", save_bed_path("copied"));
	must(gw_checkpoint_start(client, folder, &options, &ticket));
	memset(name, 'x', sizeof(name) - 1);
	memset(folder, 'x', sizeof(folder) - 1);
	one_name = NULL;
	must(gw_wait(ticket, -1));
	save_bed_train(client, tensors, 2);
	must(gw_restore(client, save_bed_path("copied"), NULL, 0));
	save_bed_check_rows(client, tensors[TRAINED], then);
	free(then);

	const char *none = "none";
	const struct gw_checkpoint_options unknown = {.names = &none, .name_count = 1};
	must(gw_checkpoint_start(client, save_bed_path("other"), &unknown, &ticket));
	expect(gw_wait(ticket, -1), GW_NOT_FOUND, "none");
	must(gw_checkpoint_start(client, save_bed_path("copied"), NULL, &ticket));
	expect(gw_wait(ticket, -1), GW_EXISTS, "copied");
	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_delete(client, save_bed_names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("copied")));
}

static unsigned count_entries(const char *beginning)
{
	unsigned count = 0;
	DIR *folder = opendir(save_bed_scratch);
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));)
		count += strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
	closedir(folder);
	return count;
}

/* At once, in the pause that a low rate causes, and while it waits for a server that is away. At one byte a second it
 * cannot have finished. */
static void cancelled(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers();
	const struct gw_tensor *tensors[TENSORS];
	const struct gw_checkpoint_options slow = {.bytes_per_second = 1};
	struct gw_ticket *ticket;
	save_bed_create(client, tensors);
	must(gw_checkpoint_start(client, save_bed_path("never"), &slow, &ticket));
	gw_cancel(ticket);
	assert_int_equal(count_entries("never"), 0);

	must(gw_checkpoint_start(client, save_bed_path("never"), &slow, &ticket));
	while (count_entries("never") == 0)
		assert_int_equal(gw_wait(ticket, 1), GW_AGAIN);
	gw_cancel(ticket);
	assert_int_equal(count_entries("never"), 0);

	cluster_kill(&save_bed.cluster, 1);
	must(gw_checkpoint_start(client, save_bed_path("never"), NULL, &ticket));
	assert_int_equal(gw_wait(ticket, 20), GW_AGAIN);
	gw_cancel(ticket);
	assert_int_equal(count_entries("never"), 0);
	cluster_revive(&save_bed.cluster, 1);
	gw_client_close(client);
}

/* --- A checkpoint that is replaced while it is read. --- */

#define REPLACEMENTS 64

/* Between two allocations of the thread that restores, the checkpoint in one folder and that in another change places.
 * main() sets the allocator, before a thread of a server reads which one it is. */
static _Thread_local struct {
	const char *folder;
	unsigned long count, every; /* allocations */
	uint32_t most, done;
} replacing;

static void *replace_and_allocate(size_t bytes)
{
	if (replacing.folder && ++replacing.count % replacing.every == 0 && replacing.done < replacing.most) {
		char other[300];
		snprintf(other, sizeof(other), "%s%u", replacing.folder, ++replacing.done);
		assert_return_code(renameat2(AT_FDCWD, replacing.folder, AT_FDCWD, other, RENAME_EXCHANGE), errno);
	}
	return malloc(bytes);
}

static const struct gw_allocator replacing_allocator = {
	.allocate = replace_and_allocate, .reallocate = realloc, .release = free};

static gw_status restore_while_replaced(struct gw_client *client, const char *folder, unsigned long every,
					uint32_t most)
{
	replacing.count = replacing.done = 0;
	replacing.every = every;
	replacing.most = most;
	replacing.folder = folder;
	gw_status status = gw_restore(client, folder, NULL, 0);
	replacing.folder = NULL;
	return status;
}

static void restored_while_it_is_replaced(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers();
	const char *name = "replaced";
	const struct gw_checkpoint_options options = {.names = &name, .name_count = 1};
	const struct gw_tensor_spec spec = {
		.name = name, .dtype = GW_FLOAT32, .placement = GW_PLACE_EVEN, .ndim = 2, .shape = {30, 2}};
	const struct gw_tensor *tensor;
	char folder[256], other[300];
	uint32_t from[2] = {0};
	snprintf(folder, sizeof(folder), "%s", save_bed_path(name));
	must(gw_tensor_create(client, &spec, &tensor));
	for (uint32_t i = 0; i <= REPLACEMENTS; i++) {
		snprintf(other, sizeof(other), i ? "%s%u" : "%s", folder, i);
		save_bed_fill(client, tensor, (uint8_t)(i + 1));
		must(gw_checkpoint(client, other, &options));
	}
	unsigned long all = 0;
	for (unsigned long n = 1; n == 1 || replacing.done == 1; n++) {
		save_bed_fill(client, tensor, 99);
		must(restore_while_replaced(client, folder, n, 1));
		all = n;
		uint8_t *rows = save_bed_rows(client, tensor);
		for (uint64_t b = 0; b < tensor->shape[0] * tensor->row_bytes; b++)
			assert_int_equal(rows[b], (uint8_t)(b * 31 + rows[0]));
		assert_in_range(rows[0], 1, 2);
		from[rows[0] - 1]++;
		free(rows);
	}
	assert_true(from[0] > 1 && from[1] > 1); /* replaced after the files were read, and before */
	assert_int_equal(restore_while_replaced(client, folder, all / 3, REPLACEMENTS), GW_BUSY);
	assert_non_null(strstr(gw_last_error(), "replaces this checkpoint"));
	for (uint32_t i = 0; i <= REPLACEMENTS; i++) {
		snprintf(other, sizeof(other), i ? "%s%u" : "%s", folder, i);
		must(gw_remove_tree(other));
	}
	must(gw_tensor_delete(client, name, GW_OF_JOB));
	gw_client_close(client);
}

int main(void)
{
	gw_allocator_set(&replacing_allocator);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_a_trainer_pushes),
		cmocka_unit_test(pushes_in_the_midst),
		cmocka_unit_test(in_the_background),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(restored_while_it_is_replaced),
	};
	return cmocka_run_group_tests_name("checkpoints in the background", tests, save_bed_begin, save_bed_end);
}
