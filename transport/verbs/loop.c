/* The loop's services to the objects that it drives: work that runs after a poll's completions, descriptors that wake
 * the loop, its TCP part, and possession.
 *
 * The thread that polls the loop possesses it. If no thread polls a loop, the thread that stops a listener possesses
 * the loop and ends the listener's clients.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/tcp/loop.h"
#include "transport/verbs/verbs.h"

void gw_verbs_defer(struct verbs_loop *loop, struct verbs_deferred *deferred)
{
	if (deferred->queued)
		return;
	deferred->queued = true;
	deferred->next = loop->deferred;
	loop->deferred = deferred;
}

void gw_verbs_undefer(struct verbs_loop *loop, struct verbs_deferred *deferred)
{
	if (!deferred->queued)
		return;
	GW_SLIST_REMOVE(loop->deferred, deferred, next);
	deferred->queued = false;
}

void gw_verbs_run_deferred(struct verbs_loop *loop)
{
	while (loop->deferred) {
		struct verbs_deferred *deferred = loop->deferred;
		loop->deferred = deferred->next;
		deferred->queued = false;
		deferred->run(deferred);
	}
}

gw_status gw_verbs_watch(struct verbs_loop *loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		return gw_fail_errno(GW_IO, errno, "epoll_ctl");
	return GW_OK;
}

void gw_verbs_unwatch(struct verbs_loop *loop, int fd)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

gw_status gw_verbs_control(struct verbs_loop *loop)
{
	if (loop->control)
		return GW_OK;
	gw_status status = gw_transport_tcp.open(loop->group, &loop->control);
	if (status != GW_OK)
		return status;
	uint64_t ignored = GW_NO_DEADLINE;
	loop->control_fd = gw_transport_tcp.wait_fd(loop->control, &ignored);
	status = gw_verbs_watch(loop, loop->control_fd);
	if (status != GW_OK) {
		gw_transport_tcp.shut(loop->control);
		loop->control = NULL;
	}
	return status;
}

void gw_verbs_possess(struct verbs_loop *loop)
{
	bool expected = false;
	while (!atomic_compare_exchange_weak_explicit(&loop->owned, &expected, true, memory_order_acquire,
						      memory_order_relaxed))
		expected = false;
}

void gw_verbs_release(struct verbs_loop *loop)
{
	atomic_store_explicit(&loop->owned, false, memory_order_release);
}
