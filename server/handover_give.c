/* The running server's side of a hand-over: see handover.h. The thread that started the server runs it, so the server's
 * signals wait until it ends. Before "ready" the server serves as ever, and a successor may take its time. After that
 * each step has a time limit. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "metrics/exporter.h"
#include "server/handover.h"
#include "server/handover_text.h"
#include "server/handover_wire.h"
#include "transport/local_socket.h"

#define HELLO_NS  (2 * GW_NS_PER_SECOND)
#define SEND_NS   (10 * GW_NS_PER_SECOND)
#define DRAIN_MS  250u                    /* how long answers that are open may take */
#define FROZEN_NS (10 * GW_NS_PER_SECOND) /* how long the successor may take while no server answers, ... */
#define COPY_BPS  (100u << 20)            /* ... and so many bytes of tensors for each second more */

struct giver {
	struct gw_server *server;
	int fd, signals;
	bool frozen, gone; /* gone: "go" was sent */
	struct gw_tensor_moves sent, moves;
	uint64_t *retired; /* epochs */
	size_t retired_count;
};

static gw_status give_send(const struct giver *giver, json_t *json, const int *fds, uint32_t fd_count)
{
	gw_status status = gw_handover_send(giver->fd, json, NULL, 0, fds, fd_count, gw_now_ns() + SEND_NS);
	json_decref(json);
	return status;
}

/* Receives a message of this name, without descriptors. */
static gw_status give_receive(const struct giver *giver, const char *is, uint64_t deadline_ns,
			      struct gw_handover_message *message)
{
	gw_status status = gw_handover_receive(giver->fd, giver->signals, deadline_ns, message);
	if (status != GW_OK)
		return status;
	status = gw_handover_expect(message->json, is);
	if (status != GW_OK)
		gw_handover_message_end(message);
	return status;
}

static gw_status check_hello(const struct giver *giver, const json_t *hello)
{
	const struct gw_server *server = giver->server;
	uint64_t version, graph_id, part;
	gw_status status = gw_handover_number(hello, "version", UINT64_MAX, &version);
	if (status == GW_OK && version != GW_HANDOVER_VERSION)
		return gw_fail(GW_VERSION,
			       "the running server hands over by version %d, the successor by %llu: restart it",
			       GW_HANDOVER_VERSION, (unsigned long long)version);
	if (status == GW_OK)
		status = gw_handover_number(hello, "graph_id", UINT64_MAX, &graph_id);
	if (status == GW_OK)
		status = gw_handover_number(hello, "part", UINT32_MAX, &part);
	if (status == GW_OK && (graph_id != server->meta->graph_id || part != server->options.part))
		status = gw_fail(GW_WRONG_GRAPH, "the running server serves part %u of %s", server->options.part,
				 server->meta->graph_name);
	return status;
}

static gw_status send_offer(const struct giver *giver)
{
	const struct gw_server *server = giver->server;
	const struct gw_arena *arena = gw_part_arena(server->part);
	struct gw_arena_shape shape;
	char text[GW_ADDRESS_MAX];
	/* A pidfd, since a number may mean another process in the successor's namespace. */
	int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int fds[3] = {gw_arena_fd(arena), process, server->guard_fd};
	if (process < 0)
		return gw_fail_errno(GW_UNSUPPORTED, errno, "pidfd_open (Linux 5.3 has it)");
	json_t *offer = gw_handover_object("offer");
	gw_arena_shape(arena, &shape);
	gw_handover_set(offer, "version", GW_HANDOVER_VERSION);
	gw_handover_set(offer, "pid", (uint64_t)getpid());
	gw_handover_set(offer, "incarnation", server->incarnation);
	gw_handover_set(offer, "tensors", giver->sent.shard_count);
	json_object_set_new(offer, "listen", json_string(gw_server_address(server, text)));
	json_object_set_new(offer, "network", json_string(server->listener->transport->scheme->name));
	if (server->local)
		json_object_set_new(offer, "local", json_string(server->local->transport->scheme->name));
	json_object_set_new(offer, "memory", gw_handover_shape(&shape));
	json_object_set_new(offer, "arrays", gw_handover_arrays(server->part));
	if (server->list_count)
		json_object_set_new(offer, "lists", gw_handover_lists(server->lists, server->list_count));
	gw_status status = give_send(giver, offer, fds, server->guard_fd < 0 ? 2 : 3);
	close(process);
	return status;
}

