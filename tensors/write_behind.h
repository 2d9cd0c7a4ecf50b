/* A thread that digests and writes one chunk of a file while its owner fills the next. */
#ifndef GW_TENSORS_WRITE_BEHIND_H
#define GW_TENSORS_WRITE_BEHIND_H

#include "core/errors/status.h"
#include "core/numbers/digest.h"

struct gw_write_behind;

/* A chunk: to the end of what its file has. Nothing of it is copied. */
struct gw_write_chunk {
	const char *path; /* for errors */
	int fd;
	const void *data;
	size_t bytes;
	struct gw_digester *digester; /* of the payload, or NULL */
};

gw_status gw_write_behind_create(struct gw_write_behind **out); /* GW_LIMIT, GW_NO_MEMORY */
/* Waits for the chunk before, hands this one over. The status is that of the one before: after a failure nothing more
 * is written. */
gw_status gw_write_behind_put(struct gw_write_behind *writer, const struct gw_write_chunk *chunk);
/* Waits for what was handed over; its status. */
gw_status gw_write_behind_flush(struct gw_write_behind *writer);
void gw_write_behind_destroy(struct gw_write_behind *writer); /* waits as well; NULL is allowed */

/* All of the bytes, or an error. */
gw_status gw_write_all(const char *path, int fd, const void *data, size_t bytes);

#endif
