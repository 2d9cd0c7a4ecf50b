/* A stranger between client and server: passes bytes on, until it is told to hold them back or to cut the line after so
 * many bytes of a connection's answers. With it a peer is stuck, or dies, at any state. */
#ifndef GW_TEST_RELAY_H
#define GW_TEST_RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/address.h"

#define RELAY_LINES_MAX 32
#define RELAY_PASS_ALL  INT64_MAX

struct relay_line;

struct relay {
	struct gw_address to;
	char text[GW_ADDRESS_MAX]; /* where it listens: for gw_client_options.servers */
	int listen_fd;
	pthread_t thread;
	struct relay_line *lines; /* [RELAY_LINES_MAX]: the thread's */
	atomic_bool stop;
	_Atomic int64_t answer_bytes_max; /* of each connection */
	atomic_bool cuts;                 /* at the maximum: the line is cut, else held */
	_Atomic uint64_t accepted;        /* connections so far */
	_Atomic uint64_t answer_bytes;    /* passed on, over all connections */
};

/* Fails the test when it cannot. `to` may be an address without a server. */
void relay_begin(struct relay *relay, const struct gw_address *to);
void relay_end(struct relay *relay);

/* From now on, of every connection, old and new: only so many bytes of answers pass; then they are held back (until
 * the maximum is raised), or the connection is cut. */
void relay_hold_after(struct relay *relay, int64_t bytes);
void relay_cut_after(struct relay *relay, int64_t bytes);
void relay_pass(struct relay *relay);

#endif
