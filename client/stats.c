/* Adds up what links and engines have counted (client/state/link_counts.h). */
#include <stdio.h>
#include <string.h>

#include "client/engine/engine.h"
#include "client/metrics.h"

static uint64_t stats_load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Adds what the engines have counted with a server over a transport. */
static void add_link(const struct gw_client *client, uint32_t server, uint32_t scheme, struct gw_link_stats *out,
		     struct gw_latency *waits)
{
	for (uint32_t e = 0; e <= client->engine_count; e++) {
		const struct gw_link_counts *counts = &client->engines[e].links[server].counts;
		out->reads += stats_load(&counts->by_scheme[scheme].reads);
		out->read_bytes += stats_load(&counts->by_scheme[scheme].read_bytes);
		out->requests += stats_load(&counts->by_scheme[scheme].requests);
		out->sent_bytes += stats_load(&counts->by_scheme[scheme].sent_bytes);
		out->received_bytes += stats_load(&counts->by_scheme[scheme].received_bytes);
		out->errors += stats_load(&counts->by_scheme[scheme].errors);
		gw_latency_sum(waits, &counts->waits[scheme]);
	}
	out->wait_s = (double)waits->ns / 1e9;
}

uint32_t gw_client_sum_part(const struct gw_client *client, uint32_t part, struct gw_link_sums out[GW_SCHEMES])
{
	const struct gw_remote *server = client->parts[part];
	uint32_t count = 0;
	for (uint32_t scheme = 0; scheme < GW_SCHEMES; scheme++) {
		struct gw_link_sums *sums = &out[count];
		*sums = (struct gw_link_sums){
			.stats = {.part = part, .server = server->text, .transport = gw_schemes[scheme].name}};
		add_link(client, (uint32_t)(server - client->servers), scheme, &sums->stats, &sums->waits);
		count += sums->stats.reads || sums->stats.requests;
	}
	if (count)
		return count;
	out[0] = (struct gw_link_sums){.stats = {.part = part, .server = server->text, .transport = ""}};
	return 1;
}

void gw_client_sum(const struct gw_client *client, struct gw_client_stats *out, struct gw_latency *batch_waits)
{
	*out = (struct gw_client_stats){0};
	*batch_waits = (struct gw_latency){0};
	for (size_t i = 0; 2 * i + 1 < sizeof(out->id); i++) /* the last byte is an engine's */
		snprintf(out->id + 2 * i, 3, "%02x", client->uuid[i]);
	gw_latency_sum(batch_waits, &client->batch_waits);
	for (uint32_t i = 0; i < GW_LATENCY_BUCKETS; i++)
		out->batches += batch_waits->buckets[i];
	out->batch_wait_s = (double)batch_waits->ns / 1e9;
	out->cache_count_s = (double)stats_load(&client->count_ns) / 1e9;
	out->kept_rows = stats_load(&client->kept_rows);
	out->kept_bytes = stats_load(&client->kept_bytes);
	for (uint32_t e = 0; e <= client->engine_count; e++) {
		out->copied_bytes += stats_load(&client->engines[e].copied_bytes);
		out->ahead_bytes += stats_load(&client->engines[e].ahead_bytes);
		out->cached_bytes += stats_load(&client->engines[e].cached_bytes);
		for (uint32_t s = 0; s < client->server_count; s++) {
			const struct gw_link_counts *counts = &client->engines[e].links[s].counts;
			out->replica_rows += stats_load(&counts->near_rows);
			out->replica_bytes += stats_load(&counts->near_bytes);
			out->held_hops += stats_load(&counts->held_hops);
		}
	}
}

uint32_t gw_client_get_stats(const struct gw_client *client, struct gw_client_stats *out, struct gw_link_stats *links,
			     uint32_t max)
{
	struct gw_latency batch_waits;
	struct gw_link_sums sums[GW_SCHEMES];
	uint32_t count = 0;
	gw_client_sum(client, out, &batch_waits);
	for (uint32_t part = 0; part < client->meta->num_parts; part++) {
		const uint32_t rows = gw_client_sum_part(client, part, sums);
		for (uint32_t i = 0; i < rows; i++, count++)
			if (count < max)
				links[count] = sums[i].stats;
	}
	return count;
}
