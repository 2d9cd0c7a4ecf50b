/* Element types: conversions to and from names and NumPy's descriptors, and refused texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/errors/status.h"
#include "core/numbers/dtype.h"

static void names_there_and_back(void **state)
{
	(void)state;
	for (int i = 0; i < GW_DTYPE_COUNT; i++) {
		gw_dtype dtype = (gw_dtype)i, found = GW_DTYPE_COUNT;
		assert_int_equal(gw_dtype_parse(gw_dtype_name(dtype), &found), GW_OK);
		assert_int_equal(found, dtype);
		uint32_t bytes = gw_dtype_bytes(dtype);
		assert_true(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
		assert_int_equal(gw_dtype_numpy(dtype)[2] - '0', bytes); /* NumPy's descriptor has the size too */
	}
	gw_dtype none = GW_FLOAT64;
	assert_int_equal(gw_dtype_parse("float128", &none), GW_NOT_FOUND);
	assert_int_equal(gw_dtype_parse("", &none), GW_NOT_FOUND);
	assert_int_equal(none, GW_FLOAT64);
	assert_int_equal(gw_dtype_bytes(GW_DTYPE_COUNT), 0);
	assert_string_equal(gw_dtype_name((gw_dtype)-1), "?");
	assert_string_equal(gw_dtype_numpy(GW_DTYPE_COUNT), "?");
}

static void descriptors_there_and_back(void **state)
{
	(void)state;
	gw_dtype found;
	for (int i = 0; i < GW_DTYPE_COUNT; i++) {
		gw_dtype dtype = (gw_dtype)i;
		assert_int_equal(gw_dtype_from_numpy(gw_dtype_numpy(dtype), &found), GW_OK);
		/* Only the JSON can distinguish these two from their stored types. */
		assert_int_equal(found, dtype == GW_BFLOAT16 ? GW_UINT16 : dtype == GW_INT8_ROW ? GW_UINT8 : dtype);
	}
	assert_int_equal(gw_dtype_from_numpy("<u1", &found), GW_OK);
	assert_int_equal(found, GW_UINT8);
	assert_int_equal(gw_dtype_from_numpy("=f4", &found), GW_OK);
	assert_int_equal(found, GW_FLOAT32);
	static const char *const bad[] = {">f4", ">i8", "",    "<",    "f",   "<f", "<c8",
					  "|S4", "|O",  "<U8", "<f16", "<m8", "f44"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		found = GW_DTYPE_COUNT;
		assert_int_equal(gw_dtype_from_numpy(bad[i], &found), GW_UNSUPPORTED);
		assert_int_equal(found, GW_DTYPE_COUNT);
		assert_non_null(strstr(gw_last_error(), bad[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_there_and_back),
		cmocka_unit_test(descriptors_there_and_back),
	};
	return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
