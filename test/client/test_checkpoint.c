/* Checkpoints through the public calls and the commands. The tests write them from servers and from a standalone
 * client, and restore them into the same parts and into others. The oracle is the tensors' own rows before and after.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/npy.h"
#include "test/support/partition_run.h"
#include "test/support/save_bed.h"
#include "tools/tools.h"

static void check_round_trip(struct gw_client *client)
{
	const struct gw_tensor *tensors[TENSORS];
	uint8_t *then[TENSORS], *later[2];
	save_bed_create(client, tensors);
	save_bed_train(client, tensors, 1);
	save_bed_train(client, tensors, 2);
	save_bed_fill(client, tensors[HALF], 3);
	save_bed_fill(client, tensors[WORDS], 4);
	must(gw_checkpoint(client, save_bed_path("one"), NULL));
	for (int t = 0; t < TENSORS; t++)
		then[t] = save_bed_rows(client, tensors[t]);
	save_bed_train(client, tensors, 3);
	for (int t = 0; t < 2; t++)
		later[t] = save_bed_rows(client, tensors[t]);
	save_bed_fill(client, tensors[HALF], 5);
	save_bed_fill(client, tensors[WORDS], 6);

	must(gw_restore(client, save_bed_path("one"), NULL, 0)); /* over the existing tensors */
	for (int t = 0; t < TENSORS; t++)
		save_bed_check_rows(client, tensors[t], then[t]);
	save_bed_train(client, tensors, 3);
	for (int t = 0; t < 2; t++)
		save_bed_check_rows(client, tensors[t], later[t]);

	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_delete(client, save_bed_names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
	must(gw_restore(client, save_bed_path("one"), NULL, 0)); /* made again */
	save_bed_open(client, tensors);
	for (int t = 0; t < TENSORS; t++)
		save_bed_check_rows(client, tensors[t], then[t]);
	save_bed_create(client, tensors); /* finds these, as a restarted script would */
	save_bed_train(client, tensors, 3);
	for (int t = 0; t < 2; t++)
		save_bed_check_rows(client, tensors[t], later[t]);
	for (int t = 0; t < TENSORS; t++) {
		must(gw_tensor_delete(client, save_bed_names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
		free(then[t]);
	}
	free(later[0]);
	free(later[1]);
	must(gw_remove_tree(save_bed_path("one")));
}

static void there_and_back(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers();
	check_round_trip(client);
	gw_client_close(client);
	client = save_bed_open_folder(save_bed.fixture.folder);
	check_round_trip(client);
	gw_client_close(client);
}

/* A checkpoint from before the first push: after training and a restore, the optimizer starts again too. */
static void before_any_training(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers();
	const struct gw_tensor *tensors[TENSORS];
	uint8_t *later[2];
	save_bed_create(client, tensors);
	must(gw_checkpoint(client, save_bed_path("new"), NULL));
	save_bed_train(client, tensors, 9);
	for (int t = 0; t < 2; t++)
		later[t] = save_bed_rows(client, tensors[t]);
	save_bed_train(client, tensors, 10);
	must(gw_restore(client, save_bed_path("new"), NULL, 0));
	save_bed_train(client, tensors, 9);
	for (int t = 0; t < 2; t++) {
		save_bed_check_rows(client, tensors[t], later[t]);
		free(later[t]);
	}
	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_delete(client, save_bed_names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("new")));
}

/* Reads the files as NumPy would. */
static void files_hold_the_rows(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_folder(save_bed.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	save_bed_create(client, tensors);
	const char *one_name = save_bed_names[TRAINED];
	const struct gw_checkpoint_options options = {.names = &one_name, .name_count = 1};
	must(gw_checkpoint(client, save_bed_path("files"), &options));
	uint8_t *rows = save_bed_rows(client, tensors[TRAINED]);
	uint64_t done = 0;
	for (int p = 0; p < SAVE_BED_PARTS; p++) {
		char name[64];
		struct gw_npy_file file;
		snprintf(name, sizeof(name), "files/tensor0/part%d/rows.npy", p);
		must(gw_npy_open(save_bed_path(name), &file));
		assert_int_equal(file.npy.dtype, GW_FLOAT32);
		assert_int_equal(file.npy.data_offset, GW_NPY_HEADER_BYTES);
		assert_int_equal(file.npy.shape[1], SAVE_BED_COLUMNS);
		assert_memory_equal(file.data, rows + done * SAVE_BED_COLUMNS * 4, file.npy.data_bytes);
		done += file.npy.shape[0];
		gw_npy_close(&file);
		snprintf(name, sizeof(name), "files/tensor0/part%d/orig_id.npy", p);
		must(gw_npy_open(save_bed_path(name), &file));
		for (uint64_t i = 0; i < file.npy.shape[0]; i++) /* the fixture's formula: 10 times the id, plus 7 */
			assert_int_equal(((const int64_t *)file.data)[i],
					 10 * (int64_t)(done - file.npy.shape[0] + i) + 7);
		gw_npy_close(&file);
	}
	assert_int_equal(done, tensors[TRAINED]->shape[0]);
	assert_int_equal(access(save_bed_path("files/tensor1"), F_OK), -1);
	free(rows);
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("files")));
}

