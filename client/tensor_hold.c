/* Holding a job's tensors: a thread that says so to each server, made with the first tensor. A server that does not
 * hear it is told again the next time: servers do without several of them. */
#include "client/tensor_hold.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/engine.h"
#include "client/remote_call.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "protocol/ops.h"
#include "protocol/tensor_call.h"

/* One server's. */
struct hold_call {
	struct gw_remote_call call;
	struct gw_vec reply;
};

struct gw_tensor_hold {
	struct gw_client *client;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t every_ms; /* 0: not yet */
	bool stop, started, telling;
	struct hold_call *calls; /* [num_parts] */
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
		return GW_OK;
	}
	size_t used = (size_t)snprintf(client->job, sizeof(client->job), "client-");
	for (size_t i = 0; i < sizeof(client->uuid); i++)
		used += (size_t)snprintf(client->job + used, sizeof(client->job) - used, "%02x", client->uuid[i]);
	return GW_OK;
}

gw_status gw_tensor_hold_create(struct gw_client *client, struct gw_tensor_hold **out)
{
	pthread_condattr_t monotonic;
	struct gw_tensor_hold *hold = *out = gw_calloc(1, sizeof(*hold));
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

void gw_tensor_hold_destroy(struct gw_tensor_hold *hold)
{
	if (!hold)
		return;
	pthread_mutex_lock(&hold->lock);
	hold->stop = true;
	for (uint32_t p = 0; hold->telling && p < hold->client->meta->num_parts; p++)
		gw_job_cancel(&hold->calls[p].call.ticket.job);
	pthread_cond_signal(&hold->changed);
	pthread_mutex_unlock(&hold->lock);
	if (hold->started)
		pthread_join(hold->thread, NULL);
	pthread_cond_destroy(&hold->changed);
	pthread_mutex_destroy(&hold->lock);
	for (uint32_t p = 0; hold->calls && p < hold->client->meta->num_parts; p++)
		gw_vec_free(&hold->calls[p].reply);
	gw_free(hold->calls);
	gw_free(hold);
}

/* Tells all at once; who does not hear it in time is not waited for. */
static void hold_tell(struct gw_tensor_hold *hold)
{
	struct gw_client *client = hold->client;
	uint32_t parts = client->meta->num_parts;
	pthread_mutex_lock(&hold->lock);
	hold->telling = !hold->stop;
	for (uint32_t p = 0; p < parts && hold->telling; p++)
		gw_remote_call_begin(&hold->calls[p].call, client, p, GW_OP_TENSOR_HOLD, client->job,
				     sizeof(client->job), &hold->calls[p].reply, false);
	bool telling = hold->telling;
	uint64_t until = gw_later_ns(gw_now_ns(), hold->every_ms * GW_NS_PER_MS);
	pthread_mutex_unlock(&hold->lock);
	for (uint32_t p = 0; p < parts && telling; p++) {
		if (!gw_job_wait(&hold->calls[p].call.ticket.job, until))
			gw_job_cancel(&hold->calls[p].call.ticket.job);
	}
	/* None may be cancelled any more once it has ended. */
	pthread_mutex_lock(&hold->lock);
	hold->telling = false;
	pthread_mutex_unlock(&hold->lock);
	for (uint32_t p = 0; p < parts && telling; p++) {
		if (gw_remote_call_end(&hold->calls[p].call) != GW_OK)
			gw_log(GW_LOG_DEBUG, "part %u could not be told that tensors are held: %s", p, gw_last_error());
	}
}

/* Whether it is to be told again. */
static bool hold_wait(struct gw_tensor_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	uint64_t until = gw_later_ns(gw_now_ns(), hold->every_ms * GW_NS_PER_MS);
	struct timespec end = {.tv_sec = (time_t)(until / GW_NS_PER_SECOND),
			       .tv_nsec = (long)(until % GW_NS_PER_SECOND)};
	while (!hold->stop && pthread_cond_timedwait(&hold->changed, &hold->lock, &end) == 0)
		;
	bool stop = hold->stop;
	pthread_mutex_unlock(&hold->lock);
	return !stop;
}

static void *hold_run(void *argument)
{
	struct gw_tensor_hold *hold = argument;
	while (hold_wait(hold))
		hold_tell(hold);
	return NULL;
}

static gw_status hold_start(struct gw_tensor_hold *hold)
{
	sigset_t all, before;
	if (!hold->calls)
		hold->calls = gw_calloc(hold->client->meta->num_parts, sizeof(*hold->calls));
	if (!hold->calls)
		return GW_NO_MEMORY;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = pthread_create(&hold->thread, NULL, hold_run, hold);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return gw_fail_errno(GW_NO_MEMORY, error, "a thread that holds tensors");
	hold->started = true;
	return GW_OK;
}

gw_status gw_tensor_hold_begin(struct gw_client *client, uint32_t every_ms)
{
	struct gw_tensor_hold *hold = client->hold;
	gw_status status = GW_OK;
	pthread_mutex_lock(&hold->lock);
	if (!hold->every_ms || every_ms < hold->every_ms) {
		hold->every_ms = every_ms;
		pthread_cond_signal(&hold->changed);
	}
	if (!hold->started)
		status = hold_start(hold);
	pthread_mutex_unlock(&hold->lock);
	return status;
}
