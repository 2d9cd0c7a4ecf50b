/* How the JSON is found: a folder's only graph JSON is found, whatever other files the folder has, and no file blocks
 * the search. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "test/support/graph_fixture.h"
#include "test/support/scratch.h"

static void put_file(const char *folder, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_read(void **state)
{
	(void)state;
	char folder[] = "/tmp/gw-meta-XXXXXX", path[64];
	struct gw_graph_meta *meta;
	gw_scratch_make(folder);
	assert_int_equal(gw_meta_read(folder, &meta), GW_NOT_FOUND);
	put_file(folder, "metadata.json", "{\"graph_name\": \"another kind\"}");
	put_file(folder, "notes.txt", gw_fixture_json);
	assert_int_equal(gw_meta_read(folder, &meta), GW_NOT_FOUND);
	put_file(folder, "one.json", gw_fixture_json);
	assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
	assert_string_equal(meta->folder, folder);
	gw_meta_destroy(meta);
	put_file(folder, "two.json", gw_fixture_json);
	assert_int_equal(gw_meta_read(folder, &meta), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "more than one"));
	snprintf(path, sizeof(path), "%s/two.json", folder);
	assert_int_equal(gw_meta_read(path, &meta), GW_OK);
	assert_string_equal(meta->folder, folder);
	gw_meta_destroy(meta);
	snprintf(path, sizeof(path), "%s/three.json", folder);
	assert_int_equal(gw_meta_read(path, &meta), GW_NOT_FOUND);
	assert_non_null(strstr(gw_last_error(), path));
	put_file(folder, "three.json", "");
	assert_int_equal(gw_meta_read(path, &meta), GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), "build the graph again"));
	assert_int_equal(gw_meta_read("/dev/null", &meta), GW_INVALID);
	assert_int_equal(gw_remove_tree(folder), GW_OK);
}

/* Names that end like a JSON's: these files are skipped, and do not block. */
static void test_odd_folders(void **state)
{
	(void)state;
	char folder[] = "/tmp/gw-meta-XXXXXX", path[64];
	struct gw_graph_meta *meta;
	gw_scratch_make(folder);
	put_file(folder, "one.json", gw_fixture_json);
	snprintf(path, sizeof(path), "%s/folder.json", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/long.json", folder);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, (off_t)GW_JSON_BYTES_MAX + 1), 0);
	close(fd);
	assert_int_equal(gw_meta_read(path, &meta), GW_LIMIT);
	snprintf(path, sizeof(path), "%s/pipe.json", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(30); /* ends the test if an open blocks */
	assert_int_equal(gw_meta_read(path, &meta), GW_INVALID);
	if (gw_meta_read(folder, &meta) != GW_OK)
		fail_msg("%s", gw_last_error());
	alarm(0);
	gw_meta_destroy(meta);
	assert_int_equal(gw_remove_tree(folder), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_odd_folders),
	};
	return cmocka_run_group_tests(tests, gw_fixture_json_set_up, gw_fixture_json_tear_down);
}
