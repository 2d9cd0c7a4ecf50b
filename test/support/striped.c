#include "test/support/striped.h"

struct gw_tensor_spec striped_spec(const char *name)
{
	return (struct gw_tensor_spec){.name = name,
				       .dtype = GW_FLOAT32,
				       .placement = GW_PLACE_STRIPED,
				       .ndim = 2,
				       .shape = {STRIPED_ROWS, STRIPED_COLUMNS}};
}

const struct gw_tensor *striped_create(struct gw_client *client, const struct gw_tensor_spec *spec)
{
	const struct gw_tensor *tensor;
	must(gw_tensor_create(client, spec, &tensor));
	return tensor;
}

struct gw_client *striped_client(const struct cluster *cluster, const char *job, int64_t timeout_ms)
{
	struct gw_client_options options = {.servers = cluster->list,
					    .server_count = cluster->parts,
					    .threads = 2,
					    .job = job,
					    .timeout_ms = timeout_ms,
					    .insecure = cluster->insecure};
	return open_client(&options);
}
