/* Counts of reads, for each connection. The lock is taken when a connection begins or ends and when the sum is read,
 * never by a read. */
#include "core/memory/list.h"
#include "transport/service/service_private.h"

static uint64_t service_reads_load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void gw_service_reads_begin(struct gw_service *service, struct gw_service_reads *reads)
{
	reads->begun = true;
	pthread_mutex_lock(&service->reads.lock);
	GW_LIST_INSERT(service->reads.connections, reads);
	pthread_mutex_unlock(&service->reads.lock);
}

void gw_service_reads_end(struct gw_service *service, struct gw_service_reads *reads)
{
	if (!reads->begun)
		return;
	reads->begun = false;
	pthread_mutex_lock(&service->reads.lock);
	GW_LIST_REMOVE(reads);
	service->reads.reads += service_reads_load(&reads->reads);
	service->reads.ranges += service_reads_load(&reads->ranges);
	service->reads.bytes += service_reads_load(&reads->bytes);
	pthread_mutex_unlock(&service->reads.lock);
}

void gw_service_reads_sum(struct gw_service *service, struct gw_service_counters *out)
{
	pthread_mutex_lock(&service->reads.lock);
	out->reads += service->reads.reads;
	out->read_ranges += service->reads.ranges;
	out->read_bytes += service->reads.bytes;
	for (const struct gw_service_reads *reads = service->reads.connections; reads; reads = reads->next) {
		out->reads += service_reads_load(&reads->reads);
		out->read_ranges += service_reads_load(&reads->ranges);
		out->read_bytes += service_reads_load(&reads->bytes);
	}
	pthread_mutex_unlock(&service->reads.lock);
}
