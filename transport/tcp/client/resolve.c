/* Resolves a name. The resolver blocks for several times 5 s while its servers are silent. Meanwhile a loop must serve
 * other peers and keep deadlines. So a separate thread asks, and signals the outcome by a descriptor:
 *
 *   begin ─▶ thread: getaddrinfo ─▶ descriptor readable ─▶ take
 *      └──────────────▶ abandon: the thread ends later, and the last of the two frees
 *
 * The thread uses only its own struct, so loops, poll groups and endpoints may end meanwhile. Fails on an unknown name,
 * and when descriptors, threads or TCP_RESOLVES_MAX run out.
 */
#include "transport/tcp/client/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/fork.h"
#include "core/system/thread.h"
#include "transport/tcp/socket.h"

struct tcp_resolve {
	struct gw_address address;
	int fd;                      /* the thread signals its end here */
	_Atomic uint32_t references; /* the caller's and the thread's */
	_Atomic bool ended;
	struct addrinfo *list;
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
};

static _Atomic uint32_t under_way;

/* After a fork: the threads belong to the parent, so the child counts none. */
static void resolve_forget(void)
{
	atomic_store(&under_way, 0);
}

static struct gw_fork_guard guard = {.in_child = resolve_forget};

static void resolve_release(struct tcp_resolve *resolve)
{
	if (atomic_fetch_sub(&resolve->references, 1) > 1)
		return;
	if (resolve->list)
		freeaddrinfo(resolve->list);
	gw_free(resolve);
}

static void *resolve_ask(void *argument)
{
	struct tcp_resolve *resolve = argument;
	resolve->status = gw_socket_resolve(&resolve->address, &resolve->list);
	if (resolve->status)
		snprintf(resolve->text, sizeof(resolve->text), "%s", gw_last_error());
	atomic_fetch_sub(&under_way, 1);
	atomic_store(&resolve->ended, true);
	eventfd_write(resolve->fd, 1);
	close(resolve->fd);
	resolve_release(resolve);
	return NULL;
}

static int resolve_start(struct tcp_resolve *resolve)
{
	pthread_t thread;
	int error = gw_thread_start(&thread, resolve_ask, resolve);
	if (!error)
		pthread_detach(thread);
	return error;
}

gw_status gw_tcp_resolve_begin(const struct gw_address *address, struct tcp_resolve **out, int *fd)
{
	char text[GW_ADDRESS_MAX];
	gw_status status = GW_OK;
	*out = NULL;
	*fd = -1;
	gw_fork_guard(&guard);
	if (atomic_fetch_add(&under_way, 1) >= TCP_RESOLVES_MAX) {
		status = gw_fail(GW_BUSY, "look up %s: %d look-ups are in progress already; give a numeric address",
				 gw_address_text(address, text), TCP_RESOLVES_MAX);
		goto leave;
	}
	struct tcp_resolve *resolve = gw_calloc(1, sizeof(*resolve));
	if (!resolve) {
		status = GW_NO_MEMORY;
		goto leave;
	}
	resolve->address = *address;
	atomic_store(&resolve->references, 2);
	int error = 0;
	resolve->fd = eventfd(0, EFD_CLOEXEC);
	if (resolve->fd < 0) {
		error = errno;
		goto free_resolve;
	}
	int done_fd = fcntl(resolve->fd, F_DUPFD_CLOEXEC, 0);
	if (done_fd < 0) {
		error = errno;
		goto close_fd;
	}
	error = resolve_start(resolve);
	if (error) {
		status = gw_thread_failed(error, "cannot start a thread to look up %s", gw_address_text(address, text));
		goto close_noted;
	}
	*out = resolve;
	*fd = done_fd;
	return GW_OK;

close_noted:
	close(done_fd);
close_fd:
	close(resolve->fd);
free_resolve:
	gw_free(resolve);
	if (status == GW_OK)
		status = gw_fail_errno(GW_IO, error, "look up %s", gw_address_text(address, text));
leave:
	atomic_fetch_sub(&under_way, 1);
	return status;
}

gw_status gw_tcp_resolve_take(struct tcp_resolve *resolve, struct addrinfo **list)
{
	*list = NULL;
	if (!atomic_load(&resolve->ended))
		return GW_AGAIN;
	gw_status status = resolve->status;
	*list = resolve->list;
	resolve->list = NULL;
	if (status != GW_OK)
		gw_fail_text(status, resolve->text);
	resolve_release(resolve);
	return status;
}

void gw_tcp_resolve_abandon(struct tcp_resolve *resolve)
{
	if (resolve)
		resolve_release(resolve);
}
