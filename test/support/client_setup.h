/* A small graph, its servers, and what is sampled from it: what tests of the client begin with. Everything here fails
 * the test when it cannot be done. */
#ifndef GW_TEST_CLIENT_SETUP_H
#define GW_TEST_CLIENT_SETUP_H

#include "test/support/cluster.h"
#include "test/support/graph_fixture.h"

#define SETUP_SCALE 600 /* nodes of paper */
#define BATCH_SIZE  50
#define EPOCH_MAX   64 /* batches of one epoch, at most */

struct setup {
	struct gw_fixture fixture;
	struct cluster cluster;
};

void setup_begin(struct setup *setup, uint64_t seed, uint32_t parts, const char *driver);
/* Servers that want no key, for clients behind a relay; `scale` nodes of paper. */
void setup_begin_open(struct setup *setup, uint64_t seed, uint32_t parts, uint64_t scale);
void setup_end(struct setup *setup);

struct gw_client *open_client(const struct gw_client_options *options);
const struct gw_tensor *node_tensor(struct gw_client *client, const char *type, const char *name);

/* Two hops from papers; features of papers and authors, labels of the seeds, weights of edges. */
struct plan {
	struct gw_sample_spec spec;
	int32_t fanouts[2 * GW_FIXTURE_ETYPES];
	struct gw_fetch fetches[4];
};
void make_plan(struct gw_client *client, struct plan *plan, bool replace, bool wide);

/* Batches of BATCH_SIZE, shuffled, three ahead. */
struct gw_loader *open_loader(struct gw_client *client, const struct plan *plan, struct gw_loader_state start);

/* The digests of one epoch's batches; returns how many there were. */
uint32_t run_epoch(struct gw_client *client, const struct plan *plan, uint64_t epoch, uint64_t *digests);

/* A standalone client of a small graph (`scale` nodes of paper, as many parts) comes, is used and goes, once for each
 * allocation that it makes, which fails: use gives that as an error, or has done without. Returns how many there were.
 */
uint64_t in_short_memory(uint64_t seed, uint64_t scale, uint32_t parts, gw_status (*use)(struct gw_client *client));

/* Every part is reached so. */
void expect_transport(struct gw_client *client, const char *name);

/* How long this thread was held up at most between two looks: whatever had to happen in that time may not have
 * happened, nor what other threads of ours were to do. */
struct watch {
	uint64_t looked_ns, worst_ns;
};
void watch_begin(struct watch *watch);
void watch_look(struct watch *watch);

/* So many milliseconds; ten times as many in a guest, which is slow. */
int64_t patient_ms(int64_t ms);

/* Opening fails so. A short timeout_ms is doubled where the machine was too busy for it to be seen. */
void expect_no_client(struct gw_client_options options, gw_status wanted, const char *part_of_text);

/* Fails the test unless got is wanted and the error text holds this. */
void expect(gw_status got, gw_status wanted, const char *part_of_text);

#endif
