/* Checkpoints through the public calls: written from servers and from a standalone client, read back into the same
 * parts and into others, beside trainers, damaged in every way. The oracle is the tensors' own rows, before and after.
 * Some 600 lines, since all of it stands on one set of tensors.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/rng.h"
#include "core/base/staging.h"
#include "core/graph/npy.h"
#include "test/support/client_setup.h"
#include "test/support/partition_run.h"
#include "test/support/scratch.h"
#include "tools/tools.h"

#define PARTS   3
#define COLUMNS 700 /* with an optimizer's state some sixty rows to a request */

static struct setup setup;
static char scratch[64];

static void must(gw_status status)
{
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
}

static const char *in_scratch(const char *name)
{
	static char paths[4][160];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
	return path;
}

static struct gw_client *open_folder(const char *folder)
{
	struct gw_client_options options = {.part_config = folder, .threads = 2, .job = "kept-job"};
	return open_client(&options);
}

static struct gw_client *open_servers(void)
{
	struct gw_client_options options = {.servers = setup.cluster.list,
					    .server_count = PARTS,
					    .transport = "tcp",
					    .threads = 2,
					    .job = "served-job"};
	return open_client(&options);
}

/* What is written: every placement, dtypes of several widths, with and without state. */
enum { TRAINED, EDGES, HALF, WORDS, TENSORS };
static const char *const names[TENSORS] = {"emb/trained", "edges", "half", "words"};
static const struct gw_optimizer optimizers[2] = {
	{.kind = GW_ADAM, .combine = GW_COMBINE_SUM, .rate = 0.1f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.99f},
	{.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 0.1f, .eps = 1e-10f}};

static void create_all(struct gw_client *client, const struct gw_tensor *tensors[TENSORS])
{
	struct gw_tensor_spec specs[TENSORS] = {
		{.dtype = GW_FLOAT32,
		 .placement = GW_PLACE_NODES,
		 .ndim = 2,
		 .shape = {0, COLUMNS},
		 .initial = GW_INITIAL_NORMAL,
		 .high = 0.5,
		 .seed = 0x8000000000000005ull},
		{.dtype = GW_FLOAT32, .placement = GW_PLACE_EDGES, .type = FIXTURE_WRITES, .ndim = 2, .shape = {0, 3}},
		{.dtype = GW_BFLOAT16, .placement = GW_PLACE_EVEN, .ndim = 3, .shape = {1001, 3, 5}},
		{.dtype = GW_INT64, .placement = GW_PLACE_STRIPED, .ndim = 1, .shape = {777}, .lifetime = GW_KEPT}};
	must(gw_node_type(client, "author", &specs[TRAINED].type));
	for (int t = 0; t < TENSORS; t++) {
		specs[t].name = names[t];
		must(gw_tensor_create(client, &specs[t], &tensors[t]));
	}
}

static void open_all(struct gw_client *client, const struct gw_tensor *tensors[TENSORS])
{
	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_open(client, names[t], t == WORDS ? GW_KEPT : GW_OF_JOB, &tensors[t]));
}

static int64_t *all_ids(uint64_t n)
{
	int64_t *ids = malloc((n ? n : 1) * sizeof(*ids));
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	return ids;
}

static uint8_t *rows_of(struct gw_client *client, const struct gw_tensor *tensor)
{
	int64_t *ids = all_ids(tensor->shape[0]);
	uint8_t *rows = malloc(tensor->shape[0] * tensor->row_bytes);
	must(gw_gather(client, tensor, ids, tensor->shape[0], rows));
	free(ids);
	return rows;
}

static void push(struct gw_client *client, const struct gw_tensor *tensor, const struct gw_optimizer *optimizer,
		 uint64_t key)
{
	uint64_t n = tensor->shape[0], columns = tensor->shape[1];
	int64_t *ids = all_ids(n);
	float *gradients = malloc(n * columns * sizeof(float));
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)(gw_mix64(key + i) % n); /* equal ones among them */
	for (uint64_t i = 0; i < n * columns; i++)
		gradients[i] = (float)(gw_mix64(key ^ i) % 100) / 50 - 1;
	must(gw_push(client, tensor, ids, n, gradients, optimizer));
	free(ids);
	free(gradients);
}

