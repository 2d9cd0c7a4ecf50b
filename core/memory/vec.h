/* A growing buffer for reuse. Its capacity doubles and never shrinks; a big buffer is on huge pages (private memory).
 * Contents survive growth; the base may move. */
#ifndef GW_MEMORY_VEC_H
#define GW_MEMORY_VEC_H

#include "core/errors/status.h"

struct gw_vec {
	void *data;      /* aligned to 64 bytes; NULL while capacity is 0 */
	size_t capacity; /* bytes */
};

/* Makes the capacity at least `bytes`. GW_NO_MEMORY leaves the buffer unchanged. A zero-initialized buffer is empty. */
gw_status gw_vec_reserve(struct gw_vec *vec, size_t bytes);
void gw_vec_free(struct gw_vec *vec);

#endif
