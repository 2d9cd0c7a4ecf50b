/* What a client holds, seen from inside. */
#ifndef GW_TEST_CLIENT_INSIDE_H
#define GW_TEST_CLIENT_INSIDE_H

#include <graphwire/graphwire.h>

/* Memory registered with transports since the client was opened, by all engines; buffers of gw_buffer_alloc that
 * engines know now, each counted by each engine. */
uint64_t client_registrations(const struct gw_client *client);
uint32_t client_buffers(const struct gw_client *client);

/* As if so much time had passed since the client's links began to fail. No operation is open. */
void client_failed_long_ago(struct gw_client *client, uint64_t ns);

#endif