/* Tensors with fewer rows than parts, of every placement that distributes rows itself; one of them is trained. */
static void parts_without_rows(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum gw_placement placement;
		uint64_t rows;
	} few[] = {{"none", GW_PLACE_STRIPED, 0},   {"one", GW_PLACE_STRIPED, 1},   {"two", GW_PLACE_STRIPED, 2},
		   {"even/none", GW_PLACE_EVEN, 0}, {"even/one", GW_PLACE_EVEN, 1}, {"even/four", GW_PLACE_EVEN, 4}};
	enum { FEW = sizeof(few) / sizeof(few[0]) };
	for (int standalone = 0; standalone < 2; standalone++) {
		struct gw_client *client =
			standalone ? save_bed_open_folder(save_bed.fixture.folder) : save_bed_open_servers();
		uint8_t *then[FEW];
		for (int t = 0; t < FEW; t++) {
			const struct gw_tensor *tensor;
			struct gw_tensor_spec spec = {.name = few[t].name,
						      .dtype = GW_FLOAT32,
						      .placement = few[t].placement,
						      .ndim = 2,
						      .shape = {few[t].rows, 3}};
			must(gw_tensor_create(client, &spec, &tensor));
			if (few[t].rows == 2)
				save_bed_push(client, tensor, &save_bed_optimizers[0], 1);
			else
				save_bed_fill(client, tensor, (uint8_t)t);
			then[t] = save_bed_rows(client, tensor);
		}
		must(gw_checkpoint(client, save_bed_path("few"), NULL));
		/* An older version wrote the first id of an empty part so: beyond the tensor's ids. */
		save_bed_change_json("few", "\"rows\": 0,\n          \"first\": 0",
				     "\"rows\": 0,\n          \"first\": 7");
		for (int t = 0; t < FEW; t++)
			must(gw_tensor_delete(client, few[t].name, GW_OF_JOB));
		must(gw_restore(client, save_bed_path("few"), NULL, 0));
		for (int t = 0; t < FEW; t++) {
			const struct gw_tensor *tensor;
			must(gw_tensor_open(client, few[t].name, GW_OF_JOB, &tensor));
			assert_int_equal(tensor->shape[0], few[t].rows);
			save_bed_check_rows(client, tensor, then[t]);
			must(gw_tensor_delete(client, few[t].name, GW_OF_JOB));
			free(then[t]);
		}
		gw_client_close(client);
		must(gw_remove_tree(save_bed_path("few")));
	}
}

