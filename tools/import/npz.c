/* Reads .npz archives (PKWARE's APPNOTE 6.3, with zip64).
 *
 *   end record -> (zip64 end record) -> directory: names, methods, sizes, places -> a member: copied or inflated
 *
 * Every offset and length is checked against the file before use. Sizes come from the directory, since local headers
 * may omit them.
 */
#include "tools/import/npz.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "core/files/filemap.h"
#include "core/files/regular.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"

#define END_BYTES         22u
#define END64_BYTES       56u
#define LOCATOR64_BYTES   20u
#define ENTRY_BYTES       46u
#define LOCAL_BYTES       30u
#define END_SIGNATURE     0x06054b50u
#define END64_SIGNATURE   0x06064b50u
#define LOC64_SIGNATURE   0x07064b50u
#define ENTRY_SIGNATURE   0x02014b50u
#define LOCAL_SIGNATURE   0x04034b50u
#define COMMENT_MAX       0xffffu
#define STORED            0
#define DEFLATED          8
#define INFLATE_STEP      (1u << 30) /* bytes that one zlib call gets: zlib's counters have 32 bits */
#define EXTRA_ZIP64       1
#define FLAG_ENCRYPTED    1u
#define MEMBER_NAME_MAX   255u
#define MEMBER_LIST_BYTES 400u
#define WORD_START        10u /* of the header of an .npy file of version 1 */
#define WORD_HEADER_MAX   512u

struct member {
	char name[MEMBER_NAME_MAX + 1];
	uint16_t method, flags;
	uint32_t crc;
	uint64_t stored_bytes, bytes, header_at;
};

struct gw_npz {
	char *path;
	const uint8_t *data;
	uint64_t bytes;
	struct member *members;
	uint32_t count;
};

