/* See spill.h. A block from a file begins one page after its mapping; that page has the mapping's length. */
#include "tools/builder/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"

#define SMALL_BYTES (1u << 20)
#define HEAD_BYTES  4096u

static int make_file(const char *folder)
{
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

static void give_spilled(void *block)
{
	uint64_t *head = (uint64_t *)((char *)block - HEAD_BYTES);
	munmap(head, *head);
}

static void *spill_file(struct gw_spill *spill, uint64_t bytes, gw_status *status)
{
	char text[GW_UNIT_TEXT_MAX];
	uint64_t length = bytes + HEAD_BYTES;
	int fd = make_file(spill->folder);
	int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)length);
	uint64_t *head = error ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!error && head == MAP_FAILED)
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error) {
		*status = gw_fail_errno(GW_IO, error, "%s: a temporary file of %s", spill->folder,
					gw_text_bytes(text, (double)bytes));
		return NULL;
	}
	*head = length;
	spill->files++;
	spill->file_bytes += bytes;
	return (char *)head + HEAD_BYTES;
}

void *gw_spill_take(struct gw_spill *spill, uint64_t bytes, void (**release)(void *block), gw_status *status)
{
	if (spill->folder && bytes > SMALL_BYTES && bytes > spill->budget) {
		*release = give_spilled;
		return spill_file(spill, bytes, status);
	}
	void *block = gw_malloc(bytes ? bytes : 1);
	*release = gw_free;
	if (!block)
		*status = GW_NO_MEMORY;
	else if (bytes > SMALL_BYTES) {
		spill->budget -= spill->folder ? bytes : 0;
		gw_memory_huge(block, bytes);
	}
	return block;
}
