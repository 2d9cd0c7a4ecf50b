/* Tensors of nodes whose original ids are texts, restored into other numbers of parts: each row keeps its text. The
 * oracle compares texts, not their digests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/json.h"
#include "test/support/partition_run.h"
#include "test/support/save_bed.h"
#include "test/support/scratch.h"
#include "tools/builder/builder.h"

#define FOLDERS 4
#define PAPERS  300

static char root[64], folders[FOLDERS][160], doubles[2][160]; /* the same graph in 1, 2, 3 and 4 parts; in 2, 3 */

/* Papers with texts of many lengths, one of them empty. With `doubles` two papers have the same text. */
static void write_papers(const char *folder, bool with_doubles)
{
	static uint64_t offsets[PAPERS + 1], src[PAPERS], dst[PAPERS];
	static char bytes[PAPERS * 40];
	const struct gw_builder_options options = {.threads = 1, .quiet = true};
	struct gw_builder_stats stats;
	struct gw_builder *builder;
	uint32_t ntype, etype;
	for (uint32_t i = 0; i < PAPERS; i++) {
		int named = i == 7 ? 0
				   : sprintf(bytes + offsets[i], "%.*s%u", (int)(i % 11), "p\xc3\xa4per-p\xc3\xa4per",
					     with_doubles && i == 99 ? 88 : i);
		offsets[i + 1] = offsets[i] + (uint64_t)named;
		src[i] = i;
		dst[i] = (i * 17 + 1) % PAPERS;
	}
	const struct gw_builder_edges edges = {.count = PAPERS, .src = src, .dst = dst};
	must(gw_builder_create("papers", &builder));
	must(gw_builder_ntype(builder, "paper", &ntype));
	gw_builder_ntype_count(builder, ntype, PAPERS);
	must(gw_builder_etype(builder, ntype, "cites", ntype, &edges, &etype));
	must(gw_builder_node_strings(builder, ntype, "orig_id", PAPERS, offsets, bytes));
	must(gw_builder_write(builder, folder, &options, &stats));
	gw_builder_destroy(builder);
}

static void cut(const char *in, const char *out, int parts)
{
	char number[2] = {(char)('0' + parts), 0};
	const char *words[] = {"--num-parts", number, "--method", "random", "--seed", number, "--json", NULL};
	partition_run_ok(root, in, out, words);
}

static int begin(void **state)
{
	if (save_bed_begin(state) != 0)
		return -1;
	gw_scratch_make_in_memory("texts", root);
	for (int i = 0; i < FOLDERS; i++)
		snprintf(folders[i], sizeof(folders[i]), "%s/parts%d", root, i);
	write_papers(folders[0], false);
	for (int i = 1; i < FOLDERS; i++)
		cut(folders[0], folders[i], i + 1);
	char whole[160];
	snprintf(whole, sizeof(whole), "%s/doubles", root);
	write_papers(whole, true);
	for (int i = 0; i < 2; i++) {
		snprintf(doubles[i], sizeof(doubles[i]), "%s/doubles%d", root, i);
		cut(whole, doubles[i], i + 2);
	}
	return 0;
}

static int end(void **state)
{
	must(gw_remove_tree(root));
	return save_bed_end(state);
}

static const struct gw_tensor *papers_create(struct gw_client *client)
{
	struct gw_tensor_spec spec = {.name = "papers",
				      .dtype = GW_FLOAT32,
				      .ndim = 2,
				      .shape = {0, 3},
				      .initial = GW_INITIAL_UNIFORM,
				      .low = -1,
				      .high = 1,
				      .seed = 5};
	const struct gw_tensor *tensor;
	must(gw_node_type(client, "paper", &spec.type));
	must(gw_tensor_create(client, &spec, &tensor));
	uint64_t n = tensor->shape[0];
	int64_t *ids = save_bed_ids(n);
	float *gradients = malloc(n * 3 * sizeof(float));
	for (uint64_t i = 0; i < n * 3; i++)
		gradients[i] = (float)(i % 31) - 11;
	must(gw_push(client, tensor, ids, n, gradients, &save_bed_optimizers[0]));
	free(ids);
	free(gradients);
	return tensor;
}

