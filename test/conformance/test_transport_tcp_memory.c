/* What a server holds for its connections: little for those that have gathered, and no more for those that do not read
 * their answers, however many they are. Both drivers. The clients are scripted sockets. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/held.h"
#include "test/support/many.h"
#include "test/support/rude.h"
#include "transport/tcp/lender.h"

#define BYTES         (1u << 20) /* of the region */
#define CONNECTED_MAX (24u << 10)
#define STALLED_MAX   (40u << 10)
#define DESCRIPTORS   (2 * 1024 + 256)

static const struct bed_options options = {.bytes = BYTES, .limits = {.connections = 2048}};

/* A client that sends at once. narrow: its kernel keeps little; short segments and a short window keep the server's
 * send buffer short too. */
static int enter(struct rude *rude, struct wire_region *regions, bool narrow)
{
	int segment = 1400, little = 16384, at_once = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct wire_welcome welcome;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(rude->bed.address.port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	if (narrow) {
		assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)), 0);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	}
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(gw_fake_enter(fd, &welcome, regions, 3));
	return fd;
}

/* One READV of ranges of the region, whose lengths and offsets follow from the tag. */
#define RANGES_MAX 4096u
static void ask(int fd, uint64_t tag, uint32_t generation, uint32_t ranges, uint32_t length)
{
	static uint8_t frame[WIRE_HEADER_BYTES + WIRE_READ_BYTES + 4 * RANGES_MAX];
	struct wire_header header = {.bytes = WIRE_READ_BYTES + 4 * ranges, .type = WIRE_GATHER, .tag = tag};
	struct wire_read read = {.generation = generation, .count = ranges, .length = length, .width = 4};
	memcpy(frame, &header, sizeof(header));
	memcpy(frame + WIRE_HEADER_BYTES, &read, sizeof(read));
	for (uint32_t i = 0; i < ranges; i++) {
		uint32_t offset = (uint32_t)(tag * 4099 + i * 61) % (BYTES - length + 1);
		memcpy(frame + WIRE_HEADER_BYTES + WIRE_READ_BYTES + 4 * (size_t)i, &offset, 4);
	}
	assert_true(gw_fake_send(fd, frame, WIRE_HEADER_BYTES + header.bytes)); /* in one piece: no delay by Nagle */
}

static void expect_answer(const struct rude *rude, int fd, uint64_t tag, uint32_t ranges, uint32_t length)
{
	struct wire_header header;
	uint8_t *row = malloc(length);
	assert_true(gw_fake_receive(fd, &header, sizeof(header)));
	assert_int_equal(header.type, WIRE_DATA);
	assert_int_equal(header.tag, tag);
	assert_int_equal(header.bytes, ranges * length);
	for (uint32_t i = 0; i < ranges; i++) {
		assert_true(gw_fake_receive(fd, row, length));
		assert_memory_equal(row, rude->bed.memory + (tag * 4099 + i * 61) % (BYTES - length + 1), length);
	}
	free(row);
}

static void allow_descriptors(void)
{
	struct rlimit files;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max < DESCRIPTORS ? files.rlim_max : DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* So many connections, two descriptors each, as the limits of this process allow. */
static uint32_t allowed(uint32_t wanted)
{
	struct rlimit files;
	allow_descriptors();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	uint32_t possible = (uint32_t)(files.rlim_cur - 128) / 2;
	return possible < wanted ? possible : wanted;
}

/* Requests of all sizes, short and long, answered: then only the connection itself is left. */
static void a_connection_that_has_gathered_holds_little(void **state)
{
	gw_held_begin();
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	uint32_t count = gw_many(256);
	int *fds = calloc(count, sizeof(*fds));
	others_are_served(rude);
	long before = gw_held_bytes();
	for (uint32_t i = 0; i < count; i++) {
		fds[i] = enter(rude, regions, false);
		for (uint64_t tag = 1; tag < 6; tag++)
			ask(fds[i], tag, regions[0].generation, i % RANGES_MAX + 1, 1000);
		for (uint64_t tag = 1; tag < 6; tag++)
			expect_answer(rude, fds[i], tag, i % RANGES_MAX + 1, 1000);
		if (i % 16 == 0) { /* a frame that takes all of the largest lent buffer, and an answer of 4 MB */
			ask(fds[i], 9, regions[0].generation, RANGES_MAX, 1000);
			expect_answer(rude, fds[i], 9, RANGES_MAX, 1000);
		}
	}
	others_are_served(rude); /* by the same thread: it has nothing left to do for the others */
	long held = (gw_held_bytes() - before) / (long)count;
	print_message("%s: %ld bytes a connection\n", rude->bed.kind->name, held);
	assert_in_range(held, 500, CONNECTED_MAX);
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
	free(fds);
	rude_end(rude);
	gw_held_end();
}

static int stall(struct rude *rude, struct wire_region *regions, uint32_t asks)
{
	int fd = enter(rude, regions, true);
	for (uint64_t tag = 1; tag <= asks; tag++)
		ask(fd, tag, regions[0].generation, 1000, 4000);
	return fd;
}

static void stalled_readers_hold_a_bounded_amount(void **state)
{
	gw_held_begin();
	struct rude *rude = rude_begin(state, &options);
	struct wire_region regions[3];
	uint32_t count = allowed(gw_many(1024)), asks = 2;
	int *fds = calloc(count, sizeof(*fds));
	others_are_served(rude);
	long before = gw_held_bytes();
	for (uint32_t i = 0; i < count; i++) {
		fds[i] = stall(rude, regions, asks);
		if (i % 64 == 0)
			others_are_served(rude);
	}
	/* Every request of 4 MB has begun, and no reader has taken a byte. */
	while (rude_counters(rude).reads < count)
		others_are_served(rude);
	others_are_served(rude);
	long held = gw_held_bytes() - before;
	print_message("%s: %.1f MB for %u stalled readers\n", rude->bed.kind->name, (double)held / 1e6, count);
	assert_in_range(held, 500L * count, (long)TCP_LENT_MAX * TCP_LENT_BYTES + (long)STALLED_MAX * count);
	for (uint32_t i = 0; i < count; i += count / 4) { /* with large buffers, and with small ones */
		for (uint64_t tag = 1; tag <= asks; tag++)
			expect_answer(rude, fds[i], tag, 1000, 4000);
	}
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
	free(fds);
	rude_end(rude);
	gw_held_end();
}

int main(void)
{
	const struct bed_test tests[] = {
		{BED_TEST(a_connection_that_has_gathered_holds_little)},
		{BED_TEST(stalled_readers_hold_a_bounded_amount)},
	};
	return gw_bed_run_tcp("tcp memory", tests, sizeof(tests) / sizeof(tests[0]));
}
