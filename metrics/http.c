/* One thread and poll(2): see http.h. A connection whose response is written is half-closed, and its input read to the
 * end: a socket that is closed with unread bytes would take the response back. */
#include "metrics/http.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/thread.h"
#include "transport/transport.h"

#define BACKLOG       16
#define PAUSE_NS      (100 * GW_NS_PER_MS) /* after accept failed, such as without descriptors */
#define LISTENER      GW_HTTP_CONNECTIONS
#define WAKE          (GW_HTTP_CONNECTIONS + 1)
#define DESCRIPTORS   (GW_HTTP_CONNECTIONS + 2)
#define DISCARD_BYTES 1024

enum http_phase { HTTP_FREE, HTTP_READS, HTTP_WRITES, HTTP_CLOSES };

struct http_connection {
	enum http_phase phase;
	int fd;
	uint64_t number, deadline_ns;
	char in[GW_HTTP_REQUEST_MAX];
	size_t in_bytes;
	char head[GW_HTTP_HEAD_MAX];
	size_t head_bytes, written;
	bool without_body;
	struct gw_http_response response;
};

struct gw_http {
	gw_http_handler handler;
	void *context;
	int listener, wake;
	pthread_t thread;
	uint64_t accepted, pause_until_ns;
	struct http_connection connections[GW_HTTP_CONNECTIONS];
};

void gw_http_respond(struct gw_http_response *response, uint32_t status, const char *text)
{
	const size_t bytes = strlen(text);
	response->status = status;
	response->content_type = "text/plain; charset=utf-8";
	response->body_bytes = 0;
	if (bytes && gw_vec_reserve(&response->body, bytes) == GW_OK) {
		memcpy(response->body.data, text, bytes);
		response->body_bytes = bytes;
	}
}

static void connection_close(struct http_connection *connection)
{
	if (connection->phase == HTTP_FREE)
		return;
	close(connection->fd);
	gw_vec_free(&connection->response.body);
	connection->phase = HTTP_FREE;
}

/* --- A connection. --- */

static void connection_write(struct http_connection *c)
{
	const size_t body = c->without_body ? 0 : c->response.body_bytes;
	while (c->written < c->head_bytes + body) {
		size_t in_body = c->written < c->head_bytes ? 0 : c->written - c->head_bytes;
		struct iovec pieces[2] = {
			{c->head + c->written, c->written < c->head_bytes ? c->head_bytes - c->written : 0},
			{(char *)c->response.body.data + in_body, body - in_body}};
		bool head_left = c->written < c->head_bytes;
		struct msghdr message = {.msg_iov = head_left ? pieces : pieces + 1,
					 .msg_iovlen = head_left && body ? 2 : 1};
		ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0) {
			connection_close(c);
			return;
		}
		c->written += (size_t)sent;
	}
	c->phase = HTTP_CLOSES;
	gw_vec_free(&c->response.body);
	if (shutdown(c->fd, SHUT_WR) != 0)
		connection_close(c);
}

static void connection_answer(struct gw_http *http, struct http_connection *c, uint32_t status,
			      const struct gw_http_request *request)
{
	c->phase = HTTP_WRITES;
	c->deadline_ns = gw_now_ns() + GW_HTTP_LIMIT_MS * GW_NS_PER_MS;
	c->response = (struct gw_http_response){0};
	if (status == 200)
		http->handler(http->context, request, &c->response);
	else
		gw_http_respond(&c->response, status, "graphwire: the request is not understood\n");
	c->without_body = request->head;
	c->head_bytes = gw_http_head_print(c->head, c->response.status, c->response.content_type,
					   c->response.body_bytes, time(NULL));
	connection_write(c);
}

static void connection_read(struct gw_http *http, struct http_connection *c)
{
	ssize_t got = recv(c->fd, c->in + c->in_bytes, sizeof(c->in) - c->in_bytes, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		connection_close(c);
		return;
	}
	c->in_bytes += (size_t)got;
	struct gw_http_request request;
	uint32_t status = gw_http_request_parse(c->in, c->in_bytes, &request);
	if (status)
		connection_answer(http, c, status, &request);
}

static void connection_discard(struct http_connection *c)
{
	char bytes[DISCARD_BYTES];
	ssize_t got = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		connection_close(c);
}

static void connection_turn(struct gw_http *http, struct http_connection *c)
{
	if (c->phase == HTTP_READS)
		connection_read(http, c);
	else if (c->phase == HTTP_WRITES)
		connection_write(c);
	else if (c->phase == HTTP_CLOSES)
		connection_discard(c);
}

/* --- All connections. --- */

/* A free place, or that of the oldest connection to which no response is owed; NULL: each has one to write. */
static struct http_connection *find_place(struct gw_http *http)
{
	struct http_connection *oldest = NULL;
	for (uint32_t i = 0; i < GW_HTTP_CONNECTIONS; i++) {
		struct http_connection *c = &http->connections[i];
		if (c->phase == HTTP_FREE)
			return c;
		if (c->phase != HTTP_WRITES && (!oldest || c->number < oldest->number))
			oldest = c;
	}
	if (oldest)
		connection_close(oldest);
	return oldest;
}

