/* See spill.h. A head is in front of each block. The block of a file begins one page after its mapping. */
#include "tools/builder/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"

#define PAGE_BYTES 4096u

struct spill_head {
	struct gw_spill *spill; /* that the bytes return to, or that has the folder of the file; NULL: none */
	void *start;            /* of the memory, or of the mapping */
	uint64_t bytes;         /* of the block, or of the mapping */
	bool mapped;
	int fd; /* of the mapping */
} __attribute__((aligned(64)));

gw_status gw_spill_open(struct gw_spill *spill, const char *out, uint64_t budget)
{
	size_t length = strlen(out);
	while (length > 1 && out[length - 1] == '/')
		length--;
	while (length > 0 && out[length - 1] != '/')
		length--;
	*spill = (struct gw_spill){.budget = budget};
	spill->folder = length ? gw_format("%.*s", (int)length, out) : gw_format(".");
	return spill->folder ? GW_OK : GW_NO_MEMORY;
}

void gw_spill_close(struct gw_spill *spill)
{
	gw_free(spill->folder);
	*spill = (struct gw_spill){0};
}

gw_status gw_spill_announce(struct gw_spill *spill, uint64_t bytes, const char *what)
{
	char text[GW_UNIT_TEXT_MAX], free_text[GW_UNIT_TEXT_MAX];
	struct statvfs disk;
	if (bytes == 0 || !spill->folder || statvfs(spill->folder, &disk) != 0)
		return GW_OK;
	bool known = bytes != GW_SPILL_UNKNOWN;
	uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	gw_text_bytes(text, (double)bytes);
	gw_text_bytes(free_text, (double)free_bytes);
	if (known && bytes > free_bytes)
		return gw_fail(GW_NO_SPACE, "%s: temporary files of up to %s do not fit: %s are free (--memory)",
			       spill->folder, text, free_text);
	if (known)
		spill->announced = bytes;
	if (spill->reports && bytes > GW_SPILL_SMALL)
		fprintf(stderr, "memory: %s takes temporary files of %s%s in %s, where %s are free\n", what,
			known ? "up to " : "unknown size", known ? text : "", spill->folder, free_text);
	return GW_OK;
}

gw_status gw_spill_announce_blocks(struct gw_spill *spill, uint64_t bytes, const char *what)
{
	return bytes > spill->budget && bytes > spill->announced ? gw_spill_announce(spill, bytes, what) : GW_OK;
}

int gw_spill_make_file(const struct gw_spill *spill)
{
	const char *folder = spill->folder;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	char *name = gw_format("%s/.graphwire-XXXXXX", folder); /* for file systems without O_TMPFILE */
	fd = name ? mkostemp(name, O_CLOEXEC) : -1;
	if (fd >= 0)
		unlink(name);
	gw_free(name);
	return fd;
}

/* head: bytes of the file in front of those that steps announce. */
static gw_status make_announced(struct gw_spill *spill, uint64_t bytes, uint64_t head, int *fd)
{
	char text[GW_UNIT_TEXT_MAX];
	gw_status status = bytes > spill->announced ? gw_spill_announce(spill, bytes, "an array") : GW_OK;
	if (status != GW_OK)
		return status;
	*fd = gw_spill_make_file(spill);
	int error = *fd < 0 ? errno : posix_fallocate(*fd, 0, (off_t)(head + bytes));
	if (error && *fd >= 0)
		close(*fd);
	if (error)
		return gw_fail_errno(GW_IO, error, "%s: a temporary file of %s", spill->folder,
				     gw_text_bytes(text, (double)bytes));
	spill->announced -= bytes < spill->announced ? bytes : spill->announced;
	spill->file_bytes += bytes;
	return GW_OK;
}

gw_status gw_spill_file(struct gw_spill *spill, uint64_t bytes, int *fd)
{
	return make_announced(spill, bytes, 0, fd);
}

