/* The table of transports: their names in addresses, options and logs, and their properties.
 *
 *   an address's text ──┐                            ┌─▶ this build's backend (registry.c)
 *   an option's choice ─┴─▶ a row of this table ─────┤
 *                                                    └─▶ the properties by which client and server choose
 *
 * A scheme exists in every build, even in a build without its backend. Code above the backends compares no names; it
 * asks for a property. A new transport adds a row here, its choice, and its backend's line in registry.c.
 */
#ifndef GW_TRANSPORT_SCHEME_H
#define GW_TRANSPORT_SCHEME_H

#include <stdbool.h>

/* The rows of the table. */
enum gw_scheme_number { GW_SCHEME_MEMORY, GW_SCHEME_TCP, GW_SCHEME_SHM, GW_SCHEME_VERBS, GW_SCHEMES };

#define GW_RANK_FIRST 1 /* the rank of the transport that every client uses first */

struct gw_scheme {
	const char *name;  /* for addresses, options, JSON: "tcp" */
	const char *title; /* for sentences: "TCP" */
	const char *needs; /* libraries without which a build lacks the backend; NULL: every build has it */

	/* Clients prefer the transport of higher rank. After the first transport has connected, a client tries those
	 * above GW_RANK_FIRST. 0: a client never chooses it; an address must name it. Other ranks are unique. */
	unsigned rank;

	/* It reaches only servers on this host. Its addresses are names, without host and port. A client looks for a
	 * server's listener under the server's incarnation. */
	bool local;

	bool is_file;     /* local: the name becomes a file name, so it has only a file name's characters */
	bool mapped;      /* the client maps the server's memory, which lives until the mapping ends */
	bool needs_watch; /* a connection uses memory or a device, so its loss must be noticed without reads */
};

extern const struct gw_scheme gw_schemes[GW_SCHEMES];

/* The choices for an option --transport and gw_client_options.transport: "auto", then each scheme with a rank, in the
 * table's order. GW_SCHEME_CHOICES is the same list for --help. */
extern const char *const gw_scheme_choices[]; /* ends with NULL */
#define GW_SCHEME_CHOICES "auto|tcp|shm|verbs"

/* The scheme with this name; NULL: no such scheme. "auto" is a choice, not a scheme. */
const struct gw_scheme *gw_scheme_find(const char *name);

/* Among the schemes above GW_RANK_FIRST, the best one of lower rank than `above` (NULL: the best one). Returns NULL at
 * the end. */
const struct gw_scheme *gw_scheme_below(const struct gw_scheme *above);

#endif
