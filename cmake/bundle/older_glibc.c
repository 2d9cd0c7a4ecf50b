/* older_glibc LIMIT FILE…: makes programs and libraries that were linked here run on older C libraries.
 *
 *   a symbol requires a version newer than LIMIT
 *     ─▶ find the newest version up to LIMIT that this host's C library offers
 *     ─▶ write this version into the symbol's entry
 *     ─▶ remove versions that no symbol requires any more from the list
 *
 * The C library keeps every version that a symbol ever had, and the linker always takes the newest. Most new versions
 * differ only in name. Those of threads and dlopen do: they moved into libc.so.6 in 2.34. To find them on older hosts,
 * a program needs libpthread.so.0 and libdl.so.2, which still exist on newer hosts. Some versions behave differently,
 * so every change is printed. The file is changed in place and never grows. Only 64-bit files in this machine's byte
 * order.
 *
 * Fails (status 1) and names the symbol if a symbol has no older version.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSIONS_MAX  64
#define LIBRARIES_MAX 16
#define MOVED         0x4000 /* the symbol's version is final */

struct file {
	const char *path;
	uint8_t *bytes;
	const Elf64_Sym *symbols;
	size_t symbol_count;
	Elf64_Half *versions; /* of each symbol */
	char *strings;
	size_t string_bytes;
	uint8_t *needs, *offers; /* verneed, verdef; or NULL */
	unsigned need_count, offer_count;
};

static void fail(const char *path, const char *what)
{
	fprintf(stderr, "older_glibc: %s: %s\n", path, what);
	exit(1);
}

static struct file file_open(const char *path, bool write)
{
	struct file file = {.path = path};
	struct stat info;
	int fd = open(path, write ? O_RDWR : O_RDONLY);
	if (fd < 0 || fstat(fd, &info) != 0)
		fail(path, "cannot be opened");
	file.bytes = mmap(NULL, (size_t)info.st_size, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (file.bytes == MAP_FAILED || info.st_size < (off_t)sizeof(Elf64_Ehdr) ||
	    memcmp(file.bytes, ELFMAG, SELFMAG) != 0)
		fail(path, "is not an ELF file");
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)file.bytes;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(file.bytes + header->e_shoff);
	for (unsigned i = 0; i < header->e_shnum; i++) {
		uint8_t *at = file.bytes + sections[i].sh_offset;
		switch (sections[i].sh_type) {
		case SHT_DYNSYM:
			file.symbols = (const Elf64_Sym *)at;
			file.symbol_count = sections[i].sh_size / sizeof(Elf64_Sym);
			file.strings = (char *)file.bytes + sections[sections[i].sh_link].sh_offset;
			file.string_bytes = sections[sections[i].sh_link].sh_size;
			break;
		case SHT_GNU_versym:
			file.versions = (Elf64_Half *)at;
			break;
		case SHT_GNU_verneed:
			file.needs = at;
			file.need_count = sections[i].sh_info;
			break;
		case SHT_GNU_verdef:
			file.offers = at;
			file.offer_count = sections[i].sh_info;
			break;
		default:
			break;
		}
	}
	if (!file.symbols || !file.versions)
		fail(path, "has no versioned symbols");
	return file;
}

/* "GLIBC_2.3.4" -> 2003004; 0: no such version. */
static unsigned number_of(const char *name)
{
	unsigned major, minor, patch = 0;
	if (sscanf(name, "GLIBC_%3u.%3u.%3u", &major, &minor, &patch) < 2)
		return 0;
	return (major * 1000 + minor) * 1000 + patch;
}

/* ELF's hash of a name. */
static Elf64_Word hash_of(const char *name)
{
	Elf64_Word hash = 0;
	for (; *name; name++) {
		hash = (hash << 4) + (uint8_t)*name;
		hash = (hash ^ ((hash & 0xf0000000) >> 24)) & 0x0fffffff;
	}
	return hash;
}

/* The newest version up to the limit in which the library offers the symbol, or NULL. */
static const char *offered(const struct file *library, const char *symbol, unsigned limit)
{
	const char *best = NULL;
	for (size_t i = 0; i < library->symbol_count; i++) {
		if (!library->symbols[i].st_shndx ||
		    strcmp(library->strings + library->symbols[i].st_name, symbol) != 0)
			continue;
		const uint8_t *at = library->offers;
		for (unsigned d = 0; d < library->offer_count; d++) {
			const Elf64_Verdef *offer = (const Elf64_Verdef *)at;
			const Elf64_Verdaux *name = (const Elf64_Verdaux *)(at + offer->vd_aux);
			const char *text = library->strings + name->vda_name;
			if (offer->vd_ndx == (library->versions[i] & 0x7fff) && number_of(text) &&
			    number_of(text) <= limit && (!best || number_of(text) > number_of(best)))
				best = text;
			at += offer->vd_next;
		}
	}
	return best;
}

/* The libraries of this host, by soname. */
static const struct file *library_of(const char *soname)
{
	static struct file libraries[LIBRARIES_MAX];
	static char names[LIBRARIES_MAX][64], paths[LIBRARIES_MAX][128];
	static unsigned count;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(names[i], soname) == 0)
			return &libraries[i];
	static const char *const folders[] = {"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64",
					      "/usr/lib"};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && count < LIBRARIES_MAX; i++) {
		char *path = paths[count];
		snprintf(path, sizeof(paths[count]), "%s/%s", folders[i], soname);
		if (access(path, R_OK) != 0)
			continue;
		snprintf(names[count], sizeof(names[count]), "%s", soname);
		libraries[count] = file_open(path, false);
		return &libraries[count++];
	}
	fail(soname, "is not among this host's libraries");
	return NULL;
}