static const struct gw_tensor_moved *find_sent(const struct giver *giver, uint64_t epoch)
{
	for (uint32_t i = 0; i < giver->sent.shard_count; i++)
		if (giver->sent.shards[i].epoch == epoch)
			return &giver->sent.shards[i];
	return NULL;
}

/* Sends the descriptors that were not sent before. */
static gw_status send_tensors(const struct giver *giver, const struct gw_tensor_moves *moves, bool again)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < moves->shard_count && status == GW_OK; i++) {
		const struct gw_tensor_moved *moved = &moves->shards[i];
		const struct gw_tensor_moved *before = again ? find_sent(giver, moved->epoch) : NULL;
		bool rows = moved->ready && !(before && before->ready);
		bool state = moved->memory.state_fd >= 0 && !(before && before->memory.state_fd >= 0);
		int fds[2];
		uint32_t n = 0;
		json_t *json = gw_handover_tensor(moved, giver->server->meta->num_parts);
		json_object_set_new(json, "rows_come", json_boolean(rows));
		json_object_set_new(json, "state_comes", json_boolean(state));
		if (rows)
			fds[n++] = moved->memory.rows_fd;
		if (state)
			fds[n++] = moved->memory.state_fd;
		status = give_send(giver, json, fds, n);
	}
	return status;
}

/* The successor prepares, and this server serves. */
static gw_status wait_ready(const struct giver *giver)
{
	struct gw_handover_message message;
	gw_status status;
	do {
		gw_server_keep(giver->server);
		status = give_receive(giver, "ready", gw_now_ns() + GW_SERVER_KEEP_S * GW_NS_PER_SECOND, &message);
	} while (status == GW_DEADLINE);
	if (status == GW_OK)
		gw_handover_message_end(&message);
	return status;
}

static gw_status send_state(struct giver *giver, uint64_t frozen_ns)
{
	struct gw_server *server = giver->server;
	struct gw_service_past past = {0};
	int fds[3] = {server->handover_fd, server->sockets[0], server->sockets[1]};
	gw_status status = gw_service_past(server->service, &past);
	if (status == GW_OK)
		status = gw_tensor_table_give(server->tensors, &giver->moves);
	if (status == GW_OK) {
		json_t *state = gw_handover_object("state");
		gw_handover_set(state, "frozen_ns", frozen_ns);
		gw_handover_set(state, "generation", past.generation);
		gw_handover_set(state, "epochs", giver->moves.epochs);
		gw_handover_set(state, "tensors", giver->moves.shard_count);
		json_object_set_new(state, "jobs", gw_handover_jobs(&giver->moves));
		status = give_send(giver, state, fds, server->sockets[1] < 0 ? 2 : 3);
	}
	if (status == GW_OK)
		status = send_tensors(giver, &giver->moves, true);
	if (status == GW_OK)
		status =
			gw_handover_send(giver->fd, NULL, past.calls, past.calls_bytes, NULL, 0, gw_now_ns() + SEND_NS);
	gw_free(past.calls);
	return status;
}

/* Locks or unlocks the rows that the successor has copied. */
static void retire(const struct giver *giver, bool retired)
{
	for (size_t e = 0; e < giver->retired_count; e++)
		for (uint32_t i = 0; i < giver->moves.shard_count; i++)
			if (giver->moves.shards[i].epoch == giver->retired[e])
				gw_row_store_retire(giver->moves.shards[i].shard->store, retired);
}

static gw_status read_copied(struct giver *giver, const json_t *copied)
{
	const json_t *list = json_object_get(copied, "retire");
	size_t count = json_array_size(list);
	if (count > giver->moves.shard_count)
		return gw_fail(GW_PROTOCOL, "the successor has copied more tensors than there are");
	giver->retired = gw_calloc(count + 1, sizeof(uint64_t));
	if (!giver->retired)
		return GW_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		giver->retired[i] = (uint64_t)json_integer_value(json_array_get(list, i));
	giver->retired_count = count;
	retire(giver, true);
	return GW_OK;
}

