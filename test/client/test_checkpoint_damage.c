/* Checkpoints that are damaged in every way, and checkpoints that cannot be written or restored. Each gives an error
 * that names the cause. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/save_bed.h"

static void change_file(const char *name, off_t at, const char *bytes)
{
	int fd = open(save_bed_path(name), O_RDWR);
	assert_true(fd >= 0);
	if (bytes)
		assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), strlen(bytes));
	else
		assert_int_equal(ftruncate(fd, at), 0);
	close(fd);
}

static void damaged_files(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_folder(save_bed.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	static const struct {
		const char *from, *to;
		gw_status status;
		const char *error;
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
		{"\"step\": {", "\"stepp\": {", GW_FORMAT, "is incomplete"},
		{"\"sum\": {", "\"sun\": {", GW_FORMAT, "\"sun\""},
		{"\"orig_id\": {", "\"orig_text\": {", GW_FORMAT, "orig_id.npy"},
		{"tensor0/part0/rows.npy", "tensor1/part0/rows.npy", GW_FORMAT, "tensor1/part0/rows.npy"},
		{"\"dtype\": \"int64\"", "\"dtype\": \"uint64\"", GW_FORMAT, "\"dtype\" is \"uint64\""},
		{"\"lifetime\": \"job\"", "\"lifetime\": \"jobs\"", GW_FORMAT, "jobs"},
		{"\"type\": \"\"", "\"type\": \"author\"", GW_FORMAT, "placement"},
		{"\"name\": \"half\"", "\"name\": \"edges\"", GW_FORMAT, "twice"},
		{"\"minor\": 1", "\"minor\": 0", GW_OK, ""},
		{"\"minor\": 1", "\"minor\": 7", GW_OK, ""},
		{"\"rows\": {", "\"bows\": {", GW_FORMAT, "array \"rows\" is missing"},
		{"\"digest\": \"", "\"digest\": \"x", GW_FORMAT, "longer than 16 bytes"},
		{"\"seed\": \"8", "\"seed\": \"x", GW_FORMAT, "hexadecimal"},
		{"\"author\"", "\"arthur\"", GW_NOT_FOUND, "arthur"},
		{"{", "[", GW_FORMAT, "line"},
	};
	save_bed_create(client, tensors);
	save_bed_train(client, tensors, 4);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		must(gw_remove_tree(save_bed_path("bad")));
		must(gw_checkpoint(client, save_bed_path("bad"), NULL));
		save_bed_change_json("bad", changes[i].from, changes[i].to);
		if (changes[i].status == GW_OK)
			must(gw_restore(client, save_bed_path("bad"), NULL, 0));
		else
			expect(gw_restore(client, save_bed_path("bad"), NULL, 0), changes[i].status, changes[i].error);
	}
	must(gw_remove_tree(save_bed_path("bad")));
	must(gw_checkpoint(client, save_bed_path("bad"), NULL));
	must(gw_restore(client, save_bed_path("bad"), NULL, 0));
	change_file("bad/tensor1/part0/rows.npy", 4096 + 100, "!");
	expect(gw_restore(client, save_bed_path("bad"), NULL, 0), GW_DIGEST, "chunk 0");
	change_file("bad/tensor1/part0/rows.npy", 4096 + 50, NULL);
	expect(gw_restore(client, save_bed_path("bad"), NULL, 0), GW_FORMAT, "rows.npy");
	change_file("bad/tensor0/part0/sum.xxh", 0, "?");
	const char *edges = save_bed_names[EDGES];
	expect(gw_restore(client, save_bed_path("bad"), &edges, 1), GW_DIGEST, "sum.xxh");
	assert_int_equal(unlink(save_bed_path("bad/tensor0/part0/sum.npy")), 0);
	expect(gw_restore(client, save_bed_path("bad"), &edges, 1), GW_NOT_FOUND, "sum.npy");
	change_file("bad/tensor3/part1/rows.npy", 80, "x");
	const char *words = save_bed_names[WORDS];
	expect(gw_restore(client, save_bed_path("bad"), &words, 1), GW_FORMAT, "dtype or shape");
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("bad")));
}

/* False: the file does not exist. */
static bool copy_file(const char *from, const char *to)
{
	static uint8_t bytes[1 << 20];
	FILE *in = fopen(save_bed_path(from), "r");
	if (!in)
		return false;
	size_t count = fread(bytes, 1, sizeof(bytes), in);
	fclose(in);
	FILE *out = fopen(save_bed_path(to), "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(out), 0);
	return true;
}

static void a_file_of_another_save(void **state)
{
	(void)state;
	static const char *const names[] = {"rows", "orig_id", "step", "mean", "power", "sum"};
	struct gw_client *client = save_bed_open_folder(save_bed.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	uint8_t *rows[TENSORS];
	uint32_t refused = 0, same = 0;
	save_bed_create(client, tensors);
	save_bed_train(client, tensors, 4);
	must(gw_checkpoint(client, save_bed_path("older"), NULL));
	save_bed_train(client, tensors, 9);
	must(gw_checkpoint(client, save_bed_path("newer"), NULL));
	for (int t = 0; t < TENSORS; t++)
		rows[t] = save_bed_rows(client, tensors[t]);
	for (uint32_t i = 0; i < TENSORS * SAVE_BED_PARTS * 6 * 2; i++) {
		char name[48], from[64], to[64];
		snprintf(name, sizeof(name), "tensor%u/part%u/%s.%s", i % TENSORS, i / TENSORS % SAVE_BED_PARTS,
			 names[i / 2 / TENSORS / SAVE_BED_PARTS], i / TENSORS / SAVE_BED_PARTS % 2 ? "npy" : "xxh");
		snprintf(from, sizeof(from), "older/%s", name);
		snprintf(to, sizeof(to), "newer/%s", name);
		if (!copy_file(to, "kept") || !copy_file(from, to))
			continue;
		gw_status status = gw_restore(client, save_bed_path("newer"), NULL, 0);
		refused += status == GW_DIGEST;
		same += status == GW_OK;
		assert_true(status == GW_OK || (status == GW_DIGEST && strstr(gw_last_error(), name)));
		for (int t = 0; t < TENSORS && status == GW_OK; t++)
			save_bed_check_rows(client, tensors[t], rows[t]);
		assert_true(copy_file("kept", to));
	}
	assert_true(refused >= 2 * 2 * SAVE_BED_PARTS && same >= 2 * 2 * SAVE_BED_PARTS);
	assert_true(copy_file("older/checkpoint.json", "newer/checkpoint.json"));
	expect(gw_restore(client, save_bed_path("newer"), NULL, 0), GW_DIGEST, "of another save");
	for (int t = 0; t < TENSORS; t++)
		free(rows[t]);
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("older")));
	must(gw_remove_tree(save_bed_path("newer")));
}

