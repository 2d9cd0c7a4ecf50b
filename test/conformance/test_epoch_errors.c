/* The error of a failing `graphwire epoch`: one line with the true cause, whatever must be closed before it is printed.
 *
 * The command runs in this process, over one connection through a relay that stops it in mid-epoch. Then something
 * happens to the server, which is the cause. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/line.h"
#include "tools/epoch_side.h"
#include "tools/tools.h"

#define ARGUMENTS_MAX 32

struct scene {
	struct gw_fixture fixture, other;
	char key_file[2][128];
	struct gw_server *server;
	struct gw_address address;
	struct relay relay;
	int64_t epoch_bytes; /* bytes of all answers of one epoch */
	char said[8192];     /* the text on stderr */
};

static void start(struct scene *scene, const char *part_config, const char *key_file)
{
	struct gw_server_options options = {.part_config = part_config,
					    .listen = scene->address,
					    .threads = 1,
					    .huge = GW_HUGE_OFF,
					    .numa = GW_NUMA_LOCAL,
					    .transport = "tcp",
					    .key_file = key_file};
	if (gw_server_start(&options, &scene->server) != GW_OK)
		fail_msg("%s", gw_last_error());
	scene->address.port = scene->server->listener->address.port;
}

/* Drops its stdout and keeps its stderr in `said`. */
static int run(struct scene *scene, const char *const *more)
{
	char command[] = "graphwire epoch", word[ARGUMENTS_MAX][256], *argv[ARGUMENTS_MAX + 1] = {command};
	int argc = 1;
	for (; *more; more++, argc++) {
		snprintf(word[argc], sizeof(word[argc]), "%s", *more);
		argv[argc] = word[argc];
	}
	FILE *file = tmpfile();
	int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO), nothing = open("/dev/null", O_WRONLY);
	assert_non_null(file);
	fflush(stdout);
	dup2(nothing, STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	int status = gw_tool_epoch(argc, argv);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(error, STDERR_FILENO);
	close(out);
	close(error);
	close(nothing);
	rewind(file);
	scene->said[fread(scene->said, 1, sizeof(scene->said) - 1, file)] = 0;
	fclose(file);
	return status;
}

static int stream(struct scene *scene, const char *const *more)
{
	const char *list[ARGUMENTS_MAX] = {"--part-config", scene->fixture.folder,
					   "--servers",     scene->relay.text,
					   "--key-file",    scene->key_file[0],
					   "--transport",   "tcp",
					   "--threads",     "1",
					   "--batch-size",  "20",
					   "--ntype",       "paper"};
	int n = 14;
	for (; *more; more++)
		list[n++] = *more;
	return run(scene, list);
}

static void expect_last_line(const struct scene *scene, int status, const char *cause)
{
	const char *line = scene->said;
	for (const char *end = strchr(line, '\n'); end && end[1]; end = strchr(line, '\n'))
		line = end + 1;
	if (status != 1 || strncmp(line, "graphwire epoch: ", 17) != 0 || !strstr(line, cause))
		fail_msg("status %d, and no \"%s\" in \"%s\"", status, cause, scene->said);
}

static void write_key(char path[128], const char *folder, char name)
{
	snprintf(path, 128, "%s/key-%c", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "the key of this job is %c", name);
	fclose(file);
	assert_int_equal(chmod(path, 0600), 0);
}

static int scene_begin(void **state)
{
	static struct scene scene;
	memset(&scene, 0, sizeof(scene));
	cluster_use_own_runtime_folder();
	gw_fixture_begin(&scene.fixture, 81, SETUP_SCALE, 1);
	gw_fixture_write(&scene.fixture);
	gw_fixture_begin(&scene.other, 82, SETUP_SCALE, 1);
	gw_fixture_write(&scene.other);
	write_key(scene.key_file[0], scene.fixture.root, 'a');
	write_key(scene.key_file[1], scene.fixture.root, 'b');
	assert_int_equal(gw_address_parse("127.0.0.1:0", &scene.address), GW_OK);
	start(&scene, scene.fixture.folder, scene.key_file[0]);
	relay_begin(&scene.relay, &scene.address);
	const char *const nothing[] = {NULL};
	if (stream(&scene, nothing) != 0)
		fail_msg("%s", scene.said);
	scene.epoch_bytes = (int64_t)atomic_load(&scene.relay.answer_bytes);
	*state = &scene;
	return 0;
}

static int scene_end(void **state)
{
	struct scene *scene = *state;
	relay_end(&scene->relay);
	gw_server_end(scene->server, 0);
	gw_fixture_end(&scene->other);
	gw_fixture_end(&scene->fixture);
	return 0;
}

/* --- Events at the server in mid-epoch. --- */

struct fate {
	struct scene *scene;
	const char *part_config, *key_file; /* of the server that replaces it; NULL: no server does */
	pthread_t thread;
};

static void *befall(void *argument)
{
	struct fate *fate = argument;
	struct relay *relay = &fate->scene->relay;
	while ((int64_t)atomic_load(&relay->answer_bytes) < atomic_load(&relay->answer_bytes_max))
		sleep_ms(1);
	gw_server_end(fate->scene->server, 0);
	fate->scene->server = NULL;
	if (fate->part_config)
		start(fate->scene, fate->part_config, fate->key_file);
	relay_pass(relay);
	return NULL;
}

