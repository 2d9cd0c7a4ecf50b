/* Holding a job's tensors: a thread that says so to each server, as often as servers answer that they want to hear it.
 * It is made when the client opens, or, where nobody else can be of its job, with the first tensor. It also tells how
 * many rows of each the client has read by itself, which servers do not see; the last time when the client closes. All
 * of it goes over the first engine, which is connected to all servers from the start. A server that does not hear it is
 * told again the next time: servers do without several of them. One whose answer is lost counts reads twice, and what
 * is told when the client closes may not arrive: these numbers are for people. */
#include "client/tensors/leases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/engine/engine.h"
#include "client/engine/remote_call.h"
#include "client/rows/tensor_handles.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/thread.h"
#include "protocol/ops.h"
#include "protocol/tensor_call.h"

#define READS_MS 60000u               /* servers are told of reads as often, at least */
#define FIRST_MS 1000u                /* while no server has said how often it wants to hear of a job */
#define LAST_NS  (200 * GW_NS_PER_MS) /* for the last of them, when the client closes */

/* One server's. */
struct lease_call {
	struct gw_remote_call call;
	struct gw_vec reply;
	bool begun;
	struct gw_tensor_read reads[GW_TENSOR_READS_MAX];
	uint32_t read_count; /* 0 too for a call that tells of none */
};

struct gw_tensor_leases {
	struct gw_client *client;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool holds;
	uint32_t every_ms; /* that servers want to hear so; 0: none has said it yet */
	bool stop, started, telling;
	struct lease_call *calls; /* [num_parts] */
	pthread_t thread;
};

gw_status gw_client_choose_job(struct gw_client *client, const char *job)
{
	if (!job)
		job = getenv("GRAPHWIRE_JOB");
	if (job && *job) {
		if (!gw_job_name_valid(job))
			return gw_fail(GW_INVALID, "job \"%.80s\": letters, digits and \"._-:/\", at most %d", job,
				       GW_JOB_NAME_MAX);
		memcpy(client->job, job, strlen(job) + 1);
		client->shares_job = true;
		return GW_OK;
	}
	size_t used = (size_t)snprintf(client->job, sizeof(client->job), "client-");
	for (size_t i = 0; i < sizeof(client->uuid); i++)
		used += (size_t)snprintf(client->job + used, sizeof(client->job) - used, "%02x", client->uuid[i]);
	return GW_OK;
}

