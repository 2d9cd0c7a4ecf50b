/* Leases of a job's tensors: a thread renews them at each server, as often as the servers request in their replies.
 *
 * The thread starts when the client opens. If no other client can belong to the job, it starts with the first tensor.
 * The thread also reports what servers cannot see: how many rows of each tensor the client has read without a request,
 * and what it took from a server's replicas and lists of other parts. It reports this a last time when the client
 * closes.
 *
 * All calls use the first engine, which is connected to all servers from the start. If a call fails, the next call
 * repeats its report; servers tolerate several missing renewals. If a reply is lost, the reads of its report are
 * counted twice, and the last report may not arrive. This is acceptable, since the counts are only for people. */
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
#include "protocol/saved_call.h"
#include "protocol/tensor_call.h"

#define READS_MS 60000u               /* longest time between reports of reads */
#define FIRST_MS 1000u                /* until a server has requested an interval for a job */
#define LAST_NS  (200 * GW_NS_PER_MS) /* limit for the last reports, when the client closes */

/* The call to one server. */
struct lease_call {
	struct gw_remote_call call;
	struct gw_vec reply;
	bool begun;
	struct gw_tensor_read reads[GW_TENSOR_READS_MAX];
	uint32_t read_count;             /* also 0 for a call that reports no reads */
	struct gw_saved saved, reported; /* by this call; before */
	bool no_saved;                   /* the server does not know the report */
};

struct gw_tensor_leases {
	struct gw_client *client;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_lease;
	uint32_t every_ms; /* interval that the servers requested; 0: no server has replied yet */
	bool stop, started, reporting;
	struct lease_call *calls; /* [num_parts] */
	pthread_t thread;
};

