/* The kinds of transport: what addresses, options and logs call them, and what each can do.
 *
 *   an address's text ──┐                            ┌─▶ the backend that this build has for it (registry.c)
 *   an option's choice ─┴─▶ a row of this table ─────┤
 *                                                    └─▶ the properties by which client and server choose
 *
 * A scheme exists whether this build has its backend or not. No code above the backends compares names: it asks for a
 * property. A new transport is a new row here, its choice, and its backend's line in registry.c.
 */
#ifndef GW_TRANSPORT_SCHEME_H
#define GW_TRANSPORT_SCHEME_H

#include <stdbool.h>

/* Rows of the table. */
enum gw_scheme_number { GW_SCHEME_MEMORY, GW_SCHEME_TCP, GW_SCHEME_SHM, GW_SCHEME_VERBS, GW_SCHEMES };

#define GW_RANK_FIRST 1 /* of the transport that every client begins with */

struct gw_scheme {
	const char *name;  /* "tcp": in addresses, options, JSON */
	const char *title; /* "TCP": in sentences */
	const char *needs; /* the libraries whose lack leaves its backend out of a build; NULL: every build has it */

	/* Of two ways to a server, clients prefer the one of higher rank. Those above GW_RANK_FIRST are looked for once
	 * the first way has connected. 0: never chosen, an address names it. No two others have the same rank. */
	unsigned rank;

	/* It reaches servers on this host alone. Its addresses are names, without host and port; a server that clients
	 * look for is named by its incarnation. */
	bool local;

	bool is_file;     /* local: the name becomes a file's, and so has the characters of one */
	bool mapped;      /* the client maps memory of the server's process, which lives as long as the mapping */
	bool needs_watch; /* a connection holds memory or a device: its loss must be seen while nothing is read */
};

extern const struct gw_scheme gw_schemes[GW_SCHEMES];

/* What an option --transport and gw_client_options.transport may say: "auto", then each scheme that has a rank, in the
 * order of the table. The same as --help shows it. */
extern const char *const gw_scheme_choices[]; /* up to NULL */
#define GW_SCHEME_CHOICES "auto|tcp|shm|verbs"

/* The scheme of a name. NULL: no scheme has it; "auto" is a choice and no scheme. */
const struct gw_scheme *gw_scheme_find(const char *name);

/* Of the schemes above GW_RANK_FIRST, the best one that is worse than this one; NULL begins with the best of all. NULL:
 * none is left. */
const struct gw_scheme *gw_scheme_below(const struct gw_scheme *above);

#endif
