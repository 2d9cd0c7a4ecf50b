/* The writer takes arrays of another graph over: by links and by copies; damaged files; and when memory is short. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/graph/npy.h"
#include "core/graph/writer.h"
#include "test/support/alloc_fault.h"
#include "test/support/graph_fixture.h"

static bool no_links; /* as between two file systems */

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
	if (!no_links)
		return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
	errno = EXDEV;
	return -1;
}

static int entries(const char *folder)
{
	DIR *directory = opendir(folder);
	int count = 0;
	assert_non_null(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static gw_status write_graph(void *context)
{
	const struct gw_fixture *fixture = context;
	struct gw_writer *writer;
	gw_status status = gw_writer_open(fixture->folder, fixture->schema, true, &writer);
	if (status != GW_OK)
		return status;
	status = gw_fixture_fill(fixture, writer);
	if (status == GW_OK)
		return gw_writer_commit(writer, NULL);
	gw_writer_abort(writer);
	return status;
}

struct taking {
	const struct gw_fixture *fixture;
	struct gw_graph_meta *from;
	char folder[128];
	uint64_t graph_id;
};

static gw_status take_all(void *context)
{
	struct taking *taking = context;
	struct gw_writer *writer;
	gw_status status = gw_writer_open(taking->folder, taking->fixture->schema, true, &writer);
	if (status != GW_OK)
		return status;
	gw_writer_set_minor(writer, taking->from->minor);
	for (uint32_t i = 0; i < taking->from->parts[0].count && status == GW_OK; i++)
		status = gw_writer_take(writer, 0, taking->from->parts[0].arrays[i].key, taking->from);
	if (status == GW_OK)
		status = gw_writer_text(writer, ".tables.json", "{\"graph_id\": \"0000000000000000\"}");
	if (status == GW_OK)
		return gw_writer_commit(writer, &taking->graph_id);
	gw_writer_abort(writer);
	return status;
}

static void taking_begin(struct taking *taking, struct gw_fixture *fixture)
{
	*taking = (struct taking){.fixture = fixture};
	gw_fixture_begin(fixture, 1, 8, 1);
	snprintf(taking->folder, sizeof(taking->folder), "%s/taken", fixture->root);
	assert_int_equal(write_graph(fixture), GW_OK);
	assert_int_equal(gw_meta_read(fixture->folder, &taking->from), GW_OK);
}

static void taking_end(struct taking *taking, struct gw_fixture *fixture)
{
	gw_meta_destroy(taking->from);
	gw_fixture_end(fixture);
}

static ino_t inode(const char *folder, const char *file)
{
	char path[256];
	struct stat info;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	assert_int_equal(stat(path, &info), 0);
	return info.st_ino;
}

static void test_taken_arrays(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	struct taking taking;
	char text[64] = "", path[256], wanted[64];
	taking_begin(&taking, &fixture);
	for (int copies = 0; copies < 2; copies++) {
		no_links = copies;
		assert_int_equal(take_all(&taking), GW_OK);
		no_links = false;
		assert_int_equal(taking.graph_id, taking.from->graph_id);
		for (const char *const *file =
			     (const char *const[]){"part0/node/paper/feat.npy", "part0/node/paper/feat.xxh", NULL};
		     *file; file++)
			assert_int_equal(inode(taking.folder, *file) == inode(fixture.folder, *file), !copies);
	}
	snprintf(path, sizeof(path), "%s/%s.tables.json", taking.folder, taking.from->graph_name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	snprintf(wanted, sizeof(wanted), "{\"graph_id\": \"%016llx\"}", (unsigned long long)taking.graph_id);
	assert_string_equal(text, wanted);
	assert_true(gw_fault_each(take_all, &taking) > 100);
	taking_end(&taking, &fixture);
}

/* A byte of the data, of the header, or behind the data; another length. */
static void test_taken_arrays_that_are_damaged(void **state)
{
	(void)state;
	static const struct {
		long at;
		gw_status wanted;
	} faults[] = {{GW_NPY_HEADER_BYTES, GW_DIGEST}, {GW_NPY_HEADER_BYTES - 2, GW_OK}, {-1, GW_OK}, {1, GW_FORMAT}};
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct gw_fixture fixture;
		struct taking taking;
		char path[256];
		taking_begin(&taking, &fixture);
		snprintf(path, sizeof(path), "%s/part0/node/paper/feat.npy", fixture.folder);
		FILE *file = fopen(path, "r+");
		assert_non_null(file);
		assert_int_equal(
			fseek(file, faults[i].at < 0 ? 0 : faults[i].at, faults[i].at < 0 ? SEEK_END : SEEK_SET), 0);
		assert_int_not_equal(fputc('\t', file), EOF);
		fclose(file);
		gw_status status = take_all(&taking);
		if (status != faults[i].wanted)
			fail_msg("fault %zu: %s: %s", i, gw_status_text(status), gw_last_error());
		if (status == GW_OK) /* not linked: it has the bytes that a writer gives it */
			assert_int_not_equal(inode(taking.folder, "part0/node/paper/feat.npy"),
					     inode(fixture.folder, "part0/node/paper/feat.npy"));
		else
			assert_int_equal(entries(fixture.root), 1);
		taking_end(&taking, &fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_arrays),
		cmocka_unit_test(test_taken_arrays_that_are_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
