/* Sockets by which processes of this user on this host find a server, in the runtime folder: transport/shm/socket.c. */
#ifndef GW_TRANSPORT_LOCAL_SOCKET_H
#define GW_TRANSPORT_LOCAL_SOCKET_H

#include "transport/address.h"

/* Connects to the listener whose name is the address's host. GW_PEER_LOST: it does not exist. */
gw_status gw_shm_dial(const struct gw_address *address, int *out);
/* GW_BUSY: a live server has the name. */
gw_status gw_shm_socket_listen(const char *name, int *out);
/* Checks whether the socket still has its name. If so, returns GW_OK and sets *out to -1. If the name was removed, does
 * the same as gw_shm_socket_listen. */
gw_status gw_shm_socket_keep(const char *name, int *out);
/* Removes the name. */
void gw_shm_socket_forget(const char *name);
/* Whether the other side of a connection is a process of this user. GW_REFUSED. */
gw_status gw_shm_admit(int fd);

#endif
