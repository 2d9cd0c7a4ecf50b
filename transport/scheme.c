/* The table of transports, and searches in it. */
#include "transport/scheme.h"

#include <stddef.h>
#include <string.h>

const struct gw_scheme gw_schemes[GW_SCHEMES] = {
	[GW_SCHEME_MEMORY] = {.name = "memory", .title = "this process's memory", .local = true},
	[GW_SCHEME_TCP] = {.name = "tcp", .title = "TCP", .rank = GW_RANK_FIRST},
	[GW_SCHEME_SHM] = {.name = "shm",
			   .title = "mapped memory",
			   .rank = 3,
			   .local = true,
			   .is_file = true,
			   .mapped = true,
			   .needs_watch = true},
	[GW_SCHEME_VERBS] =
		{.name = "verbs", .title = "RDMA", .needs = "libibverbs or librdmacm", .rank = 2, .needs_watch = true},
};

const char *const gw_scheme_choices[] = {"auto", "tcp", "shm", "verbs", NULL};

const struct gw_scheme *gw_scheme_find(const char *name)
{
	for (size_t i = 0; i < GW_SCHEMES; i++)
		if (strcmp(gw_schemes[i].name, name) == 0)
			return &gw_schemes[i];
	return NULL;
}

const struct gw_scheme *gw_scheme_below(const struct gw_scheme *above)
{
	const struct gw_scheme *best = NULL;
	for (const struct gw_scheme *scheme = gw_schemes; scheme < gw_schemes + GW_SCHEMES; scheme++)
		if (scheme->rank > GW_RANK_FIRST && (!above || scheme->rank < above->rank) &&
		    (!best || scheme->rank > best->rank))
			best = scheme;
	return best;
}
