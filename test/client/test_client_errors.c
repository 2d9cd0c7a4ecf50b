/* What errors say about servers. A client without servers, of a graph in a folder, mentions no server. A client with
 * servers names the one that the error concerns, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>
#include <graphwire/tensors.h>

#include "core/errors/log.h"
#include "test/support/client_setup.h"

#define TENSOR_BYTES 20000 /* limit of all tensors: the rows below fit, an optimizer's state does not */
#define ROWS         400
#define COLUMNS      8

/* Refused calls, of the standalone client and of the one with servers. */
struct refusals {
	struct gw_client *client;
	const char *address; /* the server's; NULL: standalone */
	uint32_t count;
};

static uint32_t count_of(const char *text, const char *part)
{
	uint32_t count = 0;
	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

/* about: a part that the text must have. */
static void refused(struct refusals *refusals, gw_status status, gw_status wanted, const char *about)
{
	const char *text = gw_last_error();
	expect(status, wanted, about);
	refusals->count++;
	if (!refusals->address && (strstr(text, "server") || strstr(text, "standalone")))
		fail_msg("a graph in a folder has no server: %s", text);
	if (refusals->address && (count_of(text, refusals->address) > 1 || count_of(text, "server 127.") > 1))
		fail_msg("its server is named more than once: %s", text);
}

static struct gw_tensor_spec spec_of(const char *name, gw_dtype dtype, uint64_t rows)
{
	return (struct gw_tensor_spec){
		.name = name, .dtype = dtype, .placement = GW_PLACE_EVEN, .ndim = 2, .shape = {rows, COLUMNS}};
}

static void refuse_tensors(struct refusals *refusals)
{
	struct gw_client *client = refusals->client;
	struct gw_tensor_spec rows = spec_of("rows", GW_FLOAT32, ROWS), other = spec_of("rows", GW_FLOAT32, ROWS - 1),
			      flags = spec_of("flags", GW_BOOL, 10), all = spec_of("all", GW_FLOAT32, 1ull << 36);
	const struct gw_optimizer adam = {.kind = GW_ADAM, .rate = 1, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f};
	const struct gw_optimizer adagrad = {.kind = GW_ADAGRAD, .rate = 1, .eps = 1e-8f};
	const float gradients[COLUMNS] = {0};
	const int64_t id = 1, none = ROWS;
	const struct gw_tensor *tensor, *ignored, *bits;
	assert_int_equal(gw_tensor_create(client, &rows, &tensor), GW_OK);
	assert_int_equal(gw_tensor_create(client, &flags, &bits), GW_OK);
	refused(refusals, gw_tensor_create(client, &other, &ignored), GW_EXISTS, "tensor \"rows\" exists");
	refused(refusals, gw_tensor_create(client, &all, &ignored), refusals->address ? GW_NO_SPACE : GW_NO_MEMORY,
		"all");
	refused(refusals, gw_tensor_open(client, "nothing", GW_OF_JOB, &ignored), GW_NOT_FOUND,
		"tensor \"nothing\" does not exist");
	refused(refusals, gw_tensor_delete(client, "nothing", GW_OF_JOB), GW_NOT_FOUND,
		"tensor \"nothing\" does not exist");
	refused(refusals, gw_update(client, tensor, &none, 1, gradients), GW_RANGE, "id 400");
	refused(refusals, gw_push(client, bits, &id, 1, gradients, &adagrad), GW_UNSUPPORTED, "bool");
	/* The server has no room for the optimizer's state. Standalone there is room, and the second optimizer is
	 * refused. */
	gw_status status = gw_push(client, tensor, &id, 1, gradients, &adam);
	if (refusals->address)
		refused(refusals, status, GW_NO_SPACE, "for the state of adam for its rows of part 0");
	else
		assert_int_equal(status, GW_OK);
	status = gw_push(client, tensor, &id, 1, gradients, &adagrad);
	refused(refusals, status, refusals->address ? GW_NO_SPACE : GW_EXISTS,
		refusals->address ? "for the state of adagrad" : "trained by adam already");
	assert_int_equal(gw_tensor_delete(client, "rows", GW_OF_JOB), GW_OK);
	refused(refusals, gw_push(client, tensor, &id, 1, gradients, &adam), GW_NOT_FOUND, "tensor \"rows\" is gone");
	refused(refusals, gw_gather(client, tensor, &id, 1, (void *)gradients), GW_NOT_FOUND,
		"tensor \"rows\" is gone");
}

static void refuse_reads(struct refusals *refusals)
{
	struct gw_client *client = refusals->client;
	const struct gw_tensor *feature = node_tensor(client, "paper", "feat"), *ignored;
	const int64_t none = SETUP_SCALE;
	float row[16];
	refused(refusals, gw_gather(client, feature, &none, 1, row), GW_RANGE, "id 600");
	refused(refusals, gw_node_tensor(client, 0, "nothing", &ignored), GW_NOT_FOUND, "nothing");
	refused(refusals, gw_update(client, feature, &none, 1, row), GW_INVALID, "is a feature");
}

static void refuse_all(struct gw_client_options options, const char *address)
{
	struct refusals refusals = {.address = address};
	options.threads = 1;
	options.job = "errors";
	refusals.client = open_client(&options);
	refuse_tensors(&refusals);
	refuse_reads(&refusals);
	assert_true(refusals.count >= 11);
	gw_client_close(refusals.client);
}

static void a_server_is_named_once_and_only_where_there_is_one(void **state)
{
	struct setup setup;
	(void)state;
	cluster_limit_tensors(TENSOR_BYTES, 0);
	setup_begin(&setup, 91, 1, NULL);
	refuse_all((struct gw_client_options){.part_config = setup.fixture.folder}, NULL);
	refuse_all((struct gw_client_options){.servers = setup.cluster.list, .server_count = 1}, setup.cluster.list[0]);
	cluster_limit_tensors(0, 0);
	setup_end(&setup);
}

/* Servers that cannot be reached: the reason of the attempt names the server already. */
static void a_server_that_is_away_is_named_once(void **state)
{
	static const char *const servers[] = {"127.0.0.1:1", "nobody.invalid:1", "127.0.0.1:x"};
	(void)state;
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		struct gw_client *client;
		struct gw_client_options options = {.servers = &servers[i],
						    .server_count = 1,
						    .threads = 1,
						    .insecure = true,
						    .timeout_ms = patient_ms(300)};
		assert_int_not_equal(gw_client_open(&options, &client), GW_OK);
		assert_int_equal(count_of(gw_last_error(), servers[i]), 1);
	}
}

