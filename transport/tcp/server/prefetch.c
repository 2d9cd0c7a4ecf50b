/* The trial that chooses how rows are prefetched: see transport/prefetch.h.
 *
 *   the largest immutable region ─▶ the frame of a gather of random rows ─▶ the server's own gather, first, all, first,
 *   … into a buffer as long as a connection's ─▶ the shortest time of each
 *
 * Other programs only make a run longer, so the shortest runs are compared. Fails never: without memory or a large
 * region there is no trial. */
#include "transport/prefetch.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "transport/tcp/lender.h"
#include "transport/tcp/server/server_answer.h"

#define TRIAL_NS     (4 * GW_NS_PER_MS) /* no run starts later; a run takes 0.1 to 0.5 ms */
#define TRIAL_ROWS   1024u
#define TRIAL_RUNS   8u            /* of each kind, the first of which warms up */
#define REGION_LEAST (64ull << 20) /* a smaller region may be in the cache, where prefetches make no difference */
#define GAIN         0.97          /* all lines must take at most this share of the time */

struct prefetch_trial {
	struct gw_service *service;
	const struct gw_region *region;
	uint64_t number; /* of the next random row */
	uint8_t frame[WIRE_READ_BYTES + 8 * TRIAL_ROWS];
};

static const struct gw_region *largest_region(const struct gw_service *service)
{
	const struct gw_region *largest = NULL;
	for (uint32_t i = 0; i < service->region_count; i++)
		if (service->regions[i].kind == GW_REGION_IMMUTABLE &&
		    (!largest || service->regions[i].bytes > largest->bytes))
			largest = &service->regions[i];
	return largest && largest->bytes >= REGION_LEAST ? largest : NULL;
}

static void trial_frame(struct prefetch_trial *trial)
{
	const struct wire_read read = {.region = trial->region->id,
				       .generation = trial->region->generation,
				       .count = TRIAL_ROWS,
				       .length = GW_PREFETCH_TRIAL_ROW,
				       .width = 8};
	memcpy(trial->frame, &read, WIRE_READ_BYTES);
	for (uint32_t i = 0; i < TRIAL_ROWS; i++) {
		uint64_t row = gw_mix64(trial->number++) % (trial->region->bytes / GW_PREFETCH_TRIAL_ROW);
		uint64_t offset = row * GW_PREFETCH_TRIAL_ROW;
		memcpy(trial->frame + WIRE_READ_BYTES + 8ull * i, &offset, 8);
	}
}

/* The nanoseconds of one gather, which is as the server's. */
static uint64_t trial_run(struct prefetch_trial *trial, bool all, uint8_t *out)
{
	struct tcp_answer answer = {.service = trial->service, .from = trial->service->bases[trial->region->id]};
	trial_frame(trial);
	if (gw_wire_ranges(WIRE_GATHER, trial->frame, sizeof(trial->frame), &answer.ranges))
		return UINT64_MAX;
	trial->service->prefetch_all = all;
	uint64_t begin = gw_now_ns();
	uint32_t out_end = 0;
	while (!gw_tcp_answer_gather(&answer, out, &out_end, TCP_LENT_BYTES))
		out_end = 0;
	return gw_now_ns() - begin;
}

static void trial_compare(struct prefetch_trial *trial, uint8_t *out, uint64_t best[2])
{
	const uint64_t until = gw_now_ns() + TRIAL_NS;
	memset(out, 0, TCP_LENT_BYTES);
	for (uint32_t run = 0; run < 2 * TRIAL_RUNS && gw_now_ns() < until; run++) {
		uint64_t ns = trial_run(trial, run % 2, out);
		if (run >= 2 && ns < best[run % 2])
			best[run % 2] = ns;
	}
}

enum gw_prefetch gw_prefetch_choose(struct gw_service *service, enum gw_prefetch wanted,
				    struct gw_prefetch_trial *times)
{
	uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
	const struct gw_region *region = largest_region(service);
	if (times)
		*times = (struct gw_prefetch_trial){0};
	service->prefetch_all = wanted == GW_PREFETCH_ALL;
	if (wanted != GW_PREFETCH_AUTO || !region)
		return service->prefetch_all ? GW_PREFETCH_ALL : GW_PREFETCH_FIRST;
	struct prefetch_trial *trial = gw_calloc(1, sizeof(*trial));
	uint8_t *out = gw_malloc(TCP_LENT_BYTES);
	if (trial && out) {
		trial->service = service;
		trial->region = region;
		trial_compare(trial, out, best);
	}
	gw_free(trial);
	gw_free(out);
	bool both = best[0] != UINT64_MAX && best[1] != UINT64_MAX;
	service->prefetch_all = both && (double)best[1] < GAIN * (double)best[0];
	if (both && times)
		*times = (struct gw_prefetch_trial){(double)best[0] / TRIAL_ROWS, (double)best[1] / TRIAL_ROWS};
	return service->prefetch_all ? GW_PREFETCH_ALL : GW_PREFETCH_FIRST;
}
