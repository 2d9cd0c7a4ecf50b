/* A call under way, from the backend's taking of it to its answer: the same for every backend.
 *
 *   begin ─▶ run ─▶ GW_AGAIN: others have their turn, then run again
 *              └──▶ anything else: the answer. The reply is sent ─▶ end
 *
 * A task that waits for others (gw_task_pause_ns) is run again a while later, not at once: its reply is short of room,
 * or another thread has what it needs. Left with its client's connection, a call that was applied in part goes on where
 * it was when the client repeats it: the replay cache keeps how far it was. One thread's at a time. It may be copied
 * between two runs: nothing points to it.
 */
#ifndef GW_TRANSPORT_TASK_H
#define GW_TRANSPORT_TASK_H

#include "core/system/clock.h"
#include "transport/once.h"
#include "transport/service_private.h"

#define GW_TASK_ROOM_NS  (5 * GW_NS_PER_MS) /* after which a task that is short of room is run again */
#define GW_TASK_WAIT_NS  (GW_NS_PER_MS)     /* and one that waits for another thread, which works for microseconds */
#define GW_TASK_STALL_NS (GW_NS_PER_SECOND) /* others are short, and nothing of a reply was taken for so long */

struct gw_replay_entry;

struct gw_task {
	struct gw_service *service;
	struct gw_call call; /* call.bytes: the backend keeps them, and says where they are before each run */
	struct gw_once once; /* sequence 0: it may run twice */
	uint32_t thread;
	bool open; /* counted */
	struct gw_replay_entry *replay;
	struct gw_reply reply;
};

/* once: NULL or of sequence 0: it may run twice. headroom, bytes_max: of the reply. */
void gw_task_begin(struct gw_task *task, struct gw_service *service, const struct gw_call *call,
		   const struct gw_once *once, uint32_t thread, uint32_t headroom, uint64_t bytes_max);
/* GW_OK: the answer is in the reply; GW_AGAIN: run it again later; else status and the text in gw_last_error(). A
 * repeat of a numbered call is answered from memory. */
gw_status gw_task_run(struct gw_task *task);
/* For how long a task whose last run gave GW_AGAIN is to stand back; 0: not at all. */
uint64_t gw_task_pause_ns(const struct gw_task *task);
/* The service is used no more, answered or not; the reply's memory stays. */
void gw_task_leave(struct gw_task *task);
void gw_task_end(struct gw_task *task); /* twice is allowed */

/* Whether a reply that stands still since then keeps others waiting for room. */
bool gw_task_stalls(const struct gw_task *task, uint64_t since_ns, uint64_t now_ns);

#endif
