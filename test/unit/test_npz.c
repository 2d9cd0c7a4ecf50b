/* .npz archives made by the test, stored and deflated, with zip64 fields; and every way to break them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/import_bed.h"
#include "tools/import/npz.h"

static char path[300];

static int begin(void **state)
{
	import_bed_set_up(state);
	snprintf(path, sizeof(path), "%s/a.npz", import_bed.root);
	return 0;
}

struct archive {
	uint8_t data[65536], directory[4096];
	size_t bytes, directory_bytes;
	unsigned members;
	bool zip64;
};

static void put(uint8_t *to, size_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[(*at)++] = (uint8_t)(value >> (8 * i));
}

static void add_member(struct archive *a, const char *name, const void *data, size_t bytes, bool deflated)
{
	uint8_t packed[8192];
	size_t stored = bytes;
	if (deflated) {
		z_stream stream = {0};
		assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
		stream.next_in = (Bytef *)(uintptr_t)data;
		stream.avail_in = (uInt)bytes;
		stream.next_out = packed;
		stream.avail_out = sizeof(packed);
		assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
		stored = stream.total_out;
		deflateEnd(&stream);
	} else {
		memcpy(packed, data, bytes);
	}
	size_t header_at = a->bytes, length = strlen(name);
	uint32_t crc = (uint32_t)crc32(0, data, (uInt)bytes), small = a->zip64 ? UINT32_MAX : 0;
	put(a->data, &a->bytes, 0x04034b50, 4);
	put(a->data, &a->bytes, 45, 2);
	put(a->data, &a->bytes, 0, 2);
	put(a->data, &a->bytes, deflated ? 8 : 0, 2);
	put(a->data, &a->bytes, 0, 4);
	put(a->data, &a->bytes, crc, 4);
	put(a->data, &a->bytes, small ? small : stored, 4);
	put(a->data, &a->bytes, small ? small : bytes, 4);
	put(a->data, &a->bytes, length, 2);
	put(a->data, &a->bytes, 3, 2); /* an extra field of another kind, which the directory does not have */
	memcpy(a->data + a->bytes, name, length);
	a->bytes += length + 3;
	memcpy(a->data + a->bytes, packed, stored);
	a->bytes += stored;

	put(a->directory, &a->directory_bytes, 0x02014b50, 4);
	put(a->directory, &a->directory_bytes, 45 | 45 << 16, 4);
	put(a->directory, &a->directory_bytes, 0, 2);
	put(a->directory, &a->directory_bytes, deflated ? 8 : 0, 2);
	put(a->directory, &a->directory_bytes, 0, 4);
	put(a->directory, &a->directory_bytes, crc, 4);
	put(a->directory, &a->directory_bytes, small ? small : stored, 4);
	put(a->directory, &a->directory_bytes, small ? small : bytes, 4);
	put(a->directory, &a->directory_bytes, length, 2);
	put(a->directory, &a->directory_bytes, small ? 28 : 0, 2);
	put(a->directory, &a->directory_bytes, 0, 6);
	put(a->directory, &a->directory_bytes, 0, 4);
	put(a->directory, &a->directory_bytes, small ? small : header_at, 4);
	memcpy(a->directory + a->directory_bytes, name, length);
	a->directory_bytes += length;
	if (small) {
		put(a->directory, &a->directory_bytes, 1 | 24 << 16, 4);
		put(a->directory, &a->directory_bytes, bytes, 8);
		put(a->directory, &a->directory_bytes, stored, 8);
		put(a->directory, &a->directory_bytes, header_at, 8);
	}
	a->members++;
}

static void finish(struct archive *a)
{
	size_t at = a->bytes;
	memcpy(a->data + a->bytes, a->directory, a->directory_bytes);
	a->bytes += a->directory_bytes;
	if (a->zip64) {
		size_t end64 = a->bytes;
		put(a->data, &a->bytes, 0x06064b50, 4);
		put(a->data, &a->bytes, 44, 8);
		put(a->data, &a->bytes, 45 | 45 << 16, 4);
		put(a->data, &a->bytes, 0, 8);
		put(a->data, &a->bytes, a->members, 8);
		put(a->data, &a->bytes, a->members, 8);
		put(a->data, &a->bytes, a->directory_bytes, 8);
		put(a->data, &a->bytes, at, 8);
		put(a->data, &a->bytes, 0x07064b50, 4);
		put(a->data, &a->bytes, 0, 4);
		put(a->data, &a->bytes, end64, 8);
		put(a->data, &a->bytes, 1, 4);
	}
	put(a->data, &a->bytes, 0x06054b50, 4);
	put(a->data, &a->bytes, 0, 4);
	put(a->data, &a->bytes, a->zip64 ? 0xffff : a->members, 2);
	put(a->data, &a->bytes, a->zip64 ? 0xffff : a->members, 2);
	put(a->data, &a->bytes, a->zip64 ? UINT32_MAX : a->directory_bytes, 4);
	put(a->data, &a->bytes, a->zip64 ? UINT32_MAX : at, 4);
	put(a->data, &a->bytes, 0, 2);
}

