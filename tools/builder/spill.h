/* Large blocks of memory within a budget. Blocks beyond the budget are mapped from temporary files.
 *
 *   take -> within the budget, or small: memory, on huge pages where the system has them
 *        -> else a file without a name, in the folder of the result, with its space reserved -> mapped
 *
 * The kernel writes the pages of files to the disk where memory is short. So code that uses large blocks goes through
 * them in the order of addresses, or stays within a range that fits into memory. A file vanishes with the process,
 * however the process ends. One thread at a time uses a spill.
 */
#ifndef GW_TOOLS_BUILDER_SPILL_H
#define GW_TOOLS_BUILDER_SPILL_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_SPILL_SMALL (1u << 20) /* bytes: a block of at most so many is memory, whatever the budget */

struct gw_spill {
	char *folder;        /* of the files; NULL: no budget */
	uint64_t budget;     /* bytes of memory that further blocks may take */
	uint64_t file_bytes; /* of all files so far */
	uint64_t announced;  /* bytes of files that are announced and do not exist */
	bool reports;        /* on stderr: files before they are made, and passes through them */
};

/* Files lie in the parent folder of `out`, which must exist when the first one is made. GW_NO_MEMORY. */
gw_status gw_spill_open(struct gw_spill *spill, const char *out, uint64_t budget);
void gw_spill_close(struct gw_spill *spill); /* a zeroed one is allowed; give its blocks first */

/* Opens a file without a name in the folder, with `bytes` reserved; the caller closes it. GW_IO and GW_NO_SPACE name
 * the folder. */
gw_status gw_spill_file(struct gw_spill *spill, uint64_t bytes, int *fd);

/* Says how much the disk must hold for a step, and so for the next files of as many bytes. GW_NO_SPACE if it cannot.
 * what: "sorting". bytes: GW_SPILL_UNKNOWN if the step finds out, for a file of gw_spill_make_file. A spill without
 * files says nothing, and less than 1 MiB is not reported. A file that no step has announced is announced when it is
 * made. */
#define GW_SPILL_UNKNOWN UINT64_MAX
gw_status gw_spill_announce(struct gw_spill *spill, uint64_t bytes, const char *what);
/* The same for blocks, unless the budget has room for them, or they are announced. */
gw_status gw_spill_announce_blocks(struct gw_spill *spill, uint64_t bytes, const char *what);

/* A file without a name in the spill's folder, for a block that grows; the caller closes it. -1 with errno. */
int gw_spill_make_file(const struct gw_spill *spill);

/* At least one byte, aligned to 64. On failure NULL: GW_NO_MEMORY, or with the folder GW_NO_SPACE, or GW_IO if the
 * disk refuses a file. For sequences of calls: a call that finds *status set does nothing. */
void *gw_spill_take(struct gw_spill *spill, uint64_t bytes, gw_status *status);
/* Copies to and from a block. Those of a file are not mapped for it, and the disk begins to write them at once: where
 * memory is short, a fault reads pages ahead that are lost before they are used. GW_IO names the folder. */
gw_status gw_spill_write(void *block, uint64_t begin, const void *from, uint64_t bytes);
gw_status gw_spill_read(void *block, uint64_t begin, void *to, uint64_t bytes);
/* The bytes of a block are not needed any more: those of a file leave the memory and the disk. They may be zeros then.
 */
void gw_spill_drop(void *block, uint64_t begin, uint64_t bytes);
void gw_spill_give(void *block); /* NULL is allowed */

#endif