/* A checkpoint of rows that were not trained yet: a restore also resets the state that one part alone has got since. */
static void state_of_one_part_is_reset(void **state)
{
	(void)state;
	for (int standalone = 0; standalone < 2; standalone++) {
		struct gw_client *client =
			standalone ? save_bed_open_folder(save_bed.fixture.folder) : save_bed_open_servers();
		const struct gw_tensor *tensor;
		const char *name = "later";
		const struct gw_checkpoint_options options = {.names = &name, .name_count = 1};
		struct gw_tensor_spec spec = {.name = name,
					      .dtype = GW_FLOAT32,
					      .placement = GW_PLACE_EVEN,
					      .ndim = 2,
					      .shape = {SAVE_BED_PARTS, 2}};
		const float gradient[2] = {1, -3};
		float first[2], again[2];
		must(gw_tensor_create(client, &spec, &tensor));
		must(gw_checkpoint(client, save_bed_path("untrained"), &options));
		for (int64_t id = SAVE_BED_PARTS - 1; id >= 0;
		     id--) { /* its part alone has state; part 0 is the last */
			must(gw_push(client, tensor, &id, 1, gradient, &save_bed_optimizers[0]));
			must(gw_gather(client, tensor, &id, 1, first));
			must(gw_restore(client, save_bed_path("untrained"), NULL, 0));
			must(gw_push(client, tensor, &id, 1, gradient, &save_bed_optimizers[0]));
			must(gw_gather(client, tensor, &id, 1, again));
			assert_memory_equal(again, first, sizeof(first));
			must(gw_tensor_delete(client, name, GW_OF_JOB));
			must(gw_tensor_create(client, &spec, &tensor));
		}
		must(gw_tensor_delete(client, name, GW_OF_JOB));
		gw_client_close(client);
		must(gw_remove_tree(save_bed_path("untrained")));
	}
}

/* Copies of a feature, and of a tensor whose name sorts later. */
enum { COPY, FEATURE, SOURCE, COPIES };
static const char *const copy_names[COPIES] = {"a/copy", "m/feature", "z/source"};

static void create_copies(struct gw_client *client, const struct gw_tensor *tensors[COPIES])
{
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	for (int t = SOURCE; t >= 0; t--) {
		struct gw_tensor_spec spec = {.name = copy_names[t],
					      .dtype = GW_FLOAT32,
					      .type = feat->type,
					      .ndim = 2,
					      .shape = {0, feat->shape[1]},
					      .initial = t == SOURCE ? GW_INITIAL_NORMAL : GW_INITIAL_COPY,
					      .high = 1,
					      .seed = 5};
		if (t != SOURCE)
			spec.from = t == COPY ? tensors[SOURCE] : feat;
		must(gw_tensor_create(client, &spec, &tensors[t]));
	}
}

static void restore_copies(struct gw_client *client, const char *one, uint8_t *const rows[COPIES])
{
	must(gw_restore(client, save_bed_path("copies"), one ? &one : NULL, one ? 1 : 0));
	for (int t = 0; t < COPIES; t++) {
		const struct gw_tensor *tensor;
		if (one && strcmp(one, copy_names[t]) != 0)
			continue;
		must(gw_tensor_open(client, copy_names[t], GW_OF_JOB, &tensor));
		save_bed_check_rows(client, tensor, rows[t]);
	}
}

static void copies_need_no_source(void **state)
{
	(void)state;
	for (int standalone = 0; standalone < 2; standalone++) {
		struct gw_client *client =
			standalone ? save_bed_open_folder(save_bed.fixture.folder) : save_bed_open_servers();
		const struct gw_tensor *tensors[COPIES];
		uint8_t *then[COPIES];
		create_copies(client, tensors);
		save_bed_fill(client, tensors[COPY], 1);
		save_bed_fill(client, tensors[FEATURE], 2);
		for (int t = 0; t < COPIES; t++)
			then[t] = save_bed_rows(client, tensors[t]);
		must(gw_checkpoint(client, save_bed_path("copies"), NULL));

		for (int t = 0; t < COPIES; t++)
			must(gw_tensor_delete(client, copy_names[t], GW_OF_JOB));
		restore_copies(client, NULL, then);
		create_copies(client, tensors); /* finds these, as a restarted script would */
		save_bed_check_rows(client, tensors[COPY], then[COPY]);

		for (int t = 0; t < COPIES; t++)
			must(gw_tensor_delete(client, copy_names[t], GW_OF_JOB));
		restore_copies(client, copy_names[COPY], then);
		save_bed_change_json("copies", "node/paper/feat", "node/paper/gone");
		restore_copies(client, copy_names[FEATURE], then);
		must(gw_tensor_delete(client, copy_names[COPY], GW_OF_JOB));
		must(gw_tensor_delete(client, copy_names[FEATURE], GW_OF_JOB));
		for (int t = 0; t < COPIES; t++)
			free(then[t]);
		gw_client_close(client);
		must(gw_remove_tree(save_bed_path("copies")));
	}
}

