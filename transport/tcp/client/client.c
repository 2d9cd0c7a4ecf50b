/* The life of an endpoint.
 *
 *   LOOKING_UP ─▶ DIALLING ─▶ HELLO_SENT ─▶ PROOF_SENT ─▶ (WELCOMED ─▶) OPEN ─▶ LOST
 *       └───────────────┴───────────┴──────────────┴─────────────────┘   no such name, refused, another version,
 *                                                                          wrong graph, deadline, end of stream
 *
 * A lost endpoint exists until its owner closes it; calls on it fail. Dialling tries the name's addresses in turn. Each
 * address has a share of the time, since an attempt does not end by itself if the host drops its packets.
 *
 * Questions end one by one, or all when the peer is lost. A dropped set completes once nothing can write to its
 * destination. If a receive into the destination is in progress (io_uring), the receive is cancelled and reaped first;
 * otherwise the set completes at once.
 */
#include "transport/tcp/client/client_private.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/tcp/client/resolve.h"
#include "transport/tcp/socket.h"

#define LIVENESS_DEFAULT_NS (30 * GW_NS_PER_SECOND)
#define DIAL_NS             (10 * GW_NS_PER_SECOND) /* for each of several addresses if the connect has no deadline */

static void client_free(struct tcp_client *client)
{
	GW_LIST_REMOVE(client);
	if (client->works)
		GW_SLIST_REMOVE(client->loop->working, client, next_working);
	if (client->unsent)
		GW_SLIST_REMOVE(client->loop->unsent, client, next_unsent);
	gw_tcp_resolve_abandon(client->resolve);
	if (client->addresses)
		freeaddrinfo(client->addresses);
	gw_note_destroy(client->connecting);
	gw_free(client->reply);
	gw_free(client->out);
	gw_free(client->staging);
	gw_tcp_fd_passing_end(&client->fd_passing);
	gw_tcp_client_dynamic_end(client);
	if (client->mapped)
		client->loop->local->unmap(client->mapped);
	explicit_bzero(client->key, sizeof(client->key));
	gw_free(client);
}

/* On failure closes the descriptor. */
static gw_status tcp_client_watch(struct tcp_client *client, int fd, short events)
{
	struct tcp_io *io = &client->io;
	io->fd = fd;
	io->watch = events;
	io->removed = io->readable = io->writable = io->hung_up = false;
	io->awaited = false;
	io->low_water = io->low_water_set = 0;
	gw_status status = client->loop->driver->ops->add(client->loop->driver, io);
	if (status != GW_OK) {
		gw_socket_close(fd);
		return status;
	}
	client->io_added = true;
	client->io_gone = false;
	client->loop->ios++;
	client->loop->driver->ops->kick(client->loop->driver, io);
	return GW_OK;
}

/* Sets the time limit of the current address: its share of the remaining time, if other addresses follow. */
static void dial_time(struct tcp_client *client)
{
	uint64_t now = gw_now_ns(), addresses = 0;
	for (const struct addrinfo *at = client->dialled; at; at = at->ai_next)
		addresses++;
	client->dial_deadline_ns = GW_NO_DEADLINE;
	if (addresses < 2 || now >= client->connect_deadline_ns)
		return;
	uint64_t share = client->connect_deadline_ns == GW_NO_DEADLINE
				 ? DIAL_NS
				 : (client->connect_deadline_ns - now) / addresses;
	client->dial_deadline_ns = now + share;
	tcp_loop_timer(client->loop, client->dial_deadline_ns);
}

/* GW_IO if this process lacks resources, since that is no loss of the peer. */
static gw_status dial_failed(const struct tcp_client *client, int error)
{
	char text[GW_ADDRESS_MAX];
	bool own = error == EMFILE || error == ENFILE || error == ENOMEM;
	return gw_fail_errno(own ? GW_IO : GW_PEER_LOST, error, "connect to %s", gw_tcp_client_name(client, text));
}

/* Starts a connection to the current address, or to the first later one that accepts the attempt. */
static gw_status tcp_client_dial(struct tcp_client *client)
{
	int error = 0;
	for (; client->dialled; client->dialled = client->dialled->ai_next) {
		const struct addrinfo *to = client->dialled;
		int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			error = errno;
			continue;
		}
		gw_socket_tune(fd);
		if (connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS) {
			error = errno;
			close(fd);
			continue;
		}
		client->phase = CLIENT_DIALLING;
		dial_time(client);
		return tcp_client_watch(client, fd, POLLOUT);
	}
	return dial_failed(client, error);
}

/* Gives up the current address; gw_last_error() has the reason. The io's callback `gone` then dials the next
 * address. */
