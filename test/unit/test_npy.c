/* The .npy container: bytes follow NumPy's specification, and every broken header is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/graph/npy.h"

static size_t wrap_version_1(const char *dictionary, uint8_t *out)
{
	size_t length = strlen(dictionary);
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (uint8_t)length;
	out[9] = (uint8_t)(length >> 8);
	memcpy(out + 10, dictionary, length);
	return length + 10;
}

static void test_format_bytes(void **state)
{
	(void)state;
	static const struct {
		gw_dtype dtype;
		uint32_t ndim;
		uint64_t shape[4];
		const char *text; /* the result of numpy.lib.format.header_data_from_array_1_0 */
	} cases[] = {
		{GW_FLOAT32, 2, {3, 4}, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"},
		{GW_INT64, 1, {5}, "{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }"},
		{GW_BOOL, 1, {0}, "{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }"},
		{GW_BFLOAT16, 3, {1, 2, 3}, "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 3), }"},
		{GW_FLOAT64, 0, {0}, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
		{GW_INT8_ROW,
		 4,
		 {1, 1, 1, UINT32_MAX},
		 "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 4294967295), }"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t header[GW_NPY_HEADER_BYTES];
		assert_int_equal(gw_npy_format(cases[i].dtype, cases[i].ndim, cases[i].shape, header), GW_OK);
		assert_memory_equal(header, "\x93NUMPY\x01\x00", 8);
		assert_int_equal(header[8] | header[9] << 8, GW_NPY_HEADER_BYTES - 10);
		size_t length = strlen(cases[i].text);
		assert_memory_equal(header + 10, cases[i].text, length);
		for (size_t b = 10 + length; b < GW_NPY_HEADER_BYTES - 1; b++)
			assert_int_equal(header[b], ' ');
		assert_int_equal(header[GW_NPY_HEADER_BYTES - 1], '\n');

		struct gw_npy npy;
		assert_int_equal(gw_npy_parse(header, sizeof(header), &npy), GW_OK);
		assert_string_equal(gw_dtype_numpy(npy.dtype), gw_dtype_numpy(cases[i].dtype));
		assert_int_equal(npy.ndim, cases[i].ndim);
		assert_memory_equal(npy.shape, cases[i].shape, npy.ndim * sizeof(uint64_t));
		assert_int_equal(npy.data_offset, GW_NPY_HEADER_BYTES);
		uint64_t bytes = gw_dtype_bytes(cases[i].dtype);
		for (uint32_t d = 0; d < npy.ndim; d++)
			bytes *= npy.shape[d];
		assert_int_equal(npy.data_bytes, bytes);
	}
}

static void test_format_refusals(void **state)
{
	(void)state;
	uint8_t header[GW_NPY_HEADER_BYTES];
	const uint64_t huge[4] = {1ull << 31, 1ull << 31, 2, 1}, shape[5] = {1, 1, 1, 1, 1};
	assert_int_equal(gw_npy_format(GW_UINT8, 4, huge, header), GW_RANGE);
	assert_int_equal(gw_npy_format(GW_UINT8, 5, shape, header), GW_INVALID);
	assert_int_equal(gw_npy_format(GW_DTYPE_COUNT, 1, shape, header), GW_INVALID);
}

static void test_accepted(void **state)
{
	(void)state;
	static const struct {
		const char *dictionary;
		gw_dtype dtype;
		uint32_t ndim;
		uint64_t bytes;
	} cases[] = {
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }    \n", GW_FLOAT32, 2, 48},
		{"{\"shape\":(7,),\"descr\":\"|i1\",\"fortran_order\":False}", GW_INT8, 1, 7},
		{"{'descr': '<u8', 'fortran_order': True, 'shape': (3,), }", GW_UINT64, 1, 24},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (3L, 2L), }", GW_INT32, 2, 24},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (5,), }", GW_INT16, 1, 10},
		{"{ 'fortran_order' : False , 'shape' : ( ) , 'descr' : '<f2' }", GW_FLOAT16, 0, 2},
		{"{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551615, 0), }", GW_FLOAT64, 2, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t file[512];
		struct gw_npy npy;
		size_t bytes = wrap_version_1(cases[i].dictionary, file);
		if (gw_npy_parse(file, bytes, &npy) != GW_OK)
			fail_msg("%s: %s", cases[i].dictionary, gw_last_error());
		assert_int_equal(npy.dtype, cases[i].dtype);
		assert_int_equal(npy.ndim, cases[i].ndim);
		assert_int_equal(npy.data_bytes, cases[i].bytes);
		assert_int_equal(npy.data_offset, bytes);
		/* version 2.0 has a 4-byte length */
		uint8_t second[512];
		memcpy(second, "\x93NUMPY\x02\x00", 8);
		second[8] = file[8];
		second[9] = file[9];
		second[10] = second[11] = 0;
		memcpy(second + 12, file + 10, bytes - 10);
		assert_int_equal(gw_npy_parse(second, bytes + 2, &npy), GW_OK);
		assert_int_equal(npy.data_bytes, cases[i].bytes);
		assert_int_equal(npy.data_offset, bytes + 2);
	}
}

