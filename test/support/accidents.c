/* See accidents.h. */
#include "test/support/accidents.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/client.h"
#include "core/base/clock.h"
#ifdef GRAPHWIRE_VERBS
#include "transport/verbs/endpoint.h"
#include "transport/verbs/listener.h"
#endif

#define CHILD_MS 20000

/* --- Queue pairs. --- */

#ifdef GRAPHWIRE_VERBS
static uint32_t break_queue(const struct verbs_queue *queue)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	return queue && queue->connected && ibv_modify_qp(queue->id->qp, &error, IBV_QP_STATE) == 0;
}

uint32_t gw_accident_break_group(struct gw_poll_group *group)
{
	struct verbs_loop *loop;
	uint32_t broken = 0;
	if (gw_poll_group_state(group, &gw_transport_verbs, (void **)&loop))
		return 0;
	gw_verbs_possess(loop);
	for (struct verbs_endpoint *endpoint = loop->endpoints; endpoint; endpoint = endpoint->next)
		for (uint32_t i = 0; i < endpoint->queue_count; i++)
			broken += break_queue(endpoint->lines[i].queue);
	for (struct verbs_door *door = loop->doors; door; door = door->next)
		for (struct verbs_peer *peer = door->peers; peer; peer = peer->next)
			for (uint32_t i = 0; i < peer->queue_count; i++)
				broken += break_queue(peer->lines[i].queue);
	gw_verbs_release(loop);
	return broken;
}
#else
uint32_t gw_accident_break_group(struct gw_poll_group *group)
{
	(void)group;
	return 0;
}
#endif

struct breaking {
	struct gw_job job;
	uint32_t broken;
};

static void break_in_engine(struct gw_job *job)
{
	struct breaking *breaking = (struct breaking *)job;
	breaking->broken = gw_accident_break_group(job->engine->group);
	gw_job_end(job, GW_OK);
}

gw_status gw_accident_break(struct gw_client *client, uint64_t *broken)
{
	for (uint32_t i = 0; i < client->engine_count; i++) {
		struct breaking breaking = {.job.start = break_in_engine};
		gw_engine_submit(&client->engines[i], &breaking.job, false);
		gw_job_wait(&breaking.job, GW_NO_DEADLINE);
		*broken += breaking.broken;
	}
	return GW_OK;
}

/* --- Forks. --- */

/* 0, or a number that says what went wrong. */
static int live_as_child(struct gw_client *client, const struct gw_client_options *options,
			 const struct gw_sample_spec *spec, const struct gw_minibatch *batch)
{
	const struct gw_tensor *tensor = spec->fetches[0].tensor;
	static uint8_t row[1 << 16];
	int64_t id = 0;
	for (uint32_t f = 0; f < batch->fetch_count; f++)
		memset((void *)(uintptr_t)batch->rows[f], 0xee, batch->row_counts[f] * spec->fetches[f].tensor->row_bytes);
	if (tensor->row_bytes > sizeof(row) || gw_gather(client, tensor, &id, 1, row) != GW_INVALID)
		return 2;
	gw_client_close(client);
	const char *name = tensor->name;
	struct gw_client *own;
	if (gw_client_open(options, &own) != GW_OK || gw_node_tensor(own, tensor->type, name, &tensor) != GW_OK ||
	    gw_gather(own, tensor, &id, 1, row) != GW_OK) {
		fprintf(stderr, "a forked child: %s\n", gw_last_error());
		return 3;
	}
	gw_client_close(own);
	return 0;
}

gw_status gw_accident_fork(struct gw_client *client, const struct gw_client_options *options,
			   const struct gw_sample_spec *spec, const struct gw_minibatch *batch)
{
	pid_t child = fork();
	if (child < 0)
		return gw_fail_errno(GW_LIMIT, errno, "fork");
	if (child == 0)
		_exit(live_as_child(client, options, spec, batch));
	int how;
	for (uint32_t ms = 0; ms < CHILD_MS; ms += 10) {
		if (waitpid(child, &how, WNOHANG) == child)
			return WIFEXITED(how) && WEXITSTATUS(how) == 0
				       ? GW_OK
				       : gw_fail(GW_INVALID, "a forked child ended with status %#x", (unsigned)how);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &how, 0);
	return gw_fail(GW_INVALID, "a forked child hangs");
}
