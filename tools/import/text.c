/* Reads an input's complete text into memory.
 *
 *   regular file -> mapped                    (the kernel reads pages as the parser touches them)
 *   gzip         -> inflated into memory      (one thread inflates a stream; concatenated streams are allowed)
 *   pipe         -> read into memory, then as above
 *
 * A text that exceeds the memory of the caller's spill grows in a file of it, without a name. Without a spill, it must
 * fit in memory.
 */
#include "tools/import/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/files/filemap.h"
#include "core/files/regular.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/system/clock.h"
#include "tools/builder/spill.h"

#define READ_BYTES    (1u << 20)
#define INFLATE_BYTES (4u << 20)  /* per call of inflate */
#define SNIFF_BYTES   (64u << 10) /* bytes searched for NUL */
#define LOOK_AHEAD    (64u << 20) /* read-ahead requested when a mapped file is opened */

/* Growing memory: an anonymous mapping, or that of a file. */
struct growing {
	char *data;
	uint64_t bytes, capacity, limit;
	struct gw_spill *spill; /* or NULL */
	int fd;                 /* of the file; -1: in memory */
};

/* The limit for a compressed file or a pipe. A small gzip file can inflate to more than any memory. */
static struct growing growing_begin(struct gw_spill *spill)
{
	struct growing memory = {.limit = GW_TEXT_BYTES_MAX, .spill = spill, .fd = -1};
	struct gw_memory host;
	if (!spill || !spill->folder) {
		gw_memory_read("", -1, &host);
		memory.limit = host.available < memory.limit ? host.available : memory.limit;
	}
	return memory;
}

static gw_status growing_fail(const struct growing *memory, uint64_t capacity, const char *name)
{
	if (memory->fd < 0)
		return gw_fail_errno(GW_NO_MEMORY, errno, "%s: out of memory for %llu bytes of text", name,
				     (unsigned long long)capacity);
	return gw_fail_errno(GW_IO, errno, "%s: a temporary file of %llu bytes in %s", name,
			     (unsigned long long)capacity, memory->spill->folder);
}

