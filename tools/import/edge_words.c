/* What a word of --weight or --time means: features of edges, or a column of text that becomes the feature "weight" or
 * "time" (weights.c, times.c). */
#include <stdio.h>
#include <string.h>

#include "tools/import/import.h"
#include "tools/import/words.h"

void gw_import_etype_text(const struct gw_import *im, const struct gw_import_set *set, char text[GW_IMPORT_ETYPE_MAX])
{
	snprintf(text, GW_IMPORT_ETYPE_MAX, "%s:%s:%s", im->spaces[set->src].name, set->rel, im->spaces[set->dst].name);
}

static bool word_makes_feature(const struct gw_import_word *word, const char *etype, const char *name)
{
	struct gw_import_parts parts;
	char given[GW_IMPORT_ETYPE_MAX] = "_N:_E:_N";
	if (word->kind != GW_IMPORT_EDGE_FEATURE && word->kind != GW_IMPORT_EDGE_COLUMN)
		return false;
	if (gw_import_word_split(word->text, 3, &parts) != GW_OK || parts.count == 0 ||
	    strcmp(parts.names[parts.count - 1], name) != 0)
		return false;
	if (word->kind == GW_IMPORT_EDGE_COLUMN)
		return true; /* columns belong to every input */
	if (parts.count == 4)
		snprintf(given, sizeof(given), "%s:%s:%s", parts.names[0], parts.names[1], parts.names[2]);
	return strcmp(given, etype) == 0;
}

bool gw_import_has_feature(const struct gw_import *im, uint32_t set, const char *name)
{
	char etype[GW_IMPORT_ETYPE_MAX];
	gw_import_etype_text(im, &im->sets[set], etype);
	for (uint32_t i = 0; i < im->options->num_words; i++) {
		if (word_makes_feature(&im->options->words[i], etype, name))
			return true;
	}
	for (uint32_t i = 0; i < im->num_features; i++) { /* of a chunked graph */
		const struct gw_import_feature *feature = &im->features[i];
		if (feature->edge && feature->owner == set && strcmp(feature->name, name) == 0)
			return true;
	}
	return false;
}

gw_status gw_import_set_column(struct gw_import_set *set, const char **to, const char *column, const char *feature,
			       const char *what)
{
	for (uint32_t f = 0; f < set->num_files; f++) {
		if (set->files[f].format != GW_FROM_TEXT)
			return gw_fail(GW_INVALID,
				       "%s: \"%s\" is not %s (NAME or SRC:REL:DST:NAME), "
				       "and only text has columns: pass arrays with --edge-feature",
				       set->files[f].path, column, what);
	}
	if (*to && strcmp(*to, column) != 0)
		return gw_fail(GW_INVALID,
			       "columns %s and %s would both become the feature \"%s\": name each with --edge-column "
			       "NAME=COLUMN, and then --%s NAME",
			       *to, column, feature, feature);
	*to = column;
	return GW_OK;
}