static void dial_next(struct tcp_client *client)
{
	client->dial_deadline_ns = GW_NO_DEADLINE;
	if (client->dialled)
		client->dialled = client->dialled->ai_next;
	if (!client->dialled)
		gw_tcp_client_lose(client, GW_PEER_LOST);
	else
		client->loop->driver->ops->remove(client->loop->driver, &client->io);
}

/* A unix socket connects at once or not at all. */
static gw_status dial_local(struct tcp_client *client)
{
	int fd;
	gw_status status = client->loop->local->dial(&client->address, &fd);
	if (status != GW_OK)
		return status;
	client->fd_passing.wanted = true;
	client->io.fd_passing = &client->fd_passing;
	client->phase = CLIENT_DIALLING;
	client->dial_deadline_ns = GW_NO_DEADLINE;
	return tcp_client_watch(client, fd, POLLOUT);
}

static gw_status look_up(struct tcp_client *client)
{
	int fd;
	gw_status status = gw_tcp_resolve_begin(&client->address, &client->resolve, &fd);
	return status != GW_OK ? status : tcp_client_watch(client, fd, POLLIN);
}

/* The look-up of the name has ended. The io's callback `gone` then dials the first address. */
static void looked_up(struct tcp_client *client)
{
	gw_status status = gw_tcp_resolve_take(client->resolve, &client->addresses);
	if (status == GW_AGAIN) {
		client->loop->driver->ops->kick(client->loop->driver, &client->io);
		return;
	}
	client->resolve = NULL;
	if (status != GW_OK) {
		gw_tcp_client_lose(client, status);
		return;
	}
	client->dialled = client->addresses;
	client->phase = CLIENT_DIALLING;
	client->loop->driver->ops->remove(client->loop->driver, &client->io);
}

/* The outcome of resolving the name, or of connect(2). */
static void client_ready(struct tcp_io *io)
{
	struct tcp_client *client = client_of_io(io);
	char text[GW_ADDRESS_MAX];
	int error = 0;
	if (client->phase == CLIENT_LOOKING_UP) {
		looked_up(client);
		return;
	}
	socklen_t bytes = sizeof(error);
	getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	if (error) {
		gw_fail_errno(GW_PEER_LOST, error, "connect to %s", gw_tcp_client_name(client, text));
		dial_next(client);
		return;
	}
	struct wire_hello hello = {.versions = WIRE_VERSIONS, .key_offered = client->auth.key_bytes != 0};
	memcpy(hello.nonce, client->auth.client_nonce, sizeof(hello.nonce));
	memcpy(hello.client_uuid, client->auth.client_uuid, sizeof(hello.client_uuid));
	hello.budget_ns = client->budget_ns;
	io->watch = 0;
	client->phase = CLIENT_HELLO_SENT;
	client->heard_ns = gw_now_ns();
	gw_tcp_client_send(client, WIRE_HELLO, &hello, sizeof(hello));
}

static void client_gone(struct tcp_io *io)
{
	struct tcp_client *client = client_of_io(io);
	client->loop->ios--;
	client->io_gone = true;
	if (client->direct_dying) {
		client->direct_dying = false;
		gw_tcp_client_frame_end(client, client_oldest(client));
	}
	if (client->phase == CLIENT_LOST)
		client->queue_begin = client->queue_end;
	if (client->closed)
		client_free(client);
	else if (client->phase == CLIENT_DIALLING) {
		gw_status status = tcp_client_dial(client);
		if (status != GW_OK)
			gw_tcp_client_lose(client, status);
	}
}

static size_t client_source(struct tcp_io *io, struct iovec *iov)
{
	struct tcp_client *client = client_of_io(io);
	if (client->out_begin == client->out_end || client->send_broken)
		return 0;
	iov[0] = (struct iovec){client->out + client->out_begin, client->out_end - client->out_begin};
	return 1;
}

static void client_sent(struct tcp_io *io, ssize_t n)
{
	struct tcp_client *client = client_of_io(io);
	if (n < 0) {
		client->send_broken = true;
		return;
	}
	client->out_begin += (uint32_t)n;
	if (client->out_begin == client->out_end)
		client->out_begin = client->out_end = 0;
	if (client->dynamic_owed)
		gw_tcp_client_dynamic_sent(client);
	gw_tcp_client_room(client);
}

static const struct tcp_io_events client_events = {
	.target = gw_tcp_client_target,
	.source = client_source,
	.received = gw_tcp_client_received,
	.sent = client_sent,
	.ready = client_ready,
	.gone = client_gone,
};

