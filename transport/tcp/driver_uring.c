#include "transport/tcp/driver.h"

static gw_status uring_open(struct tcp_driver **out)
{
	*out = NULL;
	return gw_fail(GW_UNSUPPORTED, "io_uring is not built in");
}

const struct tcp_driver_ops gw_tcp_driver_uring = {.name = "io_uring", .open = uring_open};
