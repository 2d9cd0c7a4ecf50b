/* A loader of the standalone client, one seed a batch -> each seed's stream, digest and bare round trips.
 *
 * A hop is two round trips: the frontier's offsets, then its edges. The last round trip has the feature rows. The sizes
 * are those of one-sided reads: ids and offsets of 8 bytes in questions and answers.
 */
#include "bench/single_seeds.h"

#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define ID_BYTES 8u

static struct gw_bare_round round_of(uint64_t asked, uint64_t rows, uint64_t row_bytes)
{
	return (struct gw_bare_round){.question_bytes = GW_BARE_HEADER + (uint32_t)asked * ID_BYTES,
				      .rows = (uint32_t)rows,
				      .row_bytes = (uint32_t)row_bytes};
}

static void single_seed_plan(struct gw_single_seeds *s, struct gw_single_seed *seed,
			     const struct gw_minibatch *minibatch)
{
	uint32_t at = 0;
	for (uint32_t h = 0; h < minibatch->hops; h++) {
		const struct gw_block *block = minibatch->blocks[h];
		uint64_t frontier = 0, edges = 0;
		for (uint32_t i = 0; i < block->edges_count; i++) {
			frontier += block->edges[i].dst_count;
			edges += block->edges[i].edge_count;
		}
		seed->rounds[at++] = round_of(frontier, frontier, 2ull * ID_BYTES);
		seed->rounds[at++] = round_of(edges, edges, ID_BYTES);
	}
	seed->rounds[at++] = round_of(minibatch->row_counts[0], minibatch->row_counts[0], s->batches.row_bytes);
	for (uint32_t i = 0; i < at; i++) {
		uint64_t answer = (uint64_t)seed->rounds[i].rows * seed->rounds[i].row_bytes;
		s->bytes_max = answer > s->bytes_max ? (uint32_t)answer : s->bytes_max;
		s->bytes_max =
			seed->rounds[i].question_bytes > s->bytes_max ? seed->rounds[i].question_bytes : s->bytes_max;
	}
	s->round_count = at;
	s->nodes_per_seed += (double)minibatch->row_counts[0] / s->count;
	s->edges_per_seed += (double)minibatch->edge_count / s->count;
}

static gw_status single_seeds_fill(struct gw_single_seeds *s, struct gw_loader *loader)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < s->count && status == GW_OK; i++) {
		struct gw_minibatch *minibatch = NULL;
		status = gw_loader_next(loader, &minibatch, -1);
		if (status != GW_OK)
			break;
		s->seeds[i].id = minibatch->seeds[0];
		s->seeds[i].stream = minibatch->stream;
		s->seeds[i].digest = gw_minibatch_digest(minibatch);
		single_seed_plan(s, &s->seeds[i], minibatch);
		gw_minibatch_release(minibatch);
	}
	return status;
}

gw_status gw_single_seeds_begin(struct gw_single_seeds *s, struct gw_client *alone, const struct gw_batches_spec *spec,
				uint32_t count)
{
	struct gw_batches *b = &s->batches;
	struct gw_loader *loader;
	memset(s, 0, sizeof(*s));
	s->count = count;
	gw_status status = gw_batches_begin(b, alone, spec);
	if (status != GW_OK)
		return status;
	s->seeds = gw_calloc(count, sizeof(*s->seeds));
	int64_t *ids = gw_calloc(count, sizeof(*ids));
	if (!s->seeds || !ids) {
		gw_free(ids);
		return GW_NO_MEMORY;
	}
	for (uint32_t i = 0; i < count; i++)
		ids[i] = (int64_t)(gw_mix64(i) % b->type_count);
	gw_free(b->ids);
	b->ids = ids;
	b->options.ids = ids;
	b->options.id_count = count;
	b->options.batch_size = 1;
	b->options.shuffle = false;
	b->options.spec.fetch_count = 1;
	status = gw_batches_loader(b, alone, &loader);
	if (status != GW_OK)
		return status;
	status = single_seeds_fill(s, loader);
	gw_loader_close(loader);
	return status;
}

void gw_single_seeds_end(struct gw_single_seeds *s)
{
	gw_batches_end(&s->batches);
	gw_free(s->seeds);
	memset(s, 0, sizeof(*s));
}

gw_status gw_single_seed_sample(const struct gw_single_seeds *s, const struct gw_single_seed *seed,
				struct gw_client *client, const struct gw_tensor *features, double *microseconds)
{
	const struct gw_fetch fetch = {.tensor = features, .at = GW_AT_INPUTS};
	struct gw_sample_spec spec = s->batches.options.spec;
	struct gw_minibatch *minibatch;
	spec.fetches = &fetch;
	uint64_t begun = gw_monotonic_ns();
	gw_status status = gw_sample(client, &spec, s->batches.options.seed, seed->stream, &seed->id, 1, &minibatch);
	*microseconds = (double)(gw_monotonic_ns() - begun) * 1e-3;
	if (status != GW_OK)
		return status;
	if (gw_minibatch_digest(minibatch) != seed->digest)
		status = gw_fail(GW_DIGEST, "seed %lld: its mini-batch differs from the loader's", (long long)seed->id);
	gw_minibatch_release(minibatch);
	return status;
}
