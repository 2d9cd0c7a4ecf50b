/* Plain blocking sockets with time limits. */
#include "test/support/fake_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 60000

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

int gw_fake_listen(uint16_t *port)
{
	struct sockaddr_in address = loopback(0);
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, bytes) != 0 || listen(fd, 8) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
		return -1;
	*port = ntohs(address.sin_port);
	return fd;
}

static bool wait_for(int fd, short events, int ms)
{
	struct pollfd pollfd = {.fd = fd, .events = events};
	return poll(&pollfd, 1, ms) == 1;
}

int gw_fake_accept(int listener)
{
	return wait_for(listener, POLLIN, LIMIT_MS) ? accept(listener, NULL, NULL) : -1;
}

int gw_fake_connect(uint16_t port)
{
	struct sockaddr_in address = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

bool gw_fake_send(int fd, const void *bytes, size_t n)
{
	for (const uint8_t *at = bytes; n;) {
		ssize_t sent = wait_for(fd, POLLOUT, LIMIT_MS) ? send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
	}
	return true;
}

bool gw_fake_receive(int fd, void *bytes, size_t n)
{
	for (uint8_t *at = bytes; n;) {
		ssize_t got = wait_for(fd, POLLIN, LIMIT_MS) ? recv(fd, at, n, 0) : -1;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

bool gw_fake_closed(int fd, int ms)
{
	uint8_t bytes[4096];
	struct timespec begun, now;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		long left = ms - ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000);
		if (left <= 0 || !wait_for(fd, POLLIN, (int)left))
			return false;
		if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
			return true;
	}
}

bool gw_fake_frame(int fd, uint8_t type, uint64_t tag, const void *body, uint32_t n)
{
	struct wire_header header = {.bytes = n, .type = type, .tag = tag};
	return gw_fake_send(fd, &header, sizeof(header)) && (!n || gw_fake_send(fd, body, n));
}

bool gw_fake_expect(int fd, uint8_t type, struct wire_header *header, void *body, uint32_t max)
{
	do
		if (!gw_fake_receive(fd, header, sizeof(*header)))
			return false;
	while (type != WIRE_PONG && header->type == WIRE_PONG && header->tag == 0);
	return header->type == type && header->bytes <= max &&
	       (!header->bytes || gw_fake_receive(fd, body, header->bytes));
}

bool gw_fake_welcome(int fd, uint64_t region_bytes)
{
	struct wire_header header;
	struct wire_hello hello;
	uint8_t proof[WIRE_PROOF_BYTES];
	struct wire_challenge challenge = {.versions = WIRE_VERSIONS, .incarnation = 3};
	struct {
		struct wire_welcome head;
		struct wire_region region;
	} welcome = {.head = {.graph_id = 77, .parts = 1, .region_count = 1, .requests_max = 8},
		     .region = {.bytes = region_bytes, .generation = 1}};
	return gw_fake_expect(fd, WIRE_HELLO, &header, &hello, sizeof(hello)) &&
	       gw_fake_frame(fd, WIRE_CHALLENGE, 0, &challenge, sizeof(challenge)) &&
	       gw_fake_expect(fd, WIRE_PROOF, &header, proof, sizeof(proof)) &&
	       gw_fake_frame(fd, WIRE_WELCOME, 0, &welcome, sizeof(welcome));
}

bool gw_fake_enter(int fd, struct wire_welcome *welcome, struct wire_region *regions, uint32_t regions_max)
{
	struct wire_header header;
	struct wire_hello hello = {.versions = WIRE_VERSIONS, .nonce = {1}, .client_uuid = {42}};
	struct wire_challenge challenge;
	uint8_t proof[WIRE_PROOF_BYTES] = {0};
	uint8_t body[sizeof(*welcome) + GW_REGIONS_MAX * sizeof(*regions)];
	if (!gw_fake_frame(fd, WIRE_HELLO, 0, &hello, sizeof(hello)) ||
	    !gw_fake_expect(fd, WIRE_CHALLENGE, &header, &challenge, sizeof(challenge)) ||
	    !gw_fake_frame(fd, WIRE_PROOF, 0, proof, sizeof(proof)) ||
	    !gw_fake_expect(fd, WIRE_WELCOME, &header, body, sizeof(body)))
		return false;
	memcpy(welcome, body, sizeof(*welcome));
	uint32_t count = welcome->region_count < regions_max ? welcome->region_count : regions_max;
	memcpy(regions, body + sizeof(*welcome), count * sizeof(*regions));
	return true;
}
