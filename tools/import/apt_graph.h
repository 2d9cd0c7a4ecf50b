/* The package index of a Debian system, as `apt-cache dumpavail` prints it, as a graph.
 *
 *   nodes   package, source, maintainer; orig_id holds their names; each type is numbered by name, ascending
 *   edges   package:depends:package       Depends and Pre-Depends
 *           package:recommends:package, package:suggests:package
 *           package:conflicts:package     Conflicts and Breaks
 *           package:built-from:source     Source, or the package's own name
 *           package:maintained-by:maintainer
 *           each with its reverse, rev_<name>
 *   arrays  package: feat float32 [128] (the words of the description, hashed), label int64 (the archive section) with
 *           label.names, train_mask, val_mask, test_mask
 *
 * Rules:
 *   - Every alternative of "a | b" gets an edge.
 *   - A name that no package has, but that packages provide, stands for all packages that provide it.
 *   - A name that no package has or provides is counted and left out.
 *   - Version constraints, architecture qualifiers (":any") and restrictions in brackets are ignored.
 *   - Repeated edges of one kind are stored once. An edge from a package to itself is not stored.
 *   - If a package has several stanzas, the first counts.
 *   - Only the label uses the section.
 */
#ifndef GW_TOOLS_IMPORT_APT_GRAPH_H
#define GW_TOOLS_IMPORT_APT_GRAPH_H

#include "tools/builder/builder.h"
#include "tools/import/text.h"

#define GW_APT_FEATURES 128u

struct gw_apt_options {
	uint64_t seed; /* of the split: 60 % train, 20 % val, 20 % test, by the package's name */
	bool transpose;
	unsigned threads;
};

struct gw_apt_stats {
	uint64_t stanzas, packages, unresolved; /* unresolved: names that no package has or provides */
};

/* Fills the builder. GW_FORMAT names the input and the line. The text must outlive the builder. */
gw_status gw_apt_build(const struct gw_text *text, const struct gw_apt_options *options, struct gw_builder *builder,
		       struct gw_apt_stats *stats);

#endif
