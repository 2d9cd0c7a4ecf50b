/* Large blocks of memory within a budget. Blocks beyond the budget are mapped from temporary files.
 *
 *   take -> within the budget, or small: memory, on huge pages where the system has them
 *        -> else a file without a name, in the folder of the result, with its space reserved -> mapped
 *
 * The kernel writes the pages of files to the disk where memory is short. So code that uses large blocks goes through
 * them in the order of addresses, or stays within a range that fits into memory. A file vanishes with the process,
 * however the process ends.
 */
#ifndef GW_TOOLS_BUILDER_SPILL_H
#define GW_TOOLS_BUILDER_SPILL_H

#include "core/errors/status.h"

struct gw_spill {
	const char *folder; /* for the files, which must exist when the first one is made; borrowed; NULL: no budget */
	uint64_t budget;    /* bytes of memory that further blocks may take */
	uint64_t file_bytes, files; /* made so far */
};

/* At least one byte. *release frees the block. On failure NULL: GW_NO_MEMORY, or GW_IO with the folder if the disk is
 * full or refuses a file. */
void *gw_spill_take(struct gw_spill *spill, uint64_t bytes, void (**release)(void *block), gw_status *status);

#endif
