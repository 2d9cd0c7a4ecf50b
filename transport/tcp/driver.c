/* Choice of the driver. io_uring is tried first. Containers and hardened kernels forbid it, and the limit of locked
 * memory may have room for some threads' rings only: the other threads use epoll, which is no error unless io_uring was
 * asked for by name. A process says so once, aloud where a command mends it. */
#include "transport/tcp/driver.h"

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
		return gw_fail(GW_INVALID, "no tcp driver \"%s\"; auto, io_uring and epoll are there", name);
	static _Atomic bool told;
	gw_status status = gw_tcp_driver_uring.open(spins, out);
	if (status != GW_UNSUPPORTED && status != GW_LOCKED_MEMORY)
		return status;
	if (!atomic_exchange(&told, true))
		gw_log(status == GW_LOCKED_MEMORY ? GW_LOG_WARN : GW_LOG_INFO, "tcp: %s; using epoll instead",
		       gw_last_error());
	return gw_tcp_driver_epoll.open(spins, out);
}