/* Runs three quarters of an epoch, then the event. Afterwards restores the server. */
static void expect_fate(struct scene *scene, const char *part_config, const char *key_file, const char *const *more,
			const char *cause)
{
	struct fate fate = {.scene = scene, .part_config = part_config, .key_file = key_file};
	atomic_store(&scene->relay.answer_bytes, 0);
	relay_hold_after(&scene->relay, scene->epoch_bytes * 3 / 4);
	assert_int_equal(pthread_create(&fate.thread, NULL, befall, &fate), 0);
	int status = stream(scene, more);
	pthread_join(fate.thread, NULL);
	gw_server_end(scene->server, 0);
	start(scene, scene->fixture.folder, scene->key_file[0]);
	expect_last_line(scene, status, cause);
}

static void another_key(void **state)
{
	struct scene *scene = *state;
	const char *const more[] = {NULL};
	expect_fate(scene, scene->fixture.folder, scene->key_file[1], more, "another key than this client");
}

static void another_graph(void **state)
{
	struct scene *scene = *state;
	const char *const more[] = {NULL};
	expect_fate(scene, scene->other.folder, scene->key_file[0], more, "serves graph");
}

static void a_server_that_stays_away(void **state)
{
	struct scene *scene = *state;
	const char *const more[] = {"--reconnect", "300", NULL};
	expect_fate(scene, NULL, NULL, more, "not back within the reconnect budget of 300 ms");
}

static void a_deadline(void **state)
{
	struct scene *scene = *state;
	/* Shorter than the client's liveness limit; a longer silence would count as a lost server. */
	const char *const more[] = {"--timeout", "1500", NULL};
	relay_hold_after(&scene->relay, scene->epoch_bytes * 3 / 4);
	int status = stream(scene, more);
	relay_pass(&scene->relay);
	expect_last_line(scene, status, "not done within the operation's deadline of 1500 ms");
}

/* --- Causes outside the server. --- */

/* Changes a byte unknown to the server's threads, on purpose; so without the thread sanitizer. */
__attribute__((no_sanitize("thread"))) static void alter(uint8_t *byte, const struct gw_array *feat)
{
	for (uint64_t r = 0; r < feat->rows; r++)
		byte[r * feat->row_bytes] ^= 1;
}

static void bytes_that_were_altered(void **state)
{
	struct scene *scene = *state;
	const char *const more[] = {"--check", NULL};
	const struct gw_array *feat = gw_part_array(scene->server->part, "node/paper/feat");
	uint8_t *byte = gw_arena_base(gw_part_arena(scene->server->part)) + feat->offset;
	alter(byte, feat);
	int status = stream(scene, more);
	alter(byte, feat);
	expect_last_line(scene, status, "differ");
}

static void flip_a_byte(const struct scene *scene)
{
	char path[256];
	uint8_t byte;
	snprintf(path, sizeof(path), "%s/part0/node/paper/feat.npy", scene->fixture.folder);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 5000), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 5000), 1);
	close(fd);
}

/* The servers have loaded an intact part. The folder that they are compared with was damaged later. */
static void a_damaged_part(void **state)
{
	struct scene *scene = *state;
	const char *const more[] = {"--check", NULL};
	flip_a_byte(scene);
	int status = stream(scene, more);
	flip_a_byte(scene);
	expect_last_line(scene, status, "feat.npy");
}

/* No server runs meanwhile, since its threads share the allocator. */
static void memory(void **state)
{
	struct scene *scene = *state;
	const char *const alone[] = {"--part-config", scene->fixture.folder, "--threads", "1", NULL};
	uint32_t refused = 0;
	bool hit = true;
	gw_server_end(scene->server, 0);
	for (unsigned long n = 1; hit; n += 23) {
		gw_fault_begin(n);
		int status = run(scene, alone);
		hit = gw_fault_hit();
		gw_fault_end();
		if (status == 0)
			continue;
		expect_last_line(scene, status, "memory");
		refused++;
	}
	start(scene, scene->fixture.folder, scene->key_file[0]);
	assert_true(refused > 5);
}

/* The clock of an epoch of one batch, which may be ready before the command asks for it: it starts when the loader
 * begins to sample, and that is after the client is open. */
static void the_clock_starts_with_the_sampling(void **state)
{
	const struct scene *scene = *state;
	const struct gw_epoch_plan plan = {
		.batch_size = UINT16_MAX, .seed = 1, .ntype = "paper", .fanouts = {.hops = 1, .of_hop = {5}}};
	const struct gw_client_options alone = {.part_config = scene->fixture.folder, .threads = 1};
	struct gw_epoch_side side;
	struct gw_minibatch *batch;
	uint64_t before = gw_now_ns();
	assert_int_equal(gw_epoch_side_open(&plan, &alone, &side), GW_OK);
	uint64_t opened = gw_now_ns();
	assert_in_range(side.begun_ns, before + 1, opened - 1);
	assert_int_equal(gw_loader_steps(side.loader), 1);
	assert_int_equal(gw_loader_next(side.loader, &batch, -1), GW_OK);
	gw_minibatch_release(batch);
	gw_epoch_side_close(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_key),
		cmocka_unit_test(another_graph),
		cmocka_unit_test(a_server_that_stays_away),
		cmocka_unit_test(a_deadline),
		cmocka_unit_test(bytes_that_were_altered),
		cmocka_unit_test(a_damaged_part),
		cmocka_unit_test(memory),
		cmocka_unit_test(the_clock_starts_with_the_sampling),
	};
	return cmocka_run_group_tests(tests, scene_begin, scene_end);
}