static void train(struct gw_client *client, const struct gw_tensor *tensors[TENSORS], uint64_t key)
{
	push(client, tensors[TRAINED], &optimizers[0], key);
	push(client, tensors[EDGES], &optimizers[1], key + 1);
}

static void fill_words(struct gw_client *client, const struct gw_tensor *tensor, uint8_t with)
{
	int64_t *ids = all_ids(tensor->shape[0]);
	uint8_t *rows = malloc(tensor->shape[0] * tensor->row_bytes);
	for (uint64_t i = 0; i < tensor->shape[0] * tensor->row_bytes; i++)
		rows[i] = (uint8_t)(i * 31 + with);
	must(gw_update(client, tensor, ids, tensor->shape[0], rows));
	free(ids);
	free(rows);
}

static void check_rows(struct gw_client *client, const struct gw_tensor *tensor, const uint8_t *expected)
{
	uint8_t *rows = rows_of(client, tensor);
	assert_memory_equal(rows, expected, tensor->shape[0] * tensor->row_bytes);
	free(rows);
}

/* Written, changed, read back: rows and state are what they were, and training goes on as it would have. */
static void check_there_and_back(struct gw_client *client)
{
	const struct gw_tensor *tensors[TENSORS];
	uint8_t *then[TENSORS], *later[2];
	create_all(client, tensors);
	train(client, tensors, 1);
	train(client, tensors, 2);
	fill_words(client, tensors[HALF], 3);
	fill_words(client, tensors[WORDS], 4);
	must(gw_checkpoint(client, in_scratch("one"), NULL));
	for (int t = 0; t < TENSORS; t++)
		then[t] = rows_of(client, tensors[t]);
	train(client, tensors, 3);
	for (int t = 0; t < 2; t++)
		later[t] = rows_of(client, tensors[t]);
	fill_words(client, tensors[HALF], 5);
	fill_words(client, tensors[WORDS], 6);

	must(gw_restore(client, in_scratch("one"), NULL, 0)); /* over those that are there */
	for (int t = 0; t < TENSORS; t++)
		check_rows(client, tensors[t], then[t]);
	train(client, tensors, 3);
	for (int t = 0; t < 2; t++)
		check_rows(client, tensors[t], later[t]);

	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_delete(client, names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
	must(gw_restore(client, in_scratch("one"), NULL, 0)); /* made again */
	open_all(client, tensors);
	for (int t = 0; t < TENSORS; t++)
		check_rows(client, tensors[t], then[t]);
	create_all(client, tensors); /* as the same script would: they are what it asks for */
	train(client, tensors, 3);
	for (int t = 0; t < 2; t++)
		check_rows(client, tensors[t], later[t]);
	for (int t = 0; t < TENSORS; t++) {
		must(gw_tensor_delete(client, names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
		free(then[t]);
	}
	free(later[0]);
	free(later[1]);
	must(gw_remove_tree(in_scratch("one")));
}

static void there_and_back(void **state)
{
	(void)state;
	struct gw_client *client = open_servers();
	check_there_and_back(client);
	gw_client_close(client);
	client = open_folder(setup.fixture.folder);
	check_there_and_back(client);
	gw_client_close(client);
}

/* Written before anybody trained it, trained, read back: the optimizer begins again, too. */
static void before_any_training(void **state)
{
	(void)state;
	struct gw_client *client = open_servers();
	const struct gw_tensor *tensors[TENSORS];
	uint8_t *later[2];
	create_all(client, tensors);
	must(gw_checkpoint(client, in_scratch("new"), NULL));
	train(client, tensors, 9);
	for (int t = 0; t < 2; t++)
		later[t] = rows_of(client, tensors[t]);
	train(client, tensors, 10);
	must(gw_restore(client, in_scratch("new"), NULL, 0));
	train(client, tensors, 9);
	for (int t = 0; t < 2; t++) {
		check_rows(client, tensors[t], later[t]);
		free(later[t]);
	}
	for (int t = 0; t < TENSORS; t++)
		must(gw_tensor_delete(client, names[t], t == WORDS ? GW_KEPT : GW_OF_JOB));
	gw_client_close(client);
	must(gw_remove_tree(in_scratch("new")));
}

/* What lies on disk, read as NumPy would: the rows of each part, one part after the other. */
static void files_hold_the_rows(void **state)
{
	(void)state;
	struct gw_client *client = open_folder(setup.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	create_all(client, tensors);
	const char *one_name = names[TRAINED];
	const struct gw_checkpoint_options options = {.names = &one_name, .name_count = 1};
	must(gw_checkpoint(client, in_scratch("files"), &options));
	uint8_t *rows = rows_of(client, tensors[TRAINED]);
	uint64_t done = 0;
	for (int p = 0; p < PARTS; p++) {
		char name[64];
		struct gw_npy_file file;
		snprintf(name, sizeof(name), "files/tensor0/part%d/rows.npy", p);
		must(gw_npy_open(in_scratch(name), &file));
		assert_int_equal(file.npy.dtype, GW_FLOAT32);
		assert_int_equal(file.npy.data_offset, GW_NPY_HEADER_BYTES);
		assert_int_equal(file.npy.shape[1], COLUMNS);
		assert_memory_equal(file.data, rows + done * COLUMNS * 4, file.npy.data_bytes);
		done += file.npy.shape[0];
		gw_npy_close(&file);
		snprintf(name, sizeof(name), "files/tensor0/part%d/orig_id.npy", p);
		must(gw_npy_open(in_scratch(name), &file));
		for (uint64_t i = 0; i < file.npy.shape[0]; i++) /* the fixture's: 10 times the id, and 7 */
			assert_int_equal(((const int64_t *)file.data)[i],
					 10 * (int64_t)(done - file.npy.shape[0] + i) + 7);
		gw_npy_close(&file);
	}
	assert_int_equal(done, tensors[TRAINED]->shape[0]);
	assert_int_equal(access(in_scratch("files/tensor1"), F_OK), -1);
	free(rows);
	gw_client_close(client);
	must(gw_remove_tree(in_scratch("files")));
}

/* Rows by their original ids: of nodes, and of the edges that have some. */
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
	uint64_t n = a->shape[0], moved = 0;
	uint8_t *rows_a = rows_of(one, a), *rows_b = rows_of(other, b);
	int64_t *originals_a = (int64_t *)(void *)rows_of(one, ids_a),
		*originals_b = (int64_t *)(void *)rows_of(other, ids_b);
	assert_int_equal(b->shape[0], n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t k = 0;
		while (k < n && originals_b[k] != originals_a[i])
			k++;
		assert_true(k < n);
		moved += k != i;
		assert_memory_equal(rows_a + i * a->row_bytes, rows_b + k * b->row_bytes, a->row_bytes);
	}
	assert_true(moved > n / 4);
	free(rows_a);
	free(rows_b);
	free(originals_a);
	free(originals_b);
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
	struct gw_client *two = open_folder(folders[0]), *three = open_folder(folders[1]);
	create_all(two, here);
	train(two, here, 8);
	fill_words(two, here[HALF], 1);
	fill_words(two, here[WORDS], 2);
	must(gw_checkpoint(two, in_scratch("two"), NULL));
	must(gw_restore(three, in_scratch("two"), NULL, 0));
	open_all(three, there);
	for (int t = 0; t < 2; t++)
		compare_by_original_ids(two, three, here[t], there[t]);
	for (int t = HALF; t < TENSORS; t++) { /* these go by their ids alone */
		uint8_t *rows = rows_of(two, here[t]);
		check_rows(three, there[t], rows);
		free(rows);
	}

	/* Optimizers go on: the same gradients for the same original ids. */
	uint64_t n = here[TRAINED]->shape[0];
	const struct gw_tensor *ids[2];
	must(gw_node_tensor(two, here[TRAINED]->type, "orig_id", &ids[0]));
	must(gw_node_tensor(three, there[TRAINED]->type, "orig_id", &ids[1]));
	for (int side = 0; side < 2; side++) {
		struct gw_client *client = side ? three : two;
		int64_t *numbers = all_ids(n), *originals = (int64_t *)(void *)rows_of(client, ids[side]);
		float *gradients = malloc(n * COLUMNS * sizeof(float));
		for (uint64_t i = 0; i < n * COLUMNS; i++)
			gradients[i] = (float)(originals[i / COLUMNS] % 17) - (float)(i % COLUMNS % 5);
		must(gw_push(client, side ? there[TRAINED] : here[TRAINED], numbers, n, gradients, &optimizers[0]));
		free(numbers);
		free(originals);
		free(gradients);
	}
	compare_by_original_ids(two, three, here[TRAINED], there[TRAINED]);

	/* Text ids tell nothing here, and neither do edges without any. */
	const struct gw_tensor *tensor;
	struct gw_tensor_spec papers = {.name = "papers", .dtype = GW_FLOAT32, .ndim = 1},
			      cites = {.name = "cites",
				       .dtype = GW_FLOAT32,
				       .ndim = 1,
				       .placement = GW_PLACE_EDGES,
				       .type = FIXTURE_KNOWS};
	must(gw_node_type(two, "paper", &papers.type));
	must(gw_tensor_create(two, &papers, &tensor));
	must(gw_tensor_create(two, &cites, &tensor));
	const struct gw_checkpoint_options again = {.replace = true};
	must(gw_checkpoint(two, in_scratch("two"), &again));
	const char *one_name = "papers";
	expect(gw_restore(three, in_scratch("two"), &one_name, 1), GW_UNSUPPORTED, "no original ids");
	must(gw_restore(two, in_scratch("two"), &one_name, 1));
	gw_client_close(two);
	gw_client_close(three);
	must(gw_remove_tree(in_scratch("two")));
	gw_fixture_end(&fixture);
}

/* A trainer adds one to every row of a tensor, over and over, while it is written: each row is in it as it was after
 * some addition, no earlier than the last that was acknowledged before. */
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
	int64_t *ids = all_ids(n);
	float *ones = malloc(n * COLUMNS * sizeof(float));
	for (uint64_t i = 0; i < n * COLUMNS; i++)
		ones[i] = 1;
	while (!atomic_load(&adder->stop)) {
		must(gw_push(adder->client, adder->tensor, ids, n, ones, &optimizer));
		atomic_fetch_add(&adder->acknowledged, 1);
	}
	free(ids);
	free(ones);
	return NULL;
}

static void beside_a_trainer(void **state)
{
	(void)state;
	struct gw_client *client = open_servers(), *trainer = open_servers();
	struct adder adder = {.client = trainer};
	struct gw_tensor_spec spec = {.name = "ones", .dtype = GW_FLOAT32, .ndim = 2, .shape = {0, COLUMNS}};
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
		must(gw_checkpoint(client, in_scratch("beside"), &options));
		unsigned after = atomic_load(&adder.acknowledged) + 1; /* one may be under way */
		for (int p = 0; p < PARTS; p++) {
			char name[64];
			struct gw_npy_file file;
			snprintf(name, sizeof(name), "beside/tensor0/part%d/rows.npy", p);
			must(gw_npy_open(in_scratch(name), &file));
			const float *rows = file.data;
			for (uint64_t i = 0; i < file.npy.shape[0] * COLUMNS; i++) {
				assert_true(rows[i] >= (float)before && rows[i] <= (float)after);
				assert_true(rows[i] == rows[i / COLUMNS * COLUMNS]);
			}
			gw_npy_close(&file);
		}
	}
	atomic_store(&adder.stop, true);
	pthread_join(thread, NULL);
	must(gw_tensor_delete(client, "ones", GW_OF_JOB));
	gw_client_close(trainer);
	gw_client_close(client);
	must(gw_remove_tree(in_scratch("beside")));
}

/* The commands, as a job's user types them. */
static void commands(void **state)
{
	(void)state;
	struct gw_client *client = open_servers();
	const struct gw_tensor *tensors[TENSORS];
	create_all(client, tensors);
	train(client, tensors, 6);
	uint8_t *then = rows_of(client, tensors[EDGES]);
	char servers[256];
	char folder[160];
	snprintf(folder, sizeof(folder), "%s", in_scratch("typed"));
	for (int turn = 0; turn < 3; turn++) {
		snprintf(servers, sizeof(servers), "%s,%s,%s", setup.cluster.list[0], setup.cluster.list[1],
			 setup.cluster.list[2]);
		static char words[][24] = {"checkpoint", "--servers", "--job",  "served-job", "--tensor",
					   "edges",      "--replace", "--rate", "1G"};
		char *save[] = {words[0], words[1], servers,  words[2], words[3], words[4],
				words[5], words[6], words[7], words[8], folder,   NULL};
		char *restore[] = {words[0], words[1], servers, words[2], words[3], folder, NULL};
		if (turn < 2) /* and once more, over the first */
			assert_int_equal(gw_tool_checkpoint(11, save), 0);
		else
			assert_int_equal(gw_tool_restore(6, restore), 0);
		if (turn == 1)
			train(client, tensors, 7);
	}
	check_rows(client, tensors[EDGES], then);
	free(then);
	must(gw_tensor_delete(client, names[WORDS], GW_KEPT));
	gw_client_close(client);
	must(gw_remove_tree(in_scratch("typed")));
}

/* --- What is wrong. --- */

static void change_file(const char *name, off_t at, const char *bytes)
{
	int fd = open(in_scratch(name), O_RDWR);
	assert_true(fd >= 0);
	if (bytes)
		assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), strlen(bytes));
	else
		assert_int_equal(ftruncate(fd, at), 0);
	close(fd);
}

