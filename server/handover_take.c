/* The successor's side of a hand-over: see handover.h. Every failure before "go" ends this server with one line; the
 * running server goes on. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "server/handover.h"
#include "server/handover_text.h"
#include "server/handover_wire.h"
#include "transport/local_socket.h"

#define ANSWER_NS (10 * GW_NS_PER_SECOND)
#define DEATH_MS  5000 /* how long a process takes to end after its sockets are closed */

struct gw_taker {
	int fd, giver; /* giver: a pidfd of the running server, or -1 */
	uint64_t pid, frozen_ns;
	int guard_fd, memory_fd, handover_fd;
	struct gw_arena_shape memory;
	json_t *arrays, *lists;       /* of the offer; lists: NULL if it has no lists of other parts */
	struct gw_tensor_moves moves; /* as offered, then as they are */
	json_t *retire;               /* epochs of the tensors that were copied */
};

static gw_status take_receive(const struct gw_taker *taker, const char *is, uint64_t deadline_ns,
			      struct gw_handover_message *message)
{
	gw_status status = gw_handover_receive(taker->fd, -1, deadline_ns, message);
	if (status != GW_OK || (!is && message->bytes))
		return status;
	status = is ? gw_handover_expect(message->json, is) : gw_fail(GW_PROTOCOL, "the other server sent no calls");
	if (status != GW_OK)
		gw_handover_message_end(message);
	return status;
}

static gw_status take_send(const struct gw_taker *taker, json_t *json)
{
	gw_status status = gw_handover_send(taker->fd, json, NULL, 0, NULL, 0, gw_now_ns() + ANSWER_NS);
	json_decref(json);
	return status;
}

/* --- The offer. --- */

static gw_status take_dial(const struct gw_server *server, struct gw_taker *taker)
{
	struct gw_address address = {.scheme = "shm"};
	char name[GW_ADDRESS_NAME_MAX + 1];
	gw_handover_name(server, name);
	memcpy(address.host, name, sizeof(name));
	gw_status status = gw_shm_dial(&address, &taker->fd);
	if (status == GW_PEER_LOST)
		return gw_fail(GW_NOT_FOUND,
			       "--take-over: no server of part %u of %s that can hand over runs on this host for this "
			       "user; start without --take-over",
			       server->options.part, server->meta->graph_name);
	return status;
}

static gw_status send_hello(const struct gw_server *server, const struct gw_taker *taker)
{
	json_t *hello = gw_handover_object("hello");
	gw_handover_set(hello, "version", GW_HANDOVER_VERSION);
	gw_handover_set(hello, "pid", (uint64_t)getpid());
	gw_handover_set(hello, "graph_id", server->meta->graph_id);
	gw_handover_set(hello, "part", server->options.part);
	return take_send(taker, hello);
}

/* The running server's address is this server's. The name resolves as for a server that listens. */
static gw_status take_address(struct gw_server *server, const char *text)
{
	struct gw_address running, own = server->options.listen;
	char wanted[GW_ADDRESS_MAX];
	int reservation;
	own.port = 0;
	gw_status status = gw_address_parse(text, &running);
	if (status == GW_OK)
		status = gw_port_reserve(&own, &reservation);
	if (status != GW_OK)
		return status;
	status = gw_port_bound(reservation, &server->bound);
	close(reservation);
	if (status != GW_OK)
		return status;
	if (strcmp(server->bound.host, running.host) != 0 ||
	    (server->options.listen.port && server->options.listen.port != running.port))
		return gw_fail(GW_INVALID,
			       "--take-over: the running server listens at %s, and --listen names %s: give the same "
			       "address, or restart it",
			       text, gw_address_text(&server->options.listen, wanted));
	server->options.listen.port = server->bound.port = running.port;
	return GW_OK;
}