static void save(const struct archive *a, size_t bytes)
{
	import_bed_file(&import_bed, "a.npz", a->data, bytes);
}

static const int32_t numbers[] = {3, 1, 4, 1, 5, 9, 2, 6};

/* numbers as .npy */
static size_t member(uint8_t out[GW_NPY_HEADER_BYTES + sizeof(numbers)])
{
	const uint64_t shape[] = {8};
	assert_int_equal(gw_npy_format(GW_INT32, 1, shape, out), GW_OK);
	memcpy(out + GW_NPY_HEADER_BYTES, numbers, sizeof(numbers));
	return GW_NPY_HEADER_BYTES + sizeof(numbers);
}

static void make(struct archive *a, bool deflated, bool zip64)
{
	uint8_t npy[GW_NPY_HEADER_BYTES + sizeof(numbers)];
	memset(a, 0, sizeof(*a));
	a->zip64 = zip64;
	add_member(a, "first.npy", npy, member(npy), deflated);
	add_member(a, "second.npy", npy, member(npy), !deflated);
	add_member(a, "note.txt", "hello", 5, false);
	finish(a);
	save(a, a->bytes);
}

static struct archive a;

static void members_are_read(void **state)
{
	(void)state;
	for (int form = 0; form < 4; form++) {
		struct gw_npz *npz;
		struct gw_npy_file array;
		make(&a, form & 1, form & 2);
		assert_int_equal(gw_npz_open(path, &npz), GW_OK);
		assert_string_equal(gw_npz_name(npz, 0), "first");
		assert_string_equal(gw_npz_name(npz, 2), "note.txt");
		assert_null(gw_npz_name(npz, 3));
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(gw_npz_read(npz, gw_npz_name(npz, i), &array), GW_OK);
			assert_int_equal(array.npy.dtype, GW_INT32);
			assert_int_equal(array.npy.shape[0], 8);
			assert_int_equal((uintptr_t)array.data % 8, 0);
			assert_memory_equal(array.data, numbers, sizeof(numbers));
			gw_npy_close(&array);
		}
		assert_int_equal(gw_npz_read(npz, "note.txt", &array), GW_FORMAT);
		assert_int_equal(gw_npz_read(npz, "third", &array), GW_NOT_FOUND);
		assert_non_null(strstr(gw_last_error(), "first, second, note.txt"));
		gw_npz_close(npz);
	}
}

static void every_cut_is_refused(void **state)
{
	(void)state;
	make(&a, true, true);
	for (size_t cut = 0; cut < a.bytes; cut += 13) {
		struct gw_npz *npz;
		save(&a, cut);
		assert_int_equal(gw_npz_open(path, &npz), GW_FORMAT);
		assert_non_null(strstr(gw_last_error(), "a.npz"));
		assert_null(npz);
	}
}

static void a_name_that_a_string_would_cut_is_refused(void **state)
{
	(void)state;
	make(&a, false, false);
	size_t at = a.bytes;
	while (memcmp(a.data + --at, "note.txt", 8) != 0)
		; /* in the directory, after the members */
	a.data[at + 4] = 0;
	struct gw_npz *npz;
	save(&a, a.bytes);
	assert_int_equal(gw_npz_open(path, &npz), GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), "NUL"));
}

/* Changes any byte: never a crash, and never other numbers than the original ones. */
static void changed_bytes(void **state)
{
	(void)state;
	make(&a, true, false);
	for (size_t at = 0; at<a.bytes; at += at> 200 && at < 4000 ? 97 : 1) {
		struct gw_npz *npz;
		struct gw_npy_file array;
		a.data[at] ^= 0xff;
		save(&a, a.bytes);
		if (gw_npz_open(path, &npz) == GW_OK) {
			if (gw_npz_read(npz, "first", &array) == GW_OK) {
				assert_memory_equal(array.data, numbers, sizeof(numbers));
				gw_npy_close(&array);
			}
			gw_npz_close(npz);
		}
		a.data[at] ^= 0xff;
	}
}

static gw_status open_and_read(void *context)
{
	struct gw_npz *npz;
	struct gw_npy_file array;
	gw_status status = gw_npz_open(context, &npz);
	if (status != GW_OK)
		return status;
	status = gw_npz_read(npz, "first", &array);
	if (status == GW_OK)
		gw_npy_close(&array);
	gw_npz_close(npz);
	return status;
}

static void shortage(void **state)
{
	(void)state;
	make(&a, true, false);
	assert_true(gw_fault_each(open_and_read, path) > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_read),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(a_name_that_a_string_would_cut_is_refused),
		cmocka_unit_test(changed_bytes),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("npz", tests, begin, import_bed_tear_down);
}
