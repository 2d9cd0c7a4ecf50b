/* NumPy's .npy container: magic, version, header length, a Python dictionary, the payload.
 *
 *   "\x93NUMPY" major minor | uint16 (1.0) or uint32 (2.0) header length | {'descr': '<f4', 'fortran_order': False,
 *   'shape': (3, 4), } padded with spaces and ended by '\n' | payload
 *
 * A small scanner reads the dictionary; it knows these three keys and nothing else of Python. Its cursor has an end, so
 * that no length in the file can make it read past the given bytes. Format: NumPy Enhancement Proposal 1 and
 * numpy/lib/format.py.
 */
#include "core/graph/npy.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/filemap.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6

struct npy_cursor {
	const char *at, *end;
};

static void skip_spaces(struct npy_cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
		c->at++;
}

static bool npy_take(struct npy_cursor *c, char wanted)
{
	skip_spaces(c);
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool take_quoted(struct npy_cursor *c, char *text, size_t room)
{
	skip_spaces(c);
	if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
		return false;
	char quote = *c->at++;
	size_t used = 0;
	while (c->at < c->end && *c->at != quote) {
		if (*c->at == '\\' || *c->at == '\0' || used + 1 == room)
			return false;
		text[used++] = *c->at++;
	}
	text[used] = '\0';
	return c->at++ < c->end;
}

static bool take_word(struct npy_cursor *c, const char *word)
{
	size_t length = strlen(word);
	skip_spaces(c);
	if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
		return false;
	c->at += length;
	return true;
}

static bool npy_take_number(struct npy_cursor *c, uint64_t *out)
{
	skip_spaces(c);
	if (c->at == c->end || !isdigit((unsigned char)*c->at))
		return false;
	uint64_t value = 0;
	for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (unsigned)(*c->at - '0'), &value))
			return false;
	}
	if (c->at < c->end && *c->at == 'L') /* Python 2's suffix of long integers */
		c->at++;
	*out = value;
	return true;
}

static gw_status parse_shape(struct npy_cursor *c, struct gw_npy *npy)
{
	if (!npy_take(c, '('))
		return gw_fail(GW_FORMAT, "'shape' is not a tuple");
	npy->ndim = 0;
	while (!npy_take(c, ')')) {
		uint64_t n;
		if (!npy_take_number(c, &n))
			return gw_fail(GW_FORMAT, "'shape': dimension %u is not a whole number below 2^64", npy->ndim);
		if (npy->ndim == GW_DIMS_MAX)
			return gw_fail(GW_UNSUPPORTED, "more than %d dimensions", GW_DIMS_MAX);
		npy->shape[npy->ndim++] = n;
		if (!npy_take(c, ',')) {
			if (!npy_take(c, ')'))
				return gw_fail(GW_FORMAT, "'shape' is not closed");
			break;
		}
	}
	return GW_OK;
}

struct seen {
	bool descr, order, shape;
	bool fortran;
};

/* Finds the unit of datetime64, "<M8[us]". Returns GW_NOT_FOUND, without an error text, for another dtype. */
static gw_status parse_datetime(const char *descr, struct gw_npy *npy)
{
	char unit[8];
	size_t length = strlen(descr);
	if (strncmp(descr, "<M8", 3) != 0)
		return GW_NOT_FOUND;
	bool form = length > 5 && descr[3] == '[' && descr[length - 1] == ']';
	snprintf(unit, sizeof(unit), "%.*s", form ? (int)length - 5 : 0, descr + 4);
	if (!form || !gw_time_unit_parse(unit, &npy->unit))
		return gw_fail(GW_UNSUPPORTED, "'descr': %s: times are of datetime64[D], [s], [ms], [us] or [ns]",
			       descr);
	npy->dtype = GW_INT64;
	return GW_OK;
}

