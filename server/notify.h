/* What a service manager is told: sd_notify(3), without its library. */
#ifndef GW_SERVER_NOTIFY_H
#define GW_SERVER_NOTIFY_H

/* Sends one message ("READY=1\nSTATUS=…") to the socket that $NOTIFY_SOCKET names. Does nothing where it names none.
 * The manager not hearing it is no reason to stop serving: a failure is a line of the log. */
void gw_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
