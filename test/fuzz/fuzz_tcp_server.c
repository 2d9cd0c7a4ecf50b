/* Any bytes into a server's connection. The first byte says how: bit 0, a valid hello goes in front; the rest, in how
 * large pieces bytes arrive and leave. */
#include <fcntl.h>

#include "test/fuzz/fuzz_driver.h"
#include "transport/tcp/server/server.h"
#include "transport/tcp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct gw_service *service;
static struct tcp_loop *loop;

static gw_status echo(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	uint8_t *room = gw_reply_extend(reply, call->byte_count);
	if (!room)
		return GW_LIMIT;
	if (call->byte_count)
		memcpy(room, call->bytes, call->byte_count);
	return GW_OK;
}

static gw_status large(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	uint8_t *room = gw_reply_extend(reply, 300000 + call->byte_count);
	if (!room)
		return GW_LIMIT;
	memset(room, 1, 300000 + call->byte_count);
	return GW_OK;
}

static void set_up(void)
{
	struct gw_service_identity identity = {.graph_id = 1, .incarnation = 1};
	uint32_t id;
	static uint8_t memory[100000];
	static _Alignas(16) uint8_t rows[20 * 64];
	struct gw_region_rows format = {.seed = 1};
	struct gw_dynamic_region dynamic = {.base = rows, .bytes = sizeof(rows), .rows = &format, .fd = -1};
	struct gw_region region;
	if (gw_service_create(&identity, NULL, &service) ||
	    gw_service_expose(service, memory, sizeof(memory), 0, NULL, &id) ||
	    gw_service_expose(service, NULL, 0, 0, NULL, &id) || gw_row_format_init(40, &format.format) ||
	    gw_service_expose(service, rows, sizeof(rows), 0, &format, &id) ||
	    gw_service_publish(service, &dynamic, &region) || gw_service_handle(service, 1, echo, NULL) ||
	    gw_service_handle(service, 2, large, NULL))
		abort();
	loop = fuzz_loop(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct tcp_listener listener;
	static const size_t sizes[] = {1, 7, 64, 1000, 4096, 100000, 1u << 20, 3};
	if (!service)
		set_up();
	if (n == 0)
		return 0;
	listener.base.service = service;
	atomic_store(&listener.references, 2);
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	gw_tcp_server_begin(loop, fd, &listener);
	if (!loop->servers)
		abort();
	struct tcp_io *io = (struct tcp_io *)(void *)loop->servers; /* its first member */
	size_t most = sizes[(data[0] >> 1) & 7], drain = sizes[(data[0] >> 4) & 7] + 500;
	struct {
		struct wire_header header;
		struct wire_hello hello;
		struct wire_header proof_header;
		uint8_t proof[WIRE_PROOF_BYTES];
	} __attribute__((packed)) hello = {
		.header = {.bytes = sizeof(struct wire_hello), .type = WIRE_HELLO},
		.hello = {.versions = WIRE_VERSIONS},
		.proof_header = {.bytes = WIRE_PROOF_BYTES, .type = WIRE_PROOF},
	};
	bool open = true;
	if (data[0] & 1)
		open = fuzz_feed(io, (const uint8_t *)&hello, sizeof(hello), SIZE_MAX, SIZE_MAX);
	if (open)
		fuzz_feed(io, data + 1, n - 1, most, drain);
	gw_tcp_servers_end(loop, true);
	if (!fuzz_gone || loop->ios)
		abort();
	return 0;
}
