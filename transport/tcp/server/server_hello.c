/* Pending clients: sockets whose client has not proved the key yet. At a server without a key: whose client has not
 * completed the hello.
 *
 *   accepted ─▶ HELLO ─▶ PROOF ─▶ known: counted as a connection, with buffers for work
 *        └── silent, or one of too many: closed
 *
 * Until the proof a socket costs a descriptor and a few KiB. It counts against a separate small limit; beyond the limit
 * the oldest pending client is closed for the newest. So a client with the key is admitted even if others open many
 * sockets and never complete a hello: its own hello takes one round trip only. Each loop has a share of the limit for
 * its own pending clients.
 *
 * Fails without a common version, on a wrong key, a full server, and if memory runs out. The client gets each reason in
 * an ERROR frame if it has sent a valid hello, since other programs do not understand such a frame. If no version is
 * common, a CHALLENGE says so.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "transport/scheme.h"
#include "transport/service/replay_cache.h"
#include "transport/tcp/server/server_private.h"
#include "transport/tcp/socket.h"

#define PENDING_BYTES 1024u /* of input, and of output: fits a hello, a challenge and an error */

static_assert(WIRE_HEADER_BYTES + sizeof(struct wire_challenge) + WIRE_HEADER_BYTES + WIRE_ERROR_TEXT <= PENDING_BYTES,
	      "fits");
static_assert(SERVER_WELCOME_MAX + SERVER_MEMORY_MAX + PENDING_BYTES <= TCP_SMALL_BYTES, "fits");

gw_status gw_tcp_pending_begin(struct tcp_server *server)
{
	struct tcp_loop *loop = server->loop;
	uint32_t most = server->listener->pending_max;
	server->in = gw_tcp_lend_exactly(PENDING_BYTES);
	server->out = gw_tcp_lend_exactly(PENDING_BYTES);
	if (!server->in.memory || !server->out.memory)
		return GW_NO_MEMORY;
	while (loop->pending_count && loop->pending_count >= most) {
		gw_count(&server->service->counts.dropped, 1);
		gw_log(GW_LOG_DEBUG, "the oldest of %u pending clients is closed", loop->pending_count);
		gw_tcp_server_end(loop->oldest_pending);
	}
	server->older = loop->newest_pending;
	if (server->older)
		server->older->newer = server;
	else
		loop->oldest_pending = server;
	loop->newest_pending = server;
	loop->pending_count++;
	gw_count(&server->service->counts.unproven, 1);
	return GW_OK;
}

static void take_hello(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	struct wire_hello hello = {0};
	struct wire_challenge challenge = {.versions = WIRE_VERSIONS,
					   .key_wanted = server->service->key_bytes != 0,
					   .incarnation = server->service->identity.incarnation};
	struct wire_header answer_header = {.bytes = sizeof(challenge), .type = WIRE_CHALLENGE};
	gw_status status =
		header->type == WIRE_HELLO
			? gw_wire_hello(body, header->bytes, &hello, &server->auth.version)
			: gw_fail(GW_PROTOCOL, "a %s frame before the hello", gw_wire_type_name(header->type));
	if (status == GW_VERSION) { /* send this side's versions, in a form that every version reads */
		gw_tcp_server_answer(server, &answer_header, &challenge);
		gw_tcp_server_refuse(server, GW_OK);
		return;
	}
	if (status != GW_OK) { /* not a Graphwire client: it would not understand an ERROR */
		gw_count(&server->service->counts.refused, 1);
		gw_tcp_server_end(server);
		return;
	}
	status = gw_nonce_make(server->auth.server_nonce);
	if (status == GW_OK && server->service->key_bytes && !hello.key_offered)
		status = gw_fail(GW_REFUSED, WIRE_KEY_WANTED ", and the client has none; give the server's key file");
	if (status != GW_OK) {
		gw_tcp_server_refuse(server, status);
		return;
	}
	server->auth.key = server->service->key;
	server->auth.key_bytes = server->service->key_bytes;
	server->auth.incarnation = challenge.incarnation;
	memcpy(server->auth.client_nonce, hello.nonce, sizeof(hello.nonce));
	memcpy(server->auth.client_uuid, hello.client_uuid, sizeof(hello.client_uuid));
	server->budget_ns = hello.budget_ns;
	memcpy(challenge.nonce, server->auth.server_nonce, sizeof(challenge.nonce));
	gw_tcp_server_answer(server, &answer_header, &challenge);
	server->phase = SERVER_PROOF;
}

