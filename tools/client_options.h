/* The options of every command that connects to a job's servers as one more client. */
#ifndef GW_TOOLS_CLIENT_OPTIONS_H
#define GW_TOOLS_CLIENT_OPTIONS_H

#include <graphwire/graphwire.h>

#include "core/errors/options.h"

#define GW_TOOL_SERVERS_MAX 65536

struct gw_tool_client {
	struct gw_client_options options;
	const char *servers[GW_TOOL_SERVERS_MAX]; /* options.servers points here once --servers was read */
};

/* --servers, --key-file, --insecure, --timeout. */
extern const struct gw_option gw_tool_client_options[];

/* The members of struct gw_options for such a command with one required argument, a text in `field`. */
#define GW_TOOL_CLIENT_COMMAND(type, client, name, field, usage)                                                       \
	.common = gw_tool_client_options, .common_offset = offsetof(type, client), .argument = (name),                 \
	.argument_to = GW_OPTION_TEXT(type, field), .argument_missing = (usage)

#endif