static uint64_t little(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static gw_status damaged(const struct gw_npz *npz, const char *what)
{
	return gw_fail(GW_FORMAT, "%s: not a complete .npz archive: %s", npz->path, what);
}

static gw_status find_directory(const struct gw_npz *npz, uint64_t *at, uint64_t *bytes, uint64_t *entries)
{
	if (npz->bytes < END_BYTES)
		return damaged(npz, "too short");
	uint64_t end = npz->bytes - END_BYTES, lowest = end > COMMENT_MAX ? end - COMMENT_MAX : 0;
	while (little(npz->data + end, 4) != END_SIGNATURE) {
		if (end == lowest)
			return damaged(npz, "no end record; the file may be truncated");
		end--;
	}
	const uint8_t *record = npz->data + end;
	*entries = little(record + 10, 2);
	*bytes = little(record + 12, 4);
	*at = little(record + 16, 4);
	if (end >= LOCATOR64_BYTES && little(record - LOCATOR64_BYTES, 4) == LOC64_SIGNATURE) {
		uint64_t end64 = little(record - LOCATOR64_BYTES + 8, 8);
		if (end64 > npz->bytes || npz->bytes - end64 < END64_BYTES ||
		    little(npz->data + end64, 4) != END64_SIGNATURE)
			return damaged(npz, "a misplaced zip64 end record");
		*entries = little(npz->data + end64 + 32, 8);
		*bytes = little(npz->data + end64 + 40, 8);
		*at = little(npz->data + end64 + 48, 8);
	}
	if (*at > npz->bytes || *bytes > npz->bytes - *at)
		return damaged(npz, "a directory outside the file");
	if (*entries > GW_NPZ_MEMBERS_MAX)
		return gw_fail(GW_LIMIT, "%s: more than %u members", npz->path, GW_NPZ_MEMBERS_MAX);
	return GW_OK;
}

/* They are in the zip64 extra field. */
static gw_status read_zip64(const struct gw_npz *npz, struct member *member, const uint8_t *extra, uint64_t bytes)
{
	uint64_t *const values[] = {&member->bytes, &member->stored_bytes, &member->header_at};
	while (bytes >= 4) {
		uint64_t id = little(extra, 2), size = little(extra + 2, 2);
		if (size > bytes - 4)
			return damaged(npz, "a truncated extra field");
		const uint8_t *at = extra + 4, *end = at + size;
		for (size_t i = 0; id == EXTRA_ZIP64 && i < 3; i++) {
			if (*values[i] != UINT32_MAX)
				continue;
			if (end - at < 8)
				return damaged(npz, "a truncated zip64 field");
			*values[i] = little(at, 8);
			at += 8;
		}
		extra = end;
		bytes -= size + 4;
	}
	return GW_OK;
}

static gw_status read_entry(const struct gw_npz *npz, const uint8_t *entry, uint64_t room, struct member *member,
			    uint64_t *used)
{
	if (room < ENTRY_BYTES || little(entry, 4) != ENTRY_SIGNATURE)
		return damaged(npz, "a directory that breaks off");
	uint64_t name = little(entry + 28, 2), extra = little(entry + 30, 2), comment = little(entry + 32, 2);
	*used = ENTRY_BYTES + name + extra + comment;
	if (*used > room)
		return damaged(npz, "a directory that breaks off");
	if (name > MEMBER_NAME_MAX)
		return gw_fail(GW_LIMIT, "%s: a member's name has more than %u bytes", npz->path, MEMBER_NAME_MAX);
	if (memchr(entry + ENTRY_BYTES, 0, name))
		return damaged(npz, "a member's name with a NUL byte");
	memcpy(member->name, entry + ENTRY_BYTES, name);
	if (name > 4 && memcmp(member->name + name - 4, ".npy", 4) == 0)
		member->name[name - 4] = '\0';
	member->flags = (uint16_t)little(entry + 8, 2);
	member->method = (uint16_t)little(entry + 10, 2);
	member->crc = (uint32_t)little(entry + 16, 4);
	member->stored_bytes = little(entry + 20, 4);
	member->bytes = little(entry + 24, 4);
	member->header_at = little(entry + 42, 4);
	return read_zip64(npz, member, entry + ENTRY_BYTES + name, extra);
}

static gw_status read_directory(struct gw_npz *npz)
{
	uint64_t at = 0, bytes = 0, entries = 0;
	gw_status status = find_directory(npz, &at, &bytes, &entries);
	if (status != GW_OK)
		return status;
	npz->members = gw_calloc(entries, sizeof(*npz->members));
	if (!npz->members)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < entries; i++) {
		uint64_t used = 0;
		status = read_entry(npz, npz->data + at, bytes, &npz->members[i], &used);
		if (status != GW_OK)
			return status;
		at += used;
		bytes -= used;
		npz->count++;
	}
	return GW_OK;
}

static gw_status npz_map_file(struct gw_npz *npz)
{
	int fd;
	uint64_t bytes;
	gw_status status = gw_regular_open(npz->path, &fd, &bytes);
	if (status != GW_OK)
		return status;
	if (bytes == 0)
		status = gw_fail(GW_FORMAT, "%s: not a .npz archive: an empty file", npz->path);
	if (status == GW_OK) {
		void *mapping;
		status = gw_filemap_open(fd, npz->path, (size_t)bytes, &mapping);
		npz->data = mapping;
		npz->bytes = bytes;
	}
	close(fd);
	return status;
}

gw_status gw_npz_open(const char *path, struct gw_npz **out)
{
	*out = NULL;
	struct gw_npz *npz = gw_calloc(1, sizeof(*npz));
	if (!npz)
		return GW_NO_MEMORY;
	npz->path = gw_strdup(path);
	gw_status status = npz->path ? npz_map_file(npz) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = read_directory(npz);
	if (status != GW_OK)
		gw_npz_close(npz);
	else
		*out = npz;
	return status;
}