static gw_status read_offer(struct gw_server *server, struct gw_taker *taker, struct gw_handover_message *offer,
			    uint64_t *tensors)
{
	char listen[GW_ADDRESS_MAX], scheme[16];
	uint64_t version;
	gw_status status = gw_handover_number(offer->json, "version", UINT64_MAX, &version);
	if (status == GW_OK && version != GW_HANDOVER_VERSION)
		return gw_fail(GW_VERSION, "the running server hands over by version %llu, this one by %d: restart it",
			       (unsigned long long)version, GW_HANDOVER_VERSION);
	if (status == GW_OK)
		status = gw_handover_number(offer->json, "pid", INT32_MAX, &taker->pid);
	if (status == GW_OK)
		status = gw_handover_number(offer->json, "incarnation", UINT64_MAX, &server->incarnation);
	if (status == GW_OK)
		status = gw_handover_number(offer->json, "tensors", GW_TENSORS_MAX, tensors);
	if (status == GW_OK)
		status = gw_handover_shape_read(json_object_get(offer->json, "memory"), &taker->memory);
	if (status == GW_OK)
		status = gw_handover_word(offer->json, "network", scheme, sizeof(scheme));
	if (status == GW_OK) {
		server->kept[0] = gw_scheme_find(scheme);
		const char *local = json_string_value(json_object_get(offer->json, "local"));
		server->kept[1] = local ? gw_scheme_find(local) : NULL;
		status = gw_handover_word(offer->json, "listen", listen, sizeof(listen));
	}
	if (status == GW_OK)
		status = take_address(server, listen);
	taker->arrays = json_incref(json_object_get(offer->json, "arrays"));
	taker->lists = json_incref(json_object_get(offer->json, "lists"));
	taker->memory_fd = gw_handover_message_fd(offer, 0);
	taker->giver = gw_handover_message_fd(offer, 1);
	taker->guard_fd = gw_handover_message_fd(offer, 2);
	return status;
}

static struct gw_tensor_moved *find_moved(const struct gw_tensor_moves *moves, uint64_t epoch)
{
	for (uint32_t i = 0; i < moves->shard_count; i++)
		if (moves->shards[i].epoch == epoch)
			return &moves->shards[i];
	return NULL;
}

/* Receives the tensors that follow. before: those of the offer, whose stores the new ones take; NULL: none. */
static gw_status take_tensors(const struct gw_server *server, const struct gw_taker *taker, uint64_t count,
			      const struct gw_tensor_moves *before, struct gw_tensor_moves *out)
{
	gw_status status = GW_OK;
	out->shards = gw_calloc(count + 1, sizeof(*out->shards));
	if (!out->shards)
		return GW_NO_MEMORY;
	while (status == GW_OK && out->shard_count < count) {
		struct gw_tensor_moved *moved = &out->shards[out->shard_count];
		struct gw_handover_message message;
		status = take_receive(taker, "tensor", gw_now_ns() + ANSWER_NS, &message);
		if (status != GW_OK)
			break;
		status = gw_handover_tensor_read(message.json, server->meta->num_parts, moved);
		if (status == GW_OK) {
			bool rows = json_is_true(json_object_get(message.json, "rows_come"));
			bool state = json_is_true(json_object_get(message.json, "state_comes"));
			struct gw_tensor_moved *same = before ? find_moved(before, moved->epoch) : NULL;
			moved->memory.rows_fd = rows ? gw_handover_message_fd(&message, 0) : -1;
			moved->memory.state_fd = state ? gw_handover_message_fd(&message, rows) : -1;
			if (same) {
				moved->store = same->store;
				same->store = NULL;
			}
			out->shard_count++;
		}
		gw_handover_message_end(&message);
	}
	return status;
}

gw_status gw_take_over_begin(struct gw_server *server)
{
	struct gw_taker *taker = gw_calloc(1, sizeof(*taker));
	struct gw_handover_message offer;
	uint64_t tensors = 0;
	if (!taker)
		return GW_NO_MEMORY;
	server->taker = taker;
	taker->fd = taker->giver = taker->guard_fd = taker->memory_fd = taker->handover_fd = -1;
	pthread_mutex_lock(&server->gate);
	gw_status status = take_dial(server, taker);
	if (status == GW_OK)
		status = send_hello(server, taker);
	if (status == GW_OK)
		status = take_receive(taker, "offer", gw_now_ns() + ANSWER_NS, &offer);
	if (status != GW_OK)
		return status;
	status = read_offer(server, taker, &offer, &tensors);
	gw_handover_message_end(&offer);
	return status == GW_OK ? take_tensors(server, taker, tensors, NULL, &taker->moves) : status;
}

