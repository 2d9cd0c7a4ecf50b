/* graphwire import apt: the interface for the command and for tests. */
#ifndef GW_TOOLS_IMPORT_APT_H
#define GW_TOOLS_IMPORT_APT_H

#include "tools/import/apt_graph.h"

struct gw_import_apt {
	const char *from; /* a file; "-": standard input; NULL: run apt-cache dumpavail */
	const char *out, *name;
	struct gw_apt_options apt;
	struct gw_builder_options build;
};

gw_status gw_import_apt_run(const struct gw_import_apt *a, struct gw_builder_stats *stats);

/* argv[0] is "graphwire import apt". */
int gw_import_apt_main(int argc, char **argv);

#endif
