/* The environment of a program that a launcher starts (deploy/launch.py). GRAPHWIRE_IP_CONFIG is a file with a line
 * "address [port [number]]" for each part's server. The other variables are GRAPHWIRE_PART_CONFIG, GRAPHWIRE_KEY_FILE,
 * GRAPHWIRE_TRANSPORT and GRAPHWIRE_SPIN_US. */
#ifndef GW_CLIENT_LAUNCHED_H
#define GW_CLIENT_LAUNCHED_H

#include <graphwire/graphwire.h>

struct gw_launched {
	const char *part_config, *key_file, *transport; /* the environment's values; NULL: not set */
	uint32_t spin_us;                               /* 0: not set */
	const char **servers;                           /* [server_count], "host:port" or "[v6]:port" */
	uint32_t server_count;
};

/* Whether a launcher started this process. */
bool gw_is_launched(void);

/* GW_NOT_FOUND: no launcher started this process, or the file does not exist. GW_FORMAT: the file is not a list of
 * servers. The caller frees the result, also on failure. */
gw_status gw_launched_read(struct gw_launched *out);
void gw_launched_free(struct gw_launched *launched);

/* Fills options that name neither a graph nor servers with the launcher's values. Options that are already set stay
 * unchanged. The launched structure owns the strings. */
void gw_launched_fill(const struct gw_launched *launched, struct gw_client_options *options);

#endif
