/* Goes through the arrays of a part, without those of the format and the transposed lists. */
#include "tools/partition/candidates.h"

#include <stdio.h>

void gw_candidates_list(const struct gw_part *part,
			bool (*possible)(const struct gw_array_key *key, const struct gw_array_meta *array),
			char text[GW_CANDIDATES_MAX])
{
	char etype[GW_EDGE_FOLDER_MAX + 1];
	const struct gw_graph_meta *meta = gw_part_meta(part);
	const struct gw_array *array;
	size_t used = 0;
	snprintf(text, GW_CANDIDATES_MAX, "none");
	for (uint32_t i = 0; (array = gw_part_array_at(part, i)); i++) {
		struct gw_array_key key;
		if (gw_array_key_parse(meta, array->meta->key, &key) != GW_OK || key.out ||
		    gw_name_is_taken(key.edge, key.name) || !possible(&key, array->meta))
			continue;
		int added = snprintf(text + used, GW_CANDIDATES_MAX - used, "%s%s:%s", used ? ", " : "",
				     key.edge ? gw_meta_etype_text(meta, key.type, etype) : meta->ntypes[key.type].name,
				     key.name);
		if (added < 0 || used + (size_t)added >= GW_CANDIDATES_MAX) {
			text[used] = '\0'; /* no half of a name */
			return;
		}
		used += (size_t)added;
	}
}