static struct gw_texts *texts_of(struct gw_client *client, const struct gw_tensor *tensor)
{
	struct gw_texts *texts;
	int64_t *ids = save_bed_ids(tensor->shape[0]);
	must(gw_node_texts(client, tensor->type, "orig_id", ids, tensor->shape[0], &texts));
	free(ids);
	return texts;
}

static bool same_text(const struct gw_texts *a, uint64_t i, const struct gw_texts *b, uint64_t k)
{
	uint64_t bytes = a->offsets[i + 1] - a->offsets[i];
	return bytes == b->offsets[k + 1] - b->offsets[k] &&
	       memcmp(a->bytes + a->offsets[i], b->bytes + b->offsets[k], bytes) == 0;
}

struct both_texts {
	const struct gw_texts *a, *b;
	uint64_t n;
};

static uint64_t find_text(void *context, uint64_t row_of_a)
{
	const struct both_texts *texts = context;
	uint64_t k = 0;
	while (k < texts->n && !same_text(texts->a, row_of_a, texts->b, k))
		k++;
	return k;
}

/* Many of the rows are in another part. */
static void compare_rows_by_texts(struct gw_client *one, struct gw_client *other, const struct gw_tensor *a,
				  const struct gw_tensor *b)
{
	struct gw_texts *texts_a = texts_of(one, a), *texts_b = texts_of(other, b);
	struct both_texts both = {texts_a, texts_b, b->shape[0]};
	save_bed_compare_moved(one, other, a, b, find_text, &both);
	gw_texts_free(texts_a);
	gw_texts_free(texts_b);
}

/* The same gradients for the same texts give the same rows, so the restore kept the optimizer's state. */
static void train_by_texts(struct gw_client *client, const struct gw_tensor *tensor)
{
	struct gw_texts *texts = texts_of(client, tensor);
	uint64_t n = tensor->shape[0];
	int64_t *ids = save_bed_ids(n);
	float *gradients = malloc(n * 3 * sizeof(float));
	for (uint64_t i = 0; i < n; i++) {
		float sum = 0;
		for (uint64_t at = texts->offsets[i]; at < texts->offsets[i + 1]; at++)
			sum = sum * 3 + (float)(texts->bytes[at] % 7);
		for (int c = 0; c < 3; c++)
			gradients[i * 3 + (uint64_t)c] = sum - (float)(100 * c);
	}
	must(gw_push(client, tensor, ids, n, gradients, &save_bed_optimizers[0]));
	gw_texts_free(texts);
	free(ids);
	free(gradients);
}

static void into_any_number_of_parts(void **state)
{
	(void)state;
	struct gw_client *clients[FOLDERS];
	const struct gw_tensor *tensors[FOLDERS];
	for (int i = 0; i < FOLDERS; i++)
		clients[i] = save_bed_open_folder(folders[i]);
	tensors[0] = papers_create(clients[0]);
	for (int i = 1; i < FOLDERS; i++) { /* 1 -> 2 -> 3 -> 4 */
		char name[16];
		snprintf(name, sizeof(name), "from%d", i);
		must(gw_checkpoint(clients[i - 1], save_bed_path(name), NULL));
		must(gw_restore(clients[i], save_bed_path(name), NULL, 0));
		must(gw_tensor_open(clients[i], "papers", GW_OF_JOB, &tensors[i]));
		compare_rows_by_texts(clients[i - 1], clients[i], tensors[i - 1], tensors[i]);
		must(gw_remove_tree(save_bed_path(name)));
	}
	compare_rows_by_texts(clients[0], clients[FOLDERS - 1], tensors[0], tensors[FOLDERS - 1]);
	train_by_texts(clients[0], tensors[0]);
	train_by_texts(clients[FOLDERS - 1], tensors[FOLDERS - 1]);
	compare_rows_by_texts(clients[0], clients[FOLDERS - 1], tensors[0], tensors[FOLDERS - 1]);
	/* And back to one part. */
	must(gw_checkpoint(clients[2], save_bed_path("back"), NULL));
	must(gw_restore(clients[0], save_bed_path("back"), NULL, 0));
	compare_rows_by_texts(clients[0], clients[2], tensors[0], tensors[2]);
	must(gw_remove_tree(save_bed_path("back")));
	for (int i = 0; i < FOLDERS; i++)
		gw_client_close(clients[i]);
}

