/* Lists with times and ends, and the law of the temporal kinds over them by the simplest means: plain comparisons of
 * each edge with its seed's times, and a sort. */
#ifndef GW_TEST_TEMPORAL_BED_H
#define GW_TEST_TEMPORAL_BED_H

#include "core/numbers/time_key.h"
#include "sampler/picks.h"
#include "sampler/picks_rounds.h"

#define TEMPORAL_SEEDS 24

/* Lists one after the other, as a part stores them. */
struct temporal_bed {
	uint64_t n, edges;
	uint64_t *indptr, *indices;
	gw_dtype dtype, end_dtype;
	void *times, *ends; /* ends: NULL if edges have none */
	int64_t *fence;     /* NULL: lists are not sorted by time */
	/* Seeds: the times that groups see. */
	struct gw_time until[TEMPORAL_SEEDS], from[TEMPORAL_SEEDS];
	bool windowed, strict;
	int64_t until_keys[TEMPORAL_SEEDS], from_keys[TEMPORAL_SEEDS];
	/* By reads: changes the copy of what a round has asked for. NULL: nothing. */
	void (*lie)(const struct temporal_bed *bed, const struct gw_column_read *read, uint8_t *copy);
	const void *liar;     /* for lie */
	uint64_t entries_max; /* from memory: as for gw_picks_from_memory */
};

/* n lists of the given degrees. All times are 0; no edge has an end. */
void temporal_bed_begin(struct temporal_bed *bed, uint64_t n, const uint64_t *degrees, gw_dtype dtype);
void temporal_bed_ends(struct temporal_bed *bed, gw_dtype dtype); /* every edge gets an end: 0 */
/* Sorts each list by time, with its ends, and makes the fence. No time may be NaN. */
void temporal_bed_sort(struct temporal_bed *bed);
void temporal_bed_free(struct temporal_bed *bed);

/* Sets an entry of times or ends. A whole type rounds a real number down. */
void temporal_set(gw_dtype dtype, void *entries, uint64_t at, struct gw_time time);
struct gw_time temporal_whole(int64_t time);
struct gw_time temporal_real(double time);

/* The draw of a kind, with the groups of the seeds; computes their keys. */
struct gw_draw temporal_bed_draw(struct temporal_bed *bed, const struct gw_sampling_kind *kind, int32_t fanout,
				 bool replace);

/* Lists `vertices`, each for the seed of its group, by a driver. by_reads: by rounds, from copies of exactly what each
 * asks for, at odd addresses. *read: how many entries the rounds have asked for. */
gw_status temporal_drive(const struct temporal_bed *bed, const struct gw_draw *draw, const uint64_t *vertices,
			 const uint32_t *groups, uint64_t n, bool by_reads, struct gw_picks *picks, uint64_t *read);

/* The positions in the list of a vertex that a group may see, ascending. Returns how many. */
uint64_t temporal_eligible(const struct temporal_bed *bed, uint64_t vertex, uint32_t group, uint64_t *out);
/* The picks by the law, as positions of the part. */
uint64_t temporal_law(const struct temporal_bed *bed, const struct gw_draw *draw, uint64_t vertex, uint32_t group,
		      uint64_t *out);

#endif
