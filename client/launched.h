/* What a launcher tells the programs that it starts (deploy/launch.py): GRAPHWIRE_IP_CONFIG, a file with a line
 * "address [port [number]]" for each part's server, GRAPHWIRE_PART_CONFIG, _KEY_FILE and _TRANSPORT. */
#ifndef GW_CLIENT_LAUNCHED_H
#define GW_CLIENT_LAUNCHED_H

#include <graphwire/graphwire.h>

struct gw_launched {
	const char *part_config, *key_file, *transport; /* the environment's; NULL: not set */
	const char **servers;                           /* [server_count], "host:port" or "[v6]:port" */
	uint32_t server_count;
};

/* Whether a launcher started this process. */
bool gw_is_launched(void);

/* GW_NOT_FOUND: this process was not launched, or the file is not there; GW_FORMAT: it is no list of servers. To be
 * freed, on failure too. */
gw_status gw_launched_read(struct gw_launched *out);
void gw_launched_free(struct gw_launched *launched);

/* Puts what the launcher told into options that name neither a graph nor servers; what they name already stays. The
 * texts are the launched's. */
void gw_launched_fill(const struct gw_launched *launched, struct gw_client_options *options);

#endif
