/* One thread, one buffer for each direction of each connection; see relay.h. */
#include "test/support/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/service/service.h"

#define BUFFER_BYTES 65536
#define POLL_MS      2

struct way {
	uint8_t bytes[BUFFER_BYTES];
	size_t begin, end;
	bool ended;
};

struct relay_line {
	bool used;
	int client, server;
	struct way asks, answers;
	int64_t answered; /* bytes */
};

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void set_up(int fd)
{
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void drop(struct relay_line *line)
{
	close(line->client);
	if (line->server >= 0)
		close(line->server);
	line->used = false;
}

static void take(struct relay *relay)
{
	int client = accept(relay->listen_fd, NULL, NULL);
	if (client < 0)
		return;
	struct relay_line *line = relay->lines;
	while (line < relay->lines + RELAY_LINES_MAX && line->used)
		line++;
	if (line == relay->lines + RELAY_LINES_MAX) {
		close(client);
		return;
	}
	atomic_fetch_add(&relay->accepted, 1);
	memset(line, 0, sizeof(*line));
	line->used = true;
	line->client = client;
	line->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = loopback(relay->to.port);
	if (connect(line->server, (struct sockaddr *)&to, sizeof(to)) != 0) {
		drop(line);
		return;
	}
	set_up(client);
	set_up(line->server);
}

/* At most *room bytes; false: the connection is over. */
static bool move(struct way *way, int from, int to, int64_t *room)
{
	if (way->begin == way->end && !way->ended) {
		ssize_t n = recv(from, way->bytes, BUFFER_BYTES, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		way->begin = 0;
		way->end = n > 0 ? (size_t)n : 0;
	}
	size_t n = way->end - way->begin;
	if ((int64_t)n > *room)
		n = *room > 0 ? (size_t)*room : 0;
	if (n == 0)
		return true;
	ssize_t sent = send(to, way->bytes + way->begin, n, MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN;
	way->begin += (size_t)sent;
	*room -= sent;
	return true;
}

static void serve_line(struct relay *relay, struct relay_line *line)
{
	int64_t all = INT64_MAX, most = atomic_load(&relay->answer_bytes_max), room = most - line->answered;
	bool goes_on = move(&line->asks, line->client, line->server, &all);
	int64_t before = room;
	goes_on = goes_on && move(&line->answers, line->server, line->client, &room);
	line->answered += before - room;
	atomic_fetch_add(&relay->answer_bytes, (uint64_t)(before - room));
	if (!goes_on || (atomic_load(&relay->cuts) && line->answered >= most))
		drop(line);
}

static void *run(void *argument)
{
	struct relay *relay = argument;
	while (!atomic_load(&relay->stop)) {
		struct pollfd fds[1 + 2 * RELAY_LINES_MAX] = {{.fd = relay->listen_fd, .events = POLLIN}};
		nfds_t n = 1;
		for (int i = 0; i < RELAY_LINES_MAX; i++) {
			if (!relay->lines[i].used)
				continue;
			fds[n++] = (struct pollfd){.fd = relay->lines[i].client, .events = POLLIN};
			if (atomic_load(&relay->answer_bytes_max) > relay->lines[i].answered)
				fds[n++] = (struct pollfd){.fd = relay->lines[i].server, .events = POLLIN};
		}
		poll(fds, n, POLL_MS);
		if (fds[0].revents & POLLIN)
			take(relay);
		for (int i = 0; i < RELAY_LINES_MAX; i++) {
			if (relay->lines[i].used)
				serve_line(relay, &relay->lines[i]);
		}
	}
	return NULL;
}

void relay_begin(struct relay *relay, const struct gw_address *to)
{
	memset(relay, 0, sizeof(*relay));
	relay->to = *to;
	relay_pass(relay);
	relay->lines = calloc(RELAY_LINES_MAX, sizeof(*relay->lines));
	relay->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = loopback(0);
	socklen_t bytes = sizeof(at);
	assert_non_null(relay->lines);
	assert_int_equal(bind(relay->listen_fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(relay->listen_fd, 64), 0);
	assert_int_equal(getsockname(relay->listen_fd, (struct sockaddr *)&at, &bytes), 0);
	gw_key_remove(ntohs(at.sin_port)); /* of a server that was killed here once: not ours */
	snprintf(relay->text, sizeof(relay->text), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&relay->thread, NULL, run, relay), 0);
}

void relay_end(struct relay *relay)
{
	atomic_store(&relay->stop, true);
	pthread_join(relay->thread, NULL);
	for (int i = 0; i < RELAY_LINES_MAX; i++) {
		if (relay->lines[i].used)
			drop(&relay->lines[i]);
	}
	close(relay->listen_fd);
	free(relay->lines);
}

void relay_hold_after(struct relay *relay, int64_t bytes)
{
	atomic_store(&relay->cuts, false);
	atomic_store(&relay->answer_bytes_max, bytes);
}

void relay_cut_after(struct relay *relay, int64_t bytes)
{
	atomic_store(&relay->answer_bytes_max, bytes);
	atomic_store(&relay->cuts, true);
}

void relay_pass(struct relay *relay)
{
	relay_hold_after(relay, RELAY_PASS_ALL);
}
