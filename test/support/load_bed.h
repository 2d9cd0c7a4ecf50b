/* Files to load into an arena, of every size that matters, and what must lie there afterwards. All fail the test when
 * they cannot. */
#ifndef GW_TEST_LOAD_BED_H
#define GW_TEST_LOAD_BED_H

#include "core/files/load.h"
#include "core/memory/arena.h"

#define LOAD_BED_HEADER 4096u
#define LOAD_BED_ITEMS  8

/* Payload sizes at every edge: none, one byte, a block, a piece, a chunk, several slices of the arena. */
extern const uint64_t load_bed_sizes[LOAD_BED_ITEMS];

struct load_bed {
	char folder[64];
	char paths[LOAD_BED_ITEMS][128];
	char keys[LOAD_BED_ITEMS][32];
	uint8_t *payloads[LOAD_BED_ITEMS];
	uint64_t *digests[LOAD_BED_ITEMS];
	struct gw_load_item items[LOAD_BED_ITEMS];
	struct gw_arena *arena;
};

struct load_bed *load_bed_make(const char *root);
void load_bed_drop(struct load_bed *f);
/* A bed in /tmp as cmocka's state. */
int load_bed_set_up(void **state);
int load_bed_tear_down(void **state);

void load_bed_fill(uint8_t *bytes, uint64_t count, uint64_t seed);
/* A file of so many header bytes and the payload. */
void load_bed_write(const char *path, uint64_t offset, const uint8_t *payload, uint64_t bytes);
/* Another arena, of 0xee where it is small enough. */
void load_bed_arena(struct load_bed *f, uint64_t bytes);
/* The payloads are there, the tails of their last blocks hold no rest of a file, the gaps between are untouched. */
bool load_bed_holds(const struct load_bed *f);

#endif
