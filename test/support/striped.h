/* Clients of a job, and tensors of few rows that are dealt out to the servers in turn: row i is part i % parts's. What
 * tests of tensors' lives begin with. Everything here fails the test when it cannot be done. */
#ifndef GW_TEST_STRIPED_H
#define GW_TEST_STRIPED_H

#include "test/support/client_setup.h"
#include "test/support/must.h"

#define STRIPED_ROWS    300
#define STRIPED_COLUMNS 5

struct gw_tensor_spec striped_spec(const char *name);
const struct gw_tensor *striped_create(struct gw_client *client, const struct gw_tensor_spec *spec);
struct gw_client *striped_client(const struct cluster *cluster, const char *job, int64_t timeout_ms);
void striped_read(struct gw_client *client, const struct gw_tensor *tensor, float *rows); /* all of them */
/* Reads a row until it is gone. Each connection has to hear of it: memory that is mapped can be read until then. */
void striped_expect_gone(struct gw_client *client, const struct gw_tensor *tensor, int64_t id);
/* Between two looks at what others do. */
void striped_pause(void);

#endif
