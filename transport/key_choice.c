/* The key of a connection whose caller names none: see gw_key_choose in transport.h. */
#include "transport/transport.h"

gw_status gw_key_choose(struct gw_connect_options *options, bool insecure, uint8_t found[GW_KEY_BYTES])
{
	if (!gw_address_has_port(&options->address) || !gw_address_is_loopback(&options->address))
		return GW_OK;
	gw_status status = gw_key_find(options->address.port, found);
	if (status == GW_OK) {
		options->key = found;
		options->key_bytes = GW_KEY_BYTES;
	}
	options->must_prove = !insecure;
	return status == GW_NOT_FOUND || insecure ? GW_OK : status;
}