gw_status gw_take_over_part(struct gw_server *server, const struct gw_part_options *options)
{
	struct gw_taker *taker = server->taker;
	struct gw_arena *arena;
	gw_status status = gw_handover_apart_check(taker->arrays, options);
	if (status != GW_OK)
		return status;
	/* Devices of Linux before 6.2 read only memory that is mapped for writing. Memory that clients of this host can
	 * map is sealed, so that it cannot be. */
	status = gw_arena_adopt(taker->memory_fd, options->arena.name, &taker->memory, true, &arena);
	if (status == GW_UNSUPPORTED)
		status = gw_arena_adopt(taker->memory_fd, options->arena.name, &taker->memory, false, &arena);
	if (status != GW_OK)
		return status;
	taker->memory_fd = -1;
	status = gw_part_adopt(server->meta, server->options.part, options, arena, &server->part);
	if (status != GW_OK) {
		gw_arena_destroy(arena);
		return status;
	}
	status = gw_handover_arrays_check(taker->arrays, server->part);
	/* Before the lists are sought in memory that has none. */
	return status == GW_OK && server->options.lists == GW_SERVER_LISTS_ALL && server->meta->num_parts > 1 &&
			       !taker->lists
		       ? gw_handover_lists_check(NULL, NULL, server->meta->num_parts - 1)
		       : status;
}

gw_status gw_take_over_lists(struct gw_server *server)
{
	return gw_handover_lists_check(server->taker->lists, server->lists, server->list_count);
}

/* --- The state. --- */

/* Makes a store of the descriptors that came for a tensor. */
static gw_status adopt_memory(const struct gw_tensor_table_options *options, struct gw_tensor_moved *moved)
{
	if (moved->ready && !moved->store && moved->memory.rows_fd < 0)
		return gw_fail(GW_PROTOCOL, "tensor \"%s\" came without its rows", moved->plan.name);
	if (moved->memory.rows_fd >= 0 && !moved->store)
		return gw_tensor_moved_adopt(options, moved);
	if (moved->memory.state_fd < 0)
		return GW_OK;
	int fd = moved->memory.state_fd;
	gw_status status =
		moved->store ? gw_row_store_adopt_state(moved->store, &moved->memory)
			     : gw_fail(GW_PROTOCOL, "the state of tensor \"%s\" came without rows", moved->plan.name);
	if (!moved->store)
		close(fd);
	moved->memory.state_fd = -1;
	return status;
}

static gw_status adopt_all(struct gw_server *server)
{
	struct gw_tensor_moves *moves = &server->taker->moves;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < moves->shard_count && status == GW_OK; i++)
		status = adopt_memory(gw_tensor_table_options(server->tensors), &moves->shards[i]);
	return status;
}

/* The oldest first, as they were created. */
static gw_status list_all(struct gw_server *server)
{
	struct gw_taker *taker = server->taker;
	gw_status status = GW_OK;
	taker->retire = json_array();
	for (uint32_t i = taker->moves.shard_count; i-- > 0 && status == GW_OK;) {
		struct gw_tensor_moved *moved = &taker->moves.shards[i];
		if (moved->store && gw_row_store_take_rows(moved->store))
			json_array_append_new(taker->retire, json_integer((json_int_t)moved->epoch));
		status = gw_tensor_table_take(server->tensors, moved);
	}
	gw_tensor_table_take_rest(server->tensors, &taker->moves);
	return status;
}

static gw_status read_state(struct gw_server *server, struct gw_handover_message *state, struct gw_service_past *past,
			    struct gw_tensor_moves *moves, uint64_t *tensors)
{
	struct gw_taker *taker = server->taker;
	uint64_t generation = 0;
	gw_status status = gw_handover_number(state->json, "frozen_ns", UINT64_MAX, &taker->frozen_ns);
	if (status == GW_OK)
		status = gw_handover_number(state->json, "generation", UINT32_MAX, &generation);
	if (status == GW_OK)
		status = gw_handover_number(state->json, "epochs", UINT64_MAX, &moves->epochs);
	if (status == GW_OK)
		status = gw_handover_number(state->json, "tensors", GW_TENSORS_MAX, tensors);
	if (status == GW_OK)
		status = gw_handover_jobs_read(state->json, moves);
	past->generation = (uint32_t)generation;
	taker->handover_fd = gw_handover_message_fd(state, 0);
	server->sockets[0] = gw_handover_message_fd(state, 1);
	server->sockets[1] = gw_handover_message_fd(state, 2);
	if (status == GW_OK && server->sockets[0] < 0)
		status = gw_fail(GW_PROTOCOL, "the running server sent no listening socket");
	return status;
}