struct both_ids {
	int64_t *a, *b;
	uint64_t n;
};

static uint64_t find_id(void *context, uint64_t row_of_a)
{
	const struct both_ids *ids = context;
	uint64_t k = 0;
	while (k < ids->n && ids->b[k] != ids->a[row_of_a])
		k++;
	return k;
}

/* Rows are placed by original ids: of nodes, and of edges whose type has them. */
static void compare_by_original_ids(struct gw_client *one, struct gw_client *other, const struct gw_tensor *a,
				    const struct gw_tensor *b)
{
	const struct gw_tensor *ids_a, *ids_b;
	if (a->of_edges) {
		must(gw_edge_tensor(one, a->type, "orig_id", &ids_a));
		must(gw_edge_tensor(other, b->type, "orig_id", &ids_b));
	} else {
		must(gw_node_tensor(one, a->type, "orig_id", &ids_a));
		must(gw_node_tensor(other, b->type, "orig_id", &ids_b));
	}
	struct both_ids both = {.a = (int64_t *)(void *)save_bed_rows(one, ids_a),
				.b = (int64_t *)(void *)save_bed_rows(other, ids_b),
				.n = b->shape[0]};
	save_bed_compare_moved(one, other, a, b, find_id, &both);
	free(both.a);
	free(both.b);
}

static void into_other_parts(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	char folders[2][160];
	const struct gw_tensor *here[TENSORS], *there[TENSORS];
	partition_begin(&fixture, 11, 200);
	for (int i = 0; i < 2; i++) {
		const char *words[] = {"--num-parts", i ? "3" : "2", "--method", "random",
				       "--seed",      i ? "5" : "6", "--json",   NULL};
		snprintf(folders[i], sizeof(folders[i]), "%s/parts%d", fixture.root, i);
		partition_run_ok(fixture.root, fixture.folder, folders[i], words);
	}
	struct gw_client *two = save_bed_open_folder(folders[0]), *three = save_bed_open_folder(folders[1]);
	save_bed_create(two, here);
	save_bed_train(two, here, 8);
	save_bed_fill(two, here[HALF], 1);
	save_bed_fill(two, here[WORDS], 2);
	must(gw_checkpoint(two, save_bed_path("two"), NULL));
	must(gw_restore(three, save_bed_path("two"), NULL, 0));
	save_bed_open(three, there);
	for (int t = 0; t < 2; t++)
		compare_by_original_ids(two, three, here[t], there[t]);
	for (int t = HALF; t < TENSORS; t++) { /* these rows are placed by the graph's ids */
		uint8_t *rows = save_bed_rows(two, here[t]);
		save_bed_check_rows(three, there[t], rows);
		free(rows);
	}

	/* Optimizers continue: the same gradients for the same original ids. */
	uint64_t n = here[TRAINED]->shape[0];
	const struct gw_tensor *ids[2];
	must(gw_node_tensor(two, here[TRAINED]->type, "orig_id", &ids[0]));
	must(gw_node_tensor(three, there[TRAINED]->type, "orig_id", &ids[1]));
	for (int side = 0; side < 2; side++) {
		struct gw_client *client = side ? three : two;
		int64_t *numbers = save_bed_ids(n), *originals = (int64_t *)(void *)save_bed_rows(client, ids[side]);
		float *gradients = malloc(n * SAVE_BED_COLUMNS * sizeof(float));
		for (uint64_t i = 0; i < n * SAVE_BED_COLUMNS; i++)
			gradients[i] =
				(float)(originals[i / SAVE_BED_COLUMNS] % 17) - (float)(i % SAVE_BED_COLUMNS % 5);
		must(gw_push(client, side ? there[TRAINED] : here[TRAINED], numbers, n, gradients,
			     &save_bed_optimizers[0]));
		free(numbers);
		free(originals);
		free(gradients);
	}
	compare_by_original_ids(two, three, here[TRAINED], there[TRAINED]);

	/* Edges without original ids can be restored only into the same partition. */
	const struct gw_tensor *tensor;
	struct gw_tensor_spec knows = {
		.name = "knows", .dtype = GW_FLOAT32, .ndim = 1, .placement = GW_PLACE_EDGES, .type = FIXTURE_KNOWS};
	must(gw_tensor_create(two, &knows, &tensor));
	const struct gw_checkpoint_options again = {.replace = true};
	must(gw_checkpoint(two, save_bed_path("two"), &again));
	const char *one_name = "knows";
	expect(gw_restore(three, save_bed_path("two"), &one_name, 1), GW_UNSUPPORTED, "no original ids");
	must(gw_restore(two, save_bed_path("two"), &one_name, 1));
	gw_client_close(two);
	gw_client_close(three);
	must(gw_remove_tree(save_bed_path("two")));
	gw_fixture_end(&fixture);
}