/* --- Descriptors. --- */

static char warned[1024];

static void hear(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	if (level == GW_LOG_WARN && strstr(line, "open files"))
		snprintf(warned, sizeof(warned), "%s", line);
}

/* An engine opens its connections later. */
static void too_few_descriptors_are_reported_before(void **state)
{
	static const char *const servers[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"};
	const rlim_t needed = 8 * (11 + 4);
	struct gw_client_options options = {
		.servers = servers, .server_count = 4, .threads = 8, .insecure = true, .timeout_ms = 1};
	struct rlimit before, less;
	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	gw_log_set_sink(hear, NULL);
	for (rlim_t limit = needed + 1; limit >= needed - 1; limit--) {
		struct gw_client *client;
		less = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
		warned[0] = '\0';
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
		assert_int_not_equal(gw_client_open(&options, &client), GW_OK);
		assert_int_equal(warned[0] != '\0', limit < needed);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	gw_log_set_sink(NULL, NULL);
	assert_non_null(strstr(warned, "4 servers and 8 threads need 120 open files"));
	assert_non_null(strstr(warned, "limit of this process is 119"));
	assert_non_null(strstr(warned, "ulimit -n 120"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_named_once_and_only_where_there_is_one),
		cmocka_unit_test(a_server_that_is_away_is_named_once),
		cmocka_unit_test(too_few_descriptors_are_reported_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
