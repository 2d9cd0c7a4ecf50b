/* See part_files.h. */
#include "test/support/part_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"

void part_file_take(struct part_file *file, const char *folder, const char *name)
{
	snprintf(file->path, sizeof(file->path), "%s/%s", folder, name);
	FILE *f = fopen(file->path, "rb");
	if (!f)
		fail_msg("no file %s", file->path);
	fseek(f, 0, SEEK_END);
	file->bytes = (size_t)ftell(f);
	rewind(f);
	file->data = malloc(file->bytes + 1);
	assert_int_equal(fread(file->data, 1, file->bytes, f), file->bytes);
	fclose(f);
}

void part_file_put(const struct part_file *file, size_t bytes)
{
	FILE *f = fopen(file->path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(file->data, 1, bytes, f), bytes);
	fclose(f);
}

void part_expect_fault(const struct gw_graph_meta *meta, gw_status wanted, const char *file, const char *key,
		       const char *says)
{
	for (int mapped = 0; mapped < 2; mapped++) {
		struct gw_part_options options = {.mapped = mapped, .arena = {.name = "test", .huge = GW_HUGE_OFF}};
		struct gw_part *part;
		gw_status status = gw_part_open(meta, 0, &options, &part);
		const char *text = gw_last_error();
		if (status != wanted || !strstr(text, file) || !strstr(text, key) || !strstr(text, says) ||
		    strchr(text, '\n'))
			fail_msg("%s, wanted %s with %s, %s, %s: %s", gw_status_text(status), gw_status_text(wanted),
				 file, key, says, text);
		assert_null(part);
	}
}

void part_open(const struct gw_graph_meta *meta, uint32_t number, bool mapped, struct gw_part **part)
{
	struct gw_part_options options = {.mapped = mapped, .arena = {.name = "test", .huge = GW_HUGE_OFF}};
	if (gw_part_open(meta, number, &options, part) != GW_OK)
		fail_msg("%s", gw_last_error());
}

void part_forge(const char *folder, const char *json_name, uint32_t part, const char *key, uint64_t at,
		const void *bytes, size_t count)
{
	struct gw_graph_meta *meta;
	struct part_file npy = {0}, xxh = {0}, json = {0};
	char name[256], *text;
	assert_int_equal(gw_meta_read(folder, &meta), GW_OK);
	struct gw_array_meta *array = (struct gw_array_meta *)gw_meta_array(meta, part, key);
	assert_non_null(array);
	part_file_take(&npy, folder, array->file);
	snprintf(name, sizeof(name), "%.*s.xxh", (int)strlen(array->file) - 4, array->file);
	part_file_take(&xxh, folder, name);
	part_file_take(&json, folder, json_name);
	assert_true(GW_NPY_HEADER_BYTES + at + count <= npy.bytes && npy.bytes < GW_DIGEST_CHUNK);
	memcpy(npy.data + GW_NPY_HEADER_BYTES + at, bytes, count);
	uint64_t digest = gw_digest(npy.data + GW_NPY_HEADER_BYTES, npy.bytes - GW_NPY_HEADER_BYTES);
	memcpy(xxh.data, &digest, sizeof(digest));
	array->digest = gw_digest(&digest, sizeof(digest));
	assert_int_equal(gw_meta_digest(meta, &meta->graph_id), GW_OK);
	assert_int_equal(gw_meta_print(meta, &text), GW_OK);
	part_file_put(&npy, npy.bytes);
	part_file_put(&xxh, xxh.bytes);
	FILE *f = fopen(json.path, "w");
	fputs(text, f);
	fclose(f);
	gw_free(text);
	free(npy.data);
	free(xxh.data);
	free(json.data);
	gw_meta_destroy(meta);
}