static void commands_of_a_job(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_servers();
	const struct gw_tensor *tensors[TENSORS];
	save_bed_create(client, tensors);
	save_bed_train(client, tensors, 6);
	uint8_t *then = save_bed_rows(client, tensors[EDGES]);
	char servers[256];
	char folder[160];
	snprintf(folder, sizeof(folder), "%s", save_bed_path("typed"));
	for (int turn = 0; turn < 3; turn++) {
		snprintf(servers, sizeof(servers), "%s,%s,%s", save_bed.cluster.list[0], save_bed.cluster.list[1],
			 save_bed.cluster.list[2]);
		static char words[][24] = {"checkpoint", "--servers", "--job",  "served-job", "--tensor",
					   "edges",      "--replace", "--rate", "1G"};
		char *save[] = {words[0], words[1], servers,  words[2], words[3], words[4],
				words[5], words[6], words[7], words[8], folder,   NULL};
		char *restore[] = {words[0], words[1], servers, words[2], words[3], folder, NULL};
		if (turn < 2) /* a second time, over the first checkpoint */
			assert_int_equal(gw_tool_checkpoint(11, save), 0);
		else
			assert_int_equal(gw_tool_restore(6, restore), 0);
		if (turn == 1)
			save_bed_train(client, tensors, 7);
	}
	/* Without a job's name, restore could find only kept tensors. */
	char *nameless[] = {"restore", "--servers", servers, folder, NULL};
	snprintf(servers, sizeof(servers), "%s,%s,%s", save_bed.cluster.list[0], save_bed.cluster.list[1],
		 save_bed.cluster.list[2]);
	unsetenv("GRAPHWIRE_JOB");
	assert_int_equal(gw_tool_restore(4, nameless), 1);
	assert_non_null(strstr(gw_last_error(), "--job"));
	save_bed_check_rows(client, tensors[EDGES], then);
	free(then);
	must(gw_tensor_delete(client, save_bed_names[WORDS], GW_KEPT));
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("typed")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(before_any_training),
		cmocka_unit_test(files_hold_the_rows),
		cmocka_unit_test(parts_without_rows),
		cmocka_unit_test(state_of_one_part_is_reset),
		cmocka_unit_test(copies_need_no_source),
		cmocka_unit_test(into_other_parts),
		cmocka_unit_test(commands_of_a_job),
	};
	return cmocka_run_group_tests_name("checkpoint", tests, save_bed_begin, save_bed_end);
}
