/* A thread that digests and writes one chunk of a file while its owner fills the next one. */
#ifndef GW_TENSORS_WRITE_BEHIND_H
#define GW_TENSORS_WRITE_BEHIND_H

#include "core/errors/status.h"
#include "core/numbers/digest.h"

struct gw_write_behind;

/* A chunk, appended to its file. The data is not copied. */
struct gw_write_chunk {
	const char *path; /* for errors */
	int fd;
	const void *data;
	size_t bytes;
	struct gw_digester *digester; /* of the payload, or NULL */
};

gw_status gw_write_behind_create(struct gw_write_behind **out); /* GW_LIMIT, GW_NO_MEMORY */
/* Waits for the previous chunk, then passes this one. Returns the status of the previous chunk: after a failure nothing
 * more is written. */
gw_status gw_write_behind_put(struct gw_write_behind *writer, const struct gw_write_chunk *chunk);
/* Waits for the last chunk and returns its status. */
gw_status gw_write_behind_flush(struct gw_write_behind *writer);
void gw_write_behind_destroy(struct gw_write_behind *writer); /* waits as well; NULL is allowed */

/* Writes all of the bytes, or fails. */
gw_status gw_write_all(const char *path, int fd, const void *data, size_t bytes);

#endif
