/* The shm backend's slots. Connections are transport/tcp's; reads are copies from the mapping (transport/mapped.h).
 *
 * A read makes no system call, so reads do not notice the loss of a server. Polls notice it: they check the sockets.
 * While completions are queued, only one poll in LOOK_TURNS checks them. Mapped memory stays readable until the
 * endpoint is closed. After the poll that noticed the loss, reads fail.
 */
#include "transport/shm/shm.h"

#include "core/system/clock.h"
#include "transport/dynamic_regions.h"
#include "transport/mapped.h"
#include "transport/tcp/client/client.h"
#include "transport/tcp/server/server.h"
#include "transport/tcp/tcp.h"

#define LOOK_TURNS 64 /* while completions are queued, one poll in this many checks the sockets */

static const struct tcp_local shm_local = {
	.dial = gw_shm_dial,
	.listen = gw_shm_listen,
	.keep = gw_shm_export_keep,
	.stop = gw_shm_export_stop,
	.export_free = gw_shm_export_free,
	.admit = gw_shm_admit,
	.describe = gw_shm_describe,
	.map = gw_shm_map,
	.unmap = gw_shm_unmap,
	.share = gw_shm_share,
	.map_dynamic = gw_shm_map_dynamic,
	.unmap_dynamic = gw_shm_unmap_dynamic,
};

static gw_status shm_open_state(struct gw_poll_group *group, void **out)
{
	struct tcp_loop *loop;
	gw_status status = gw_tcp_loop_open(group, &gw_transport_shm, &shm_local, &loop);
	*out = loop;
	return status;
}

/* A checked region: this endpoint's copy of its description, and its mapped address. */
static const struct gw_region *shm_look(const struct gw_endpoint *base, const void *mapped,
					const struct gw_region *region, const uint8_t **from)
{
	if (region->id < GW_REGIONS_MAX) {
		*from = ((const struct shm_mapped *)mapped)->bases[region->id];
		return &base->peer.regions[region->id];
	}
	const struct gw_dynamic_region_entry *entry = gw_dynamic_region_find(base, region->id, region->generation);
	*from = entry->base;
	return &entry->region;
}

/* False: the set has failed, and every read is accepted. */
static bool shm_begin(struct gw_endpoint *base, const struct tcp_copies *copies, struct gw_read_set *set,
		      const struct gw_region *region)
{
	const struct tcp_client *client = (const struct tcp_client *)base;
	char text[GW_ADDRESS_MAX];
	gw_read_set_start(copies->sets, set);
	if (set->status)
		return false;
	gw_status status = GW_OK;
	if (base->state != GW_ENDPOINT_OPEN)
		status = gw_fail(GW_PEER_LOST, "%s is not connected", gw_tcp_client_name(client, text));
	else if (set->deadline_ns && set->deadline_ns != GW_NO_DEADLINE && gw_now_ns() >= set->deadline_ns)
		status = gw_fail(GW_DEADLINE, "%s: the deadline had passed before memory was read",
				 gw_tcp_client_name(client, text));
	else
		status = gw_check_region(base, region);
	if (status != GW_OK)
		gw_read_set_fail(set, status);
	return status == GW_OK;
}

static size_t shm_read(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		       struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	size_t taken = 0;
	uint64_t bytes;
	if (set->done)
		return reads->n;
	struct tcp_copies copies = gw_tcp_copies(base);
	if (!shm_begin(base, &copies, set, region))
		return gw_mapped_end(base, copies.completions, set, reads->n, reads->n, last);
	const uint8_t *from;
	const struct gw_region *known = shm_look(base, copies.mapped, region, &from);
	gw_status status = gw_mapped_read(known, from, buffer, set, reads, &taken, &bytes);
	if (status != GW_OK)
		gw_read_set_fail(set, status);
	return gw_mapped_end(base, copies.completions, set, reads->n, taken, last);
}

static const uint8_t *shm_map(struct gw_endpoint *base, const struct gw_region *region)
{
	if (base->state != GW_ENDPOINT_OPEN || gw_check_region(base, region) || region->id >= GW_REGIONS_MAX ||
	    base->peer.regions[region->id].kind == GW_REGION_VERSIONED)
		return NULL;
	return ((const struct shm_mapped *)gw_tcp_copies(base).mapped)->bases[region->id];
}

static size_t shm_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct tcp_loop *loop = state;
	if (loop->unsent)
		gw_tcp_clients_flush(loop);
	if (max && !gw_completions_empty(&loop->completions) && ++loop->turns % LOOK_TURNS)
		return gw_completions_take(&loop->completions, completions, max);
	return gw_tcp_poll(state, completions, max, timeout_ns);
}

static gw_status shm_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
			    struct gw_service *service, int socket, struct gw_listener **out)
{
	return gw_tcp_listen_as(&gw_transport_shm, &shm_local, groups, group_count, address, service, socket, out);
}

const struct gw_transport gw_transport_shm = {
	.scheme = &gw_schemes[GW_SCHEME_SHM],
	.number = GW_SCHEME_SHM,
	.one_sided = true,
	.range_cost_bytes = 64,
	.open = shm_open_state,
	.shut = gw_tcp_shut,
	.connect = gw_tcp_connect,
	.close = gw_tcp_close,
	.buffer_register = gw_tcp_buffer_register,
	.buffer_release = gw_tcp_buffer_release,
	.read = shm_read,
	.request = gw_tcp_request,
	.cancel = gw_tcp_cancel,
	.request_cancel = gw_tcp_request_cancel,
	.region_open = gw_tcp_region_open,
	.map = shm_map,
	.poll = shm_poll,
	.busy = gw_tcp_busy,
	.wait_fd = gw_tcp_wait_fd,
	.wake = gw_tcp_wake,
	.listen = shm_listen,
	.listener_yield = gw_tcp_listener_yield,
	.listener_stop = gw_tcp_listener_stop,
	.listener_drain = gw_tcp_listener_drain,
	.listener_free = gw_tcp_listener_free,
	.listener_keep = gw_tcp_listener_keep,
};