static void test_units(void **state)
{
	(void)state;
	static const char *const descr[] = {"<M8[D]", "<M8[s]", "<M8[ms]", "<M8[us]", "<M8[ns]"};
	static const char *const wrong[] = {"<M8",      "<M8[]",   "<M8[h]",  "<M8[10us]",   "<M8[us",
					    "<M8[us]x", ">M8[us]", "<m8[us]", "<M8[generic]"};
	char text[128];
	struct gw_npy npy;
	for (size_t i = 0; i < sizeof(descr) / sizeof(descr[0]); i++) {
		snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", descr[i]);
		uint8_t header[512];
		size_t bytes = wrap_version_1(text, header);
		assert_int_equal(gw_npy_parse(header, bytes, &npy), GW_OK);
		assert_int_equal(npy.dtype, GW_INT64);
		assert_int_equal(npy.unit, GW_UNIT_DAY + i);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", wrong[i]);
		uint8_t header[512];
		size_t bytes = wrap_version_1(text, header);
		if (gw_npy_parse(header, bytes, &npy) != GW_UNSUPPORTED)
			fail_msg("%s", wrong[i]);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		gw_status status;
		const char *dictionary;
	} cases[] = {
		{GW_FORMAT, ""},
		{GW_FORMAT, "{"},
		{GW_FORMAT, "{}"},
		{GW_FORMAT, "[1]"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False}"},
		{GW_FORMAT, "{'descr': '<f4', 'shape': (1,)}"},
		{GW_FORMAT, "{'fortran_order': False, 'shape': (1,)}"},
		{GW_FORMAT, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)"},
		{GW_FORMAT, "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,"},
		{GW_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}"},
		{GW_FORMAT, "{'descr': '<f4"},
		{GW_FORMAT, "{'descr': '<f4\\n', 'fortran_order': False, 'shape': (1,)}"},
		{GW_FORMAT, "{'a key of far more than thirty-two characters': 1}"},
		{GW_RANGE, "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3)}"},
		{GW_RANGE, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"},
		{GW_UNSUPPORTED, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}"},
		{GW_UNSUPPORTED, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1)}"},
		{GW_UNSUPPORTED, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}"},
		{GW_UNSUPPORTED, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"},
		{GW_UNSUPPORTED, "{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}"},
		{GW_UNSUPPORTED, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t file[512];
		struct gw_npy npy;
		gw_status status = gw_npy_parse(file, wrap_version_1(cases[i].dictionary, file), &npy);
		if (status != cases[i].status)
			fail_msg("%s: %s", cases[i].dictionary, gw_status_text(status));
	}
}

/* Every prefix of a good file, in a block of exactly that size, so that a sanitizer detects reads past it. */
static void test_every_cut(void **state)
{
	(void)state;
	uint8_t file[512];
	size_t bytes = wrap_version_1("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", file);
	for (size_t cut = 0; cut < bytes; cut++) {
		uint8_t *block = malloc(cut ? cut : 1);
		struct gw_npy npy;
		memcpy(block, file, cut);
		assert_int_equal(gw_npy_parse(block, cut, &npy), GW_FORMAT);
		free(block);
	}
	struct gw_npy npy;
	file[6] = 3;
	assert_int_equal(gw_npy_parse(file, bytes, &npy), GW_UNSUPPORTED);
	file[6] = 1;
	file[7] = 1;
	assert_int_equal(gw_npy_parse(file, bytes, &npy), GW_UNSUPPORTED);
}

static void write_file(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
}

static void test_open(void **state)
{
	(void)state;
	char path[] = "/tmp/gw-npy-XXXXXX";
	close(mkstemp(path));
	uint8_t file[GW_NPY_HEADER_BYTES + 48];
	const uint64_t shape[2] = {3, 4};
	struct gw_npy_file opened;
	assert_int_equal(gw_npy_format(GW_FLOAT32, 2, shape, file), GW_OK);
	for (unsigned i = 0; i < 48; i++)
		file[GW_NPY_HEADER_BYTES + i] = (uint8_t)i;
	write_file(path, file, sizeof(file));
	assert_int_equal(gw_npy_open(path, &opened), GW_OK);
	assert_memory_equal(opened.data, file + GW_NPY_HEADER_BYTES, 48);
	gw_npy_close(&opened);

	write_file(path, file, sizeof(file) - 1);
	assert_int_equal(gw_npy_open(path, &opened), GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), path));
	assert_non_null(strstr(gw_last_error(), "4143 bytes long, its header asks for 4144"));
	assert_null(opened.mapping);
	write_file(path, file, 0);
	assert_int_equal(gw_npy_open(path, &opened), GW_FORMAT);
	unlink(path);
	assert_int_equal(gw_npy_open(path, &opened), GW_NOT_FOUND);
	assert_int_equal(gw_npy_open("/tmp", &opened), GW_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format_bytes), cmocka_unit_test(test_format_refusals),
		cmocka_unit_test(test_accepted),     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_units),        cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
