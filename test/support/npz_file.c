/* Archives as NumPy writes them. */
#include "test/support/npz_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define HEADER_STEP 64u

struct bytes {
	uint8_t *data;
	size_t used;
};

static void add(struct bytes *to, const void *data, size_t bytes)
{
	uint8_t *grown = realloc(to->data, to->used + bytes + 1);
	assert_non_null(grown);
	to->data = grown;
	if (bytes)
		memcpy(to->data + to->used, data, bytes);
	to->used += bytes;
}

static void put(struct bytes *to, uint64_t value, unsigned bytes)
{
	uint8_t little[8];
	for (unsigned i = 0; i < bytes; i++)
		little[i] = (uint8_t)(value >> (8 * i));
	add(to, little, bytes);
}

static struct bytes array_file(const struct npz_member *member)
{
	char header[256];
	struct bytes file = {0};
	int used = snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
			    member->descr, member->shape);
	size_t padded = ((size_t)used + 10 + HEADER_STEP) / HEADER_STEP * HEADER_STEP - 10;
	assert_true(padded < sizeof(header));
	memset(header + used, ' ', padded - (size_t)used);
	header[padded - 1] = '\n';
	add(&file, "\x93NUMPY\x01\x00", 8);
	put(&file, padded, 2);
	add(&file, header, padded);
	add(&file, member->data, member->bytes);
	return file;
}

static struct bytes deflated(const struct bytes *file)
{
	z_stream stream = {0};
	size_t room = compressBound(file->used);
	struct bytes packed = {.data = malloc(room)};
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = file->data;
	stream.avail_in = (uInt)file->used;
	stream.next_out = packed.data;
	stream.avail_out = (uInt)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed.used = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

/* What local header and directory say alike, from the version needed on. */
static void put_member(struct bytes *to, const char *name, const struct bytes *file, const struct bytes *packed)
{
	put(to, 20, 2);
	put(to, 0, 2);
	put(to, 8, 2);
	put(to, 0, 4);
	put(to, crc32(0, file->data, (uInt)file->used), 4);
	put(to, packed->used, 4);
	put(to, file->used, 4);
	put(to, strlen(name), 2);
	put(to, 0, 2);
}

void npz_file_write(const char *path, const struct npz_member *members, size_t count)
{
	struct bytes archive = {0}, directory = {0};
	for (size_t i = 0; i < count; i++) {
		char name[128];
		struct bytes file = array_file(&members[i]), packed = deflated(&file);
		size_t at = archive.used;
		snprintf(name, sizeof(name), "%s.npy", members[i].name);
		put(&archive, 0x04034b50, 4);
		put_member(&archive, name, &file, &packed);
		add(&archive, name, strlen(name));
		add(&archive, packed.data, packed.used);
		put(&directory, 0x02014b50, 4);
		put(&directory, 20, 2);
		put_member(&directory, name, &file, &packed);
		put(&directory, 0, 6);
		put(&directory, 0, 4);
		put(&directory, at, 4);
		add(&directory, name, strlen(name));
		free(file.data);
		free(packed.data);
	}
	size_t at = archive.used;
	add(&archive, directory.data, directory.used);
	put(&archive, 0x06054b50, 4);
	put(&archive, 0, 4);
	put(&archive, count, 2);
	put(&archive, count, 2);
	put(&archive, directory.used, 4);
	put(&archive, at, 4);
	put(&archive, 0, 2);
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(archive.data, 1, archive.used, out), archive.used);
	assert_int_equal(fclose(out), 0);
	free(archive.data);
	free(directory.data);
}
