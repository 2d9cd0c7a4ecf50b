/* See forked.h. */
#include "test/support/forked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/errors/status.h"

#define CHILD_MS 120000

/* 0, or a number that says what went wrong. */
static int live_as_child(struct gw_client *client, const struct gw_client_options *options,
			 const struct gw_sample_spec *spec, const struct gw_minibatch *batch)
{
	const struct gw_tensor *tensor = spec->fetches[0].tensor;
	static uint8_t row[1 << 16];
	int64_t id = 0;
	for (uint32_t f = 0; f < batch->fetch_count; f++)
		memset((void *)(uintptr_t)batch->rows[f], 0xee,
		       batch->row_counts[f] * spec->fetches[f].tensor->row_bytes);
	if (tensor->row_bytes > sizeof(row) || gw_gather(client, tensor, &id, 1, row) != GW_INVALID)
		return 2;
	gw_client_close(client);
	const char *name = tensor->name;
	struct gw_client *own;
	if (gw_client_open(options, &own) != GW_OK || gw_node_tensor(own, tensor->type, name, &tensor) != GW_OK ||
	    gw_gather(own, tensor, &id, 1, row) != GW_OK) {
		fprintf(stderr, "a forked child: %s\n", gw_last_error());
		return 3;
	}
	gw_client_close(own);
	return 0;
}

gw_status gw_forked_child(struct gw_client *client, const struct gw_client_options *options,
			  const struct gw_sample_spec *spec, const struct gw_minibatch *batch)
{
	pid_t child = fork();
	if (child < 0)
		return gw_fail_errno(GW_LIMIT, errno, "fork");
	if (child == 0)
		_exit(live_as_child(client, options, spec, batch));
	int how;
	for (uint32_t ms = 0; ms < CHILD_MS; ms += 10) {
		if (waitpid(child, &how, WNOHANG) == child)
			return WIFEXITED(how) && WEXITSTATUS(how) == 0
				       ? GW_OK
				       : gw_fail(GW_INVALID, "a forked child ended with status %#x", (unsigned)how);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &how, 0);
	return gw_fail(GW_INVALID, "a forked child hangs");
}
