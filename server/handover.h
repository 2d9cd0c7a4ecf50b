/* A running server hands over to its successor, `graphwire serve --take-over`, on the same host.
 *
 *   successor                                          running server
 *   hello: version, graph, part, address ───────────▶
 *                    ◀─── offer: incarnation, arrays, and the descriptor of the part's memory; tensors and theirs
 *   maps the memory, makes all that can fail                              serves
 *   ready ───────────────────────────────────────────▶ stops accepting, answers what is open, stops its threads
 *                    ◀─── state: listening sockets, tensors, leases, numbered calls
 *   copies rows that are sealed, listens, starts threads that wait
 *   copied ──────────────────────────────────────────▶ retires the copied rows in its own memory
 *                    ◀─── go
 *   serves; serving ─────────────────────────────────▶ ends
 *
 * The socket is in the runtime folder, for processes of this user alone. Clients that connect between the two wait in
 * the queue of the listening socket. The successor goes on as the same incarnation, so clients' tensors stay valid, and
 * a repeated call is answered from the memory of calls.
 *
 * Whatever fails before "go", also the end of the successor, leaves the running server serving: it listens again on its
 * sockets. If the running server is killed after the successor has copied everything, the successor goes on without
 * "go".
 */
#ifndef GW_SERVER_HANDOVER_H
#define GW_SERVER_HANDOVER_H

#include "server/server.h"

/* --- handover_socket.c, and handover_give.c: the running server. Only the thread that started the server calls these.
 * --- */

/* Creates the socket by which a successor finds the server: server->handover_fd, for poll. Without a runtime folder the
 * server runs without it, and cannot be taken over. */
void gw_handover_listen(struct gw_server *server);
gw_status gw_handover_keep(struct gw_server *server);
/* Closes the socket, and removes its name unless a successor has it. */
void gw_handover_end(struct gw_server *server);

enum gw_handover_result {
	GW_HANDOVER_NONE, /* this server goes on */
	GW_HANDOVER_DONE, /* the successor serves: end this one */
	GW_HANDOVER_LOST, /* this server cannot go on; the log says why */
};
/* Call it when server->handover_fd is readable. It returns when the successor serves, or has failed. signals: a
 * descriptor that becomes readable when the server is to end, which ends the hand-over. */
enum gw_handover_result gw_handover_answer(struct gw_server *server, int signals);

/* --- handover_take.c: the successor. --- */

/* Finds the running server of server->options.part, and takes its offer: incarnation, address, memory. GW_NOT_FOUND: no
 * such server runs here. */
gw_status gw_take_over_begin(struct gw_server *server);
/* Opens server->part on the offered memory. */
gw_status gw_take_over_part(struct gw_server *server, const struct gw_part_options *options);
/* Whether the running server holds the same lists of other parts, at the same places. GW_INVALID: it was started with
 * another --lists. */
gw_status gw_take_over_lists(struct gw_server *server);
/* The service and its tables are there: the running server stops, and everything else moves. */
gw_status gw_take_over_state(struct gw_server *server);
/* The listeners and threads are there, and the threads wait at server->gate. Returns when this server may serve: the
 * running one has stopped for good. */
gw_status gw_take_over_finish(struct gw_server *server);
/* Ends the connection, and leaves the running server with its name, lock and key. why: NULL if this server serves. */
void gw_take_over_end(struct gw_server *server, const char *why);

#endif
