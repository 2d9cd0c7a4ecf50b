#include "test/support/striped.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

void striped_read(struct gw_client *client, const struct gw_tensor *tensor, float *rows)
{
	int64_t ids[STRIPED_ROWS];
	for (int i = 0; i < STRIPED_ROWS; i++)
		ids[i] = i;
	must(gw_gather(client, tensor, ids, STRIPED_ROWS, rows));
}

void striped_pause(void)
{
	struct timespec pause = {.tv_nsec = 2000000};
	nanosleep(&pause, NULL);
}

void striped_expect_gone(struct gw_client *client, const struct gw_tensor *tensor, int64_t id)
{
	float row[STRIPED_COLUMNS];
	char named[GW_TENSOR_NAME_MAX + 32];
	gw_status status;
	snprintf(named, sizeof(named), "tensor \"%s\"", tensor->name);
	while ((status = gw_gather(client, tensor, &id, 1, row)) == GW_OK)
		striped_pause();
	expect(status, GW_NOT_FOUND, "gone");
	assert_non_null(strstr(gw_last_error(), named));
}
