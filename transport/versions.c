/* The choice of a version, and the line in which a side without a common version is refused. */
#include "transport/versions.h"

#include <stdio.h>

#define VERSIONS_TEXT 40u

/* "version 6", or "versions 7 to 9". */
static const char *versions_text(struct gw_versions versions, char text[VERSIONS_TEXT])
{
	if (versions.oldest == versions.newest)
		snprintf(text, VERSIONS_TEXT, "version %u", versions.newest);
	else
		snprintf(text, VERSIONS_TEXT, "versions %u to %u", versions.oldest, versions.newest);
	return text;
}

gw_status gw_versions_common(const char *protocol, struct gw_versions own, const char *self, struct gw_versions peer,
			     const char *other, uint32_t *version)
{
	char text[VERSIONS_TEXT], own_text[VERSIONS_TEXT];
	*version = own.newest < peer.newest ? own.newest : peer.newest;
	if (*version >= own.oldest && *version >= peer.oldest)
		return GW_OK;
	return gw_fail(GW_VERSION, "the %s speaks %s %s, this %s %s; install the same", other, protocol,
		       versions_text(peer, text), self, versions_text(own, own_text));
}
