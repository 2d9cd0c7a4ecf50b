/* Archives as NumPy writes them: deflated members, headers padded to 64 bytes, strings as arrays of no dimensions. */
#ifndef GW_TEST_NPZ_FILE_H
#define GW_TEST_NPZ_FILE_H

#include <stddef.h>
#include <stdint.h>

struct npz_member {
	const char *name;  /* without ".npy" */
	const char *descr; /* "<i4" */
	const char *shape; /* "(3,)", "()" */
	const void *data;
	size_t bytes;
};

/* Writes the archive; fails the test when it cannot. */
void npz_file_write(const char *path, const struct npz_member *members, size_t count);

#endif