static gw_status parse_entry(struct npy_cursor *c, struct gw_npy *npy, struct seen *seen)
{
	char key[32], value[32];
	if (!take_quoted(c, key, sizeof(key)) || !npy_take(c, ':'))
		return gw_fail(GW_FORMAT, "the header is not a dictionary of 'descr', 'fortran_order' and 'shape'");
	if (strcmp(key, "descr") == 0 && !seen->descr) {
		seen->descr = true;
		skip_spaces(c);
		if (c->at < c->end && *c->at == '[')
			return gw_fail(GW_UNSUPPORTED, "'descr': a structured dtype; save one array for each field");
		if (!take_quoted(c, value, sizeof(value)))
			return gw_fail(GW_FORMAT, "'descr' is not a short string");
		gw_status status = parse_datetime(value, npy);
		return status == GW_NOT_FOUND ? gw_dtype_from_numpy(value, &npy->dtype) : status;
	}
	if (strcmp(key, "fortran_order") == 0 && !seen->order) {
		seen->order = true;
		seen->fortran = take_word(c, "True");
		if (!seen->fortran && !take_word(c, "False"))
			return gw_fail(GW_FORMAT, "'fortran_order' is neither True nor False");
		return GW_OK;
	}
	if (strcmp(key, "shape") == 0 && !seen->shape) {
		seen->shape = true;
		return parse_shape(c, npy);
	}
	return gw_fail(GW_FORMAT, "the header has an unknown or a second key '%s'", key);
}

static gw_status parse_dictionary(struct npy_cursor *c, struct gw_npy *npy)
{
	struct seen seen = {0};
	if (!npy_take(c, '{'))
		return gw_fail(GW_FORMAT, "the header is not a dictionary");
	while (!npy_take(c, '}')) {
		gw_status status = parse_entry(c, npy, &seen);
		if (status != GW_OK)
			return status;
		if (!npy_take(c, ',')) {
			if (!npy_take(c, '}'))
				return gw_fail(GW_FORMAT, "the header's dictionary is not closed");
			break;
		}
	}
	skip_spaces(c);
	if (c->at != c->end)
		return gw_fail(GW_FORMAT, "the header goes on after its dictionary");
	if (!seen.descr || !seen.order || !seen.shape)
		return gw_fail(GW_FORMAT, "the header lacks '%s'",
			       !seen.descr   ? "descr"
			       : !seen.order ? "fortran_order"
					     : "shape");
	if (seen.fortran && npy->ndim > 1)
		return gw_fail(GW_UNSUPPORTED, "Fortran order: save numpy.ascontiguousarray(x)");
	return GW_OK;
}

/* GW_RANGE if they do not fit in 63 bits. */
static gw_status payload_bytes(gw_dtype dtype, uint32_t ndim, const uint64_t *shape, uint64_t *out)
{
	uint64_t bytes = gw_dtype_bytes(dtype);
	bool empty = false, over = false;
	for (uint32_t i = 0; i < ndim; i++) {
		empty |= shape[i] == 0; /* the product is then 0, even if earlier factors overflow */
		over |= __builtin_mul_overflow(bytes, shape[i], &bytes);
	}
	bytes = empty ? 0 : bytes;
	if (!empty && (over || bytes > INT64_MAX))
		return gw_fail(GW_RANGE, "the shape's bytes do not fit in 63 bits");
	*out = bytes;
	return GW_OK;
}

