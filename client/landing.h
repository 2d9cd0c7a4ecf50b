/* Memory that replies land in: it grows, is kept, and stays registered with its engine's transports in between, since
 * registering is dear where it pins pages. Contents do not survive growth. Belongs to whoever runs the engine. */
#ifndef GW_CLIENT_LANDING_H
#define GW_CLIENT_LANDING_H

#include "core/base/vec.h"
#include "transport/transport.h"

struct gw_landing {
	struct gw_vec memory;     /* read-only for users: grown by gw_landing_reserve alone */
	struct gw_buffer *buffer; /* all of it; NULL while it is empty */
};

/* Makes it at least `bytes` long. No read may be open on it. On failure it is as it was, or empty. */
gw_status gw_landing_reserve(struct gw_landing *landing, struct gw_poll_group *group, size_t bytes);
void gw_landing_free(struct gw_landing *landing);

#endif
