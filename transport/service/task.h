/* A task: one call in progress, from its acceptance by a backend to its answer. All backends share this code.
 *
 *   begin ─▶ run ─▶ GW_AGAIN: other tasks run, then this one again
 *              └──▶ other status: the answer. The backend sends the reply ─▶ end
 *
 * A task may wait for reply memory, or for another thread. It then runs again after gw_task_pause_ns, or when another
 * thread wakes its poll group, not at once.
 * If the client's connection ends while a numbered call is applied in part, the replay cache keeps the progress. The
 * client's repeat continues from there. One thread at a time uses a task. A task may be copied between two runs:
 * nothing points to it.
 */
#ifndef GW_TRANSPORT_SERVICE_TASK_H
#define GW_TRANSPORT_SERVICE_TASK_H

#include "core/system/clock.h"
#include "transport/service/once.h"
#include "transport/service/service_backend.h"

#define GW_TASK_ROOM_NS (5 * GW_NS_PER_MS) /* pause of a task that waits for reply memory */
#define GW_TASK_WAIT_NS (GW_NS_PER_MS)     /* pause of a task that waits for a thread, which works for microseconds */
/* A reply stalls when the client read nothing of it for this long while other tasks wait for memory. */
#define GW_TASK_STALL_NS (GW_NS_PER_SECOND)

struct gw_replay_entry;

struct gw_task {
	struct gw_service *service;
	struct gw_call call; /* the backend owns call.bytes, and sets the pointer before each run */
	struct gw_once once; /* sequence 0: the call may run twice */
	bool open;           /* counted in calls_open */
	bool ran;
	struct gw_service_thread *counts;
	uint32_t op;               /* in the counts */
	uint64_t begun_ns, run_ns; /* when the task began; how long its last run took */
	struct gw_replay_entry *replay;
	struct gw_reply reply;
};

/* once: NULL or sequence 0: the call may run twice. headroom, bytes_max: the reply's. */
void gw_task_begin(struct gw_task *task, struct gw_service *service, const struct gw_call *call,
		   const struct gw_once *once, uint32_t headroom, uint64_t bytes_max);
/* GW_OK: the answer is in the reply. GW_AGAIN: run the task again later. Else: the answer is the status and the text in
 * gw_last_error(). A repeat of a numbered call is answered from the replay cache. */
gw_status gw_task_run(struct gw_task *task);
/* The pause before the next run of a task whose last run returned GW_AGAIN; 0: no pause. */
uint64_t gw_task_pause_ns(const struct gw_task *task);
/* Ends the use of the service, whether the call is answered or not. The reply's memory stays. */
void gw_task_leave(struct gw_task *task);
void gw_task_end(struct gw_task *task); /* a second call does nothing */

/* Whether a reply of which nothing was sent since since_ns keeps other tasks waiting for memory. */
bool gw_task_stalls(const struct gw_task *task, uint64_t since_ns, uint64_t now_ns);

#endif
