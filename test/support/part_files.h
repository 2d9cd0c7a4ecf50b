/* Files of a part, to be damaged and repaired, and what opening it says then. All fail the test when they cannot. */
#ifndef GW_TEST_PART_FILES_H
#define GW_TEST_PART_FILES_H

#include "core/graph/part.h"

struct part_file {
	char path[256];
	size_t bytes;
	uint8_t *data; /* bytes + 1 of them; the taker frees it */
};

/* Reads folder/name. */
void part_file_take(struct part_file *file, const char *folder, const char *name);
/* Writes the first so many bytes back. */
void part_file_put(const struct part_file *file, size_t bytes);

void part_open(const struct gw_graph_meta *meta, uint32_t number, bool mapped, struct gw_part **part);
/* Opens part 0 both ways; both must fail so, naming file and key in one line. */
void part_expect_fault(const struct gw_graph_meta *meta, gw_status wanted, const char *file, const char *key,
		       const char *says);

/* Writes bytes into an array's payload and updates every digest, including the graph's id. */
void part_forge(const char *folder, const char *json_name, uint32_t part, const char *key, uint64_t at,
		const void *bytes, size_t count);

#endif
