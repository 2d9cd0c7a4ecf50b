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
