/* Checkpoints that are damaged in every way, and what cannot be written or read back: each is an error that says what.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/staging.h"
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
	save_bed_create(client, tensors);
	save_bed_train(client, tensors, 4);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		must(gw_remove_tree(save_bed_path("bad")));
		must(gw_checkpoint(client, save_bed_path("bad"), NULL));
		save_bed_change_json("bad", changes[i].from, changes[i].to);
		expect(gw_restore(client, save_bed_path("bad"), NULL, 0), changes[i].status, changes[i].told);
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

static void what_cannot_be_done(void **state)
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
	expect(gw_checkpoint(client, save_bed_path("mine"), &replace), GW_EXISTS, "no checkpoint");
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

	/* Trained by another optimizer since. */
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
		cmocka_unit_test(what_cannot_be_done),
	};
	return cmocka_run_group_tests_name("checkpoint, damaged", tests, save_bed_begin, save_bed_end);
}
