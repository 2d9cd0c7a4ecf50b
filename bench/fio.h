/* What fio writes to a folder: a figure that others know, beside a checkpoint's. */
#ifndef GW_BENCH_FIO_H
#define GW_BENCH_FIO_H

#include "core/errors/status.h"

/* One file of so many bytes, in whole blocks of block_bytes, one after the other past the page cache, and synced; GB a
 * second, without fio's own beginning and end. GW_NOT_FOUND: it is not installed; GW_IO: it failed, and says why. */
gw_status gw_bench_fio_write(const char *folder, uint64_t bytes, uint64_t block_bytes, double *figure);

#endif
