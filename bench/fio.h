/* The rates at which fio writes to a folder, and reads a file at random: known figures to compare with. */
#ifndef GW_BENCH_FIO_H
#define GW_BENCH_FIO_H

#include "core/errors/status.h"

/* Writes one file of `bytes` bytes in sequential blocks of block_bytes, without the page cache, and syncs it. The rate
 * in GB a second excludes fio's own start and end. GW_NOT_FOUND: fio is not installed. GW_IO: fio failed; the text has
 * the reason. */
gw_status gw_bench_fio_write(const char *folder, uint64_t bytes, uint64_t block_bytes, double *figure);

/* Reads random blocks of a file for some seconds, without the page cache, with `depth` reads in flight by io_uring. The
 * figure is thousands of blocks a second. The errors of gw_bench_fio_write. */
gw_status gw_bench_fio_read(const char *path, uint64_t block_bytes, unsigned depth, unsigned seconds, double *figure);

#endif
