/* connect -> start the answering thread -> rounds by the caller, any number of times -> shut down, join. */
#include "bench/ping_pong.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/place.h"
#include "bench/sockets.h"

struct gw_ping_pong {
	int client, server;
	uint32_t question_bytes, answer_bytes;
	uint64_t spin_ns;
	pthread_t thread;
	bool answering;
	uint8_t *asked,
		*answer; /* buffers of the client and of the answering thread, each as large as the longer message */
};

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Receives a message. Polls for its first bytes for spin_ns, and sleeps until the rest has arrived. */
static bool ping_pong_receive_all(int fd, uint8_t *at, size_t bytes, uint64_t spin_ns)
{
	ssize_t n = -1;
	if (spin_ns) {
		uint64_t end = now_ns() + spin_ns;
		do
			n = recv(fd, at, bytes, MSG_DONTWAIT);
		while (n < 0 && errno == EAGAIN && now_ns() < end);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
	}
	for (size_t got = n > 0 ? (size_t)n : 0; got < bytes; got += (size_t)n) {
		n = recv(fd, at + got, bytes - got, MSG_WAITALL);
		if (n <= 0)
			return false;
	}
	return true;
}

static void *answer_all(void *argument)
{
	struct gw_ping_pong *p = argument;
	while (ping_pong_receive_all(p->server, p->answer, p->question_bytes, p->spin_ns) &&
	       gw_sockets_send(p->server, p->answer, p->answer_bytes))
		;
	return NULL;
}

int gw_ping_pong_begin(uint32_t question_bytes, uint32_t answer_bytes, unsigned processor, uint64_t spin_ns,
		       struct gw_ping_pong **out)
{
	uint32_t room = question_bytes > answer_bytes ? question_bytes : answer_bytes;
	struct gw_ping_pong *p = calloc(1, sizeof(*p));
	*out = NULL;
	if (!p)
		return ENOMEM;
	p->client = p->server = -1;
	p->question_bytes = question_bytes;
	p->answer_bytes = answer_bytes;
	p->spin_ns = spin_ns;
	p->asked = calloc(1, room);
	p->answer = calloc(1, room);
	int error = p->asked && p->answer ? gw_sockets_connect(&p->client, &p->server) : ENOMEM;
	if (!error) {
		error = pthread_create(&p->thread, NULL, answer_all, p);
		p->answering = !error;
	}
	if (error) {
		gw_ping_pong_end(p);
		return error;
	}
	gw_bench_pin(p->thread, processor);
	*out = p;
	return 0;
}

int gw_ping_pong_run(struct gw_ping_pong *p, uint32_t rounds, double *microseconds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t begun = now_ns();
		if (!gw_sockets_send(p->client, p->asked, p->question_bytes) ||
		    !ping_pong_receive_all(p->client, p->asked, p->answer_bytes, p->spin_ns))
			return EIO;
		microseconds[i] = (double)(now_ns() - begun) * 1e-3;
	}
	return 0;
}

void gw_ping_pong_end(struct gw_ping_pong *p)
{
	if (!p)
		return;
	if (p->answering) {
		shutdown(p->client, SHUT_RDWR);
		pthread_join(p->thread, NULL);
	}
	if (p->client >= 0)
		close(p->client);
	if (p->server >= 0)
		close(p->server);
	free(p->asked);
	free(p->answer);
	free(p);
}