static bool has_place(const struct gw_http *http)
{
	for (uint32_t i = 0; i < GW_HTTP_CONNECTIONS; i++)
		if (http->connections[i].phase != HTTP_WRITES)
			return true;
	return false;
}

static void http_accept(struct gw_http *http, uint64_t now_ns)
{
	int fd = accept4(http->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			http->pause_until_ns = now_ns + PAUSE_NS;
		return;
	}
	struct http_connection *c = find_place(http);
	if (!c) {
		close(fd);
		return;
	}
	c->phase = HTTP_READS;
	c->fd = fd;
	c->number = ++http->accepted;
	c->deadline_ns = now_ns + GW_HTTP_LIMIT_MS * GW_NS_PER_MS;
	c->in_bytes = c->written = 0;
	connection_read(http, c); /* the request often comes with the connection */
}

/* Fills the descriptors to wait for; returns when the first limit is over. */
static uint64_t prepare_wait(const struct gw_http *http, uint64_t now_ns, struct pollfd fds[DESCRIPTORS])
{
	uint64_t until = GW_NO_DEADLINE;
	for (uint32_t i = 0; i < GW_HTTP_CONNECTIONS; i++) {
		const struct http_connection *c = &http->connections[i];
		fds[i] = (struct pollfd){.fd = c->phase == HTTP_FREE ? -1 : c->fd,
					 .events = c->phase == HTTP_WRITES ? POLLOUT : POLLIN};
		if (c->phase != HTTP_FREE && c->deadline_ns < until)
			until = c->deadline_ns;
	}
	const bool pauses = now_ns < http->pause_until_ns;
	if (pauses && http->pause_until_ns < until)
		until = http->pause_until_ns;
	fds[LISTENER] = (struct pollfd){.fd = !pauses && has_place(http) ? http->listener : -1, .events = POLLIN};
	fds[WAKE] = (struct pollfd){.fd = http->wake, .events = POLLIN};
	return until;
}

static void *http_run(void *argument)
{
	struct gw_http *http = argument;
	struct pollfd fds[DESCRIPTORS];
	for (;;) {
		uint64_t now = gw_now_ns(), until = prepare_wait(http, now, fds);
		struct timespec wait = gw_timespec(until > now ? until - now : 0);
		int ready = ppoll(fds, DESCRIPTORS, until == GW_NO_DEADLINE ? NULL : &wait, NULL);
		if (fds[WAKE].revents && ready > 0)
			break;
		now = gw_now_ns();
		for (uint32_t i = 0; i < GW_HTTP_CONNECTIONS; i++) {
			struct http_connection *c = &http->connections[i];
			if (ready > 0 && fds[i].fd >= 0 && fds[i].revents)
				connection_turn(http, c);
			if (c->phase != HTTP_FREE && now >= c->deadline_ns)
				connection_close(c);
		}
		if (ready > 0 && fds[LISTENER].revents)
			http_accept(http, now);
	}
	for (uint32_t i = 0; i < GW_HTTP_CONNECTIONS; i++)
		connection_close(&http->connections[i]);
	return NULL;
}

static gw_status http_open(struct gw_http *http, struct gw_address *address)
{
	gw_status status = gw_port_reserve(address, &http->listener);
	if (status != GW_OK)
		return status;
	gw_port_yield(http->listener);
	if (listen(http->listener, BACKLOG) != 0)
		return gw_fail_errno(errno == EADDRINUSE ? GW_BUSY : GW_IO, errno, "listen on port %u", address->port);
	http->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (http->wake < 0)
		return gw_fail_errno(GW_LIMIT, errno, "an event of the thread that answers scrapers");
	int error = gw_thread_start(&http->thread, http_run, http);
	return error ? gw_thread_failed(error, "cannot start the thread that answers scrapers") : GW_OK;
}

static void http_free(struct gw_http *http)
{
	if (http->listener >= 0)
		close(http->listener);
	if (http->wake >= 0)
		close(http->wake);
	gw_free(http);
}

gw_status gw_http_start(struct gw_address *address, gw_http_handler handler, void *context, struct gw_http **out)
{
	*out = NULL;
	struct gw_http *http = gw_calloc(1, sizeof(*http));
	if (!http)
		return GW_NO_MEMORY;
	http->handler = handler;
	http->context = context;
	http->listener = http->wake = -1;
	gw_status status = http_open(http, address);
	if (status != GW_OK) {
		http_free(http);
		return status;
	}
	*out = http;
	return GW_OK;
}

void gw_http_stop(struct gw_http *http)
{
	if (!http)
		return;
	const uint64_t one = 1;
	(void)!write(http->wake, &one, sizeof(one));
	pthread_join(http->thread, NULL);
	http_free(http);
}

void gw_http_forget(const struct gw_http *http)
{
	close(http->listener);
	close(http->wake);
	for (uint32_t i = 0; i < GW_HTTP_CONNECTIONS; i++)
		if (http->connections[i].phase != HTTP_FREE)
			close(http->connections[i].fd);
}
