/* checkpoint.json: this version and every later minor version parse the printed text to the same values. Every changed
 * bit, and every change to a part's rows, is detected. When memory is short, the text is printed and parsed
 * completely, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/files/staging.h"
#include "core/graph/json.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "tensors/checkpoint.h"
#include "test/support/alloc_fault.h"
#include "test/support/must.h"
#include "test/support/scratch.h"

#define PARTS   3
#define TENSORS 2
#define TEXT    16384
#define LAYOUTS 2000

static char folder[64];

/* jansson's own allocations, which do not use our hook. One of them fails, or all from one on. */
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
	(*out)->save = 0xfedcba9876543210;
	memcpy((*out)->graph_name, "graph", 6);
	for (uint32_t t = 0; t < TENSORS; t++) {
		struct gw_checkpoint_tensor *tensor = &(*out)->tensors[t];
		tensor->plan = (struct gw_tensor_plan){.shape = {10, 3},
						       .ndim = 2,
						       .dtype = GW_FLOAT32,
						       .placement = t ? GW_PLACE_STRIPED : GW_PLACE_NODES};
		snprintf(tensor->plan.name, sizeof(tensor->plan.name), "tensor/%u", t);
		snprintf(tensor->type, sizeof(tensor->type), "%s", t ? "" : "paper");
		tensor->trained = t == 1;
		tensor->kind = GW_ADAM;
		for (uint32_t p = 0; p < PARTS; p++) {
			struct gw_checkpoint_part *part = &tensor->parts[p];
			*part = (struct gw_checkpoint_part){
				.rows = 3 + (p == 0), .first = t ? p : 3 * p + (p > 0), .step = t ? PARTS : 1};
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
	assert_in_range(bytes, 900, TEXT - 2);
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
	/* jansson's reader drops a letter if one allocation fails and the next does not. */
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

/* --- Damaged text on disk. --- */

static void expect_text(const char *text, gw_status status, const char *says)
{
	struct gw_checkpoint_index *read;
	gw_status found = gw_checkpoint_parse(text, strlen(text), &read);
	if (found != status || (status != GW_OK && (!strstr(gw_last_error(), says) || strchr(gw_last_error(), '\n'))))
		fail_msg("%s: %s; expected: %s, %s", gw_status_text(found), found ? gw_last_error() : "",
			 gw_status_text(status), says);
	assert_true((read == NULL) == (status != GW_OK));
	gw_checkpoint_free(read);
}

/* The text with the first `from` replaced, and its digest recomputed. */
static const char *edited(const char *text, const char *from, const char *to)
{
	static char out[2 * TEXT];
	const char *at = strstr(text, from);
	if (!at)
		fail_msg("there is no %s", from);
	snprintf(out, sizeof(out), "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	gw_json_digest_set(out, strlen(out));
	return out;
}

static void write_and_read(char text[TEXT])
{
	struct gw_checkpoint_index *index;
	must(index_make(&index));
	must(gw_checkpoint_write(index, folder));
	read_text(text);
	gw_checkpoint_free(index);
}

/* Flips all bits, or one bit in `each`. */
static void flip_bits(char *text, size_t each)
{
	struct gw_checkpoint_index *read;
	size_t bytes = strlen(text);
	for (size_t bit = 0; bit < 8 * bytes; bit += each) {
		text[bit / 8] ^= (char)(1 << bit % 8);
		gw_status status = gw_checkpoint_parse(text, bytes, &read);
		if (status != GW_FORMAT && status != GW_DIGEST && status != GW_VERSION)
			fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, gw_status_text(status));
		text[bit / 8] ^= (char)(1 << bit % 8);
	}
	must(gw_checkpoint_parse(text, bytes, &read));
	assert_int_equal(read->save, 0xfedcba9876543210);
	gw_checkpoint_free(read);
}

static void a_flipped_bit_is_noticed(void **state)
{
	(void)state;
	static char text[TEXT];
	struct gw_checkpoint_index *index;
	write_and_read(text);
	flip_bits(text, 11);
	must(index_make(&index));
	index->count = index->num_parts = 1;
	index->tensors[0].plan.shape[0] = index->tensors[0].parts[0].rows;
	must(gw_checkpoint_write(index, folder));
	read_text(text);
	flip_bits(text, 1);
	gw_free(index->tensors[1].parts);
	gw_checkpoint_free(index);
}

static void versions(void **state)
{
	(void)state;
	static char text[TEXT], newer[TEXT];
	static const struct {
		const char *from, *to, *says;
	} additions[] = {
		{"\"num_parts\": ", "\"place\": [1, 2], \"num_parts\": ", "place"},
		{"\"lifetime\": ", "\"place\": 1, \"lifetime\": ", "place"},
		{"\"low\": ", "\"place\": 1, \"low\": ", "place"},
		{"\"step\": ", "\"place\": 1, \"step\": ", "place"},
		{"\"rows\": {", "\"place\": {\"dtype\": \"float8\"}, \"rows\": {", "place"},
		{"\"dtype\": \"float32\",\n              \"digest\"",
		 "\"place\": 1, \"dtype\": \"float32\", \"digest\"", "place"},
	};
	write_and_read(text);
	strcpy(newer, edited(text, "\"minor\": 1", "\"minor\": 2"));
	expect_text(newer, GW_OK, "");
	for (size_t i = 0; i < sizeof(additions) / sizeof(additions[0]); i++) {
		expect_text(edited(text, additions[i].from, additions[i].to), GW_FORMAT, additions[i].says);
		expect_text(edited(newer, additions[i].from, additions[i].to), GW_OK, "");
	}
	expect_text(edited(newer, "\"adam\"", "\"lion\""), GW_FORMAT, "minor version 2, newer than this program's");
	expect_text(edited(newer, "\"step\": 1", "\"step\": 2"), GW_FORMAT, "newer");
	expect_text(edited(text, "checkpoint-1", "checkpoint-2"), GW_VERSION, "take the Graphwire that wrote it");
	expect_text(edited(text, "\"save\"", "\"safe\""), GW_FORMAT, "safe");
	expect_text(edited(newer, "\"save\"", "\"safe\""), GW_FORMAT, "save");
	expect_text(edited(text, "\"json_digest\"", "\"json_digesd\""), GW_FORMAT, "json_digest");
}

/* --- Parts. --- */

/* Counts row by row. */
static bool layout_is_whole(const struct gw_checkpoint_tensor *tensor, uint32_t parts)
{
	uint64_t all = tensor->plan.shape[0], next = 0;
	uint32_t seen[64] = {0};
	bool striped = tensor->plan.placement == GW_PLACE_STRIPED, ordered = true;
	for (uint32_t p = 0; p < parts; p++) {
		const struct gw_checkpoint_part *part = &tensor->parts[p];
		for (uint64_t i = 0; i < part->rows; i++) {
			uint64_t row = part->first + i * part->step;
			if (row >= all)
				return false;
			seen[row]++;
			ordered = ordered && row == (striped ? i * parts + p : next++);
		}
		ordered = ordered && part->step == (striped ? parts : 1);
	}
	for (uint64_t row = 0; row < all; row++)
		ordered = ordered && seen[row] == 1;
	return ordered;
}

static void deal(struct gw_checkpoint_tensor *tensor, uint32_t parts, uint64_t key)
{
	uint64_t all = tensor->plan.shape[0], next = 0;
	bool striped = tensor->plan.placement == GW_PLACE_STRIPED;
	for (uint32_t p = 0; p < parts; p++) {
		uint64_t rows = p + 1 == parts ? all - next : gw_mix64(key ^ (p + 100)) % (all - next + 1);
		tensor->parts[p] = (struct gw_checkpoint_part){.rows = rows, .first = next, .step = 1, .there = {true}};
		if (striped)
			tensor->parts[p] = (struct gw_checkpoint_part){
				.rows = all / parts + (p < all % parts), .first = p, .step = parts, .there = {true}};
		next += striped ? 0 : rows;
	}
	struct gw_checkpoint_part *part = &tensor->parts[gw_mix64(key) % parts];
	uint64_t delta = gw_mix64(key + 1) % 3 + 1;
	switch (key % 8) { /* changes one number of one part, or swaps two parts */
	case 0:
		part->rows += delta;
		break;
	case 1:
		part->rows -= part->rows < delta ? part->rows : delta;
		break;
	case 2:
		part->first += delta;
		break;
	case 3:
		part->first -= part->first < delta ? part->first : delta;
		break;
	case 4:
		part->step = delta;
		break;
	case 5: {
		struct gw_checkpoint_part other = tensor->parts[0];
		tensor->parts[0] = *part;
		*part = other;
		break;
	}
	default:
		break;
	}
}

static void every_row_is_in_one_part(void **state)
{
	(void)state;
	uint32_t taken = 0;
	for (uint64_t key = 0; key < LAYOUTS; key++) {
		struct gw_checkpoint_index *index, *read;
		uint32_t parts = (uint32_t)(gw_mix64(key + 7) % 5) + 1;
		must(gw_checkpoint_make(parts, 1, &index));
		memcpy(index->graph_name, "graph", 6);
		struct gw_checkpoint_tensor *tensor = index->tensors;
		tensor->plan = (struct gw_tensor_plan){.shape = {gw_mix64(key + 8) % 12},
						       .ndim = 1,
						       .dtype = GW_INT64,
						       .placement = (uint32_t)(gw_mix64(key + 9) % 4)};
		memcpy(tensor->plan.name, "t", 2);
		if (tensor->plan.placement <= GW_PLACE_EDGES)
			memcpy(tensor->type, "a", 2);
		deal(tensor, parts, key);
		must(gw_checkpoint_write(index, folder));
		gw_status status = gw_checkpoint_read(folder, &read);
		bool whole = layout_is_whole(tensor, parts);
		if (status != (whole ? GW_OK : GW_FORMAT) ||
		    (status != GW_OK && !strstr(gw_last_error(), "tensor \"t\"")))
			fail_msg("layout %d: %s: %s", (int)key, whole ? "whole" : "not whole", gw_last_error());
		taken += whole;
		gw_checkpoint_free(read);
		gw_checkpoint_free(index);
	}
	assert_in_range(taken, LAYOUTS / 4, 3 * LAYOUTS / 4);
}

/* --- Paths that are not files. --- */

static void what_is_no_file_is_not_waited_for(void **state)
{
	(void)state;
	char path[128];
	struct gw_checkpoint_index *read;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(path, sizeof(path), "%s/checkpoint.json", folder);
	alarm(30); /* ends the test if an open blocks */
	for (int kind = 0; kind < 4; kind++) {
		unlink(path);
		if (kind == 0) {
			assert_int_equal(mkfifo(path, 0600), 0);
		} else if (kind == 1) {
			assert_int_equal(mkdir(path, 0700), 0);
		} else if (kind == 2) {
			assert_int_equal(symlink("/dev/zero", path), 0);
		} else {
			int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
			memcpy(address.sun_path, path, strlen(path) + 1);
			assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
			close(fd);
		}
		assert_int_equal(gw_checkpoint_read(folder, &read), GW_FORMAT);
		assert_non_null(strstr(gw_last_error(), "checkpoint.json: not a regular file"));
		assert_null(read);
		rmdir(path);
	}
	unlink(path);
	assert_int_equal(gw_checkpoint_read(folder, &read), GW_NOT_FOUND);
	alarm(0);
}

static int begin(void **state)
{
	(void)state;
	gw_scratch_make_in_memory("checkpoint-index", folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_is_an_error), cmocka_unit_test(shortages),
		cmocka_unit_test(a_flipped_bit_is_noticed),    cmocka_unit_test(versions),
		cmocka_unit_test(every_row_is_in_one_part),    cmocka_unit_test(what_is_no_file_is_not_waited_for)};
	return cmocka_run_group_tests_name("checkpoint.json", tests, begin, NULL);
}