/* From here on no server answers, until the successor serves or this server thaws. */
static gw_status give_frozen(struct giver *giver)
{
	struct gw_handover_message message;
	uint64_t frozen_ns = gw_monotonic_ns(), bytes = gw_tensor_table_bytes(giver->server->tensors);
	giver->frozen = true;
	gw_exporter_stop(giver->server->exporter);
	giver->server->exporter = NULL;
	gw_status status = gw_server_freeze(giver->server, DRAIN_MS);
	if (status == GW_OK)
		status = send_state(giver, frozen_ns);
	if (status == GW_OK)
		status = give_receive(giver, "copied", gw_now_ns() + FROZEN_NS + bytes / COPY_BPS * GW_NS_PER_SECOND,
				      &message);
	if (status != GW_OK)
		return status;
	status = read_copied(giver, message.json);
	gw_handover_message_end(&message);
	if (status == GW_OK)
		status = give_send(giver, gw_handover_object("go"), NULL, 0);
	if (status != GW_OK)
		return status;
	/* The successor may serve now, so this server must not, unless the successor ends first. */
	status = give_receive(giver, "serving", GW_NO_DEADLINE, &message);
	if (status == GW_CANCELLED)
		return GW_OK;
	if (status == GW_OK)
		gw_handover_message_end(&message);
	return status;
}

static gw_status give(struct giver *giver)
{
	struct gw_handover_message hello;
	gw_status status = give_receive(giver, "hello", gw_now_ns() + HELLO_NS, &hello);
	if (status != GW_OK)
		return status;
	status = check_hello(giver, hello.json);
	gw_handover_message_end(&hello);
	if (status == GW_OK)
		status = gw_tensor_table_give(giver->server->tensors, &giver->sent);
	if (status == GW_OK)
		status = send_offer(giver);
	if (status == GW_OK)
		status = send_tensors(giver, &giver->sent, false);
	if (status == GW_OK)
		status = wait_ready(giver);
	return status == GW_OK ? give_frozen(giver) : status;
}

/* The successor has the names, the lock and the key. */
static void leave_all(struct gw_server *server)
{
	server->has_key = false;
	if (server->guard_fd >= 0)
		close(server->guard_fd);
	if (server->handover_fd >= 0)
		close(server->handover_fd);
	server->guard_fd = server->handover_fd = -1;
	for (int i = 0; i < 2; i++) {
		if (server->sockets[i] >= 0)
			close(server->sockets[i]);
		server->sockets[i] = -1;
	}
}

static enum gw_handover_result give_back(struct giver *giver, gw_status status)
{
	struct gw_server *server = giver->server;
	json_t *abort = gw_handover_object("abort");
	gw_log(GW_LOG_WARN, "no hand-over: %s; this server goes on", gw_last_error());
	json_object_set_new(abort, "why", json_string(gw_last_error()));
	if (status != GW_PEER_LOST)
		give_send(giver, abort, NULL, 0);
	else
		json_decref(abort);
	if (!giver->frozen)
		return GW_HANDOVER_NONE;
	close(giver->fd); /* before this server serves: a successor that is late finds that it may not */
	giver->fd = -1;
	retire(giver, false);
	status = gw_server_thaw(server);
	if (status == GW_OK)
		status = gw_server_metrics_start(server);
	if (status == GW_OK)
		return GW_HANDOVER_NONE;
	gw_log(GW_LOG_ERROR, "this server cannot go on after a hand-over that failed: %s", gw_last_error());
	return GW_HANDOVER_LOST;
}

enum gw_handover_result gw_handover_answer(struct gw_server *server, int signals)
{
	struct giver giver = {.server = server, .signals = signals};
	giver.fd = accept4(server->handover_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (giver.fd < 0)
		return GW_HANDOVER_NONE;
	gw_status status = gw_shm_admit(giver.fd);
	if (status == GW_OK)
		status = give(&giver);
	enum gw_handover_result result = GW_HANDOVER_DONE;
	if (status != GW_OK)
		result = give_back(&giver, status);
	else
		leave_all(server);
	if (giver.fd >= 0)
		close(giver.fd);
	gw_tensor_moves_free(server->tensors, &giver.sent);
	gw_tensor_moves_free(server->tensors, &giver.moves);
	gw_free(giver.retired);
	return result;
}