static void *spill_file(struct gw_spill *spill, uint64_t bytes, gw_status *status)
{
	char text[GW_UNIT_TEXT_MAX];
	uint64_t length = bytes + PAGE_BYTES;
	int fd;
	*status = make_announced(spill, bytes, PAGE_BYTES, &fd);
	if (*status != GW_OK)
		return NULL;
	void *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (start == MAP_FAILED)
		*status = gw_fail_errno(GW_IO, errno, "%s: a temporary file of %s", spill->folder,
					gw_text_bytes(text, (double)bytes));
	if (*status != GW_OK) {
		close(fd);
		return NULL;
	}
	char *block = (char *)start + PAGE_BYTES;
	((struct spill_head *)block)[-1] =
		(struct spill_head){.spill = spill, .start = start, .bytes = length, .mapped = true, .fd = fd};
	return block;
}

void *gw_spill_take(struct gw_spill *spill, uint64_t bytes, gw_status *status)
{
	if (*status != GW_OK)
		return NULL;
	bool counts = spill->folder && bytes > GW_SPILL_SMALL;
	if (counts && bytes > spill->budget)
		return spill_file(spill, bytes, status);
	void *start = bytes < SIZE_MAX / 2 ? gw_malloc(bytes + 2 * sizeof(struct spill_head)) : NULL;
	if (!start) {
		*status = gw_fail(GW_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
		return NULL;
	}
	if (bytes > GW_SPILL_SMALL)
		gw_memory_huge(start, bytes + 2 * sizeof(struct spill_head));
	spill->budget -= counts ? bytes : 0;
	uintptr_t at = ((uintptr_t)start + 2 * sizeof(struct spill_head) - 1) / 64 * 64;
	((struct spill_head *)at)[-1] =
		(struct spill_head){.spill = counts ? spill : NULL, .start = start, .bytes = bytes};
	return (void *)at;
}

static gw_status spill_failed(const struct spill_head *head)
{
	return gw_fail_errno(GW_IO, errno, "%s: a temporary file", head->spill->folder);
}

gw_status gw_spill_write(void *block, uint64_t begin, const void *from, uint64_t bytes)
{
	const struct spill_head head = ((struct spill_head *)block)[-1];
	if (!head.mapped) {
		memcpy((char *)block + begin, from, bytes);
		return GW_OK;
	}
	for (uint64_t done = 0; done < bytes;) {
		ssize_t wrote =
			pwrite(head.fd, (const char *)from + done, bytes - done, (off_t)(PAGE_BYTES + begin + done));
		if (wrote < 0 && errno != EINTR)
			return spill_failed(&head);
		done += wrote > 0 ? (uint64_t)wrote : 0;
	}
	sync_file_range(head.fd, (off_t)(PAGE_BYTES + begin), (off_t)bytes, SYNC_FILE_RANGE_WRITE);
	return GW_OK;
}

gw_status gw_spill_read(void *block, uint64_t begin, void *to, uint64_t bytes)
{
	const struct spill_head head = ((struct spill_head *)block)[-1];
	if (!head.mapped) {
		memcpy(to, (const char *)block + begin, bytes);
		return GW_OK;
	}
	for (uint64_t done = 0; done < bytes;) {
		ssize_t got = pread(head.fd, (char *)to + done, bytes - done, (off_t)(PAGE_BYTES + begin + done));
		if (got < 0 && errno != EINTR)
			return spill_failed(&head);
		done += got > 0 ? (uint64_t)got : 0;
	}
	return GW_OK;
}

void gw_spill_drop(void *block, uint64_t begin, uint64_t bytes)
{
	const struct spill_head head = ((struct spill_head *)block)[-1];
	uint64_t first = (begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES,
		 last = (begin + bytes) / PAGE_BYTES * PAGE_BYTES;
	if (head.mapped && first < last)
		madvise((char *)block + first, last - first, MADV_REMOVE); /* a file system without holes keeps them */
}

void gw_spill_give(void *block)
{
	if (!block)
		return;
	const struct spill_head head = ((struct spill_head *)block)[-1];
	if (head.mapped) {
		uint64_t bytes = head.bytes - PAGE_BYTES, announced = head.spill->announced;
		head.spill->announced = announced < UINT64_MAX - bytes ? announced + bytes : UINT64_MAX;
		munmap(head.start, head.bytes);
		close(head.fd);
		return;
	}
	if (head.spill)
		head.spill->budget += head.bytes;
	gw_free(head.start);
}
