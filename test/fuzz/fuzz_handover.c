/* Any bytes as messages of a hand-over between servers: frames, with what they describe, and the numbered calls of
 * clients. Refused, or taken as they were written: what is taken can be written and taken again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "server/handover_text.h"
#include "server/handover_wire.h"
#include "transport/service/replay_cache.h"

#define PARTS       2u
#define INCARNATION 7u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tensor(const json_t *json)
{
	struct gw_tensor_moved moved, again;
	if (gw_handover_tensor_read(json, PARTS, &moved) != GW_OK)
		return;
	moved.memory.state_fd = json_object_get(json, "state") ? 0 : -1;
	json_t *text = gw_handover_tensor(&moved, PARTS);
	gw_status status = gw_handover_tensor_read(text, PARTS, &again);
	assert(status == GW_OK);
	assert(memcmp(&moved.plan, &again.plan, sizeof(moved.plan)) == 0);
	assert(moved.epoch == again.epoch && moved.leader == again.leader && moved.ready == again.ready);
	assert(!moved.epochs == !again.epochs &&
	       (!moved.epochs || memcmp(moved.epochs, again.epochs, PARTS * sizeof(uint64_t)) == 0));
	json_decref(text);
	gw_free(moved.epochs);
	gw_free(again.epochs);
}

static void read_jobs(const json_t *json)
{
	struct gw_tensor_moves moves = {0};
	gw_handover_jobs_read(json, &moves);
	gw_tensor_moves_free(NULL, &moves);
}

static void read_frames(const uint8_t *data, size_t size)
{
	int pair[2];
	struct gw_handover_message message;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	if (size && send(pair[0], data, size, 0) != (ssize_t)size)
		abort();
	close(pair[0]);
	while (gw_handover_receive(pair[1], -1, gw_now_ns(), &message) == GW_OK) {
		struct gw_arena_shape shape;
		if (message.json) {
			read_tensor(message.json);
			read_jobs(message.json);
			gw_handover_shape_read(json_object_get(message.json, "memory"), &shape);
		}
		gw_handover_message_end(&message);
	}
	close(pair[1]);
}

static void read_calls(const uint8_t *data, size_t size)
{
	struct gw_replay_cache *caches[2];
	uint8_t *saved[2] = {NULL, NULL};
	uint64_t bytes[2];
	for (int i = 0; i < 2; i++)
		if (gw_replay_cache_create(INCARNATION, &caches[i]) != GW_OK)
			abort();
	if (gw_replay_load(caches[0], data, size) == GW_OK) {
		gw_status status = gw_replay_save(caches[0], &saved[0], &bytes[0]);
		assert(status == GW_OK);
		status = gw_replay_load(caches[1], saved[0], bytes[0]);
		assert(status == GW_OK);
		status = gw_replay_save(caches[1], &saved[1], &bytes[1]);
		assert(status == GW_OK && bytes[0] == bytes[1]);
	}
	for (int i = 0; i < 2; i++) {
		gw_replay_cache_destroy(caches[i]);
		gw_free(saved[i]);
	}
}

/* The first byte: frames, or the calls of clients. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 1 << 15)
		return 0;
	if (data[0] == 'f')
		read_frames(data + 1, size - 1);
	else
		read_calls(data + 1, size - 1);
	return 0;
}
