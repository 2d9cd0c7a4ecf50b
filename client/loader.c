/* The loader: a stream of mini-batches, sampled ahead by the client's engines, in order.
 *
 *   number k = start + 0, 1, ... -> (epoch, step) -> global batch g = step * world + rank
 *                                -> seeds by the keyed permutation
 *
 * Batch k is sampled by engine k mod engines and waits in slot k mod depth until gw_loader_next comes for it; then the
 * slot takes batch k + depth. Which thread samples what has no influence on what is sampled.
 */
#include <string.h>

#include "client/batch.h"
#include "client/engine.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/digest.h"
#include "core/base/rng.h"

#define DEPTH_MAX  256
#define SEEDS_MAX  (1ull << 62) /* that a permutation goes over */
#define EPOCHS_MAX (1ull << 62) /* times steps: numbers of batches do not wrap around */

struct gw_loader {
	struct gw_client *client;
	struct gw_sample_spec spec; /* fanouts and fetches are copies */
	struct gw_vec fanouts, fetches, ids;
	uint64_t id_count, steps, seed, plan;
	uint32_t batch_size, world, rank, depth;
	enum gw_last_batch last;
	bool shuffle;
	uint64_t first;          /* number of the start: epoch * steps + step */
	uint64_t next;           /* number of the batch that gw_loader_next returns */
	uint64_t ended_epoch;    /* epochs whose GW_END was returned: below this */
	struct gw_batch **slots; /* [depth]: submitted batches */
	gw_status *slot_status;  /* [depth]: why a slot is empty */
	char (*slot_text)[GW_ERROR_TEXT_MAX];
};

