/* The loader: a stream of mini-batches that the client's engines sample ahead, in order.
 *
 *   number k = start + 0, 1, ... -> (epoch, step) -> global batch g = step * world + rank
 *                                -> seeds by the keyed permutation: nodes, of one or several types, or edges
 *
 * Engine k mod engines samples batch k. The batch waits in slot k mod depth until gw_loader_next returns it; then batch
 * k + depth uses the slot. The result does not depend on the thread that samples a batch. A batch that a server has
 * failed is sampled again in its slot.
 */
#include <string.h>

#include "client/batch/ahead.h"
#include "client/batch/seed_lists.h"
#include "client/engine/engine.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define BATCH_DEFAULT 1000
#define DEPTH_DEFAULT 4
#define DEPTH_MAX     256
#define SEEDS_MAX     (1ull << 62) /* limit of a permutation */
#define EPOCHS_MAX    (1ull << 62) /* limit of epochs times steps, so that batch numbers do not wrap around */

struct gw_loader {
	struct gw_client *client;
	struct gw_sample_spec spec; /* owns copies of all that it points to, except reverse_ids */
	struct gw_vec fanouts, fetches, rules;
	struct gw_vec edges;        /* struct gw_edge_seeds: of the spec; may be empty */
	struct gw_vec negative_ids; /* int64_t: of all edge types, one list after the other */
	struct gw_seed_lists seeds;
	uint64_t steps, seed, plan;
	uint32_t batch_size, world, rank, depth;
	enum gw_last_batch last;
	bool shuffle;
	uint64_t first;          /* number of the first batch: epoch * steps + step */
	uint64_t next;           /* number of the batch that gw_loader_next returns next */
	uint64_t waited_ns;      /* for that batch, in calls that returned GW_AGAIN */
	uint64_t ended_epoch;    /* GW_END was returned for all epochs below this one */
	struct gw_batch **slots; /* [depth]: submitted batches */
	gw_status *slot_status;  /* [depth]: why a slot is empty */
	struct gw_ahead *ahead;  /* NULL: none */
	char (*slot_text)[GW_ERROR_TEXT_MAX];
};

/* The key of an epoch's permutation. 0: nodes of one type; 1: edges; 2: nodes of several types; 4: edges of several
 * types. Triples use 3, random partitions 8 and more. */
static uint64_t shuffle_key(const struct gw_loader *loader, uint64_t epoch)
{
	bool several = loader->seeds.count > 1;
	if (loader->spec.edges)
		return gw_draw_key(loader->seed, epoch, GW_DRAW_SHUFFLE, several ? 4 : 1, loader->spec.edges->etype);
	return gw_draw_key(loader->seed, epoch, GW_DRAW_SHUFFLE, several ? 2 : 0, loader->spec.ntype);
}

/* Finds the seeds of a batch in the epoch's order: they begin at *begin and wrap around the end of the order. Returns
 * their number. With GW_LAST_WRAP all ranks have equal shares of the seeds; the last step contains what remains of
 * these shares, rank after rank. */
static uint64_t place_in_order(const struct gw_loader *loader, uint64_t step, uint64_t *begin)
{
	uint64_t size = loader->batch_size, before = step * loader->world * size;
	*begin = before + loader->rank * size;
	if (loader->last == GW_LAST_WRAP) {
		uint64_t share = (loader->seeds.total + loader->world - 1) / loader->world, left = share - step * size;
		if (left < size) {
			*begin = before + loader->rank * left;
			return left;
		}
	}
	if (loader->last == GW_LAST_SHORT && *begin + size > loader->seeds.total)
		return loader->seeds.total - *begin;
	return size;
}