void gw_npz_close(struct gw_npz *npz)
{
	if (!npz)
		return;
	if (npz->data)
		gw_filemap_close((void *)(uintptr_t)npz->data, npz->bytes);
	gw_free(npz->members);
	gw_free(npz->path);
	gw_free(npz);
}

const char *gw_npz_name(const struct gw_npz *npz, uint32_t number)
{
	return number < npz->count ? npz->members[number].name : NULL;
}

static const struct member *find_member(const struct gw_npz *npz, const char *name)
{
	for (uint32_t i = 0; i < npz->count; i++) {
		if (strcmp(npz->members[i].name, name) == 0)
			return &npz->members[i];
	}
	return NULL;
}

bool gw_npz_has(const struct gw_npz *npz, const char *name)
{
	return find_member(npz, name) != NULL;
}

static gw_status inflate_member(const struct gw_npz *npz, const struct member *member, const uint8_t *from, uint8_t *to)
{
	z_stream stream = {0};
	if (inflateInit2(&stream, -15) != Z_OK)
		return gw_fail(GW_NO_MEMORY, "%s: out of memory for inflating", npz->path);
	uint64_t in = 0, out = 0;
	int code = Z_OK;
	while (code == Z_OK) {
		uint64_t in_left = member->stored_bytes - in, out_left = member->bytes - out;
		stream.next_in = (Bytef *)(uintptr_t)(from + in);
		stream.avail_in = (uInt)(in_left < INFLATE_STEP ? in_left : INFLATE_STEP);
		stream.next_out = to + out;
		stream.avail_out = (uInt)(out_left < INFLATE_STEP ? out_left : INFLATE_STEP);
		uInt given_in = stream.avail_in, given_out = stream.avail_out;
		code = inflate(&stream, Z_NO_FLUSH);
		in += given_in - stream.avail_in;
		out += given_out - stream.avail_out;
	}
	inflateEnd(&stream);
	if (code != Z_STREAM_END || out != member->bytes)
		return gw_fail(GW_FORMAT, "%s: member \"%s\" is damaged: it does not inflate to its %llu bytes",
			       npz->path, member->name, (unsigned long long)member->bytes);
	return GW_OK;
}

static gw_status fill_member(const struct gw_npz *npz, const struct member *member, uint8_t *to)
{
	if (member->flags & FLAG_ENCRYPTED || (member->method != STORED && member->method != DEFLATED))
		return gw_fail(GW_UNSUPPORTED,
			       "%s: member \"%s\" is encrypted or packed by a method that NumPy does not use",
			       npz->path, member->name);
	if (member->header_at > npz->bytes || npz->bytes - member->header_at < LOCAL_BYTES)
		return damaged(npz, "a member outside the file");
	const uint8_t *local = npz->data + member->header_at;
	if (little(local, 4) != LOCAL_SIGNATURE)
		return damaged(npz, "a member without its header");
	uint64_t skip = LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
	uint64_t room = npz->bytes - member->header_at;
	if (skip > room || member->stored_bytes > room - skip)
		return damaged(npz, "a member that ends after the end of the file");
	if (member->method == DEFLATED)
		return inflate_member(npz, member, local + skip, to);
	if (member->stored_bytes != member->bytes)
		return damaged(npz, "a stored member with two different lengths");
	memcpy(to, local + skip, member->bytes);
	return GW_OK;
}

static gw_status check_crc(const struct gw_npz *npz, const struct member *member, const uint8_t *data)
{
	uLong crc = crc32_z(0, NULL, 0);
	crc = crc32_z(crc, data, member->bytes);
	if ((uint32_t)crc != member->crc)
		return gw_fail(GW_DIGEST, "%s: member \"%s\" does not match its CRC: the file is damaged", npz->path,
			       member->name);
	return GW_OK;
}

static gw_status no_member(const struct gw_npz *npz, const char *name)
{
	char list[MEMBER_LIST_BYTES] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < npz->count; i++) {
		int added = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", npz->members[i].name);
		if (added < 0 || used + (size_t)added >= sizeof(list))
			break;
		used += (size_t)added;
	}
	list[used] = '\0';
	return gw_fail(GW_NOT_FOUND, "%s: no member \"%.64s\"; it has: %s", npz->path, name, list);
}

