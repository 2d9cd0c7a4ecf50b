/* Arrays whose rows stay in their files (serve --on-disk, and standalone clients): which ones, and the answers to
 * requests for their rows. They are features, all that has an entry for each edge, or the offsets of lists. */
#ifndef GW_TENSORS_DISK_ROWS_H
#define GW_TENSORS_DISK_ROWS_H

#include "core/files/disk.h"
#include "core/graph/part.h"
#include "transport/service/service.h"

/* The words of a user: GW_LISTS_WORD, which means the arrays of gw_array_is_of_edges, GW_OFFSETS_WORD, which means
 * those of gw_array_is_of_offsets, and features, which gw_feature_is_meant explains. Original ids and times of nodes
 * bring their indexes. */
struct gw_disk_words {
	const char *const *words;
	uint32_t count;
};

/* The first word that means lists or their offsets; NULL: none. */
const char *gw_disk_words_of_lists(const struct gw_disk_words *words);
/* Whether one of the words means the array of this key. */
bool gw_disk_words_mean(const struct gw_disk_words *words, const struct gw_graph_meta *meta, const char *key);
/* Checks that each word means lists, their offsets, or features of the part and only features. GW_NOT_FOUND,
 * GW_INVALID. option: the name of the option, for the text. */
gw_status gw_disk_words_check(const struct gw_disk_words *words, const struct gw_graph_meta *meta, uint32_t part,
			      const char *option);

/* The arrays of one part that stay on disk. */
struct gw_disk_rows_of_part;

/* Opens the files of the arrays that the part does not load (GW_ARRAY_ON_DISK) on the disk, and answers requests for
 * their rows. The part, the disk and the service must outlive it, and calls must have ended when it is closed. */
gw_status gw_disk_rows_open(struct gw_disk *disk, const struct gw_part *part, struct gw_disk_rows_of_part **out);
gw_status gw_disk_rows_serve(struct gw_disk_rows_of_part *rows, struct gw_service *service);
void gw_disk_rows_close(struct gw_disk_rows_of_part *rows); /* NULL is allowed */

#endif