static gw_status client_create(struct tcp_loop *loop, const struct gw_connect_options *options, struct tcp_client **out)
{
	*out = NULL;
	if (options->key_bytes > GW_SERVICE_KEY_MAX || (options->key && !options->key_bytes))
		return gw_fail(GW_INVALID, "a key of %u bytes; a key has 1 to %d bytes", options->key_bytes,
			       GW_SERVICE_KEY_MAX);
	struct tcp_client *client = gw_calloc(1, sizeof(*client));
	if (!client)
		return GW_NO_MEMORY;
	client->staging = gw_malloc(CLIENT_STAGING_BYTES);
	client->out = gw_malloc(CLIENT_OUT_FIRST);
	if (!client->staging || !client->out) {
		gw_free(client->staging);
		gw_free(client->out);
		gw_free(client);
		return GW_NO_MEMORY;
	}
	client->out_capacity = CLIENT_OUT_FIRST;
	client->base = (struct gw_endpoint){.transport = loop->transport, .group = loop->group};
	client->loop = loop;
	client->io.events = &client_events;
	client->io.fd = -1;
	client->address = options->address;
	client->graph_id = options->graph_id;
	client->budget_ns = options->budget_ns;
	client->connect_deadline_ns = options->deadline_ns ? options->deadline_ns : GW_NO_DEADLINE;
	client->liveness_ns = options->liveness_ns ? options->liveness_ns : LIVENESS_DEFAULT_NS;
	client->must_prove = options->must_prove;
	if (options->key) {
		memcpy(client->key, options->key, options->key_bytes);
		client->auth.key = client->key;
		client->auth.key_bytes = options->key_bytes;
	}
	memcpy(client->auth.client_uuid, options->client_uuid, 16);
	GW_LIST_INSERT(loop->clients, client);
	client_works(client);
	*out = client;
	return GW_OK;
}

gw_status gw_tcp_connect(void *state, const struct gw_connect_options *options, void *cookie, struct gw_endpoint **out)
{
	struct tcp_loop *loop = state;
	struct tcp_client *client;
	*out = NULL;
	gw_status status = client_create(loop, options, &client);
	if (status != GW_OK)
		return status;
	status = gw_note_create(cookie, &client->connecting);
	if (status == GW_OK)
		status = gw_nonce_make(client->auth.client_nonce);
	if (status != GW_OK) {
		client_free(client);
		return status;
	}
	/* From here on the completion reports every failure. */
	if (loop->local) {
		status = dial_local(client);
	} else if (gw_socket_number(&client->address, &client->addresses)) {
		client->dialled = client->addresses;
		status = tcp_client_dial(client);
	} else {
		status = look_up(client);
	}
	if (status != GW_OK)
		gw_tcp_client_lose(client, status);
	else
		tcp_loop_timer(loop, client->connect_deadline_ns);
	*out = &client->base;
	return GW_OK;
}

void gw_tcp_close(struct gw_endpoint *base)
{
	struct tcp_client *client = (struct tcp_client *)base;
	for (struct gw_read_set *set = client->sets; set; set = set->next)
		set->last_accepted = true;
	if (client->unsent) /* a goodbye */
		gw_tcp_clients_flush(client->loop);
	client->closed = true;
	client_works(client);
	if (client->phase != CLIENT_LOST) {
		gw_status status = gw_fail(GW_CANCELLED, "the endpoint was closed");
		/* The driver may finish with the io at once and free the client. */
		bool at_once = !client->io_added || client->io_gone;
		gw_tcp_client_lose(client, status);
		if (at_once)
			client_free(client);
		return;
	}
	for (struct gw_read_set *set = client->sets, *next; set; set = next) {
		next = set->next;
		gw_read_set_settle(&client->loop->completions, set);
	}
	if (!client->io_added || client->io_gone)
		client_free(client);
}

void gw_tcp_clients_end(struct tcp_loop *loop)
{
	for (struct tcp_client *client = loop->clients, *next; client; client = next) {
		next = client->next;
		if (!client->closed)
			gw_tcp_close(&client->base);
	}
}

/* --- Loss, and the end of questions. --- */

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

/* The oldest question ends later if a receive of its answer is in progress. */
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
	gw_poll_group_lost(client->base.group);
	gw_tcp_client_connected(client, status);
	fail_questions(client, status);
	gw_tcp_client_room(client);
	if (client->io_added && !client->io_gone)
		client->loop->driver->ops->remove(client->loop->driver, &client->io);
}

/* --- Time. --- */

static gw_status tcp_client_deadline_fail(const struct tcp_client *client, const char *what)
{
	char text[GW_ADDRESS_MAX];
	return gw_fail(GW_DEADLINE, "%s %s: the deadline has passed", what, gw_tcp_client_name(client, text));
}