static gw_status npz_extract(const struct gw_npz *npz, const char *name, const struct member **found, void **out)
{
	const struct member *member = find_member(npz, name);
	*found = member;
	*out = NULL;
	if (!member)
		return no_member(npz, name);
	/* A directory may claim any size, so first check that this machine can hold it. */
	gw_status status = gw_memory_check(member->bytes, -1, member->name);
	if (status != GW_OK)
		return gw_context(status, "%s", npz->path);
	if (member->bytes == 0)
		return gw_fail(GW_FORMAT, "%s: member \"%s\" is empty", npz->path, name);
	void *memory = mmap(NULL, member->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "%s: member \"%s\"", npz->path, name);
	status = fill_member(npz, member, memory);
	if (status == GW_OK)
		status = check_crc(npz, member, memory);
	if (status != GW_OK)
		munmap(memory, member->bytes);
	else
		*out = memory;
	return status;
}

gw_status gw_npz_read(const struct gw_npz *npz, const char *name, struct gw_npy_file *out)
{
	*out = (struct gw_npy_file){0};
	const struct member *member;
	void *memory;
	gw_status status = npz_extract(npz, name, &member, &memory);
	if (status != GW_OK)
		return status;
	assert(memory);
	status = gw_npy_parse(memory, member->bytes, &out->npy);
	if (status == GW_OK &&
	    (out->npy.data_offset > member->bytes || out->npy.data_bytes > member->bytes - out->npy.data_offset))
		status = gw_fail(GW_FORMAT, "it is shorter than its header says");
	if (status != GW_OK)
		gw_context(status, "%s: member \"%s\"", npz->path, name);
	if (status != GW_OK) {
		munmap(memory, member->bytes);
		*out = (struct gw_npy_file){0};
		return status;
	}
	out->data = (const uint8_t *)memory + out->npy.data_offset;
	out->mapping = memory;
	out->mapping_bytes = member->bytes;
	return GW_OK;
}

/* Takes the string from an .npy file with one string. It searches the header, since arrays here do not have string
 * dtypes. */
static bool word_of(const char *file, uint64_t file_bytes, char *word, size_t bytes)
{
	char header[WORD_HEADER_MAX + 1];
	if (file_bytes < WORD_START || memcmp(file, "\x93NUMPY\x01", 7) != 0)
		return false;
	uint64_t length = little((const uint8_t *)file + 8, 2);
	if (length > WORD_HEADER_MAX || file_bytes - WORD_START < length)
		return false;
	memcpy(header, file + WORD_START, length);
	header[length] = '\0';
	const char *one = strstr(header, "'|S"), *four = strstr(header, "'<U");
	const char *digits = one ? one + 3 : four ? four + 3 : NULL;
	if (!digits || !strstr(header, "()"))
		return false;
	uint64_t count = strtoul(digits, NULL, 10), width = one ? 1 : 4, room = file_bytes - WORD_START - length;
	if (count == 0 || count >= bytes || room < count * width)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t character = little((const uint8_t *)file + WORD_START + length + i * width, (unsigned)width);
		if (character != 0 && (character < ' ' || character > '~'))
			return false;
		word[i] = (char)character;
	}
	word[count] = '\0';
	return true;
}

gw_status gw_npz_word(const struct gw_npz *npz, const char *name, char *word, size_t bytes)
{
	const struct member *member;
	void *memory;
	gw_status status = npz_extract(npz, name, &member, &memory);
	if (status != GW_OK)
		return status;
	assert(memory);
	if (!word_of(memory, member->bytes, word, bytes))
		status = gw_fail(GW_FORMAT, "%s: member \"%s\" is not a short string", npz->path, name);
	munmap(memory, member->bytes);
	return status;
}
