/* Any bytes into a client's connection, with reads of every form and requests open. The first byte says how: bit 0, a
 * valid hello goes in front; the rest, in how large pieces bytes arrive. Destinations are blocks of their exact size,
 * so that a byte beside them is found; every question must complete exactly once. */
#include <arpa/inet.h>

#include "core/system/clock.h"
#include "test/fuzz/fuzz_driver.h"
#include "transport/tcp/client/client_private.h"

#define QUESTIONS 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct gw_poll_group *group;
static struct tcp_loop *loop;
static int listener = -1;
static struct gw_connect_options options = {.address = {.scheme = "tcp", .host = "127.0.0.1"},
					    .deadline_ns = GW_NO_DEADLINE};

static void set_up(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, bytes) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes) || gw_poll_group_create(NULL, &group))
		abort();
	options.address.port = ntohs(address.sin_port);
	loop = fuzz_loop(group);
}

/* The kernel's connection is only there to be there. Reset, so that no port stays taken. */
static void accept_one(void)
{
	struct linger none = {.l_onoff = 1};
	int fd = accept(listener, NULL, NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

static bool say_hello(struct tcp_io *io)
{
	struct {
		struct wire_header challenge_header;
		struct wire_challenge challenge;
		struct wire_header welcome_header;
		struct wire_welcome welcome;
		struct wire_region region, rows;
	} __attribute__((packed)) hello = {
		.challenge_header = {.bytes = sizeof(struct wire_challenge), .type = WIRE_CHALLENGE},
		.challenge = {.versions = WIRE_VERSIONS},
		.welcome_header = {.bytes = sizeof(struct wire_welcome) + 2 * sizeof(struct wire_region),
				   .type = WIRE_WELCOME},
		.welcome = {.region_count = 2, .requests_max = 4},
		.region = {.bytes = 1 << 20, .generation = 1},
		.rows = {.bytes = 6400, .id = 1, .generation = 1, .kind = GW_REGION_VERSIONED, .row_bytes = 40},
	};
	return fuzz_feed(io, (const uint8_t *)&hello, sizeof(hello), SIZE_MAX, SIZE_MAX);
}

/* Tags 1 to QUESTIONS, in this order. */
static void ask(struct gw_endpoint *endpoint, struct gw_buffer *buffers, struct gw_read_set *sets)
{
	static uint64_t remote[16];
	static uint32_t rows[16] = {15, 3, 4, 5, 0, 1, 2, 14, 6, 7, 8, 9, 10, 11, 12, 13};
	static struct gw_span spans[5] = {{0, 90, 10}, {5, 0, 0}, {9, 0, 50}, {1, 50, 37}, {3, 99, 1}};
	static struct gw_span apart[2] = {{0, 0, 4200}, {0, 4203, 4200}};
	const struct gw_region *region = &endpoint->peer.regions[0];
	struct gw_gather packed = {.remote = remote, .row_bytes = 20, .stride = 20};
	struct gw_gather scattered = {.remote = remote, .rows = rows, .row_bytes = 20, .stride = 24};
	struct gw_gather large = {.remote = remote, .row_bytes = 2100, .stride = 2101};
	struct gw_gather direct = {.remote = remote, .row_bytes = 1000, .stride = 1000};
	struct gw_gather versioned = {.remote = remote, .rows = rows, .row_bytes = 40, .stride = 50};
	for (int i = 0; i < 7; i++)
		sets[i] = (struct gw_read_set){.cookie = &sets[i], .deadline_ns = GW_NO_DEADLINE};
	gw_tcp_read(endpoint, &sets[0], region, &buffers[0], &(struct gw_reads){.gather = &packed, .n = 16}, true);
	gw_tcp_read(endpoint, &sets[1], region, &buffers[1], &(struct gw_reads){.gather = &scattered, .n = 16}, true);
	gw_tcp_read(endpoint, &sets[2], region, &buffers[2], &(struct gw_reads){.spans = spans, .n = 5}, true);
	gw_tcp_request(endpoint, 1, 0, "abc", 3, GW_NO_DEADLINE, NULL);
	gw_tcp_read(endpoint, &sets[3], region, &buffers[3], &(struct gw_reads){.gather = &large, .n = 4}, true);
	gw_tcp_read(endpoint, &sets[4], region, &buffers[4], &(struct gw_reads){.gather = &direct, .n = 9}, true);
	gw_tcp_request(endpoint, 1, &(struct gw_once){.sequence = 7, .oldest = 7}, NULL, 0, GW_NO_DEADLINE, NULL);
	gw_tcp_read(endpoint, &sets[5], region, &buffers[5], &(struct gw_reads){.spans = apart, .n = 2}, true);
	gw_tcp_read(endpoint, &sets[6], &endpoint->peer.regions[1], &buffers[6],
		    &(struct gw_reads){.gather = &versioned, .n = 16}, true);
	gw_tcp_region_open(endpoint, GW_REGIONS_MAX + 3, 5, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const size_t sizes[] = {1, 7, 64, 1000, 4096, 100000, 1u << 20, 3};
	static const uint64_t bytes[7] = {320, 15 * 24 + 20, 100, 3 * 2101 + 2100, 9000, 8403, 15 * 50 + 40};
	struct gw_buffer buffers[7];
	struct gw_read_set sets[7];
	struct gw_endpoint *endpoint;
	uint32_t expected = 1, completed = 0;
	if (!loop)
		set_up();
	if (n == 0)
		return 0;
	for (int i = 0; i < 7; i++)
		buffers[i] = (struct gw_buffer){.base = malloc(bytes[i]), .bytes = bytes[i]};
	if (gw_tcp_connect(loop, &options, &expected, &endpoint))
		abort();
	struct tcp_io *io = &((struct tcp_client *)endpoint)->io;
	accept_one();
	/* The reset may have come already, which says nothing about our bytes: it is looked at before. */
	io->busy = true;
	int error = 0;
	socklen_t length = sizeof(error);
	getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	io->events->ready(io);
	bool open = fuzz_alive(io) && fuzz_drain(io, SIZE_MAX);
	if (open && (data[0] & 1))
		open = say_hello(io);
	if (open && endpoint->state == GW_ENDPOINT_OPEN) {
		ask(endpoint, buffers, sets);
		expected += QUESTIONS;
		open = fuzz_drain(io, SIZE_MAX);
	}
	if (open)
		open = fuzz_feed(io, data + 1, n - 1, sizes[(data[0] >> 1) & 7], SIZE_MAX);
	if (open && (data[0] & 0x80)) {
		io->busy = true;
		io->events->received(io, 0);
		fuzz_alive(io);
	}
	gw_tcp_close(endpoint);
	struct gw_completion completions[3];
	for (size_t got; (got = gw_completions_take(&loop->completions, completions, 3)) > 0;)
		completed += (uint32_t)got;
	/* Without a hello nothing was asked; with one from the input, nothing either. */
	if (completed != expected || !fuzz_gone || loop->ios || loop->clients)
		abort();
	for (int i = 0; i < 7; i++)
		free(buffers[i].base);
	return 0;
}
