/* graphwire import ids: numbers ids in the order of their first appearance.
 *
 *   FILE, mapped -> values in the spill -> numbering.h -> STEM.numbers.npy -> STEM.npy, or STEM.offsets.npy, .bytes.npy
 *
 * Errors: those of the inputs, of numbering.h and of the outputs; a text of 2^16 bytes or more; an output that is the
 * input, which is mapped. If a file cannot be written, none is left.
 */
#include "tools/import/id_numbers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/import/import.h"
#include "tools/import/npy_write.h"
#include "tools/import/strings.h"
#include "tools/output_options.h"

struct id_numbers_arguments {
	const char *from, *out;
	uint64_t count; /* of the ids that are written */
	struct gw_builder_options build;
};

static gw_status read_id_texts(struct gw_import *im, const char *path, struct gw_numbering_column *out)
{
	struct gw_import_strings strings;
	gw_status status = gw_import_strings_read(im, path, &strings);
	if (status != GW_OK)
		return status;
	out->rows = strings.count;
	out->text = strings.bytes;
	out->first = gw_import_take(im, strings.count, sizeof(*out->first), &status);
	for (uint64_t i = 0; i < strings.count && status == GW_OK; i++) {
		uint64_t bytes = strings.offsets[i + 1] - strings.offsets[i];
		if (bytes > UINT16_MAX)
			status = gw_fail(GW_LIMIT, "%s: id %llu has %llu bytes, and at most %u are allowed", path,
					 (unsigned long long)i, (unsigned long long)bytes, UINT16_MAX);
		else
			out->first[i] = gw_text_ref(strings.offsets[i], bytes, false);
	}
	return status;
}

static gw_status read_integers(struct gw_import *im, const char *path, struct gw_numbering_column *out)
{
	const struct gw_npy_file *array;
	gw_status status = gw_import_array(im, path, &array);
	if (status != GW_OK)
		return status;
	if (array->npy.ndim != 1 || array->npy.dtype != GW_INT64)
		return gw_fail(GW_FORMAT, "%s: ids are int64 [N]", path);
	out->rows = array->npy.shape[0];
	out->first = gw_import_take(im, out->rows, sizeof(*out->first), &status);
	if (status == GW_OK)
		memcpy(out->first, array->data, out->rows * sizeof(*out->first));
	return status;
}

static const char *const integer_ends[] = {".numbers.npy", ".npy", NULL};
static const char *const text_ends[] = {".numbers.npy", ".offsets.npy", ".bytes.npy", NULL};

static bool is_same_file(const char *a, const char *b)
{
	struct stat one, other;
	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static gw_status check_id_outputs(const struct id_numbers_arguments *a, const char *const *ends)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && ends[i]; i++) {
		char *path = gw_format("%s%s", a->out, ends[i]);
		if (!path)
			return GW_NO_MEMORY;
		if (is_same_file(path, a->from))
			status = gw_fail(GW_INVALID, "%s: is the input; choose another --out", path);
		gw_free(path);
	}
	return status;
}

struct id_outputs {
	const char *stem;
	const char *const *ends;
	uint32_t written;
};

static void remove_written(const struct id_outputs *out)
{
	for (uint32_t i = 0; i < out->written; i++) {
		char *path = gw_format("%s%s", out->stem, out->ends[i]);
		if (path)
			unlink(path);
		gw_free(path);
	}
}

/* Writes the next file. */
static gw_status write_next(struct id_outputs *out, gw_dtype dtype, uint64_t count, const void *data)
{
	char *path = gw_format("%s%s", out->stem, out->ends[out->written]);
	gw_status status = path ? gw_import_npy_write(path, dtype, 1, &count, data) : GW_NO_MEMORY;
	gw_free(path);
	out->written += status == GW_OK;
	return status;
}

static gw_status write_id_texts(struct gw_import *im, struct id_outputs *out, const struct gw_numbering *numbering,
				const struct gw_numbering_column *column)
{
	uint64_t *offsets;
	char *bytes;
	gw_status status = gw_import_numbered_strings(im, numbering, column, &offsets, &bytes);
	if (status == GW_OK)
		status = write_next(out, GW_UINT64, numbering->count + 1, offsets);
	return status != GW_OK ? status : write_next(out, GW_UINT8, offsets[numbering->count], bytes);
}

