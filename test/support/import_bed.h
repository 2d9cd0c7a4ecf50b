/* A temporary folder, input files in it, an import of them, and the graph opened again: what tests of import stand on.
 */
#ifndef GW_TEST_IMPORT_BED_H
#define GW_TEST_IMPORT_BED_H

#include <stdbool.h>

#include "core/graph/part.h"
#include "tools/import/import.h"

#define BED_WORDS_MAX 32

struct import_bed {
	char root[64];
	char out[96];
	struct gw_import_word words[BED_WORDS_MAX];
	char texts[BED_WORDS_MAX][512];
	struct gw_import_options options; /* words are the bed's; comments "#%", quiet, two threads */
	struct gw_builder_stats stats;
	char name[GW_NAME_MAX + 1]; /* of the graph, after import */
	struct gw_graph_meta *meta;
	struct gw_part *part;
};

/* The bed of a program's tests, from the group's set-up to its tear-down. */
extern struct import_bed import_bed;
int import_bed_set_up(void **state);
int import_bed_tear_down(void **state);

/* Writes <root>/<name>. */
void import_bed_file(const struct import_bed *bed, const char *name, const void *data, size_t bytes);
void import_bed_text(const struct import_bed *bed, const char *name, const char *text);
/* The same through gzip. */
void import_bed_gzip(const struct import_bed *bed, const char *name, const void *data, size_t bytes);
/* A .npy file. */
void import_bed_npy(const struct import_bed *bed, const char *name, gw_dtype dtype, uint32_t ndim,
		    const uint64_t *shape, const void *data);

/* Adds a word; "@" in the format's result stands for the root. */
void import_bed_word(struct import_bed *bed, enum gw_import_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Forgets words and options; closes the graph and removes it. */
void import_bed_reset(struct import_bed *bed);

/* Imports; on failure there must be no output folder and no temporary one beside it. */
gw_status import_bed_import(struct import_bed *bed);
/* Imports, opens and checks (gw_part_check); fails the test when it cannot. */
void import_bed_open(struct import_bed *bed);
/* Imports and expects the failure, with each of the texts (up to 3, NULL ends) in the error. */
void import_bed_fails(struct import_bed *bed, gw_status status, const char *a, const char *b, const char *c);

/* Data of an array; fails the test if it is not there. */
const void *import_bed_array(const struct import_bed *bed, const char *key);
uint64_t import_bed_rows(const struct import_bed *bed, const char *key);
bool import_bed_has(const struct import_bed *bed, const char *key);
/* String i of <key>.offsets and .bytes equals text. */
bool import_bed_string_is(const struct import_bed *bed, const char *key, uint64_t i, const char *text);

/* The stored edges of a type are the input's: sorted by (dst, key if given, src), ties in input order. rows: NULL, or
 * orig_id must be there and equal rows of the input. src, dst: numbered ids in input order. */
void import_bed_check_edges(const struct import_bed *bed, const char *etype, uint64_t count, const uint64_t *src,
			    const uint64_t *dst, const int64_t *key, bool orig_id);

/* The folder of the real graphs ("shared/data" upwards of here, or GRAPHWIRE_TEST_DATA). NULL when it is not there;
 * fails the test then if CI=true. */
const char *import_bed_real_data(void);

#endif