static void tick_questions(struct tcp_client *client, uint64_t now_ns)
{
	for (struct gw_read_set *set = client->sets, *next; set; set = next) {
		next = set->next;
		if (!set->deadline_ns || set->status)
			continue;
		if (now_ns < set->deadline_ns) {
			tcp_loop_timer(client->loop, set->deadline_ns);
			continue;
		}
		gw_read_set_fail(set, tcp_client_deadline_fail(client, "read from"));
		gw_tcp_client_room(client);
		gw_tcp_client_drop_set(client, set);
	}
	for (uint32_t at = client->queue_begin; at != client->queue_end; at++) {
		struct client_frame *frame = client_frame(client, at);
		if (!frame->note)
			continue;
		if (now_ns < frame->deadline_ns) {
			tcp_loop_timer(client->loop, frame->deadline_ns);
			continue;
		}
		gw_completions_post(&client->loop->completions, frame->note,
				    tcp_client_deadline_fail(client, "request to"));
		frame->note = NULL;
	}
}

/* Work is open and the peer is silent: probes it once, then gives it up. */
static void tcp_client_tick_liveness(struct tcp_client *client, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	if (client_queued(client) == 0)
		return;
	uint64_t due = (client->probed ? client->probed_ns : client->heard_ns) + client->liveness_ns;
	if (now_ns < due) {
		tcp_loop_timer(client->loop, due);
		return;
	}
	if (client->probed) {
		gw_tcp_client_lose(client,
				   gw_fail(GW_PEER_LOST, "%s: nothing received for %llu ms, and no answer to a probe",
					   gw_tcp_client_name(client, text),
					   (unsigned long long)((now_ns - client->heard_ns) / GW_NS_PER_MS)));
		return;
	}
	client->probed = true;
	client->probed_ns = now_ns;
	tcp_loop_timer(client->loop, now_ns + client->liveness_ns);
	/* If unanswered probes fill the queue, no further probe is needed: the answer to an older one also shows that
	 * the peer lives. */
	if (client_queued(client) < CLIENT_QUEUE - 1)
		gw_tcp_client_send(client, WIRE_PING, NULL, 0);
}

/* Fewer bytes than the low-water mark (SO_RCVLOWAT) do not wake the client, but they show that the peer lives. So they
 * are received every CLIENT_LOW_WATER_NS. */
static void tick_low_water(struct tcp_client *client, uint64_t now_ns)
{
	if (client->io.low_water <= 1)
		return;
	uint64_t due = client->heard_ns + CLIENT_LOW_WATER_NS;
	if (now_ns < due) {
		tcp_loop_timer(client->loop, due);
		return;
	}
	client->io.low_water = 1;
	client->loop->driver->ops->kick(client->loop->driver, &client->io);
}

static void tick_connect(struct tcp_client *client, uint64_t now_ns)
{
	if (now_ns >= client->connect_deadline_ns) {
		gw_tcp_client_lose(client, tcp_client_deadline_fail(client, "connect to"));
		return;
	}
	tcp_loop_timer(client->loop, client->connect_deadline_ns);
	if (client->phase != CLIENT_DIALLING)
		return;
	if (now_ns < client->dial_deadline_ns) {
		tcp_loop_timer(client->loop, client->dial_deadline_ns);
		return;
	}
	tcp_client_deadline_fail(client, "connect to");
	dial_next(client);
}

void gw_tcp_clients_tick(struct tcp_loop *loop, uint64_t now_ns)
{
	for (struct tcp_client **at = &loop->working; gw_tcp_client_at_work(at);)
		at = &(*at)->next_working;
	for (struct tcp_client *client = loop->working, *next; client; client = next) {
		next = client->next_working; /* a tick may free its client */
		if (client->phase == CLIENT_LOST)
			continue;
		if (client->phase != CLIENT_OPEN) {
			tick_connect(client, now_ns);
			continue;
		}
		tick_low_water(client, now_ns);
		tick_questions(client, now_ns);
		tcp_client_tick_liveness(client, now_ns);
	}
}

static bool is_at_work(const struct tcp_client *client)
{
	return client->connecting || client->queue_begin != client->queue_end || client->sets || client->closed ||
	       client->io.low_water > 1;
}

struct tcp_client *gw_tcp_client_at_work(struct tcp_client **at)
{
	while (*at && !is_at_work(*at)) {
		(*at)->works = false;
		*at = (*at)->next_working;
	}
	return *at;
}

bool gw_tcp_clients_busy(struct tcp_loop *loop)
{
	for (struct tcp_client *client, **at = &loop->working; (client = gw_tcp_client_at_work(at));
	     at = &client->next_working)
		if (client->connecting || client_queued(client) || client->closed)
			return true;
	return false;
}

struct tcp_copies gw_tcp_copies(struct gw_endpoint *base)
{
	struct tcp_client *client = (struct tcp_client *)base;
	client_works(client); /* a read may leave a set open, whose deadline is watched */
	return (struct tcp_copies){&client->sets, &client->loop->completions, client->mapped};
}