/* The texts have the same length. */
static void edit(const char *path, const char *from, const char *to)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	size_t bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	assert_non_null(strstr(text, from));
	for (char *at = text; (at = strstr(at, from));)
		memcpy(at, to, strlen(to));
	gw_json_digest_set(text, bytes);
	rewind(file);
	assert_int_equal(fwrite(text, 1, bytes, file), bytes);
	fclose(file);
}

static void what_does_not_fit_is_refused(void **state)
{
	(void)state;
	struct gw_client *two = save_bed_open_folder(folders[1]), *three = save_bed_open_folder(folders[2]);
	char file[200];
	papers_create(two);
	must(gw_checkpoint(two, save_bed_path("typed"), NULL));
	snprintf(file, sizeof(file), "%s/checkpoint.json", save_bed_path("typed"));
	/* The JSON has no text ids; has a field of a newer version instead; has numbers where the graph has texts. */
	edit(file, "\"orig_text\"", "\"orig_texX\"");
	expect(gw_restore(three, save_bed_path("typed"), NULL, 0), GW_FORMAT, "orig_texX");
	edit(file, "\"minor\": 1", "\"minor\": 2");
	expect(gw_restore(three, save_bed_path("typed"), NULL, 0), GW_UNSUPPORTED, "no original ids in the checkpoint");
	edit(file, "\"orig_texX\"", "\"orig_id\"  ");
	edit(file, "/orig_text.npy\"", "/orig_id.npy\"  ");
	expect(gw_restore(three, save_bed_path("typed"), NULL, 0), GW_UNSUPPORTED,
	       "are text in the graph, and numbers in the checkpoint");
	must(gw_restore(two, save_bed_path("typed"), NULL, 0)); /* which needs none */
	edit(file, "\"orig_id\"  ", "\"orig_text\"");
	edit(file, "/orig_id.npy\"  ", "/orig_text.npy\"");
	/* Digests of other texts: changes one byte of the file. */
	snprintf(file, sizeof(file), "%s/tensor0/part1/orig_text.npy", save_bed_path("typed"));
	FILE *digests = fopen(file, "r+");
	assert_non_null(digests);
	assert_int_equal(fseek(digests, 4096 + 17, SEEK_SET), 0);
	int byte = fgetc(digests);
	assert_int_equal(fseek(digests, 4096 + 17, SEEK_SET), 0);
	assert_int_equal(fputc(byte ^ 1, digests), byte ^ 1);
	fclose(digests);
	expect(gw_restore(three, save_bed_path("typed"), NULL, 0), GW_DIGEST, "orig_text");
	gw_client_close(two);
	gw_client_close(three);
	must(gw_remove_tree(save_bed_path("typed")));
}

static void equal_texts_are_reported(void **state)
{
	(void)state;
	struct gw_client *two = save_bed_open_folder(doubles[0]), *three = save_bed_open_folder(doubles[1]);
	papers_create(two);
	must(gw_checkpoint(two, save_bed_path("twice"), NULL));
	expect(gw_restore(three, save_bed_path("twice"), NULL, 0), GW_UNSUPPORTED, "two are the same text");
	must(gw_restore(two, save_bed_path("twice"), NULL, 0));
	gw_client_close(two);
	gw_client_close(three);
	must(gw_remove_tree(save_bed_path("twice")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(into_any_number_of_parts),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(equal_texts_are_reported),
	};
	return cmocka_run_group_tests_name("checkpoint, texts", tests, begin, end);
}
