/* See client_options.h. */
#include "tools/client_options.h"

static gw_status client_take_servers(void *input, char *text)
{
	struct gw_tool_client *client = input;
	client->options.servers = client->servers;
	return gw_split_list(text, GW_TOOL_SERVERS_MAX, client->servers, &client->options.server_count);
}

#define C struct gw_tool_client
const struct gw_option gw_tool_client_options[] = {
	{"servers", "ADDR:PORT,...", "one server for each part (default: the launcher's)", 0,
	 GW_OPTION_CALL(client_take_servers)},
	{"key-file", "FILE", "the servers' key (on loopback: found automatically)", 1,
	 GW_OPTION_TEXT(C, options.key_file)},
	{"insecure", NULL, "accept servers on loopback that have no key", 1, GW_OPTION_FLAG(C, options.insecure)},
	{"timeout", "MS", "deadline of one request (default 30000)", 1,
	 GW_OPTION_NUMBER(C, options.timeout_ms, 1, INT32_MAX)},
	{0},
};