gw_status gw_npy_parse(const void *header, size_t bytes, struct gw_npy *out)
{
	const uint8_t *b = header;
	memset(out, 0, sizeof(*out));
	if (bytes < MAGIC_BYTES + 4 || memcmp(b, MAGIC, MAGIC_BYTES) != 0)
		return gw_fail(GW_FORMAT, "not an .npy file: it does not start with \\x93NUMPY");
	uint8_t major = b[6], minor = b[7];
	if ((major != 1 && major != 2) || minor != 0)
		return gw_fail(GW_UNSUPPORTED, ".npy version %u.%u; 1.0 and 2.0 are read", major, minor);
	size_t start = major == 1 ? 10 : 12;
	if (bytes < start)
		return gw_fail(GW_FORMAT, "the file ends after %zu bytes, within its .npy header", bytes);
	uint64_t length = (uint64_t)b[8] | (uint64_t)b[9] << 8;
	if (major == 2)
		length |= (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
	if (length > bytes - start)
		return gw_fail(GW_FORMAT, "its header of %llu bytes does not end within the first %zu bytes",
			       (unsigned long long)length, bytes);
	struct npy_cursor cursor = {(const char *)b + start, (const char *)b + start + length};
	gw_status status = parse_dictionary(&cursor, out);
	if (status != GW_OK)
		return status;
	out->data_offset = start + length;
	return payload_bytes(out->dtype, out->ndim, out->shape, &out->data_bytes);
}

gw_status gw_npy_format(gw_dtype dtype, uint32_t ndim, const uint64_t *shape, uint8_t header[GW_NPY_HEADER_BYTES])
{
	if ((unsigned)dtype >= GW_DTYPE_COUNT || ndim > GW_DIMS_MAX)
		return gw_fail(GW_INVALID, "an .npy header of dtype %d with %u dimensions", (int)dtype, ndim);
	uint64_t bytes;
	gw_status status = payload_bytes(dtype, ndim, shape, &bytes);
	if (status != GW_OK)
		return status;

	const uint32_t length = GW_NPY_HEADER_BYTES - 10;
	memset(header, ' ', GW_NPY_HEADER_BYTES);
	memcpy(header, MAGIC "\x01\x00", MAGIC_BYTES + 2);
	header[8] = length & 0xff;
	header[9] = length >> 8;

	char text[256]; /* room for four numbers of 20 digits and under 80 other characters */
	int used = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (",
			    gw_dtype_numpy(dtype));
	for (uint32_t i = 0; i < ndim; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%llu%s", i ? " " : "",
				 (unsigned long long)shape[i], i + 1 < ndim || ndim == 1 ? "," : "");
	used += snprintf(text + used, sizeof(text) - (size_t)used, "), }");
	memcpy(header + 10, text, (size_t)used);
	header[GW_NPY_HEADER_BYTES - 1] = '\n';
	return GW_OK;
}

static gw_status map_file(int fd, const char *path, struct gw_npy_file *out)
{
	struct stat info;
	if (fstat(fd, &info) < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot stat", path);
	if (!S_ISREG(info.st_mode))
		return gw_fail(GW_INVALID, "%s: not a regular file", path);
	if (info.st_size == 0)
		return gw_fail(GW_FORMAT, "%s: the file is empty", path);
	out->mapping_bytes = (size_t)info.st_size;
	return gw_filemap_open(fd, path, out->mapping_bytes, &out->mapping);
}

gw_status gw_npy_open(const char *path, struct gw_npy_file *out)
{
	memset(out, 0, sizeof(*out));
	/* O_NONBLOCK: opening a pipe of that name must not block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return gw_fail_errno(errno == ENOENT ? GW_NOT_FOUND : GW_IO, errno, "%s: cannot open", path);
	gw_status status = gw_npy_open_fd(fd, path, out);
	close(fd);
	return status;
}

gw_status gw_npy_open_fd(int fd, const char *path, struct gw_npy_file *out)
{
	memset(out, 0, sizeof(*out));
	gw_status status = map_file(fd, path, out);
	if (status != GW_OK)
		return status;
	status = gw_npy_parse(out->mapping, out->mapping_bytes, &out->npy);
	if (status != GW_OK) {
		gw_context(status, "%s", path);
	} else if (out->npy.data_bytes > out->mapping_bytes - out->npy.data_offset) {
		status = gw_fail(GW_FORMAT, "%s: truncated: %zu bytes long, its header asks for %llu", path,
				 out->mapping_bytes, (unsigned long long)(out->npy.data_offset + out->npy.data_bytes));
	}
	if (status != GW_OK) {
		gw_npy_close(out);
		return status;
	}
	out->data = (const uint8_t *)out->mapping + out->npy.data_offset;
	return GW_OK;
}

void gw_npy_close(struct gw_npy_file *file)
{
	if (file->mapping)
		gw_filemap_close(file->mapping, file->mapping_bytes);
	memset(file, 0, sizeof(*file));
}