gw_status gw_tensor_leases_create(struct gw_client *client, struct gw_tensor_leases **out)
{
	pthread_condattr_t monotonic;
	struct gw_tensor_leases *hold = *out = gw_calloc(1, sizeof(*hold));
	if (!hold)
		return GW_NO_MEMORY;
	hold->client = client;
	pthread_mutex_init(&hold->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&hold->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return GW_OK;
}

/* How often servers are told. Locked. */
static uint64_t lease_period_ns(const struct gw_tensor_leases *hold)
{
	if (hold->every_ms)
		return hold->every_ms * GW_NS_PER_MS;
	return (hold->holds ? FIRST_MS : READS_MS) * GW_NS_PER_MS;
}

/* Begins to tell a server that tensors are held, or what was read of its rows, if there is something. */
static void lease_call_begin(struct gw_tensor_leases *hold, uint32_t part, uint16_t op)
{
	struct gw_client *client = hold->client;
	struct lease_call *call = &hold->calls[part];
	const void *request = client->job;
	uint32_t bytes = sizeof(client->job);
	call->read_count = 0;
	if (op == GW_OP_TENSOR_READS) {
		call->read_count = gw_tensor_handles_collect_reads(client, part, call->reads, GW_TENSOR_READS_MAX);
		request = call->reads;
		bytes = call->read_count * (uint32_t)sizeof(call->reads[0]);
	}
	call->begun = bytes > 0;
	if (call->begun)
		gw_remote_call_begin(&call->call, &client->engines[0], part, op, request, bytes, &call->reply, false);
}

/* With the lock. */
static void lease_at_least(struct gw_tensor_leases *hold, uint64_t every_ms)
{
	if (every_ms && (!hold->every_ms || every_ms < hold->every_ms))
		hold->every_ms = every_ms < READS_MS ? (uint32_t)every_ms : READS_MS;
}

/* How often a server wants to hear it. */
static void lease_parse_reply(struct gw_tensor_leases *hold, const struct lease_call *call)
{
	uint64_t every_ms = call->call.reply_bytes == sizeof(every_ms) ? gw_tensor_number(call->reply.data, 0) : 0;
	pthread_mutex_lock(&hold->lock);
	lease_at_least(hold, every_ms ? every_ms : READS_MS);
	pthread_mutex_unlock(&hold->lock);
}

/* False: it failed. */
static bool lease_call_end(struct gw_tensor_leases *hold, uint32_t part, uint16_t op)
{
	struct lease_call *call = &hold->calls[part];
	bool begun = call->begun;
	gw_status status = begun ? gw_remote_call_end(&call->call) : GW_OK;
	call->begun = false;
	if (status == GW_OK && begun && op == GW_OP_TENSOR_LEASE)
		lease_parse_reply(hold, call);
	if (status == GW_OK)
		return true;
	gw_log(GW_LOG_DEBUG, "part %u could not be told that tensors are held, or read: %s", part, gw_last_error());
	if (op == GW_OP_TENSOR_READS)
		gw_tensor_handles_return_reads(hold->client, part, call->reads, call->read_count);
	return false;
}

/* Tells all at once; who does not hear it until then is not waited for. last: the client closes. Returns whether all
 * heard it, and there is more to tell. */
static bool leases_report(struct gw_tensor_leases *hold, uint16_t op, bool last, uint64_t until)
{
	bool heard = true, more = false;
	uint32_t parts = hold->client->meta->num_parts;
	pthread_mutex_lock(&hold->lock);
	hold->telling = last || !hold->stop;
	for (uint32_t p = 0; p < parts && hold->telling; p++)
		lease_call_begin(hold, p, op);
	bool telling = hold->telling;
	pthread_mutex_unlock(&hold->lock);
	for (uint32_t p = 0; p < parts && telling; p++) {
		if (hold->calls[p].begun && !gw_job_wait(&hold->calls[p].call.ticket.job, until))
			gw_job_cancel(&hold->calls[p].call.ticket.job);
	}
	/* None may be cancelled any more once it has ended. */
	pthread_mutex_lock(&hold->lock);
	hold->telling = false;
	pthread_mutex_unlock(&hold->lock);
	for (uint32_t p = 0; p < parts && telling; p++) {
		more |= hold->calls[p].begun && hold->calls[p].read_count == GW_TENSOR_READS_MAX;
		heard &= lease_call_end(hold, p, op);
	}
	return heard && more;
}

/* What is told in turns, as it must not take long; and all of it, at the end. */
static void leases_report_last(struct gw_tensor_leases *hold)
{
	uint64_t until = gw_later_ns(gw_now_ns(), LAST_NS);
	while (leases_report(hold, GW_OP_TENSOR_READS, true, until) && gw_now_ns() < until)
		;
}

/* Waits until the lease has to be renewed; false: the hold ends. The servers' clocks go on while this process is
 * suspended, so that a suspension ends the wait at once. */
static bool leases_wait(struct gw_tensor_leases *hold)
{
	pthread_mutex_lock(&hold->lock);
	uint64_t begun = gw_monotonic_ns(), now = begun, until;
	while (!hold->stop && now < (until = gw_later_ns(begun, lease_period_ns(hold)))) {
		struct timespec end = gw_timespec(until);
		pthread_cond_timedwait(&hold->changed, &hold->lock, &end);
		now = gw_monotonic_ns();
	}
	bool stop = hold->stop;
	pthread_mutex_unlock(&hold->lock);
	return !stop;
}

/* first: nothing was read yet. */
static void leases_report_all(struct gw_tensor_leases *hold, bool first)
{
	pthread_mutex_lock(&hold->lock);
	uint64_t until = gw_later_ns(gw_now_ns(), lease_period_ns(hold));
	bool holds = hold->holds;
	pthread_mutex_unlock(&hold->lock);
	if (holds)
		leases_report(hold, GW_OP_TENSOR_LEASE, false, until);
	if (!first)
		leases_report(hold, GW_OP_TENSOR_READS, false, until);
}

static void *leases_run(void *argument)
{
	struct gw_tensor_leases *hold = argument;
	leases_report_all(hold, true);
	while (leases_wait(hold))
		leases_report_all(hold, false);
	return NULL;
}

void gw_tensor_leases_destroy(struct gw_tensor_leases *hold)
{
	if (!hold)
		return;
	pthread_mutex_lock(&hold->lock);
	hold->stop = true;
	for (uint32_t p = 0; hold->telling && p < hold->client->meta->num_parts; p++)
		if (hold->calls[p].begun)
			gw_job_cancel(&hold->calls[p].call.ticket.job);
	pthread_cond_signal(&hold->changed);
	pthread_mutex_unlock(&hold->lock);
	if (hold->started)
		pthread_join(hold->thread, NULL);
	if (hold->started)
		leases_report_last(hold);
	pthread_cond_destroy(&hold->changed);
	pthread_mutex_destroy(&hold->lock);
	for (uint32_t p = 0; hold->calls && p < hold->client->meta->num_parts; p++)
		gw_vec_free(&hold->calls[p].reply);
	gw_free(hold->calls);
	gw_free(hold);
}

static gw_status leases_start(struct gw_tensor_leases *hold)
{
	if (!hold->calls)
		hold->calls = gw_calloc(hold->client->meta->num_parts, sizeof(*hold->calls));
	if (!hold->calls)
		return GW_NO_MEMORY;
	int error = gw_thread_start(&hold->thread, leases_run, hold);
	if (error)
		return gw_thread_failed(error, "cannot start a thread that holds tensors");
	hold->started = true;
	return GW_OK;
}

gw_status gw_tensor_leases_begin(struct gw_client *client, bool holds, uint32_t every_ms)
{
	struct gw_tensor_leases *hold = client->hold;
	gw_status status = GW_OK;
	pthread_mutex_lock(&hold->lock);
	hold->holds |= holds;
	lease_at_least(hold, every_ms);
	pthread_cond_signal(&hold->changed);
	if (!hold->started)
		status = leases_start(hold);
	pthread_mutex_unlock(&hold->lock);
	return status;
}
