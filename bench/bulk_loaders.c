/* A thread for each loader: open -> batches, across epochs, until the end -> close. The first error ends its loader,
 * and gw_bulk_loaders_end returns it. */
#include "bench/bulk_loaders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static gw_status bulk_load(struct gw_bulk_loader *mine)
{
	struct gw_loader *loader;
	gw_status status = gw_batches_loader(mine->all->batches, mine->client, &loader);
	if (status != GW_OK)
		return status;
	while (status == GW_OK && !(mine->batches && atomic_load(&mine->all->stop))) {
		struct gw_minibatch *minibatch;
		status = gw_batches_next(loader, &minibatch);
		if (status == GW_OK && ++mine->batches == 1)
			sem_post(&mine->all->running);
		if (status == GW_OK)
			gw_minibatch_release(minibatch);
	}
	gw_loader_close(loader);
	return status;
}

static void *bulk_run(void *context)
{
	struct gw_bulk_loader *mine = context;
	mine->status = bulk_load(mine);
	if (mine->status != GW_OK)
		snprintf(mine->error, sizeof(mine->error), "%s", gw_last_error());
	if (!mine->batches)
		sem_post(&mine->all->running);
	return NULL;
}

gw_status gw_bulk_loaders_begin(struct gw_bulk_loaders *loaders, const struct gw_batches *batches,
				struct gw_client *const *clients, uint32_t client_count, uint32_t count)
{
	memset(loaders, 0, sizeof(*loaders));
	loaders->batches = batches;
	sem_init(&loaders->running, 0, 0);
	for (; loaders->count < count; loaders->count++) {
		struct gw_bulk_loader *one = &loaders->loaders[loaders->count];
		one->all = loaders;
		one->client = clients[loaders->count % client_count];
		int error = pthread_create(&one->thread, NULL, bulk_run, one);
		if (error) {
			uint64_t ignored;
			gw_bulk_loaders_end(loaders, &ignored);
			return gw_fail_errno(GW_LIMIT, error, "cannot start %u threads of loaders", count);
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		while (sem_wait(&loaders->running) != 0 && errno == EINTR)
			;
	}
	return GW_OK;
}

gw_status gw_bulk_loaders_end(struct gw_bulk_loaders *loaders, uint64_t *batches)
{
	gw_status status = GW_OK;
	atomic_store(&loaders->stop, true);
	*batches = 0;
	for (uint32_t i = 0; i < loaders->count; i++) {
		struct gw_bulk_loader *one = &loaders->loaders[i];
		pthread_join(one->thread, NULL);
		*batches += one->batches;
		if (status == GW_OK && one->status != GW_OK)
			status = gw_fail_text(one->status, one->error);
	}
	loaders->count = 0;
	sem_destroy(&loaders->running);
	return status;
}