static void change_json(const char *from, const char *to)
{
	static char text[1 << 16];
	FILE *file = fopen(in_scratch("bad/checkpoint.json"), "r+");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	char *at = strstr(text, from);
	assert_non_null(at);
	rewind(file);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	fprintf(file, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	fclose(file);
}

static void damaged_files(void **state)
{
	(void)state;
	struct gw_client *client = open_folder(setup.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	static const struct {
		const char *from, *to;
		gw_status status;
		const char *told;
	} changes[] = {
		{"graphwire-checkpoint-1", "graphwire-checkpoint-2", GW_VERSION, "graphwire-checkpoint-2"},
		{"\"num_parts\": 3", "\"num_parts\": 300000000", GW_FORMAT, "parts"},
		{"\"rows\": 334", "\"rows\": 335", GW_FORMAT, ""},
		{"\"first\": 0", "\"first\": -1", GW_FORMAT, "out of range"},
		{"\"step\": 1", "\"step\": 70000", GW_FORMAT, "out of range"},
		{"float32", "float31", GW_FORMAT, "float31"},
		{"\"shape\"", "\"shade\"", GW_FORMAT, "shape"},
		{"\"nodes\"", "\"notes\"", GW_FORMAT, "notes"},
		{"\"adam\"", "\"madam\"", GW_FORMAT, "madam"},
		{"\"step\": {", "\"stepp\": {", GW_FORMAT, "not whole"},
		{"\"rows\": {", "\"bows\": {", GW_FORMAT, "no array \"rows\""},
		{"\"digest\": \"", "\"digest\": \"x", GW_FORMAT, "hexadecimal"},
		{"\"author\"", "\"arthur\"", GW_NOT_FOUND, "arthur"},
		{"{", "[", GW_FORMAT, "line"},
	};
	create_all(client, tensors);
	train(client, tensors, 4);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		must(gw_remove_tree(in_scratch("bad")));
		must(gw_checkpoint(client, in_scratch("bad"), NULL));
		change_json(changes[i].from, changes[i].to);
		expect(gw_restore(client, in_scratch("bad"), NULL, 0), changes[i].status, changes[i].told);
	}
	must(gw_remove_tree(in_scratch("bad")));
	must(gw_checkpoint(client, in_scratch("bad"), NULL));
	must(gw_restore(client, in_scratch("bad"), NULL, 0));
	change_file("bad/tensor1/part0/rows.npy", 4096 + 100, "!");
	expect(gw_restore(client, in_scratch("bad"), NULL, 0), GW_DIGEST, "chunk 0");
	change_file("bad/tensor1/part0/rows.npy", 4096 + 50, NULL);
	expect(gw_restore(client, in_scratch("bad"), NULL, 0), GW_FORMAT, "rows.npy");
	change_file("bad/tensor0/part0/sum.xxh", 0, "?");
	const char *edges = names[EDGES];
	expect(gw_restore(client, in_scratch("bad"), &edges, 1), GW_DIGEST, "sum.xxh");
	assert_int_equal(unlink(in_scratch("bad/tensor0/part0/sum.npy")), 0);
	expect(gw_restore(client, in_scratch("bad"), &edges, 1), GW_NOT_FOUND, "sum.npy");
	change_file("bad/tensor3/part1/rows.npy", 80, "x");
	const char *words = names[WORDS];
	expect(gw_restore(client, in_scratch("bad"), &words, 1), GW_FORMAT, "dtype or shape");
	gw_client_close(client);
	must(gw_remove_tree(in_scratch("bad")));
}

static void what_cannot_be_done(void **state)
{
	(void)state;
	struct gw_client *client = open_folder(setup.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	const char *none = "none";
	const struct gw_checkpoint_options unknown = {.names = &none, .name_count = 1}, replace = {.replace = true};
	create_all(client, tensors);
	must(gw_checkpoint(client, in_scratch("there"), NULL));
	expect(gw_checkpoint(client, in_scratch("there"), NULL), GW_EXISTS, "there");
	expect(gw_checkpoint(client, in_scratch("other"), &unknown), GW_NOT_FOUND, "none");
	expect(gw_restore(client, in_scratch("there"), &none, 1), GW_NOT_FOUND, "none");
	expect(gw_restore(client, in_scratch("nowhere"), NULL, 0), GW_NOT_FOUND, "nowhere");
	assert_int_equal(mkdir(in_scratch("mine"), 0700), 0);
	expect(gw_checkpoint(client, in_scratch("mine"), &replace), GW_EXISTS, "no checkpoint");
	expect(gw_checkpoint(client, in_scratch("no/folder"), NULL), GW_NOT_FOUND, "parent");

	must(gw_tensor_delete(client, names[HALF], GW_OF_JOB));
	struct gw_tensor_spec other = {
		.name = names[HALF], .dtype = GW_FLOAT16, .placement = GW_PLACE_EVEN, .ndim = 3, .shape = {1001, 3, 5}};
	must(gw_tensor_create(client, &other, &tensors[HALF]));
	expect(gw_restore(client, in_scratch("there"), NULL, 0), GW_EXISTS, "another dtype");
	must(gw_tensor_delete(client, names[HALF], GW_OF_JOB));

	struct gw_client *empty = open_client(
		&(struct gw_client_options){.part_config = setup.fixture.folder, .threads = 1, .job = "empty"});
	expect(gw_checkpoint(empty, in_scratch("other"), NULL), GW_NOT_FOUND, "empty");
	gw_client_close(empty);

	/* Trained by another optimizer since. */
	push(client, tensors[EDGES], &optimizers[1], 1);
	must(gw_checkpoint(client, in_scratch("there"), &replace));
	must(gw_tensor_delete(client, names[EDGES], GW_OF_JOB));
	create_all(client, tensors);
	push(client, tensors[EDGES], &optimizers[0], 1);
	expect(gw_restore(client, in_scratch("there"), NULL, 0), GW_EXISTS, "adam");
	gw_client_close(client);
	must(gw_remove_tree(in_scratch("there")));
}

static int begin(void **state)
{
	(void)state;
	gw_scratch_make_in_memory("checkpoint", scratch);
	setup_begin(&setup, 3, PARTS, "epoll");
	return 0;
}

static int end(void **state)
{
	(void)state;
	setup_end(&setup);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),      cmocka_unit_test(before_any_training),
		cmocka_unit_test(files_hold_the_rows), cmocka_unit_test(into_other_parts),
		cmocka_unit_test(beside_a_trainer),    cmocka_unit_test(commands),
		cmocka_unit_test(damaged_files),       cmocka_unit_test(what_cannot_be_done),
	};
	return cmocka_run_group_tests_name("checkpoint", tests, begin, end);
}