static void put_file(const char *name, const char *text)
{
	FILE *file = fopen(save_bed_path(name), "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* A checkpoint that replaces another one removes only files of checkpoints. One that cannot replace it changes
 * nothing. */
static void replace_removes_only_its_own(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_folder(save_bed.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	const char *words = save_bed_names[WORDS];
	const struct gw_checkpoint_options all = {.replace = true},
					   one = {.replace = true, .names = &words, .name_count = 1};
	save_bed_create(client, tensors);
	must(gw_checkpoint(client, save_bed_path("last"), NULL));
	put_file("last/model.pt", "weights");
	put_file("last/tensor3/part0/notes.txt", "notes");
	assert_int_equal(mkdir(save_bed_path("last/logs"), 0700), 0);
	put_file("last/logs/loss.csv", "1.5");
	must(gw_checkpoint(client, save_bed_path("last"), &one));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(access(save_bed_path("last/model.pt"), F_OK), 0);
		assert_int_equal(access(save_bed_path("last/tensor3/part0/notes.txt"), F_OK), 0);
		assert_int_equal(access(save_bed_path("last/logs/loss.csv"), F_OK), 0);
		assert_int_equal(access(save_bed_path("last/tensor0/part0/rows.npy"), F_OK), 0);
		assert_int_equal(access(save_bed_path("last/tensor1"), F_OK), i - 1); /* of more tensors */
		must(gw_restore(client, save_bed_path("last"), NULL, 0));
		if (i == 0)
			must(gw_checkpoint(client, save_bed_path("last"), &all));
	}
	/* A foreign file where a new file belongs; then a damaged JSON, so that no file's owner is known. */
	must(gw_checkpoint(client, save_bed_path("last"), &one));
	assert_int_equal(mkdir(save_bed_path("last/tensor1"), 0700), 0);
	assert_int_equal(mkdir(save_bed_path("last/tensor1/part0"), 0700), 0);
	put_file("last/tensor1/part0/rows.npy", "mine");
	expect(gw_checkpoint(client, save_bed_path("last"), &all), GW_EXISTS, "move it elsewhere");
	must(gw_checkpoint(client, save_bed_path("last"), &one));
	change_file("last/checkpoint.json", 20, "!");
	expect(gw_checkpoint(client, save_bed_path("last"), &one), GW_EXISTS, "not a checkpoint that can be replaced");
	assert_int_equal(access(save_bed_path("last/model.pt"), F_OK), 0);
	assert_int_equal(access(save_bed_path("last/tensor1/part0/rows.npy"), F_OK), 0);
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("last")));
}

