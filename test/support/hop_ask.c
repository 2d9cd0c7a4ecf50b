/* See hop_ask.h. */
#include "test/support/hop_ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/system/clock.h"

struct asking {
	struct gw_job job; /* first */
	const struct hop_ask *ask;
	struct gw_hop hop;
	struct gw_picks *out;
};

static gw_status append(struct gw_picks *out, uint64_t n, const struct gw_hop_edges *edges)
{
	uint64_t rows = out->dst_count + n, total = out->edge_count + edges->count;
	if (gw_vec_reserve(&out->counts, rows * 4) != GW_OK ||
	    gw_vec_reserve(&out->positions, total * 8 + 8) != GW_OK ||
	    gw_vec_reserve(&out->neighbours, total * 8 + 8) != GW_OK)
		return GW_NO_MEMORY;
	memcpy((uint32_t *)out->counts.data + out->dst_count, edges->counts, n * 4);
	for (uint64_t i = 0; i < edges->count; i++) {
		((uint64_t *)out->positions.data)[out->edge_count + i] = edges->start + edges->positions[i];
		((uint64_t *)out->neighbours.data)[out->edge_count + i] = edges->neighbours[i];
	}
	out->dst_count = rows;
	out->edge_count = total;
	return GW_OK;
}

static void asking_done(struct gw_hop *hop, gw_status status)
{
	struct asking *asking = hop->owner;
	const struct gw_frontier *frontier = &asking->ask->frontier;
	for (uint64_t at = 0; at < frontier->n && status == GW_OK; at += GW_HOP_RUN) {
		const struct gw_frontier next = {
			.nodes = frontier->nodes + at,
			.groups = frontier->groups ? frontier->groups + at : NULL,
			.n = frontier->n - at < GW_HOP_RUN ? frontier->n - at : GW_HOP_RUN,
			.first = at,
		};
		struct gw_hop_edges edges;
		status = gw_hop_take(hop, asking->ask->etype, &next, &edges);
		if (status == GW_OK)
			status = append(asking->out, next.n, &edges);
	}
	gw_hop_free(hop);
	gw_job_end(&asking->job, status);
}

static void asking_start(struct gw_job *job)
{
	struct asking *asking = (struct asking *)job;
	const struct hop_ask *ask = asking->ask;
	gw_status status = gw_hop_init(&asking->hop, job->engine);
	if (status != GW_OK) {
		gw_job_end(job, status);
		return;
	}
	asking->hop.done = asking_done;
	asking->hop.owner = asking;
	gw_hop_begin(&asking->hop, ask->direction);
	status = gw_hop_want(&asking->hop, ask->etype, &ask->draw, ask->columns, &ask->frontier);
	if (status != GW_OK) {
		gw_hop_free(&asking->hop);
		gw_job_end(job, status);
		return;
	}
	gw_hop_start(&asking->hop, job);
}

static void asking_cancel(struct gw_job *job)
{
	gw_hop_cancel(&((struct asking *)job)->hop);
}

gw_status hop_ask(struct gw_client *client, const struct hop_ask *ask, struct gw_picks *out)
{
	struct asking asking = {.job = {.start = asking_start, .cancel = asking_cancel}, .ask = ask, .out = out};
	gw_engine_submit(gw_client_engine(client), &asking.job, true);
	gw_job_wait(&asking.job, GW_NO_DEADLINE);
	return asking.job.status == GW_OK ? GW_OK : gw_fail_text(asking.job.status, asking.job.text);
}

gw_status hop_columns(struct gw_client *client, uint32_t etype, struct gw_edge_rule rule,
		      const struct gw_sampling_kind *kind, const struct gw_edge_columns **out)
{
	gw_status status = gw_edge_columns_find(client, etype, &rule, out);
	if (status == GW_OK)
		((struct gw_edge_columns *)(uintptr_t)*out)->sampling.kind = kind;
	return status;
}

struct hub_edge {
	int64_t time;
	uint64_t src;
};

static int hub_order(const void *a, const void *b)
{
	const struct hub_edge *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->src < y->src ? -1 : x->src > y->src;
}

void fixture_add_hub(struct gw_fixture *fixture)
{
	struct gw_fixture_edges *edges = &fixture->edges[FIXTURE_CITES];
	struct gw_edge_type *type = &fixture->schema->etypes[FIXTURE_CITES];
	const struct gw_node_type *papers = &fixture->schema->ntypes[type->dst];
	const uint64_t last = FIXTURE_HUB + 120;
	assert_true(papers->count > last + 1);
	uint64_t begin = edges->indptr[FIXTURE_HUB], count = edges->indptr[last + 1] - begin;
	struct hub_edge *moved = malloc(count * sizeof(*moved));
	assert_non_null(moved);
	for (uint64_t i = 0; i < count; i++)
		moved[i] = (struct hub_edge){edges->time[begin + i], edges->src[begin + i]};
	qsort(moved, count, sizeof(*moved), hub_order);
	for (uint64_t i = 0; i < count; i++) {
		edges->time[begin + i] = moved[i].time;
		edges->src[begin + i] = moved[i].src;
		edges->dst[begin + i] = FIXTURE_HUB;
	}
	free(moved);
	for (uint64_t node = FIXTURE_HUB + 1; node <= last; node++)
		edges->indptr[node] = begin + count;
	for (uint32_t p = 0; p <= fixture->schema->num_parts; p++)
		type->starts[p] = edges->indptr[papers->starts[p]];
}
