/* Asks servers for what they report: connect to all at once -> GW_OP_STATS -> an answer or an error for each. For
 * commands that show servers; they share the options here. */
#ifndef GW_TOOLS_ASK_H
#define GW_TOOLS_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "client/launched.h"
#include "core/errors/options.h"

#define GW_ASK_SERVERS_MAX   4096
#define GW_ASK_KEY_BYTES_MAX 1024

struct gw_question {
	const char *text; /* the address as the user gave it */
	struct gw_endpoint *endpoint;
	bool connected, answered;
	json_t *stats; /* the server's answer, an object; NULL: no answer, and error names the reason */
	char *error;
};

/* The first member of a command's struct. */
struct gw_ask {
	struct gw_question *questions;
	uint32_t count;
	const char *key_file;
	uint8_t key[GW_ASK_KEY_BYTES_MAX];
	uint32_t key_bytes;
	uint64_t timeout_ms;
	bool insecure;
	bool with_clients;           /* the answers list the clients */
	uint8_t uuid[16];            /* of this program as a client; random */
	struct gw_launched launched; /* if a launcher named the servers; else the addresses are arguments */
};

/* Rows of the option table of a command whose struct begins with a gw_ask. */
#define GW_ASK_OPTIONS(type)                                                                                           \
	{"key-file", "FILE", "the servers' key (on loopback: found automatically)", 0,                                 \
	 GW_OPTION_TEXT(type, ask.key_file)},                                                                          \
		{"insecure", NULL, "accept servers on loopback that have no key", 0,                                   \
		 GW_OPTION_FLAG(type, ask.insecure)},                                                                  \
	{                                                                                                              \
		"timeout", "MS", "how long to wait for answers (default 5000)", 0,                                     \
			GW_OPTION_NUMBER(type, ask.timeout_ms, 1, 3600000)                                             \
	}

/* Takes an argument ADDR:PORT; input is the command's struct. */
gw_status gw_ask_take_server(void *input, char *text);
/* Without arguments, takes the launcher's servers and key. */
gw_status gw_ask_check(void *input);

/* GW_NO_MEMORY. */
gw_status gw_ask_begin(struct gw_ask *ask);
/* Reads the key file, if one is given. Call it once, after the options. */
gw_status gw_ask_read_key(struct gw_ask *ask);
/* Asks all. Frees the answers of the call before; a caller that keeps one takes a reference. */
gw_status gw_ask_all(struct gw_ask *ask);
void gw_ask_end(struct gw_ask *ask);

#endif
