/* A job that posts one gather to the link's endpoint and waits for its completion: see mapped_gather.h. */
#include "bench/mapped_gather.h"

#include <stddef.h>

#include "client/engine/engine.h"
#include "client/rows/buffer.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

struct mapped_gather {
	struct gw_job job; /* first */
	struct gw_event event;
	struct gw_read_set set;
	struct gw_gather gather;
	const struct gw_place *place;
	uint32_t part;
	size_t left;
	uint8_t *out;
	uint64_t bytes, begun, ns;
};

static void mapped_gather_post(struct mapped_gather *reads)
{
	struct gw_engine *engine = reads->job.engine;
	struct gw_endpoint *endpoint = gw_engine_link(engine, reads->part)->endpoint;
	struct gw_buffer *buffer = gw_buffer_find(engine, reads->out, reads->bytes);
	while (reads->left > 0) {
		size_t taken = gw_endpoint_gather(endpoint, &reads->set, &endpoint->peer.regions[reads->place->region],
						  buffer, &reads->gather, reads->left, true);
		reads->left -= taken;
		reads->gather.remote += taken;
		reads->gather.local += taken * reads->gather.stride;
	}
}

static void mapped_gather_done(struct gw_event *event, const struct gw_completion *completion)
{
	struct mapped_gather *reads = (struct mapped_gather *)((char *)event - offsetof(struct mapped_gather, event));
	reads->ns = gw_now_ns() - reads->begun;
	gw_job_end(&reads->job,
		   completion->status == GW_OK ? GW_OK : gw_fail_text(completion->status, completion->text));
}

static void mapped_gather_start(struct gw_job *job)
{
	struct mapped_gather *reads = (struct mapped_gather *)job;
	const struct gw_link *link = gw_engine_link(job->engine, reads->part);
	struct gw_buffer *buffer = gw_buffer_find(job->engine, reads->out, reads->bytes);
	if (!link->mapped || !buffer) {
		gw_job_end(job, gw_fail(GW_UNSUPPORTED, "part %u is not mapped", reads->part));
		return;
	}
	reads->gather.local = (uint64_t)(reads->out - buffer->base);
	reads->set = (struct gw_read_set){.cookie = &reads->event, .deadline_ns = job->deadline_ns};
	reads->begun = gw_now_ns();
	mapped_gather_post(reads);
}

static void mapped_gather_cancel(struct gw_job *job)
{
	(void)job; /* the copies are made at once */
}

/* An engine that has connected to the part; the first one if none has. No gather runs meanwhile. */
static struct gw_engine *connected_engine(const struct gw_client *client, uint32_t part)
{
	for (uint32_t i = 0; i < client->engine_count; i++)
		if (gw_engine_link(&client->engines[i], part)->mapped)
			return &client->engines[i];
	return &client->engines[0];
}

gw_status gw_bench_mapped_gather(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				 const int64_t *ids, uint32_t n, void *out, uint64_t *ns)
{
	const struct gw_rows *rows = &((const struct gw_client_tensor *)tensor)->rows;
	uint64_t *remote = gw_malloc(n * sizeof(*remote));
	if (!remote)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++)
		remote[i] = rows->places[part].offset + ((uint64_t)ids[i] - rows->starts[part]) * rows->step;
	struct mapped_gather reads = {.job = {.start = mapped_gather_start, .cancel = mapped_gather_cancel},
				      .event.fire = mapped_gather_done,
				      .gather = {.remote = remote,
						 .row_bytes = (uint32_t)rows->row_bytes,
						 .stride = (uint32_t)rows->row_bytes},
				      .place = &rows->places[part],
				      .part = part,
				      .left = n,
				      .out = out,
				      .bytes = n * rows->row_bytes};
	gw_engine_submit(connected_engine(client, part), &reads.job, true);
	gw_job_wait(&reads.job, GW_NO_DEADLINE);
	gw_free(remote);
	*ns = reads.ns;
	return reads.job.status == GW_OK ? GW_OK : gw_fail_text(reads.job.status, reads.job.text);
}
