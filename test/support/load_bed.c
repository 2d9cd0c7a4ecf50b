/* See load_bed.h. */
#include "test/support/load_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/numbers/digest.h"
#include "test/support/scratch.h"

/* Payload load_bed_sizes at every edge: none, one byte, a block, a piece, a chunk, several slices of the arena. */
const uint64_t load_bed_sizes[LOAD_BED_ITEMS] = {
	0, 1, 4096, 4097, (1 << 20) + 17, GW_DIGEST_CHUNK, 2 * GW_DIGEST_CHUNK + 4095, GW_DIGEST_CHUNK + (1 << 20)};

void load_bed_fill(uint8_t *bytes, uint64_t count, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
	for (uint64_t i = 0; i < count; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		bytes[i] = (uint8_t)(x >> 56);
	}
}

void load_bed_write(const char *path, uint64_t offset, const uint8_t *payload, uint64_t bytes)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (uint64_t i = 0; i < offset; i++)
		fputc('h', file);
	assert_int_equal(fwrite(payload, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

void load_bed_arena(struct load_bed *f, uint64_t bytes)
{
	const struct gw_arena_options options = {.name = "load", .huge = GW_HUGE_TRY, .numa = GW_NUMA_SPREAD};
	gw_arena_destroy(f->arena);
	assert_int_equal(gw_arena_create(bytes, &options, &f->arena), GW_OK);
	if (bytes < GW_ARENA_SLICE_MAX)
		memset(gw_arena_base(f->arena), 0xee, gw_arena_bytes(f->arena));
}

struct load_bed *load_bed_make(const char *root)
{
	struct load_bed *f = calloc(1, sizeof(*f));
	char folder[sizeof(f->folder)];
	snprintf(folder, sizeof(folder), "%s/gw-test-load-XXXXXX", root);
	gw_scratch_make(folder);
	memcpy(f->folder, folder, sizeof(folder));
	uint64_t offset = 0;
	for (int i = 0; i < LOAD_BED_ITEMS; i++) {
		snprintf(f->paths[i], sizeof(f->paths[i]), "%s/array%d.npy", folder, i);
		snprintf(f->keys[i], sizeof(f->keys[i]), "node/paper/array%d", i);
		f->payloads[i] = malloc(load_bed_sizes[i] + 1);
		load_bed_fill(f->payloads[i], load_bed_sizes[i], (uint64_t)i);
		load_bed_write(f->paths[i], LOAD_BED_HEADER, f->payloads[i], load_bed_sizes[i]);
		f->digests[i] = calloc(gw_digest_count(load_bed_sizes[i]) + 1, sizeof(uint64_t));
		for (uint64_t c = 0; c < gw_digest_count(load_bed_sizes[i]); c++) {
			uint64_t left = load_bed_sizes[i] - c * GW_DIGEST_CHUNK;
			f->digests[i][c] = gw_digest(f->payloads[i] + c * GW_DIGEST_CHUNK,
						     left < GW_DIGEST_CHUNK ? left : GW_DIGEST_CHUNK);
		}
		f->items[i] = (struct gw_load_item){.path = f->paths[i],
						    .key = f->keys[i],
						    .file_offset = LOAD_BED_HEADER,
						    .bytes = load_bed_sizes[i],
						    .arena_offset = offset,
						    .digests = f->digests[i]};
		offset += (load_bed_sizes[i] + 4095) / 4096 * 4096 +
			  4096; /* a block between them, which must stay as it is */
	}
	load_bed_arena(f, offset);
	chmod(f->folder, 0755);
	return f;
}

void load_bed_drop(struct load_bed *f)
{
	for (int i = 0; i < LOAD_BED_ITEMS; i++) {
		free(f->payloads[i]);
		free(f->digests[i]);
	}
	gw_arena_destroy(f->arena);
	assert_int_equal(gw_remove_tree(f->folder), GW_OK);
	free(f);
}

int load_bed_set_up(void **state)
{
	*state = load_bed_make("/tmp");
	return 0;
}

int load_bed_tear_down(void **state)
{
	load_bed_drop(*state);
	return 0;
}

bool load_bed_holds(const struct load_bed *f)
{
	for (int i = 0; i < LOAD_BED_ITEMS; i++) {
		const uint8_t *at = gw_arena_base(f->arena) + f->items[i].arena_offset;
		if (memcmp(at, f->payloads[i], load_bed_sizes[i]) != 0)
			return false;
		uint64_t end = (load_bed_sizes[i] + 4095) / 4096 * 4096;
		for (uint64_t k = load_bed_sizes[i]; k < end; k++) {
			if (at[k] != 0 && at[k] != 0xee)
				return false;
		}
		for (uint64_t k = end; k < end + 4096; k++) {
			if (at[k] != 0xee)
				return false;
		}
	}
	return true;
}