/* The client's address; on this host its process. "" if the kernel does not say. */
static void name_peer(const struct tcp_server *server, char name[GW_SERVICE_PEER_NAME])
{
	union {
		struct sockaddr_storage room;
		struct sockaddr any;
	} end = {0};
	struct ucred process;
	socklen_t end_bytes = sizeof(end), process_bytes = sizeof(process);
	struct gw_address from;
	char text[GW_ADDRESS_MAX];
	if (server->listener->local) {
		if (getsockopt(server->io.fd, SOL_SOCKET, SO_PEERCRED, &process, &process_bytes) == 0)
			snprintf(name, GW_SERVICE_PEER_NAME, "process %ld", (long)process.pid);
	} else if (getpeername(server->io.fd, &end.any, &end_bytes) == 0 &&
		   gw_socket_address(&end.any, end_bytes, &from) == GW_OK) {
		snprintf(name, GW_SERVICE_PEER_NAME, "%s", gw_address_text(&from, text));
	}
}

static void begin_peer(struct tcp_server *server)
{
	struct gw_service_peer *peer = &server->read.peer;
	peer->scheme = server->listener->local ? GW_SCHEME_SHM : GW_SCHEME_TCP;
	memcpy(peer->client_uuid, server->auth.client_uuid, sizeof(peer->client_uuid));
	name_peer(server, peer->name);
	gw_service_peer_begin(server->service, peer);
}

/* The client has proved the key: gives it a connection's place and an output buffer for answers. */
static gw_status server_hello_admit(struct tcp_server *server)
{
	struct tcp_loan out = gw_tcp_lend(&server->loop->lender);
	if (!out.memory)
		return GW_NO_MEMORY;
	gw_status status = gw_service_enter(server->service);
	if (status != GW_OK) {
		gw_tcp_return(&server->loop->lender, &out);
		return status;
	}
	gw_tcp_pending_end(server);
	server->entered = true;
	begin_peer(server);
	uint32_t held = server->out_end - server->out_begin;
	if (held)
		memcpy(out.memory, server->out.memory + server->out_begin, held);
	gw_tcp_return(&server->loop->lender, &server->out);
	server->out = out;
	server->out_begin = 0;
	server->out_end = held;
	return GW_OK;
}

/* Sends MEMORY: where a client of this host finds the regions. */
static void report_memory(struct tcp_server *server)
{
	uint8_t body[WIRE_MEMORY_BYTES(GW_MEMORIES_MAX, GW_REGIONS_MAX)];
	struct wire_header header = {.type = WIRE_MEMORY};
	header.bytes = server->listener->local->describe(server->listener->export, body, &server->fd_passing);
	gw_tcp_server_answer(server, &header, body);
}

static void take_proof(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	const struct gw_service *service = server->service;
	struct {
		struct wire_welcome head;
		struct wire_region regions[GW_REGIONS_MAX];
	} welcome = {.head = {.graph_id = service->identity.graph_id,
			      .part = service->identity.part,
			      .parts = service->identity.parts,
			      .region_count = service->region_count,
			      .requests_max = service->limits.requests_per_client}};
	gw_status status = GW_OK;
	if (header->type != WIRE_PROOF)
		status =
			gw_fail(GW_PROTOCOL, "a %s frame before the end of the hello", gw_wire_type_name(header->type));
	else if (service->key_bytes && !gw_proof_check(&server->auth, GW_AUTH_CLIENT, body))
		status =
			gw_fail(GW_REFUSED, "the server has another key than this client; give both the same key file");
	else if (service->key_bytes && gw_proof_make(&server->auth, GW_AUTH_SERVER, welcome.head.proof))
		status = GW_IO;
	if (status == GW_OK)
		status = server_hello_admit(server);
	if (status != GW_OK) {
		gw_tcp_server_refuse(server, status);
		return;
	}
	server->window = gw_replay_join(service->replay_cache, server->auth.client_uuid, server->budget_ns);
	welcome.head.window = server->window;
	for (uint32_t i = 0; i < service->region_count; i++)
		welcome.regions[i] = gw_wire_region_of(&service->regions[i]);
	struct wire_header answer_header = {.bytes = (uint32_t)sizeof(welcome.head) +
						     service->region_count * WIRE_REGION_BYTES,
					    .type = WIRE_WELCOME};
	gw_tcp_server_answer(server, &answer_header, &welcome);
	if (server->listener->local)
		report_memory(server);
	server->phase = SERVER_OPEN;
	server->since_ns = gw_now_ns();
}

void gw_tcp_server_hello(struct tcp_server *server, const struct wire_header *header, const uint8_t *body)
{
	if (server->phase == SERVER_HELLO)
		take_hello(server, header, body);
	else
		take_proof(server, header, body);
}
