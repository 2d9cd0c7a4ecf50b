/* Chooses the driver. io_uring is tried first, then epoll. Containers and hardened kernels forbid io_uring. The limit
 * of locked memory may have room for the rings of some threads only; the other threads then use epoll. If the caller
 * named io_uring, its absence is an error. Else a process logs the fallback once: as a warning if the limit of locked
 * memory is the reason, since a command can raise it. */
#include "transport/tcp/driver/driver.h"

#include <stdatomic.h>
#include <string.h>

#include "core/errors/log.h"

gw_status gw_tcp_driver_open(const char *name, bool spins, struct tcp_driver **out)
{
	*out = NULL;
	if (name && strcmp(name, "epoll") == 0)
		return gw_tcp_driver_epoll.open(spins, out);
	if (name && strcmp(name, "io_uring") == 0)
		return gw_tcp_driver_uring.open(spins, out);
	if (name && strcmp(name, "auto") != 0)
		return gw_fail(GW_INVALID, "no tcp driver \"%s\"; choose auto, io_uring or epoll", name);
	static _Atomic bool logged;
	gw_status status = gw_tcp_driver_uring.open(spins, out);
	if (status != GW_UNSUPPORTED && status != GW_LOCKED_MEMORY)
		return status;
	if (!atomic_exchange(&logged, true))
		gw_log(status == GW_LOCKED_MEMORY ? GW_LOG_WARN : GW_LOG_INFO, "tcp: %s; using epoll instead",
		       gw_last_error());
	return gw_tcp_driver_epoll.open(spins, out);
}
