/* Loaders that read in bulk while something else is measured: each in a thread of its own, as fast as it can. */
#ifndef GW_BENCH_BULK_LOADERS_H
#define GW_BENCH_BULK_LOADERS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "bench/batches.h"
#include "core/errors/status.h"

#define GW_BULK_LOADERS_MAX 64

struct gw_bulk_loader {
	struct gw_bulk_loaders *all;
	struct gw_client *client;
	pthread_t thread;
	uint64_t batches;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct gw_bulk_loaders {
	const struct gw_batches *batches;
	uint32_t count;
	struct gw_bulk_loader loaders[GW_BULK_LOADERS_MAX];
	atomic_bool stop;
	sem_t running; /* posted by each loader once it has its first batch, or has failed */
};

/* Starts `count` loaders; loader i is of clients[i % client_count]. Returns when each of them has received a batch. On
 * failure none runs. */
gw_status gw_bulk_loaders_begin(struct gw_bulk_loaders *loaders, const struct gw_batches *batches,
				struct gw_client *const *clients, uint32_t client_count, uint32_t count);
/* Ends the loaders. *batches gets the number of batches that they received. */
gw_status gw_bulk_loaders_end(struct gw_bulk_loaders *loaders, uint64_t *batches);

#endif