/* In the engine. */
static gw_status fill_seeds(struct gw_batch *batch)
{
	const struct gw_loader *loader = batch->owner;
	uint64_t epoch = batch->number / loader->steps, step = batch->number % loader->steps;
	uint64_t global = step * loader->world + loader->rank, begin, n = place_in_order(loader, step, &begin);
	if (gw_vec_reserve(&batch->positions, n * sizeof(uint64_t)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_permutation permutation = gw_permutation_begin(shuffle_key(loader, epoch), loader->seeds.total);
	uint64_t *positions = batch->positions.data;
	for (uint64_t i = 0; i < n; i++) {
		positions[i] = (begin + i) % loader->seeds.total;
		if (loader->shuffle)
			positions[i] = gw_permutation_at(&permutation, positions[i]);
	}
	gw_status status = gw_seed_lists_fill(&loader->seeds, batch, positions, n);
	batch->seed_count = n;
	batch->seed = loader->seed;
	batch->stream = gw_mix64(gw_mix64(epoch + 0x9e3779b97f4a7c15ull) ^ global);
	batch->view.epoch = epoch;
	batch->view.step = step;
	return status;
}

static struct gw_seed_types types_of(const struct gw_loader *loader)
{
	return (struct gw_seed_types){loader->seeds.lists.data, loader->seeds.count > 1 ? loader->seeds.count : 0};
}

/* Returns nothing: the loader reads the result from the batch. */
static void finish_nothing(struct gw_ticket *ticket, gw_status status)
{
	(void)ticket;
	(void)status;
}

static gw_status make_batch(void *owner, uint64_t number, struct gw_batch **out)
{
	struct gw_loader *loader = owner;
	struct gw_batch *batch;
	struct gw_engine *engine = &loader->client->engines[number % loader->client->engine_count];
	gw_status status = gw_batch_acquire(engine, &batch);
	if (status != GW_OK)
		return status;
	status = gw_batch_set_spec(batch, &loader->spec, types_of(loader));
	if (status != GW_OK) {
		gw_batch_release(batch);
		return status;
	}
	batch->fill_seeds = fill_seeds;
	batch->owner = loader;
	batch->number = number;
	batch->windows = gw_ahead_windows(loader->ahead);
	batch->counts = false;
	batch->ticket.finish = finish_nothing;
	*out = batch;
	return GW_OK;
}

static void fill_slot(struct gw_loader *loader, uint64_t number)
{
	uint32_t slot = (uint32_t)(number % loader->depth);
	struct gw_batch *batch;
	gw_ahead_submits(loader->ahead, number);
	gw_status status = make_batch(loader, number, &batch);
	loader->slots[slot] = NULL;
	loader->slot_status[slot] = status;
	if (status != GW_OK) {
		memcpy(loader->slot_text[slot], gw_last_error(), GW_ERROR_TEXT_MAX);
		return;
	}
	loader->slots[slot] = batch;
	if (gw_trace_is_on())
		gw_batch_trace_begin(&batch->trace, &batch->ticket.job, number / loader->steps, number % loader->steps);
	gw_engine_submit(batch->engine, gw_batch_job(batch), false);
}

/* The lists of the options; or one list with the options' ids; or every node or edge of the spec's type. */
static const struct gw_seeds *seed_lists_of(const struct gw_loader_options *options, struct gw_seeds *alone,
					    uint32_t *count)
{
	const struct gw_sample_spec *spec = &options->spec;
	*alone = (struct gw_seeds){.type = spec->edges ? spec->edges->etype : spec->ntype,
				   .ids = options->ids,
				   .count = options->id_count};
	*count = options->lists ? options->list_count : 1;
	return options->lists ? options->lists : alone;
}

static gw_status check_seeds(const struct gw_client *client, const struct gw_loader_options *options)
{
	const struct gw_sample_spec *spec = &options->spec;
	struct gw_seeds alone;
	uint32_t list_count;
	const struct gw_seeds *lists = seed_lists_of(options, &alone, &list_count);
	uint32_t batch_size = options->batch_size ? options->batch_size : BATCH_DEFAULT;
	gw_status status = GW_OK;
	if (options->lists && options->ids)
		return gw_fail(GW_INVALID, "the seeds are given both as ids and as lists: give one of them");
	for (uint32_t i = 0; i < gw_spec_edge_types(spec) && status == GW_OK; i++) {
		uint64_t negatives = 0; /* per type: all seeds of a batch may be of one type */
		status = gw_edge_seeds_check_ids(client, &spec->edges[i]);
		if (status == GW_OK)
			status = gw_edge_seeds_check_count(&spec->edges[i], batch_size, &negatives);
	}
	return status == GW_OK ? gw_seed_lists_check(client, spec, lists, list_count) : status;
}

static gw_status check_options(struct gw_client *client, const struct gw_loader_options *options)
{
	uint32_t world = options->world ? options->world : 1;
	const struct gw_seed_types types = {options->lists, options->lists ? options->list_count : 0};
	gw_status status = options->lists ? gw_seed_types_check(client, &options->spec, types) : GW_OK;
	if (status == GW_OK)
		status = gw_spec_check(client, &options->spec, types);
	if (status != GW_OK)
		return status;
	if (options->rank >= world)
		return gw_fail(GW_RANGE, "rank %u of a world of %u", options->rank, world);
	if (options->batch_size > GW_SEEDS_MAX)
		return gw_fail(GW_RANGE, "batch size %u: at most %u", options->batch_size, GW_SEEDS_MAX);
	if (options->depth > DEPTH_MAX)
		return gw_fail(GW_RANGE, "depth %u: at most %u", options->depth, DEPTH_MAX);
	const uint32_t depth = options->depth ? options->depth : DEPTH_DEFAULT;
	if (options->lookahead > depth)
		return gw_fail(GW_RANGE, "lookahead %u: at most the depth, which is %u", options->lookahead, depth);
	if ((unsigned)options->last > GW_LAST_SHORT)
		return gw_fail(GW_INVALID, "last = %u: it is wrap, drop or short", (unsigned)options->last);
	return check_seeds(client, options);
}

static gw_status copy_in(struct gw_vec *vec, const void *from, size_t bytes)
{
	gw_status status = gw_vec_reserve(vec, bytes);
	if (status == GW_OK && bytes)
		memcpy(vec->data, from, bytes);
	return status;
}

/* A digest of everything that gives a loader state its meaning. Never 0. */
static uint64_t digest_plan(const struct gw_loader *loader)
{
	const uint64_t plan[] = {loader->client->meta->graph_id,
				 loader->spec.ntype,
				 loader->seeds.total,
				 loader->seed,
				 loader->shuffle ? GW_PERMUTATION_VERSION : 0,
				 loader->batch_size,
				 loader->world,
				 loader->last};
	uint64_t digest = gw_digest(plan, sizeof(plan));
	const struct gw_seeds *lists = loader->seeds.lists.data;
	for (uint32_t i = 0; i < loader->seeds.count; i++) {
		const uint64_t head[] = {i, lists[i].type, lists[i].count, lists[i].ids != NULL};
		if (loader->seeds.count > 1)
			digest = gw_digest_add(digest, head, sizeof(head));
		if (lists[i].ids)
			digest = gw_digest_add(digest, lists[i].ids, lists[i].count * sizeof(int64_t));
		if (lists[i].times)
			digest = gw_digest_add(digest, lists[i].times, lists[i].count * sizeof(int64_t));
		if (lists[i].times_from)
			digest = gw_digest_add(digest, lists[i].times_from, lists[i].count * sizeof(int64_t));
		const struct gw_edge_seeds *edges = loader->spec.edges ? &loader->spec.edges[i] : NULL;
		if (edges && edges->src) {
			digest = gw_digest_add(digest, edges->src, edges->pair_count * sizeof(int64_t));
			digest = gw_digest_add(digest, edges->dst, edges->pair_count * sizeof(int64_t));
		}
	}
	if (loader->spec.edges) {
		const uint64_t edges[] = {gw_spec_edge_types(&loader->spec), loader->spec.edges->etype};
		digest = gw_digest_add(digest, edges, sizeof(edges));
	}
	return digest ? digest : 1;
}

/* With the lists that their negatives are drawn from. */
static gw_status loader_take_edges(struct gw_loader *loader, const struct gw_sample_spec *spec)
{
	uint32_t count = gw_spec_edge_types(spec);
	uint64_t ids = 0;
	for (uint32_t i = 0; i < count; i++)
		ids += spec->edges[i].negative_ids ? spec->edges[i].negative_id_count : 0;
	gw_status status = copy_in(&loader->edges, spec->edges, count * sizeof(struct gw_edge_seeds));
	if (status == GW_OK)
		status = gw_vec_reserve(&loader->negative_ids, ids * sizeof(int64_t));
	if (status != GW_OK)
		return status;
	struct gw_edge_seeds *edges = loader->edges.data;
	int64_t *at = loader->negative_ids.data;
	for (uint32_t i = 0; i < count; i++) {
		const struct gw_node_times *times;
		status = gw_node_times_find(loader->client, &edges[i], &times);
		if (status != GW_OK)
			return status;
		edges[i].exist_time = times ? times->name : NULL; /* the names that the client keeps */
		edges[i].exist_end = times ? times->end : NULL;
		if (!edges[i].negative_ids)
			continue;
		if (edges[i].negative_id_count)
			memcpy(at, edges[i].negative_ids, edges[i].negative_id_count * sizeof(int64_t));
		edges[i].negative_ids = at;
		at += edges[i].negative_id_count;
	}
	loader->spec.edges = edges;
	return GW_OK;
}

/* Their names become those that the client keeps. */
static gw_status loader_take_rules(struct gw_loader *loader, const struct gw_edge_rule *rules)
{
	uint32_t etypes = loader->client->meta->num_etypes;
	gw_status status = gw_vec_reserve(&loader->rules, etypes * sizeof(*rules));
	struct gw_edge_rule *copies = loader->rules.data;
	for (uint32_t e = 0; e < etypes && status == GW_OK; e++) {
		const struct gw_edge_columns *columns;
		status = gw_edge_columns_find(loader->client, e, &rules[e], &columns);
		copies[e] = columns ? gw_column_names_rule(&columns->names) : (struct gw_edge_rule){0};
	}
	loader->spec.rules = copies;
	return status;
}

/* With the arrays that it points to. */
static gw_status loader_take_spec(struct gw_loader *loader, const struct gw_sample_spec *spec)
{
	loader->spec = *spec;
	loader->spec.held_out = gw_held_out_share(spec->held_out);
	gw_status status = copy_in(&loader->fanouts, spec->fanouts,
				   (size_t)spec->hops * loader->client->meta->num_etypes * sizeof(int32_t));
	if (status == GW_OK)
		status = copy_in(&loader->fetches, spec->fetches, spec->fetch_count * sizeof(struct gw_fetch));
	if (status == GW_OK && spec->rules)
		status = loader_take_rules(loader, spec->rules);
	loader->spec.fanouts = loader->fanouts.data;
	loader->spec.fetches = loader->fetches.data;
	return status == GW_OK && spec->edges ? loader_take_edges(loader, spec) : status;
}

/* *most: the number of steps for the rank that has the most. */
static uint64_t count_steps(const struct gw_loader *loader, uint64_t *most)
{
	uint64_t per_step = (uint64_t)loader->batch_size * loader->world;
	*most = loader->last == GW_LAST_DROP ? loader->seeds.total / per_step
					     : (loader->seeds.total + per_step - 1) / per_step;
	if (loader->last != GW_LAST_SHORT)
		return *most;
	uint64_t batches = (loader->seeds.total + loader->batch_size - 1) / loader->batch_size;
	return batches > loader->rank ? (batches - loader->rank + loader->world - 1) / loader->world : 0;
}

/* The state may be that of any rank's loader. */
static gw_status take_start(struct gw_loader *loader, const struct gw_loader_state *start, uint64_t most)
{
	loader->plan = digest_plan(loader);
	if (start->plan && start->plan != loader->plan)
		return gw_fail(
			GW_INVALID,
			"the start is the state of a loader with another graph, other seeds or times, another seed, shuffle, "
			"batch size, world or last batch; or it is shuffled, "
			"and of a version of Graphwire with another order");
	if (start->step > most)
		return gw_fail(GW_RANGE, "start at step %llu of %llu: is the state of another loader?",
			       (unsigned long long)start->step, (unsigned long long)most);
	if (start->epoch > EPOCHS_MAX / (most ? most : 1))
		return gw_fail(GW_RANGE, "start at epoch %llu: is the state of another loader?",
			       (unsigned long long)start->epoch);
	/* The state's rank may have one step more than this rank. This rank has then ended the epoch. */
	loader->first = start->epoch * loader->steps + (start->step < loader->steps ? start->step : loader->steps);
	loader->next = loader->first;
	loader->ended_epoch = start->epoch;
	return GW_OK;
}

static gw_status loader_take_options(struct gw_loader *loader, const struct gw_loader_options *options)
{
	struct gw_seeds alone;
	uint32_t list_count;
	const struct gw_seeds *lists = seed_lists_of(options, &alone, &list_count);
	loader->batch_size = options->batch_size ? options->batch_size : BATCH_DEFAULT;
	loader->world = options->world ? options->world : 1;
	loader->rank = options->rank;
	loader->depth = options->depth ? options->depth : DEPTH_DEFAULT;
	loader->last = options->last;
	loader->shuffle = options->shuffle;
	loader->seed = options->seed;
	gw_status status = loader_take_spec(loader, &options->spec);
	if (status == GW_OK)
		status = gw_seed_lists_take(&loader->seeds, loader->client, &loader->spec, lists, list_count);
	if (status == GW_OK)
		status = gw_seed_lists_check_times(loader->client, &loader->spec, loader->seeds.lists.data,
						   loader->seeds.count, loader->batch_size);
	if (status != GW_OK)
		return status;
	if (options->lists)
		loader->spec.ntype = options->lists[0].type;
	if (loader->seeds.total > SEEDS_MAX)
		return gw_fail(GW_LIMIT, "%llu seeds: at most 2^62", (unsigned long long)loader->seeds.total);
	uint64_t most;
	loader->steps = count_steps(loader, &most);
	/* A rank may have no seeds. But options that drop all existing seeds are a mistake. */
	if (most == 0 && loader->seeds.total > 0)
		return gw_fail(GW_INVALID,
			       "%llu seeds are fewer than one step of %llu (batch size %u, %u ranks): "
			       "no batch would be returned",
			       (unsigned long long)loader->seeds.total,
			       (unsigned long long)loader->batch_size * loader->world, loader->batch_size,
			       loader->world);
	return take_start(loader, &options->start, most);
}

static gw_status open_ahead(struct gw_loader *loader, const struct gw_loader_options *options)
{
	const struct gw_ahead_options ahead = {.client = loader->client,
					       .fetches = loader->spec.fetches,
					       .fetch_count = loader->spec.fetch_count,
					       .lookahead = options->lookahead ? options->lookahead : 1,
					       .cache_bytes = options->cache_bytes,
					       .cache_batches = options->cache_batches,
					       .steps = loader->steps,
					       .first = loader->first,
					       .make = make_batch,
					       .loader = loader};
	return gw_ahead_open(&ahead, &loader->ahead);
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
	atomic_fetch_add(&client->loaders, 1);
	status = loader_take_options(loader, options);
	if (status == GW_OK) {
		loader->slots = gw_calloc(loader->depth, sizeof(struct gw_batch *));
		loader->slot_status = gw_calloc(loader->depth, sizeof(*loader->slot_status));
		loader->slot_text = gw_calloc(loader->depth, sizeof(*loader->slot_text));
		if (!loader->slots || !loader->slot_status || !loader->slot_text)
			status = GW_NO_MEMORY;
	}
	if (status == GW_OK && loader->steps)
		status = open_ahead(loader, options);
	if (status != GW_OK) {
		gw_loader_close(loader);
		return status;
	}
	for (uint32_t i = 0; i < loader->depth && loader->steps; i++)
		fill_slot(loader, loader->first + i);
	*out = loader;
	return GW_OK;
}

uint64_t gw_loader_steps(const struct gw_loader *loader)
{
	return loader->steps;
}

/* Whether a server or its time is at fault, and not the batch. */
static bool is_of_server(gw_status status)
{
	return status == GW_DEADLINE || status == GW_PEER_LOST || status == GW_REFUSED || status == GW_STALE ||
	       status == GW_WRONG_GRAPH || status == GW_PROTOCOL || status == GW_VERSION;
}

/* Starts the next batch again, and those behind it that a server has failed too: else each of them would report the
 * same outage in its turn. */
static void sample_again(struct gw_loader *loader)
{
	for (uint32_t i = 0; i < loader->depth; i++) {
		struct gw_batch *batch = loader->slots[(loader->next + i) % loader->depth];
		if (!batch || !gw_job_wait(&batch->ticket.job, 0) || !is_of_server(batch->ticket.job.status))
			continue;
		gw_batch_release(batch);
		fill_slot(loader, loader->next + i);
	}
}

static bool loader_wait(struct gw_loader *loader, struct gw_batch *batch, int64_t timeout_ms)
{
	const uint64_t begin = gw_now_ns(), began = gw_trace_span_begin();
	bool ended = gw_job_wait(&batch->ticket.job, gw_deadline_ns(timeout_ms));
	loader->waited_ns += gw_now_ns() - begin;
	if (ended && batch->trace.id && batch->ticket.job.status == GW_OK)
		gw_batch_trace_end(&batch->trace, &batch->ticket.job, true);
	gw_trace_span_end(&gw_batch_spans[GW_SPAN_WAIT], began, loader->next / loader->steps,
			  loader->next % loader->steps);
	return ended;
}

gw_status gw_loader_next(struct gw_loader *loader, struct gw_minibatch **out, int64_t timeout_ms)
{
	*out = NULL;
	gw_status status = gw_client_check(loader->client);
	if (status != GW_OK)
		return status;
	if (loader->steps == 0) { /* the other ranks have all batches, or there are no seeds */
		loader->ended_epoch++;
		return gw_fail(GW_END, "the epoch is over: this rank has no batch in it");
	}
	if (loader->next % loader->steps == 0 && loader->next / loader->steps > loader->ended_epoch) {
		loader->ended_epoch = loader->next / loader->steps;
		return gw_fail(GW_END, "the epoch is over");
	}
	uint32_t slot = (uint32_t)(loader->next % loader->depth);
	struct gw_batch *batch = loader->slots[slot];
	status = loader->slot_status[slot];
	if (batch) {
		if (!loader_wait(loader, batch, timeout_ms))
			return gw_fail(GW_AGAIN, "the batch is not ready within %lld ms: call again",
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
		if (is_of_server(status)) {
			sample_again(loader);
		} else {
			if (batch)
				gw_batch_release(batch);
			gw_ahead_pass(loader->ahead, loader->next);
			fill_slot(loader, loader->next++ + loader->depth);
		}
		return gw_fail_text(status, text);
	}
	gw_latency_count(&loader->client->batch_waits, loader->waited_ns);
	loader->waited_ns = 0;
	gw_ahead_pass(loader->ahead, loader->next);
	fill_slot(loader, loader->next++ + loader->depth);
	return GW_OK;
}

void gw_loader_get_state(const struct gw_loader *loader, struct gw_loader_state *state)
{
	if (loader->steps == 0) {
		*state = (struct gw_loader_state){.epoch = loader->ended_epoch, .plan = loader->plan};
		return;
	}
	/* After the last batch of an epoch, the state names the next epoch only once GW_END was returned. */
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
	gw_ahead_stop(loader->ahead);
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
	atomic_fetch_sub(&loader->client->loaders, 1);
	gw_ahead_close(loader->ahead);
	gw_held_out_close(loader->spec.held_out);
	gw_vec_free(&loader->fanouts);
	gw_vec_free(&loader->fetches);
	gw_seed_lists_free(&loader->seeds);
	gw_vec_free(&loader->edges);
	gw_vec_free(&loader->negative_ids);
	gw_vec_free(&loader->rules);
	gw_free(loader->slots);
	gw_free(loader->slot_status);
	gw_free(loader->slot_text);
	gw_free(loader);
	gw_error_restore(&kept);
}
