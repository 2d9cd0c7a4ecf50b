/* checkpoint.json when memory is short: written as a whole, or not at all; read as it was written, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/base/alloc.h"
#include "core/base/staging.h"
#include "tensors/checkpoint.h"
#include "test/support/alloc_fault.h"
#include "test/support/must.h"
#include "test/support/scratch.h"

#define PARTS   3
#define TENSORS 2
#define TEXT    16384

static char folder[64];

/* jansson's own allocations, which do not go through our hook: one of them fails, or all from one on. */
static long json_allocations_left;
static bool json_fails_on;

static void *json_allocate(size_t bytes)
{
	long left = json_allocations_left--;
	return left == 0 || (left < 0 && json_fails_on) ? NULL : malloc(bytes);
}

static gw_status index_make(struct gw_checkpoint_index **out)
{
	gw_status status = gw_checkpoint_make(PARTS, TENSORS, out);
	if (status != GW_OK)
		return status;
	(*out)->graph_id = 77;
	memcpy((*out)->graph_name, "graph", 6);
	for (uint32_t t = 0; t < TENSORS; t++) {
		struct gw_checkpoint_tensor *tensor = &(*out)->tensors[t];
		tensor->plan = (struct gw_tensor_plan){.shape = {10, 3},
						       .ndim = 2,
						       .dtype = GW_FLOAT32,
						       .placement = t ? GW_PLACE_STRIPED : GW_PLACE_NODES};
		snprintf(tensor->plan.name, sizeof(tensor->plan.name), "tensor/%u", t);
		tensor->trained = t == 1;
		tensor->kind = GW_ADAM;
		for (uint32_t p = 0; p < PARTS; p++) {
			struct gw_checkpoint_part *part = &tensor->parts[p];
			*part = (struct gw_checkpoint_part){.rows = 3 + (p == 0), .first = p, .step = PARTS};
			for (uint32_t a = 0; a < GW_CHECKPOINT_ARRAYS; a++) {
				part->there[a] = a == GW_CHECKPOINT_ROWS || (a == GW_CHECKPOINT_IDS) == (t == 0);
				part->digests[a] = part->there[a] ? 100 * t + 10 * p + a : 0;
			}
		}
	}
	return GW_OK;
}

static void read_text(char text[TEXT])
{
	char path[128];
	snprintf(path, sizeof(path), "%s/checkpoint.json", folder);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t bytes = fread(text, 1, TEXT - 1, file);
	text[bytes] = 0;
	assert_in_range(bytes, 1000, TEXT - 2);
	fclose(file);
}

static void what_is_missing_is_an_error(void **state)
{
	(void)state;
	static char whole[TEXT], text[TEXT];
	struct gw_checkpoint_index *index, *read;
	must(index_make(&index));
	must(gw_checkpoint_write(index, folder));
	read_text(whole);
	json_set_alloc_funcs(json_allocate, free);
	json_allocations_left = -1;
	for (long n = 0; json_allocations_left < 0; n++) {
		json_allocations_left = n;
		gw_status status = gw_checkpoint_write(index, folder);
		assert_true(status == (json_allocations_left < 0 ? GW_NO_MEMORY : GW_OK));
		if (status != GW_OK)
			continue;
		read_text(text);
		assert_string_equal(text, whole);
	}
	/* jansson's reader leaves out a letter where one allocation fails, and the next does not. */
	json_fails_on = true;
	json_allocations_left = -1;
	for (long n = 0; json_allocations_left < 0; n++) {
		json_allocations_left = n;
		gw_status status = gw_checkpoint_parse(whole, strlen(whole), &read);
		assert_true(status == GW_OK || status == GW_NO_MEMORY || status == GW_FORMAT);
		if (status != GW_OK)
			continue;
		assert_int_equal(read->count, TENSORS);
		for (uint32_t t = 0; t < TENSORS; t++)
			assert_memory_equal(read->tensors[t].parts, index->tensors[t].parts,
					    PARTS * sizeof(*read->tensors[t].parts));
		gw_checkpoint_free(read);
	}
	json_set_alloc_funcs(malloc, free);
	gw_checkpoint_free(index);
}

static gw_status life(void *context)
{
	struct gw_checkpoint_index *index = NULL, *read = NULL;
	(void)context;
	gw_status status = index_make(&index);
	if (status == GW_OK)
		status = gw_checkpoint_write(index, folder);
	if (status == GW_OK)
		status = gw_checkpoint_read(folder, &read);
	gw_checkpoint_free(read);
	gw_checkpoint_free(index);
	return status;
}

static void shortages(void **state)
{
	(void)state;
	assert_true(gw_fault_each(life, NULL) > 0);
}

static int begin(void **state)
{
	(void)state;
	gw_scratch_make_in_memory("checkpoint-index", folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_missing_is_an_error), cmocka_unit_test(shortages)};
	return cmocka_run_group_tests_name("checkpoint.json", tests, begin, NULL);
}
