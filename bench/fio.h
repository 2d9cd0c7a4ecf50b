/* The rate at which fio writes to a folder: a known figure to compare with a checkpoint's. */
#ifndef GW_BENCH_FIO_H
#define GW_BENCH_FIO_H

#include "core/errors/status.h"

/* Writes one file of `bytes` bytes in sequential blocks of block_bytes, without the page cache, and syncs it. The rate
 * in GB a second excludes fio's own start and end. GW_NOT_FOUND: fio is not installed. GW_IO: fio failed; the text has
 * the reason. */
gw_status gw_bench_fio_write(const char *folder, uint64_t bytes, uint64_t block_bytes, double *figure);

#endif
