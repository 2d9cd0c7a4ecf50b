/* Tasks. Every backend runs its calls here, so all of them count calls, answer repeats and free deferred calls in the
 * same way. Fails with the handler's error. */
#include "transport/service/task.h"

#include "transport/service/replay_cache.h"

static uint32_t scheme_of(const struct gw_task *task)
{
	return task->call.peer ? task->call.peer->scheme : 0;
}

void gw_task_begin(struct gw_task *task, struct gw_service *service, const struct gw_call *call,
		   const struct gw_once *once, uint32_t headroom, uint64_t bytes_max)
{
	*task = (struct gw_task){.service = service, .call = *call, .open = true};
	if (once)
		task->once = *once;
	gw_reply_begin(&task->reply, service, headroom, bytes_max);
	gw_count(&service->counts.calls_open, 1);
	task->counts = gw_service_thread(service, call->thread);
	/* larger numbers are the transports' own: GW_OP_UPGRADE, GW_OP_GOODBYE, GW_OP_KEYS */
	task->op = call->op < GW_OPS_MAX ? call->op : GW_OPS_MAX;
	task->begun_ns = gw_now_ns();
	uint32_t scheme = scheme_of(task);
	gw_count(&task->counts->calls[task->op][scheme].requests, 1);
	gw_count(&task->counts->calls[task->op][scheme].received_bytes, call->byte_count);
	if (call->peer)
		gw_service_peer_call(call->peer, task->op, task->begun_ns);
}

static gw_status apply_or_replay(struct gw_task *task)
{
	struct gw_replay_cache *replay_cache = task->service->replay_cache;
	if (!task->replay) {
		gw_status status =
			gw_replay_enter(replay_cache, task->call.client_uuid, &task->once, &task->reply, &task->replay);
		if (!task->replay) {
			task->reply.waits =
				status ==
				GW_AGAIN; /* the task waits for the thread that applies this call or an earlier one */
			return status;
		}
	}
	gw_status status = gw_service_apply(task->service, &task->call, &task->reply);
	if (status != GW_AGAIN) {
		gw_replay_keep(replay_cache, task->replay, status, &task->reply);
		task->replay = NULL;
	}
	return status;
}

uint64_t gw_task_pause_ns(const struct gw_task *task)
{
	if (task->reply.short_of_room)
		return GW_TASK_ROOM_NS;
	return task->reply.waits ? GW_TASK_WAIT_NS : 0;
}

/* The clock is read once for each run, and once more for each later one. */
static gw_status task_run_timed(struct gw_task *task)
{
	const uint64_t begin = task->ran ? gw_now_ns() : task->begun_ns;
	gw_status status = task->once.sequence ? apply_or_replay(task)
					       : gw_service_apply(task->service, &task->call, &task->reply);
	const uint64_t end = gw_now_ns();
	task->ran = true;
	task->run_ns = end - begin;
	gw_latency_count(&task->counts->slices[task->op], task->run_ns);
	if (status != GW_AGAIN)
		gw_latency_count(&task->counts->requests[task->op], end - task->begun_ns);
	return status;
}

gw_status gw_task_run(struct gw_task *task)
{
	task->reply.waits = false;
	gw_status status = task_run_timed(task);
	if (status == GW_AGAIN) {
		gw_count(&task->service->counts.deferred, 1);
		return status;
	}
	if (status != GW_OK) {
		gw_count(&task->counts->calls[task->op][scheme_of(task)].errors, 1);
		gw_reply_shrink(&task->reply, task->reply.bytes);
	}
	gw_count(&task->counts->calls[task->op][scheme_of(task)].sent_bytes, task->reply.bytes);
	gw_reply_settle(&task->reply);
	return status;
}

void gw_task_leave(struct gw_task *task)
{
	if (!task->open)
		return;
	task->open = false;
	if (task->replay)
		gw_replay_leave(task->service->replay_cache, task->replay, task->reply.progress);
	task->replay = NULL;
	if (task->call.peer)
		gw_service_peer_called(task->call.peer);
	gw_reply_leave(&task->reply);
	atomic_fetch_sub(&task->service->counts.calls_open, 1);
	task->service = NULL;
}

void gw_task_end(struct gw_task *task)
{
	gw_task_leave(task);
	gw_reply_end(&task->reply);
}

bool gw_task_stalls(const struct gw_task *task, uint64_t since_ns, uint64_t now_ns)
{
	return task->reply.taken && atomic_load_explicit(&task->service->short_of_room, memory_order_relaxed) &&
	       now_ns >= since_ns + GW_TASK_STALL_NS;
}
