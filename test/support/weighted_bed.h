/* Lists with weights, and a driver of the weighted kind over them: copies of exactly what each round asks for, or
 * columns at hand. */
#ifndef GW_TEST_WEIGHTED_BED_H
#define GW_TEST_WEIGHTED_BED_H

#include "sampler/draw.h"
#include "test/support/slow_weighted.h"

/* Lists one after the other, as a part stores them. */
struct weighted_bed {
	uint64_t n, edges;
	uint64_t *indptr, *vertices;
	uint32_t *groups, *table; /* table: NULL if the edge type has none */
	gw_dtype dtype;
	void *weights;
	bool grouped, at_hand; /* at_hand: the driver offers the columns */
	uint64_t shift;        /* not 0: each list's begin is an element number, as with several parts in memory */
};

void *weighted_alloc(size_t bytes); /* zeroed, at least one byte; fails the test if memory runs out */

/* n lists of the given degrees, of instances 0, 1, ...; all weights are 0. */
void weighted_bed_begin(struct weighted_bed *bed, uint64_t n, const uint64_t *degrees, gw_dtype dtype);
/* n equal lists with the given weights. */
void weighted_bed_repeat(struct weighted_bed *bed, uint64_t n, gw_dtype dtype, const double *weights, uint64_t degree);
void weighted_bed_table(struct weighted_bed *bed); /* builds the alias tables */
void weighted_bed_free(struct weighted_bed *bed);

struct slow_list weighted_bed_list(const struct weighted_bed *bed, uint64_t list);
struct gw_draw weighted_bed_draw(const struct weighted_bed *bed, int32_t fanout, bool replace);
uint64_t weighted_bed_bounds(const struct weighted_bed *bed,
			     const struct gw_draw *draw); /* the most picks of all lists */

/* A run with its memory: a driver over arrays. What a round asks for is copied to blocks of exactly its size, at odd
 * addresses. */
struct weighted_driven {
	struct gw_draw_run run;
	struct gw_pick_scratch scratch;
	struct gw_vec needs, next, got, bytes;
	uint64_t asked, rounds; /* needs and rounds so far */
};

void weighted_driven_free(struct weighted_driven *driven);

/* Draws from lists [at, at + n) of the bed. The picks of list i are run.counts[i] positions from run.lists.starts[i]
 * on. positions has room for the bounds. */
gw_status weighted_drive(struct weighted_driven *driven, const struct weighted_bed *bed, const struct gw_draw *draw,
			 uint64_t at, uint32_t n, uint64_t *positions);

#endif
