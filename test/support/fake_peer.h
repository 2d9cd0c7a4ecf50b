/* The other side of a TCP connection, byte by byte: a server or client that says exactly what a test wants. */
#ifndef GW_TEST_FAKE_PEER_H
#define GW_TEST_FAKE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "transport/tcp/wire.h"

/* A listening socket on 127.0.0.1; *port tells where. */
int gw_fake_listen(uint16_t *port);
int gw_fake_accept(int listener);   /* waits up to 5 s; -1: nobody came */
int gw_fake_connect(uint16_t port); /* to 127.0.0.1 */

bool gw_fake_send(int fd, const void *bytes, size_t n);
/* Exactly n bytes within 5 s. */
bool gw_fake_receive(int fd, void *bytes, size_t n);
/* Whether the other side closes (FIN or reset) within ms; what it still says is thrown away. */
bool gw_fake_closed(int fd, int ms);

bool gw_fake_frame(int fd, uint8_t type, uint64_t tag, const void *body, uint32_t n);
/* Receives a frame of the type, signs of life before it aside; the body's first max bytes go to `body`, all of them
 * must fit. */
bool gw_fake_expect(int fd, uint8_t type, struct wire_header *header, void *body, uint32_t max);

/* The server's hello up to and including WELCOME with one region of region_bytes. */
bool gw_fake_welcome(int fd, uint64_t region_bytes);
/* The client's hello to a real server, without a key. */
bool gw_fake_enter(int fd, struct wire_welcome *welcome, struct wire_region *regions, uint32_t regions_max);

#endif