/* Moves the text to a file. */
static gw_status growing_to_file(struct growing *memory, uint64_t capacity, const char *name)
{
	gw_status status = gw_spill_announce(memory->spill, GW_SPILL_UNKNOWN, name);
	if (status != GW_OK)
		return status;
	memory->fd = gw_spill_make_file(memory->spill);
	if (memory->fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s: a temporary file in %s", name, memory->spill->folder);
	errno = posix_fallocate(memory->fd, 0, (off_t)capacity);
	void *data = errno ? MAP_FAILED : mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (data == MAP_FAILED)
		return growing_fail(memory, capacity, name);
	if (memory->data) {
		memcpy(data, memory->data, memory->bytes);
		munmap(memory->data, memory->capacity);
	}
	memory->data = data;
	memory->capacity = capacity;
	return GW_OK;
}

static gw_status growing_reserve(struct growing *memory, uint64_t more, const char *name)
{
	if (memory->capacity - memory->bytes >= more)
		return GW_OK;
	uint64_t wanted = memory->bytes + more;
	if (wanted > memory->limit)
		return gw_fail(GW_NO_MEMORY,
			       "%s: its text needs more memory than is available (%llu bytes): "
			       "split it, or import it on another host",
			       name, (unsigned long long)memory->limit);
	uint64_t capacity = memory->capacity + memory->capacity / 2;
	if (capacity < wanted)
		capacity = wanted;
	if (capacity > memory->limit)
		capacity = memory->limit;
	capacity = (capacity + 0xffff) & ~0xffffull;
	if (memory->fd < 0 && memory->spill && memory->spill->folder && capacity > memory->spill->budget)
		return growing_to_file(memory, capacity, name);
	errno = memory->fd < 0 ? 0 : posix_fallocate(memory->fd, 0, (off_t)capacity);
	if (errno)
		return growing_fail(memory, capacity, name);
	void *data = memory->data ? mremap(memory->data, memory->capacity, capacity, MREMAP_MAYMOVE)
				  : mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return growing_fail(memory, capacity, name);
	memory->data = data;
	memory->capacity = capacity;
	return GW_OK;
}

/* Makes the memory that of a text. What a file has reserved beyond the text is free again. */
static void growing_end(struct growing *memory, struct gw_text *text)
{
	bool in_file = memory->fd >= 0;
	if (in_file) {
		memory->spill->file_bytes += memory->bytes;
		if (ftruncate(memory->fd, (off_t)memory->bytes) != 0)
			errno = 0; /* the space stays reserved */
		close(memory->fd);
	} else if (memory->spill && memory->spill->folder) {
		memory->spill->budget -= memory->capacity;
		text->spill = memory->spill;
	}
	text->data = text->mapping = memory->data;
	text->bytes = memory->bytes;
	text->mapping_bytes = memory->capacity;
}

static void growing_free(struct growing *memory)
{
	if (memory->data)
		munmap(memory->data, memory->capacity);
	if (memory->fd >= 0)
		close(memory->fd);
}

static gw_status text_read_all(int fd, const char *name, struct growing *memory)
{
	for (;;) {
		gw_status status = growing_reserve(memory, READ_BYTES, name);
		if (status != GW_OK)
			return status;
		ssize_t got = read(fd, memory->data + memory->bytes, READ_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return gw_fail_errno(GW_IO, errno, "%s: read", name);
		if (got == 0)
			return GW_OK;
		memory->bytes += (uint64_t)got;
	}
}

static gw_status inflate_step(z_stream *stream, const struct gw_text *text, struct growing *memory, bool *ended)
{
	gw_status status = growing_reserve(memory, INFLATE_BYTES, text->name);
	if (status != GW_OK)
		return status;
	stream->next_out = (Bytef *)memory->data + memory->bytes;
	stream->avail_out = INFLATE_BYTES;
	int code = inflate(stream, Z_NO_FLUSH);
	memory->bytes += INFLATE_BYTES - stream->avail_out;
	*ended = code == Z_STREAM_END;
	if (code == Z_MEM_ERROR)
		return gw_fail(GW_NO_MEMORY, "%s: no memory to inflate", text->name);
	if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
		return gw_fail(GW_FORMAT, "%s: damaged gzip stream after %llu bytes of text: %s", text->name,
			       (unsigned long long)memory->bytes, stream->msg ? stream->msg : "bad data");
	return GW_OK;
}

static gw_status inflate_all(const struct gw_text *text, struct growing *memory)
{
	z_stream stream = {0};
	if (inflateInit2(&stream, 15 + 16) != Z_OK)
		return gw_fail(GW_NO_MEMORY, "%s: no memory to inflate", text->name);
	uint64_t fed = 0;
	bool ended = false;
	gw_status status = GW_OK;
	while (status == GW_OK) {
		if (stream.avail_in == 0) {
			uint64_t left = text->bytes - fed;
			stream.next_in = (Bytef *)(uintptr_t)(text->data + fed);
			stream.avail_in = (uInt)(left < INFLATE_BYTES ? left : INFLATE_BYTES);
			fed += stream.avail_in;
		}
		if (ended && (stream.avail_in == 0 || *stream.next_in == 0))
			break; /* the end of the file, or zeros that some tools append */
		if (ended)
			inflateReset(&stream);
		if (stream.avail_in == 0) {
			/* The output may still be incomplete; the input is too short only if no output comes. */
			uint64_t before = memory->bytes;
			status = inflate_step(&stream, text, memory, &ended);
			if (status == GW_OK && !ended && memory->bytes == before)
				status = gw_fail(GW_FORMAT,
						 "%s: the gzip stream ends early, after %llu bytes of text: "
						 "the file is truncated; fetch it again",
						 text->name, (unsigned long long)memory->bytes);
			continue;
		}
		status = inflate_step(&stream, text, memory, &ended);
	}
	inflateEnd(&stream);
	return status;
}

static bool starts_with(const struct gw_text *text, const char *magic, size_t bytes)
{
	return text->data && text->bytes >= bytes && memcmp(text->data, magic, bytes) == 0;
}

/* Refuses data that is not text, and names its format. */
static gw_status check_text(const struct gw_text *text)
{
	static const struct {
		const char *magic;
		size_t bytes;
		const char *what;
	} others[] = {
		{"PAR1", 4, "a Parquet file, which graphwire.from_tables of the Python package reads"},
		{"\x28\xb5\x2f\xfd", 4, "compressed by zstd: unpack it, or use gzip"},
		{"\xfd"
		 "7zXZ",
		 5, "compressed by xz: unpack it, or use gzip"},
		{"BZh", 3, "compressed by bzip2: unpack it, or use gzip"},
		{"ARROW1", 6, "an Arrow file: write it as CSV or .npy"},
		{"FEA1", 4, "a Feather file: write it as CSV or .npy"},
		{"Obj\x01", 4, "an Avro file: write it as CSV or .npy"},
		{"\x89HDF\r\n", 6, "an HDF5 file: write it as CSV or .npy"},
		{"SQLite format 3", 15, "an SQLite database: write it as CSV or .npy"},
		{"PK\x03\x04", 4, "a zip archive: unpack it, or name it .npz if it is one"},
		{"\x93NUMPY", 6, "a NumPy array: name it .npy"},
		{"\xff\xfe", 2, "UTF-16 text: save it as UTF-8"},
		{"\xfe\xff", 2, "UTF-16 text: save it as UTF-8"},
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (starts_with(text, others[i].magic, others[i].bytes))
			return gw_fail(GW_UNSUPPORTED, "%s: %s", text->name, others[i].what);
	}
	uint64_t looked_at = text->bytes < SNIFF_BYTES ? text->bytes : SNIFF_BYTES;
	const char *zero = looked_at ? memchr(text->data, 0, looked_at) : NULL;
	if (zero)
		return gw_fail(GW_FORMAT, "%s: a NUL byte at offset %llu: this is a binary file, not text", text->name,
			       (unsigned long long)(zero - text->data));
	return GW_OK;
}

/* The memory of a text that ends is the spill's again. */
static void text_give_back(struct gw_text *text)
{
	if (text->spill)
		text->spill->budget += text->mapping_bytes;
	text->spill = NULL;
}

static gw_status inflate_text(struct gw_text *text, struct gw_spill *spill)
{
	struct growing memory = growing_begin(spill);
	gw_status status = inflate_all(text, &memory);
	if (status != GW_OK) {
		growing_free(&memory);
		return status;
	}
	uint64_t file_bytes = text->file_bytes;
	if (text->mapping)
		gw_filemap_close(text->mapping, text->mapping_bytes);
	text_give_back(text);
	growing_end(&memory, text);
	text->file_bytes = file_bytes;
	text->inflated = true;
	return GW_OK;
}

static gw_status map_or_read(struct gw_text *text, int fd, struct gw_spill *spill)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return gw_fail_errno(GW_IO, errno, "%s", text->name);
	if (S_ISDIR(info.st_mode))
		return gw_fail(GW_INVALID, "%s is a folder: name a file in it", text->name);
	if (!S_ISREG(info.st_mode)) {
		struct growing memory = growing_begin(spill);
		gw_status status = text_read_all(fd, text->name, &memory);
		if (status != GW_OK)
			growing_free(&memory);
		else
			growing_end(&memory, text);
		text->file_bytes = text->bytes;
		return status;
	}
	text->bytes = text->file_bytes = (uint64_t)info.st_size;
	if (text->bytes > GW_TEXT_BYTES_MAX)
		return gw_fail(GW_LIMIT, "%s: %llu bytes are more than one input may have: split it", text->name,
			       (unsigned long long)text->bytes);
	if (text->bytes == 0)
		return GW_OK;
	void *mapping;
	gw_status status = gw_filemap_open(fd, text->name, text->bytes, &mapping);
	if (status != GW_OK)
		return status;
	text->data = text->mapping = mapping;
	text->mapping_bytes = text->bytes;
	madvise(mapping, text->bytes < LOOK_AHEAD ? text->bytes : LOOK_AHEAD, MADV_WILLNEED);
	return GW_OK;
}

gw_status gw_text_open_fd(const char *name, int fd, struct gw_spill *spill, struct gw_text *out)
{
	*out = (struct gw_text){0};
	struct gw_text text = {.name = gw_strdup(name)};
	if (!text.name)
		return GW_NO_MEMORY;
	gw_status status = map_or_read(&text, fd, spill);
	if (status == GW_OK && starts_with(&text, "\x1f\x8b", 2))
		status = inflate_text(&text, spill);
	if (status == GW_OK)
		status = check_text(&text);
	if (status != GW_OK) {
		gw_text_close(&text);
		return status;
	}
	if (!text.data)
		text.data = ""; /* an empty text still needs a valid pointer */
	*out = text;
	return GW_OK;
}

gw_status gw_text_open(const char *path, struct gw_spill *spill, struct gw_text *out)
{
	*out = (struct gw_text){0};
	if (strcmp(path, "-") == 0)
		return gw_text_open_fd("standard input", STDIN_FILENO, spill, out);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gw_fail_errno(errno == ENOENT ? GW_NOT_FOUND : GW_IO, errno, "%s", path);
	gw_status status = gw_text_open_fd(path, fd, spill, out);
	close(fd);
	return status;
}

gw_status gw_text_open_file(const char *path, struct gw_spill *spill, struct gw_text *out)
{
	int fd;
	uint64_t bytes;
	*out = (struct gw_text){0};
	gw_status status = gw_regular_open(path, &fd, &bytes);
	if (status != GW_OK)
		return status;
	status = gw_text_open_fd(path, fd, spill, out);
	close(fd);
	return status;
}

gw_status gw_text_borrow(const char *name, const void *data, uint64_t bytes, struct gw_text *out)
{
	*out = (struct gw_text){.name = gw_strdup(name), .data = data ? data : "", .bytes = bytes, .file_bytes = bytes};
	return out->name ? GW_OK : GW_NO_MEMORY;
}

/* The number of bytes of the character at p, if it is complete in `room` bytes; 0: not a UTF-8 character. Refuses
 * overlong forms and surrogates. */
static unsigned character_bytes(const uint8_t *p, uint64_t room)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned bytes = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
	if (bytes <= 1 || bytes > room)
		return bytes > room ? 0 : bytes;
	uint32_t value = p[0] & (0x7fu >> bytes);
	for (unsigned i = 1; i < bytes; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		value = value << 6 | (p[i] & 0x3f);
	}
	return value < least[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000) ? 0 : bytes;
}

uint64_t gw_text_utf8(const char *text, uint64_t bytes)
{
	uint64_t at = 0;
	while (at < bytes) {
		uint64_t eight;
		if (bytes - at >= sizeof(eight)) {
			memcpy(&eight, text + at, sizeof(eight));
			if (!(eight & 0x8080808080808080ull)) {
				at += sizeof(eight);
				continue;
			}
		}
		unsigned length = character_bytes((const uint8_t *)text + at, bytes - at);
		if (length == 0)
			return at;
		at += length;
	}
	return bytes;
}

void gw_text_close(struct gw_text *text)
{
	if (text->mapping)
		gw_filemap_close(text->mapping, text->mapping_bytes);
	text_give_back(text);
	gw_free(text->name);
	*text = (struct gw_text){0};
}
