/* The ceiling of loading: io_uring and O_DIRECT, without any code of Graphwire. */
#ifndef GW_BENCH_BARE_READ_H
#define GW_BENCH_BARE_READ_H

#include <stddef.h>
#include <stdint.h>

struct gw_bare_file {
	const char *path;
	uint64_t file_offset, bytes; /* multiples of 4096 */
	uint8_t *to;
};

/* Reads all files, with `depth` reads of `piece` bytes in flight, into memory registered as buffers of at most
 * buffer_bytes. *seconds is the time from the first open to the last completion; it excludes making the ring and the
 * registration. Returns 0 or a negative errno value. */
int gw_bare_read(const struct gw_bare_file *files, size_t count, unsigned depth, unsigned piece, uint8_t *memory,
		 uint64_t memory_bytes, uint64_t buffer_bytes, double *seconds);

#endif