/* A pipe with a file's name must not block the restore. */
static void pipes(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_folder(save_bed.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	const struct gw_checkpoint_options replace = {.replace = true};
	static const char *const names[] = {"tensor1/part2/rows.npy", "tensor0/part0/rows.xxh", "checkpoint.json"};
	save_bed_create(client, tensors);
	must(gw_checkpoint(client, save_bed_path("piped"), NULL));
	alarm(60); /* ends the test if an open blocks */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[64];
		snprintf(name, sizeof(name), "piped/%s", names[i]);
		assert_int_equal(rename(save_bed_path(name), save_bed_path("kept")), 0);
		assert_int_equal(mkfifo(save_bed_path(name), 0600), 0);
		expect(gw_restore(client, save_bed_path("piped"), NULL, 0), GW_FORMAT, "not a regular file");
		if (i == 2)
			expect(gw_checkpoint(client, save_bed_path("piped"), &replace), GW_EXISTS, "not a checkpoint");
		assert_int_equal(rename(save_bed_path("kept"), save_bed_path(name)), 0);
	}
	must(gw_restore(client, save_bed_path("piped"), NULL, 0));
	alarm(0);
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("piped")));
}

static void writes_and_restores_that_fail(void **state)
{
	(void)state;
	struct gw_client *client = save_bed_open_folder(save_bed.fixture.folder);
	const struct gw_tensor *tensors[TENSORS];
	const char *none = "none";
	const struct gw_checkpoint_options unknown = {.names = &none, .name_count = 1}, replace = {.replace = true};
	save_bed_create(client, tensors);
	must(gw_checkpoint(client, save_bed_path("there"), NULL));
	expect(gw_checkpoint(client, save_bed_path("there"), NULL), GW_EXISTS, "there");
	expect(gw_checkpoint(client, save_bed_path("other"), &unknown), GW_NOT_FOUND, "none");
	expect(gw_restore(client, save_bed_path("there"), &none, 1), GW_NOT_FOUND, "none");
	expect(gw_restore(client, save_bed_path("nowhere"), NULL, 0), GW_NOT_FOUND, "nowhere");
	const struct gw_checkpoint_options nothing = {.names = &none, .name_count = 0}; /* which is not all */
	expect(gw_checkpoint(client, save_bed_path("other"), &nothing), GW_INVALID, "an empty list of names");
	expect(gw_restore(client, save_bed_path("there"), &none, 0), GW_INVALID, "an empty list of names");
	assert_int_equal(mkdir(save_bed_path("mine"), 0700), 0);
	expect(gw_checkpoint(client, save_bed_path("mine"), &replace), GW_EXISTS, "not a checkpoint");
	expect(gw_checkpoint(client, save_bed_path("no/folder"), NULL), GW_NOT_FOUND, "parent");

	must(gw_tensor_delete(client, save_bed_names[HALF], GW_OF_JOB));
	struct gw_tensor_spec other = {.name = save_bed_names[HALF],
				       .dtype = GW_FLOAT16,
				       .placement = GW_PLACE_EVEN,
				       .ndim = 3,
				       .shape = {1001, 3, 5}};
	must(gw_tensor_create(client, &other, &tensors[HALF]));
	expect(gw_restore(client, save_bed_path("there"), NULL, 0), GW_EXISTS, "another dtype");
	must(gw_tensor_delete(client, save_bed_names[HALF], GW_OF_JOB));

	struct gw_client *empty = open_client(
		&(struct gw_client_options){.part_config = save_bed.fixture.folder, .threads = 1, .job = "empty"});
	expect(gw_checkpoint(empty, save_bed_path("other"), NULL), GW_NOT_FOUND, "empty");
	gw_client_close(empty);

	/* The tensor has been trained by another optimizer since. */
	save_bed_push(client, tensors[EDGES], &save_bed_optimizers[1], 1);
	must(gw_checkpoint(client, save_bed_path("there"), &replace));
	must(gw_tensor_delete(client, save_bed_names[EDGES], GW_OF_JOB));
	save_bed_create(client, tensors);
	save_bed_push(client, tensors[EDGES], &save_bed_optimizers[0], 1);
	expect(gw_restore(client, save_bed_path("there"), NULL, 0), GW_EXISTS, "adam");
	gw_client_close(client);
	must(gw_remove_tree(save_bed_path("there")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(a_file_of_another_save),
		cmocka_unit_test(pipes),
		cmocka_unit_test(replace_removes_only_its_own),
		cmocka_unit_test(writes_and_restores_that_fail),
	};
	return cmocka_run_group_tests_name("checkpoint, damaged", tests, save_bed_begin, save_bed_end);
}
