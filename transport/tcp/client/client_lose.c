/* The end of an endpoint's questions, one by one or all when the peer is lost. A dropped set completes once nothing can
 * write to its destination. If a receive into the destination is in progress (io_uring), the receive is cancelled and
 * reaped first; otherwise the set completes at once.
 */
#include <stdio.h>

#include "transport/tcp/client/client_private.h"

const char *gw_tcp_client_name(const struct tcp_client *client, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&client->address, text);
}

void gw_tcp_client_connected(struct tcp_client *client, gw_status status)
{
	if (!client->connecting)
		return;
	gw_completions_post(&client->loop->completions, client->connecting, status);
	client->connecting = NULL;
}

void gw_tcp_client_frame_end(struct tcp_client *client, struct client_frame *frame)
{
	struct gw_read_set *set = frame->set;
	frame->set = NULL;
	if (!set)
		return;
	set->frames_open--;
	gw_read_set_settle(&client->loop->completions, set);
}

void gw_tcp_client_drop_set(struct tcp_client *client, struct gw_read_set *set)
{
	for (uint32_t at = client->queue_begin; set->frames_open && at != client->queue_end; at++) {
		struct client_frame *frame = client_frame(client, at);
		if (frame->set != set)
			continue;
		if (at == client->queue_begin && client->direct && client->io.receiving) {
			client->direct_dying = true;
			client->loop->driver->ops->stop_receive(client->loop->driver, &client->io);
			continue;
		}
		/* This may complete the set; its memory is then the caller's. */
		bool final = set->frames_open == 1;
		gw_tcp_client_frame_end(client, frame);
		if (final)
			return;
	}
	gw_read_set_settle(&client->loop->completions, set);
}

/* Fails every question with the text of gw_last_error(). The oldest question ends later if a receive of its answer is
 * in progress. */
static void fail_questions(struct tcp_client *client, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", gw_last_error());
	for (uint32_t at = client->queue_begin; at != client->queue_end; at++) {
		struct client_frame *frame = client_frame(client, at);
		if (frame->note) {
			gw_completions_post(&client->loop->completions, frame->note, gw_fail_text(status, text));
			frame->note = NULL;
		}
	}
	for (struct gw_read_set *set = client->sets, *next; set; set = next) {
		next = set->next;
		gw_read_set_fail(set, gw_fail_text(status, text));
		gw_tcp_client_drop_set(client, set);
	}
	client->requests_open = 0;
	if (!client->direct_dying)
		client->queue_begin = client->queue_end;
	gw_fail_text(status, text);
}

void gw_tcp_client_lose(struct tcp_client *client, gw_status status)
{
	if (client->phase == CLIENT_LOST)
		return;
	client->phase = CLIENT_LOST;
	client->base.state = GW_ENDPOINT_LOST;
	gw_tcp_client_connected(client, status);
	fail_questions(client, status);
	gw_tcp_client_room(client);
	if (client->io_added && !client->io_gone)
		client->loop->driver->ops->remove(client->loop->driver, &client->io);
}