gw_status gw_take_over_state(struct gw_server *server)
{
	struct gw_taker *taker = server->taker;
	struct gw_tensor_moves moves = {0};
	struct gw_service_past past = {0};
	struct gw_handover_message message;
	uint64_t tensors = 0;
	gw_status status = adopt_all(server);
	if (status == GW_OK)
		status = take_send(taker, gw_handover_object("ready"));
	if (status == GW_OK)
		status = take_receive(taker, "state", GW_NO_DEADLINE, &message);
	if (status != GW_OK)
		return status;
	status = read_state(server, &message, &past, &moves, &tensors);
	gw_handover_message_end(&message);
	if (status == GW_OK)
		status = take_tensors(server, taker, tensors, &taker->moves, &moves);
	gw_tensor_moves_free(NULL, &taker->moves); /* those that ended meanwhile */
	taker->moves = moves;
	if (status == GW_OK)
		status = take_receive(taker, NULL, gw_now_ns() + ANSWER_NS, &message);
	if (status != GW_OK)
		return status;
	past.calls = message.bytes;
	past.calls_bytes = message.byte_count;
	status = gw_service_resume(server->service, &past);
	gw_handover_message_end(&message);
	if (status == GW_OK)
		status = adopt_all(server);
	return status == GW_OK ? list_all(server) : status;
}

/* --- The end. --- */

/* Whether the running server has ended, and not only closed the connection. */
static bool giver_is_dead(const struct gw_taker *taker)
{
	struct pollfd ended = {.fd = taker->giver, .events = POLLIN};
	return taker->giver >= 0 && poll(&ended, 1, DEATH_MS) == 1;
}

gw_status gw_take_over_finish(struct gw_server *server)
{
	struct gw_taker *taker = server->taker;
	struct gw_handover_message message;
	json_t *copied = gw_handover_object("copied");
	json_object_set(copied, "retire", taker->retire);
	gw_status status = take_send(taker, copied);
	if (status == GW_OK)
		status = take_receive(taker, "go", GW_NO_DEADLINE, &message);
	if (status == GW_OK)
		gw_handover_message_end(&message);
	/* This server has everything, and the other one can serve no more. */
	if (status == GW_PEER_LOST && giver_is_dead(taker)) {
		gw_log(GW_LOG_WARN, "the running server, pid %llu, ended during the hand-over",
		       (unsigned long long)taker->pid);
		status = GW_OK;
	}
	if (status != GW_OK)
		return status;
	server->guard_fd = taker->guard_fd;
	server->handover_fd = taker->handover_fd;
	taker->guard_fd = taker->handover_fd = -1;
	if (gw_server_guard_sign(server) != GW_OK)
		gw_log(GW_LOG_WARN, "%s", gw_last_error());
	take_send(taker, gw_handover_object("serving")); /* a failure: the other server has ended */
	return GW_OK;
}

void gw_take_over_end(struct gw_server *server, const char *why)
{
	struct gw_taker *taker = server->taker;
	if (!taker)
		return;
	server->taker = NULL;
	if (why && taker->fd >= 0) {
		json_t *abort = gw_handover_object("abort");
		json_object_set_new(abort, "why", json_string(why));
		take_send(taker, abort);
	}
	if (!why)
		gw_log(GW_LOG_WARN, "took over from pid %llu: pause %llu ms", (unsigned long long)taker->pid,
		       (unsigned long long)((gw_monotonic_ns() - taker->frozen_ns) / GW_NS_PER_MS));
	const int fds[] = {taker->fd, taker->giver, taker->guard_fd, taker->memory_fd, taker->handover_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (uint32_t i = 0; i < taker->moves.shard_count; i++) {
		const struct gw_row_memory *memory = &taker->moves.shards[i].memory;
		if (memory->rows_fd >= 0)
			close(memory->rows_fd);
		if (memory->state_fd >= 0)
			close(memory->state_fd);
	}
	gw_tensor_moves_free(NULL, &taker->moves);
	json_decref(taker->arrays);
	json_decref(taker->lists);
	json_decref(taker->retire);
	gw_free(taker);
	pthread_mutex_unlock(&server->gate);
}
