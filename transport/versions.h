/* The versions of a protocol that the two sides of a connection speak: each speaks all from the oldest to the newest,
 * and they use the newest that both speak. */
#ifndef GW_TRANSPORT_VERSIONS_H
#define GW_TRANSPORT_VERSIONS_H

#include <stdint.h>

#include "core/errors/status.h"

struct gw_versions {
	uint32_t newest, oldest;
};

/* Sets *version to the newest common version. GW_VERSION: no common version exists; the text names the versions of both
 * sides. protocol, self and other are for the text: "protocol", "server", "client". */
gw_status gw_versions_common(const char *protocol, struct gw_versions own, const char *self, struct gw_versions peer,
			     const char *other, uint32_t *version);

#endif