static gw_status number_file(struct gw_import *im, const struct id_numbers_arguments *a)
{
	struct gw_numbering_column column = {0};
	struct gw_numbering numbering;
	const struct gw_numbering_memory memory = gw_import_memory(im);
	bool texts = gw_import_names_strings(a->from);
	struct id_outputs out = {.stem = a->out, .ends = texts ? text_ends : integer_ends};
	gw_status status = check_id_outputs(a, out.ends);
	if (status == GW_OK)
		status = texts ? read_id_texts(im, a->from, &column) : read_integers(im, a->from, &column);
	if (status == GW_OK)
		status = gw_numbering_create(&column, 1, im->threads, &memory, &numbering);
	if (status != GW_OK)
		return status;
	if (numbering.runs)
		fprintf(stderr, "memory: ids numbered in %u runs\n", numbering.runs);
	status = write_next(&out, GW_INT64, column.rows, column.first);
	if (numbering.count > a->count)
		numbering.count = a->count;
	if (status == GW_OK)
		status = texts ? write_id_texts(im, &out, &numbering, &column)
			       : write_next(&out, GW_INT64, numbering.count, numbering.values);
	if (status != GW_OK)
		remove_written(&out);
	gw_numbering_free(&numbering);
	return status;
}

static gw_status run_ids(const struct id_numbers_arguments *a)
{
	const struct gw_import_options options = {.build = a->build};
	struct gw_import im = {.options = &options};
	im.threads = a->build.threads ? a->build.threads : gw_processors();
	gw_status status = gw_builder_create("graph", &im.builder);
	if (status == GW_OK)
		status = gw_builder_limit(im.builder, a->out ? a->out : ".", a->build.memory, a->build.quiet);
	if (status == GW_OK && !a->from)
		printf("%llu\n", (unsigned long long)gw_import_memory(&im).bytes);
	else if (status == GW_OK)
		status = number_file(&im, a);
	gw_import_close(&im);
	return status;
}

static gw_status id_numbers_check(void *input)
{
	const struct id_numbers_arguments *a = input;
	if (!a->from != !a->out)
		return gw_fail(GW_INVALID, "--from and --out belong together");
	if (a->out && (a->out[0] == 0 || a->out[strlen(a->out) - 1] == '/'))
		return gw_fail(GW_INVALID, "--out: \"%s\" names no file", a->out);
	return GW_OK;
}

#define A struct id_numbers_arguments
static const struct gw_option ids_table[] = {
	{"from", "FILE", "ids: int64 in .npy; or X.offsets.npy with X.bytes.npy, or an .npz of both, of texts", 0,
	 GW_OPTION_TEXT(A, from)},
	{"out", "STEM", "write STEM.numbers.npy, and the ids as STEM.npy, or STEM.offsets.npy and STEM.bytes.npy", 0,
	 GW_OPTION_TEXT(A, out)},
	{"count", "N", "write only the first N ids in the order of their numbers (default: all)", 0,
	 GW_OPTION_NUMBER(A, count, 0, UINT64_MAX)},
	{"threads", "N", "default: all processors", 0, GW_OPTION_NUMBER(A, build.threads, 1, GW_TOOL_THREADS_MAX)},
	{"memory", "SIZE",
	 "memory, such as 20Gi, besides 8 bytes for each different id; the rest is in temporary files in the folder of "
	 "STEM (default: 7 tenths of the free memory); the result does not depend on it",
	 0, GW_OPTION_NUMBER(A, build.memory, 1, UINT64_MAX)},
	{0},
};
#undef A

static const char ids_doc[] =
	"Number ids in the order of their first appearance, as import numbers them.\v"
	"The number of each id is written, and the ids in the order of their numbers. Without --from, prints how many "
	"bytes of memory a numbering may use, half of --memory.\n\n"
	"Example:\n"
	"  graphwire import ids --from names.offsets.npy --out numbered\n";

int gw_id_numbers_main(int argc, char **argv)
{
	static const struct gw_options options = {.table = ids_table, .doc = ids_doc, .check = id_numbers_check};
	struct id_numbers_arguments a = {.count = UINT64_MAX};
	gw_options_parse(&options, argc, argv, &a);
	return gw_exit_status("graphwire import ids", run_ids(&a));
}