/* The versions that a file needs of one library. A slot whose `wanted` is NULL has a version that is too new. */
struct need {
	Elf64_Verneed *header;
	const char *soname;
	struct slot {
		Elf64_Vernaux *entry;
		const char *was, *wanted;
	} slots[VERSIONS_MAX];
	unsigned count;
};

static void need_read(const struct file *file, uint8_t *at, unsigned limit, struct need *need)
{
	need->header = (Elf64_Verneed *)at;
	need->soname = file->strings + need->header->vn_file;
	need->count = need->header->vn_cnt;
	if (need->count > VERSIONS_MAX)
		fail(file->path, "needs too many versions");
	uint8_t *entry = at + need->header->vn_aux;
	for (unsigned i = 0; i < need->count; i++) {
		struct slot *slot = &need->slots[i];
		slot->entry = (Elf64_Vernaux *)entry;
		slot->was = strdup(file->strings + slot->entry->vna_name);
		slot->wanted = number_of(slot->was) > limit ? NULL : slot->was;
		entry += slot->entry->vna_next;
	}
}

/* The slot of a version; else a free slot up to `last`. */
static struct slot *slot_for(const struct file *file, struct need *need, const char *version, unsigned last)
{
	for (unsigned i = 0; i < need->count; i++)
		if (need->slots[i].wanted && strcmp(need->slots[i].wanted, version) == 0)
			return &need->slots[i];
	for (unsigned i = 0; i <= last; i++)
		if (!need->slots[i].wanted) {
			need->slots[i].wanted = version;
			return &need->slots[i];
		}
	fail(file->path, "has too few versions to name another");
	return NULL;
}

/* Moves the symbols of a slot that is too new to other slots. True if it could move all of them. */
static bool symbols_move(struct file *file, struct need *need, unsigned from, unsigned limit)
{
	bool all = true;
	for (size_t i = 0; i < file->symbol_count; i++) {
		if (file->versions[i] != need->slots[from].entry->vna_other || file->symbols[i].st_shndx)
			continue;
		const char *symbol = file->strings + file->symbols[i].st_name;
		const char *version = offered(library_of(need->soname), symbol, limit);
		if (version) {
			printf("  %s: %s instead of %s\n", symbol, version, need->slots[from].was);
			file->versions[i] = slot_for(file, need, version, from)->entry->vna_other | MOVED;
		} else {
			fprintf(stderr, "older_glibc: %s: %s is new in %s\n", file->path, symbol,
				need->slots[from].was);
			all = false;
		}
	}
	return all;
}

/* The offset of this text in the file. If the file lacks the text, it replaces an unused name of a version that is too
 * new. */
static Elf64_Word text_place(struct file *file, const char *text, unsigned limit)
{
	size_t bytes = strlen(text) + 1;
	for (size_t i = 0; i + bytes <= file->string_bytes; i++)
		if (memcmp(file->strings + i, text, bytes) == 0)
			return (Elf64_Word)i;
	for (size_t i = 1; i + bytes <= file->string_bytes; i++) {
		if (file->strings[i - 1] == 0 && number_of(file->strings + i) > limit &&
		    strlen(file->strings + i) + 1 >= bytes) {
			memcpy(file->strings + i, text, bytes);
			return (Elf64_Word)i;
		}
	}
	fail(file->path, "has no room for the name of a version");
	return 0;
}

/* Writes the versions of the slots into the file, and removes unused slots from the list. */
static void need_write(struct file *file, struct need *need, unsigned limit)
{
	uint8_t *last = NULL;
	Elf64_Half kept = 0;
	for (unsigned i = 0; i < need->count; i++) {
		const struct slot *slot = &need->slots[i];
		if (!slot->wanted)
			continue;
		if (slot->wanted != slot->was) {
			slot->entry->vna_name = text_place(file, slot->wanted, limit);
			slot->entry->vna_hash = hash_of(slot->wanted);
		}
		if (last)
			((Elf64_Vernaux *)last)->vna_next = (Elf64_Word)((uint8_t *)slot->entry - last);
		else
			need->header->vn_aux = (Elf64_Word)((uint8_t *)slot->entry - (uint8_t *)need->header);
		last = (uint8_t *)slot->entry;
		kept++;
	}
	if (!kept)
		fail(file->path, "would need no version of a library at all");
	((Elf64_Vernaux *)last)->vna_next = 0;
	need->header->vn_cnt = kept;
}

static void file_change(struct file *file, unsigned limit)
{
	static struct need needs[LIBRARIES_MAX];
	uint8_t *at = file->needs;
	bool all = true;
	if (file->need_count > LIBRARIES_MAX)
		fail(file->path, "needs too many libraries");
	for (unsigned n = 0; n < file->need_count; n++) {
		need_read(file, at, limit, &needs[n]);
		at += needs[n].header->vn_next;
		for (unsigned i = 0; i < needs[n].count; i++)
			if (number_of(needs[n].slots[i].was) > limit)
				all &= symbols_move(file, &needs[n], i, limit);
	}
	if (!all)
		exit(1);
	for (size_t i = 0; i < file->symbol_count; i++)
		file->versions[i] &= (Elf64_Half)~MOVED;
	for (unsigned n = 0; n < file->need_count; n++)
		need_write(file, &needs[n], limit);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: older_glibc 2.28 FILE...\n");
		return 2;
	}
	char name[64];
	snprintf(name, sizeof(name), "GLIBC_%.32s", argv[1]);
	unsigned limit = number_of(name);
	for (int i = 2; i < argc && limit; i++) {
		struct file file = file_open(argv[i], true);
		printf("%s\n", argv[i]);
		file_change(&file, limit);
	}
	return limit ? 0 : 2;
}
