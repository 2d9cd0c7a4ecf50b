/* Frames that a connection sends to its client, up to the last one. */
#include <string.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "transport/tcp/server/server_private.h"

void gw_tcp_server_answer(struct tcp_server *server, const struct wire_header *header, const void *body)
{
	assert(gw_tcp_server_room(server) >= WIRE_HEADER_BYTES + header->bytes);
	memcpy(server->out.memory + server->out_end, header, WIRE_HEADER_BYTES);
	if (header->bytes)
		memcpy(server->out.memory + server->out_end + WIRE_HEADER_BYTES, body, header->bytes);
	server->out_end += WIRE_HEADER_BYTES + header->bytes;
}

void gw_tcp_server_answer_error(struct tcp_server *server, gw_status status, uint64_t tag)
{
	const char *text = gw_last_error();
	struct wire_header header = {.bytes = (uint32_t)strnlen(text, WIRE_ERROR_TEXT),
				     .type = WIRE_ERROR,
				     .status = (uint8_t)status,
				     .tag = tag};
	gw_tcp_server_answer(server, &header, text);
}

const char *gw_tcp_server_name(const struct tcp_server *server, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&server->listener->base.address, text);
}

void gw_tcp_server_finish(struct tcp_server *server)
{
	server->phase = SERVER_FINISHING;
	server->since_ns = gw_now_ns();
	server->in_begin = server->in_end = 0;
	tcp_server_timer(server, server->since_ns + SERVER_FINISH_NS);
}

void gw_tcp_server_refuse(struct tcp_server *server, gw_status status)
{
	char text[GW_ADDRESS_MAX];
	gw_count(&server->service->counts.refused, 1);
	gw_log(GW_LOG_INFO, "%s: a client is refused: %s", gw_tcp_server_name(server, text), gw_last_error());
	if (status != GW_OK)
		gw_tcp_server_answer_error(server, status, 0);
	gw_tcp_server_finish(server);
}
