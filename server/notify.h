/* Messages to the service manager: sd_notify(3), without its library. */
#ifndef GW_SERVER_NOTIFY_H
#define GW_SERVER_NOTIFY_H

/* Sends one message ("READY=1\nSTATUS=…") to the socket that $NOTIFY_SOCKET names; does nothing if it is not set. A
 * failure is logged and does not stop the server. */
void gw_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