/* The seeds of a batch, in the engine. */
static gw_status fill_seeds(struct gw_batch *batch)
{
	const struct gw_loader *loader = batch->owner;
	uint64_t epoch = batch->number / loader->steps, step = batch->number % loader->steps;
	uint64_t global = step * loader->world + loader->rank, begin = global * loader->batch_size;
	uint64_t n = loader->batch_size;
	if (loader->last == GW_LAST_SHORT && begin + n > loader->id_count)
		n = loader->id_count - begin;
	if (gw_vec_reserve(&batch->seeds, n * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t key = gw_draw_key(loader->seed, epoch, GW_DRAW_SHUFFLE, 0, loader->spec.ntype);
	struct gw_permutation permutation = gw_permutation_begin(key, loader->id_count);
	const int64_t *ids = loader->ids.data;
	int64_t *seeds = batch->seeds.data;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = (begin + i) % loader->id_count;
		if (loader->shuffle)
			at = gw_permutation_at(&permutation, at);
		seeds[i] = ids ? ids[at] : (int64_t)at;
	}
	batch->seed_count = n;
	batch->seed = loader->seed;
	batch->stream = gw_mix64(gw_mix64(epoch + 0x9e3779b97f4a7c15ull) ^ global);
	batch->view.epoch = epoch;
	batch->view.step = step;
	return GW_OK;
}

/* The loader takes its batches out of the ticket itself. */
static void finish_nothing(struct gw_ticket *ticket, gw_status status)
{
	(void)ticket;
	(void)status;
}

static void fill_slot(struct gw_loader *loader, uint64_t number)
{
	uint32_t slot = (uint32_t)(number % loader->depth);
	struct gw_batch *batch;
	struct gw_engine *engine = &loader->client->engines[number % loader->client->engine_count];
	gw_status status = gw_batch_take(engine, &batch);
	if (status == GW_OK) {
		status = gw_batch_set_spec(batch, &loader->spec);
		if (status != GW_OK)
			gw_batch_give(batch);
	}
	loader->slots[slot] = NULL;
	loader->slot_status[slot] = status;
	if (status != GW_OK) {
		memcpy(loader->slot_text[slot], gw_last_error(), GW_ERROR_TEXT_MAX);
		return;
	}
	batch->fill_seeds = fill_seeds;
	batch->owner = loader;
	batch->number = number;
	batch->ticket.finish = finish_nothing;
	loader->slots[slot] = batch;
	gw_engine_submit(engine, gw_batch_job(batch), false);
}

static gw_status check_options(const struct gw_client *client, const struct gw_loader_options *options)
{
	uint32_t world = options->world ? options->world : 1;
	gw_status status = gw_spec_check(client, &options->spec);
	if (status != GW_OK)
		return status;
	if (options->rank >= world)
		return gw_fail(GW_RANGE, "rank %u of a world of %u", options->rank, world);
	if (options->batch_size > GW_SEEDS_MAX)
		return gw_fail(GW_RANGE, "batch size %u: at most %u", options->batch_size, GW_SEEDS_MAX);
	if (options->depth > DEPTH_MAX)
		return gw_fail(GW_RANGE, "depth %u: at most %u", options->depth, DEPTH_MAX);
	if ((unsigned)options->last > GW_LAST_SHORT)
		return gw_fail(GW_INVALID, "last = %u: it is wrap, drop or short", (unsigned)options->last);
	if (options->last == GW_LAST_SHORT && world > 1)
		return gw_fail(GW_INVALID, "a short last batch needs a world of one: with %u ranks, wrap or drop",
			       world);
	uint64_t nodes = client->meta->ntypes[options->spec.ntype].count;
	for (uint64_t i = 0; options->ids && i < options->id_count; i++) {
		if ((uint64_t)options->ids[i] >= nodes)
			return gw_fail(GW_RANGE, "seed %lld at position %llu: %s has ids 0 to %lld",
				       (long long)options->ids[i], (unsigned long long)i,
				       client->ntypes[options->spec.ntype].name, (long long)nodes - 1);
	}
	return GW_OK;
}

static gw_status copy_in(struct gw_vec *vec, const void *from, size_t bytes)
{
	gw_status status = gw_vec_reserve(vec, bytes);
	if (status == GW_OK && bytes)
		memcpy(vec->data, from, bytes);
	return status;
}

/* Of all that a state's numbers depend on. Never 0. */
static uint64_t digest_plan(const struct gw_loader *loader)
{
	const uint64_t plan[] = {loader->client->meta->graph_id,
				 loader->spec.ntype,
				 loader->id_count,
				 loader->seed,
				 loader->shuffle,
				 loader->batch_size,
				 loader->world,
				 loader->last};
	uint64_t digest = gw_digest(plan, sizeof(plan));
	if (loader->ids.data)
		digest = gw_digest_add(digest, loader->ids.data, loader->id_count * sizeof(int64_t));
	return digest ? digest : 1;
}

static gw_status loader_take_options(struct gw_loader *loader, const struct gw_loader_options *options)
{
	const struct gw_graph_meta *meta = loader->client->meta;
	loader->spec = options->spec;
	loader->batch_size = options->batch_size ? options->batch_size : 1000;
	loader->world = options->world ? options->world : 1;
	loader->rank = options->rank;
	loader->depth = options->depth ? options->depth : 4;
	loader->last = options->last;
	loader->shuffle = options->shuffle;
	loader->seed = options->seed;
	loader->id_count = options->ids ? options->id_count : meta->ntypes[options->spec.ntype].count;
	gw_status status = copy_in(&loader->fanouts, options->spec.fanouts,
				   (size_t)options->spec.hops * meta->num_etypes * sizeof(int32_t));
	if (status == GW_OK)
		status = copy_in(&loader->fetches, options->spec.fetches,
				 options->spec.fetch_count * sizeof(struct gw_fetch));
	if (status == GW_OK && options->ids)
		status = copy_in(&loader->ids, options->ids, options->id_count * sizeof(int64_t));
	if (status != GW_OK)
		return status;
	if (loader->id_count > SEEDS_MAX)
		return gw_fail(GW_LIMIT, "%llu seeds: at most 2^62", (unsigned long long)loader->id_count);
	loader->spec.fanouts = loader->fanouts.data;
	loader->spec.fetches = loader->fetches.data;

	uint64_t per_step = (uint64_t)loader->batch_size * loader->world;
	loader->steps = loader->last == GW_LAST_DROP ? loader->id_count / per_step
						     : (loader->id_count + per_step - 1) / per_step;
	if (loader->steps == 0)
		return gw_fail(GW_INVALID,
			       "%llu seeds make no step of %llu (batch size %u, %u ranks): no batch would come",
			       (unsigned long long)loader->id_count, (unsigned long long)per_step, loader->batch_size,
			       loader->world);
	loader->plan = digest_plan(loader);
	if (options->start.plan && options->start.plan != loader->plan)
		return gw_fail(GW_INVALID, "the start is the state of a loader with another graph, other seeds, "
					   "another seed, shuffle, batch size, world or last batch");
	if (options->start.step > loader->steps)
		return gw_fail(GW_RANGE, "start at step %llu of %llu: is the state of another loader?",
			       (unsigned long long)options->start.step, (unsigned long long)loader->steps);
	if (options->start.epoch > EPOCHS_MAX / loader->steps)
		return gw_fail(GW_RANGE, "start at epoch %llu: is the state of another loader?",
			       (unsigned long long)options->start.epoch);
	loader->first = options->start.epoch * loader->steps + options->start.step;
	loader->next = loader->first;
	loader->ended_epoch = options->start.epoch;
	return GW_OK;
}

gw_status gw_loader_open(struct gw_client *client, const struct gw_loader_options *options, struct gw_loader **out)
{
	*out = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = check_options(client, options);
	if (status != GW_OK)
		return status;
	struct gw_loader *loader = gw_calloc(1, sizeof(*loader));
	if (!loader)
		return GW_NO_MEMORY;
	loader->client = client;
	status = loader_take_options(loader, options);
	if (status == GW_OK) {
		loader->slots = gw_calloc(loader->depth, sizeof(struct gw_batch *));
		loader->slot_status = gw_calloc(loader->depth, sizeof(*loader->slot_status));
		loader->slot_text = gw_calloc(loader->depth, sizeof(*loader->slot_text));
		if (!loader->slots || !loader->slot_status || !loader->slot_text)
			status = GW_NO_MEMORY;
	}
	if (status != GW_OK) {
		gw_loader_close(loader);
		return status;
	}
	for (uint32_t i = 0; i < loader->depth; i++)
		fill_slot(loader, loader->first + i);
	*out = loader;
	return GW_OK;
}

uint64_t gw_loader_steps(const struct gw_loader *loader)
{
	return loader->steps;
}

gw_status gw_loader_next(struct gw_loader *loader, struct gw_minibatch **out, int64_t timeout_ms)
{
	*out = NULL;
	gw_status status = gw_client_check(loader->client);
	if (status != GW_OK)
		return status;
	if (loader->next % loader->steps == 0 && loader->next / loader->steps > loader->ended_epoch) {
		loader->ended_epoch = loader->next / loader->steps;
		return gw_fail(GW_END, "the epoch is over");
	}
	uint32_t slot = (uint32_t)(loader->next % loader->depth);
	struct gw_batch *batch = loader->slots[slot];
	status = loader->slot_status[slot];
	if (batch) {
		if (!gw_job_wait(&batch->ticket.job, gw_deadline_ns(timeout_ms)))
			return gw_fail(GW_AGAIN, "the batch is not there within %lld ms: call again",
				       (long long)timeout_ms);
		status = batch->ticket.job.status;
		if (status == GW_OK)
			*out = &batch->view;
		else
			memcpy(loader->slot_text[slot], batch->ticket.job.text, GW_ERROR_TEXT_MAX);
	}
	if (status != GW_OK) {
		gw_fail_text(status, loader->slot_text[slot]);
		gw_context(status, "epoch %llu, step %llu", (unsigned long long)(loader->next / loader->steps),
			   (unsigned long long)(loader->next % loader->steps));
		char text[GW_ERROR_TEXT_MAX];
		memcpy(text, gw_last_error(), sizeof(text));
		if (batch)
			gw_batch_give(batch);
		fill_slot(loader, loader->next++ + loader->depth);
		return gw_fail_text(status, text);
	}
	fill_slot(loader, loader->next++ + loader->depth);
	return GW_OK;
}

void gw_loader_get_state(const struct gw_loader *loader, struct gw_loader_state *state)
{
	/* After an epoch's last batch the state names the next epoch only once GW_END has been told. */
	uint64_t epoch = loader->next / loader->steps;
	bool at_end = loader->next % loader->steps == 0 && epoch > loader->ended_epoch;
	state->epoch = at_end ? epoch - 1 : epoch;
	state->step = at_end ? loader->steps : loader->next % loader->steps;
	state->plan = loader->plan;
}

void gw_loader_close(struct gw_loader *loader)
{
	struct gw_error_kept kept;
	if (!loader || gw_client_is_inherited(loader->client))
		return;
	gw_error_keep(&kept);
	for (uint32_t i = 0; loader->slots && i < loader->depth; i++) {
		if (loader->slots[i])
			gw_job_cancel(&loader->slots[i]->ticket.job);
	}
	for (uint32_t i = 0; loader->slots && i < loader->depth; i++) {
		if (!loader->slots[i])
			continue;
		gw_job_wait(&loader->slots[i]->ticket.job, GW_NO_DEADLINE);
		gw_batch_discard(loader->slots[i]);
	}
	gw_vec_free(&loader->fanouts);
	gw_vec_free(&loader->fetches);
	gw_vec_free(&loader->ids);
	gw_free(loader->slots);
	gw_free(loader->slot_status);
	gw_free(loader->slot_text);
	gw_free(loader);
	gw_error_restore(&kept);
}