gw_status gw_client_choose_job(struct gw_client *client, const char *job)
{
	if (!job)
		job = getenv("GRAPHWIRE_JOB");
	if (job && *job) {
		if (!gw_job_name_valid(job))
			return gw_fail(GW_INVALID, "job \"%.80s\": letters, digits and \"._-:/+\", at most %d", job,
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
	struct gw_tensor_leases *leases = *out = gw_calloc(1, sizeof(*leases));
	if (!leases)
		return GW_NO_MEMORY;
	leases->client = client;
	pthread_mutex_init(&leases->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&leases->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return GW_OK;
}

/* The lock must be held. */
static uint64_t lease_period_ns(const struct gw_tensor_leases *leases)
{
	if (leases->every_ms)
		return leases->every_ms * GW_NS_PER_MS;
	return (leases->has_lease ? FIRST_MS : READS_MS) * GW_NS_PER_MS;
}

/* What a server's memory has saved this client, and is not reported. */
static struct gw_saved saved_since(const struct gw_client *client, const struct lease_call *call, uint32_t part)
{
	const size_t server = (size_t)(client->parts[part] - client->servers);
	struct gw_saved saved = {0};
	for (uint32_t e = 0; e <= client->engine_count; e++) {
		const struct gw_link_counts *counts = &client->engines[e].links[server].counts;
		saved.rows += atomic_load_explicit(&counts->near_rows, memory_order_relaxed);
		saved.bytes += atomic_load_explicit(&counts->near_bytes, memory_order_relaxed);
		saved.hops += atomic_load_explicit(&counts->held_hops, memory_order_relaxed);
	}
	saved.rows -= call->reported.rows;
	saved.bytes -= call->reported.bytes;
	saved.hops -= call->reported.hops;
	return saved;
}

/* Begins a call to a server: a renewal, or a report if there is anything to report. */
static void lease_call_begin(struct gw_tensor_leases *leases, uint32_t part, uint16_t op)
{
	struct gw_client *client = leases->client;
	struct lease_call *call = &leases->calls[part];
	const void *request = client->job;
	uint32_t bytes = sizeof(client->job);
	call->read_count = 0;
	if (op == GW_OP_TENSOR_READS) {
		call->read_count = gw_tensor_handles_collect_reads(client, part, call->reads, GW_TENSOR_READS_MAX);
		request = call->reads;
		bytes = call->read_count * (uint32_t)sizeof(call->reads[0]);
	}
	if (op == GW_OP_SAVED) {
		call->saved = saved_since(client, call, part);
		request = &call->saved;
		bytes = !call->no_saved && (call->saved.rows || call->saved.hops) ? sizeof(call->saved) : 0;
	}
	call->begun = bytes > 0;
	if (call->begun)
		gw_remote_call_begin(&call->call, &client->engines[0], part, op, request, bytes, &call->reply, false);
}

/* The lock must be held. */
static void lease_at_least(struct gw_tensor_leases *leases, uint64_t every_ms)
{
	if (every_ms && (!leases->every_ms || every_ms < leases->every_ms))
		leases->every_ms = every_ms < READS_MS ? (uint32_t)every_ms : READS_MS;
}

static void lease_parse_reply(struct gw_tensor_leases *leases, const struct lease_call *call)
{
	uint64_t every_ms = call->call.reply_bytes == sizeof(every_ms) ? gw_tensor_number(call->reply.data, 0) : 0;
	pthread_mutex_lock(&leases->lock);
	lease_at_least(leases, every_ms ? every_ms : READS_MS);
	pthread_mutex_unlock(&leases->lock);
}

/* False: the call failed. */
static bool lease_call_end(struct gw_tensor_leases *leases, uint32_t part, uint16_t op)
{
	struct lease_call *call = &leases->calls[part];
	bool begun = call->begun;
	gw_status status = begun ? gw_remote_call_end(&call->call) : GW_OK;
	call->begun = false;
	if (status == GW_OK && begun && op == GW_OP_TENSOR_LEASE)
		lease_parse_reply(leases, call);
	if (status == GW_OK && begun && op == GW_OP_SAVED) {
		call->reported.rows += call->saved.rows;
		call->reported.bytes += call->saved.bytes;
		call->reported.hops += call->saved.hops;
	}
	if (status == GW_OK)
		return true;
	call->no_saved |= op == GW_OP_SAVED && status == GW_UNSUPPORTED; /* it is of an earlier version */
	gw_log(GW_LOG_DEBUG, "part %u: could not renew the lease or report: %s", part, gw_last_error());
	if (op == GW_OP_TENSOR_READS)
		gw_tensor_handles_return_reads(leases->client, part, call->reads, call->read_count);
	return false;
}

/* Calls all servers at the same time, and cancels the calls that have not ended by `until`. last: the client closes.
 * Returns true if all calls succeeded and more reads remain to be reported. */
static bool leases_report(struct gw_tensor_leases *leases, uint16_t op, bool last, uint64_t until)
{
	bool succeeded = true, more = false;
	uint32_t parts = leases->client->meta->num_parts;
	pthread_mutex_lock(&leases->lock);
	leases->reporting = last || !leases->stop;
	for (uint32_t p = 0; p < parts && leases->reporting; p++)
		lease_call_begin(leases, p, op);
	bool reporting = leases->reporting;
	pthread_mutex_unlock(&leases->lock);
	for (uint32_t p = 0; p < parts && reporting; p++) {
		if (leases->calls[p].begun && !gw_job_wait(&leases->calls[p].call.ticket.job, until))
			gw_job_cancel(&leases->calls[p].call.ticket.job);
	}
	/* From here on the destroying thread must not cancel the calls any more, since they end below. */
	pthread_mutex_lock(&leases->lock);
	leases->reporting = false;
	pthread_mutex_unlock(&leases->lock);
	for (uint32_t p = 0; p < parts && reporting; p++) {
		more |= leases->calls[p].begun && leases->calls[p].read_count == GW_TENSOR_READS_MAX;
		succeeded &= lease_call_end(leases, p, op);
	}
	return succeeded && more;
}

/* Reports all that remains when the client closes. Regular reports are limited in size, since they must be short. */
static void leases_report_last(struct gw_tensor_leases *leases)
{
	uint64_t until = gw_later_ns(gw_now_ns(), LAST_NS);
	leases_report(leases, GW_OP_SAVED, true, until);
	while (leases_report(leases, GW_OP_TENSOR_READS, true, until) && gw_now_ns() < until)
		;
}

/* Waits until the next renewal or report is due; false: the thread must end. The servers' clocks continue while this
 * process is suspended, so a suspension ends the wait at once. */
static bool leases_wait(struct gw_tensor_leases *leases)
{
	pthread_mutex_lock(&leases->lock);
	uint64_t begun = gw_monotonic_ns(), now = begun, until;
	while (!leases->stop && now < (until = gw_later_ns(begun, lease_period_ns(leases)))) {
		struct timespec end = gw_timespec(until);
		pthread_cond_timedwait(&leases->changed, &leases->lock, &end);
		now = gw_monotonic_ns();
	}
	bool stop = leases->stop;
	pthread_mutex_unlock(&leases->lock);
	return !stop;
}

/* first: no rows were read yet. */
static void leases_report_all(struct gw_tensor_leases *leases, bool first)
{
	pthread_mutex_lock(&leases->lock);
	uint64_t until = gw_later_ns(gw_now_ns(), lease_period_ns(leases));
	bool has_lease = leases->has_lease;
	pthread_mutex_unlock(&leases->lock);
	if (has_lease)
		leases_report(leases, GW_OP_TENSOR_LEASE, false, until);
	if (!first)
		leases_report(leases, GW_OP_TENSOR_READS, false, until);
	if (!first)
		leases_report(leases, GW_OP_SAVED, false, until);
}

static void *leases_run(void *argument)
{
	struct gw_tensor_leases *leases = argument;
	leases_report_all(leases, true);
	while (leases_wait(leases))
		leases_report_all(leases, false);
	return NULL;
}

void gw_tensor_leases_destroy(struct gw_tensor_leases *leases)
{
	if (!leases)
		return;
	pthread_mutex_lock(&leases->lock);
	leases->stop = true;
	for (uint32_t p = 0; leases->reporting && p < leases->client->meta->num_parts; p++)
		if (leases->calls[p].begun)
			gw_job_cancel(&leases->calls[p].call.ticket.job);
	pthread_cond_signal(&leases->changed);
	pthread_mutex_unlock(&leases->lock);
	if (leases->started)
		pthread_join(leases->thread, NULL);
	if (leases->started)
		leases_report_last(leases);
	pthread_cond_destroy(&leases->changed);
	pthread_mutex_destroy(&leases->lock);
	for (uint32_t p = 0; leases->calls && p < leases->client->meta->num_parts; p++)
		gw_vec_free(&leases->calls[p].reply);
	gw_free(leases->calls);
	gw_free(leases);
}

static gw_status leases_start(struct gw_tensor_leases *leases)
{
	if (!leases->calls)
		leases->calls = gw_calloc(leases->client->meta->num_parts, sizeof(*leases->calls));
	if (!leases->calls)
		return GW_NO_MEMORY;
	int error = gw_thread_start(&leases->thread, leases_run, leases);
	if (error)
		return gw_thread_failed(error, "cannot start the thread that renews leases");
	leases->started = true;
	return GW_OK;
}

gw_status gw_tensor_leases_begin(struct gw_client *client, bool has_lease, uint32_t every_ms)
{
	struct gw_tensor_leases *leases = client->leases;
	gw_status status = GW_OK;
	pthread_mutex_lock(&leases->lock);
	leases->has_lease |= has_lease;
	lease_at_least(leases, every_ms);
	pthread_cond_signal(&leases->changed);
	if (!leases->started)
		status = leases_start(leases);
	pthread_mutex_unlock(&leases->lock);
	return status;
}
