/* rows WAY COUNT SECONDS: rows that two writers change all the time are read over one way, until so many were read or
 * the time is over. Each row has one value everywhere, or it is torn. Prints how many were read, and of these how many
 * were not what was read there before: rows that nobody changed would prove nothing.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS   2
#define WIDE    400u /* float32: rows of 1,600 bytes */
#define ROWS    1024u
#define BATCH   1000u /* rows of one gather */
#define WRITERS 2

static const struct soak_way {
	const char *name, *transport, *driver;
} ways[] = {{"memory", NULL, NULL}, {"epoll", "tcp", "epoll"}, {"io_uring", "tcp", "io_uring"}, {"shm", "shm", NULL}};

static const struct soak_way *way;
static uint64_t wanted, seconds;
static struct setup setup;

static struct gw_client *open_way(void)
{
	struct gw_client_options options = {.threads = 2, .tcp_driver = way->driver, .job = "soak"};
	if (way->transport) {
		options.servers = setup.cluster.list;
		options.server_count = PARTS;
		options.transport = way->transport;
	} else {
		options.part_config = setup.fixture.folder;
	}
	return open_client(&options);
}

static const struct gw_tensor *create(struct gw_client *client)
{
	const struct gw_tensor_spec spec = {
		.name = "hot", .dtype = GW_FLOAT32, .placement = GW_PLACE_STRIPED, .ndim = 2, .shape = {ROWS, WIDE}};
	const struct gw_tensor *tensor;
	must(gw_tensor_create(client, &spec, &tensor));
	return tensor;
}

struct writer {
	pthread_t thread;
	struct gw_client *client;
	uint64_t number;
	atomic_bool stop;
};

static void *write_rows(void *argument)
{
	struct writer *self = argument;
	const struct gw_tensor *tensor = create(self->client);
	float *rows = malloc(ROWS * WIDE * sizeof(float));
	static _Thread_local int64_t ids[ROWS];
	assert_non_null(rows);
	for (uint64_t turn = 0; !atomic_load(&self->stop); turn++) {
		for (uint32_t i = 0; i < ROWS; i++) {
			ids[i] = (int64_t)((i + turn) % ROWS);
			for (uint32_t j = 0; j < WIDE; j++)
				rows[i * WIDE + j] = (float)((turn * WRITERS + self->number) % (1u << 20));
		}
		must(gw_update(self->client, tensor, ids, ROWS, rows));
	}
	free(rows);
	return NULL;
}

static void read_rows(struct gw_client *client)
{
	const struct gw_tensor *tensor = create(client);
	float *rows = malloc(BATCH * WIDE * sizeof(float)), before[ROWS] = {0};
	int64_t *ids = malloc(BATCH * sizeof(*ids));
	uint64_t until = gw_now_ns() + seconds * GW_NS_PER_SECOND, done = 0, changes = 0, next = gw_now_ns();
	assert_true(rows && ids);
	for (uint64_t turn = 1; done < wanted && gw_now_ns() < until; turn++) {
		for (uint32_t i = 0; i < BATCH; i++)
			ids[i] = (int64_t)(gw_mix64(next++) % ROWS);
		must(gw_gather(client, tensor, ids, BATCH, rows));
		for (uint32_t i = 0; i < BATCH; i++) {
			const float *row = rows + i * WIDE;
			/* Byte for byte: these are no numbers to us. */
			if (memcmp((const uint8_t *)row, (const uint8_t *)(row + 1), (WIDE - 1) * sizeof(float)) != 0)
				fail_msg("row %lld is torn after %llu reads", (long long)ids[i],
					 (unsigned long long)(done + i));
			changes += row[0] != before[ids[i]];
			before[ids[i]] = row[0];
		}
		done += BATCH;
	}
	printf("done %llu rows, of which %llu had changed\n", (unsigned long long)done, (unsigned long long)changes);
	assert_true(changes > 0);
	free(rows);
	free(ids);
}

static void no_row_is_torn(void **state)
{
	(void)state;
	struct writer writers[WRITERS];
	cluster_offer("shm");
	setup_begin(&setup, 5, PARTS, way->driver);
	struct gw_client *client = open_way();
	for (uint64_t i = 0; i < WRITERS; i++) {
		/* Without servers there is one client alone, which shares its tensors with nobody. */
		writers[i].client = way->transport ? open_way() : client;
		writers[i].number = i;
		atomic_init(&writers[i].stop, false);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_rows, &writers[i]), 0);
	}
	read_rows(client);
	for (int i = 0; i < WRITERS; i++) {
		atomic_store(&writers[i].stop, true);
		pthread_join(writers[i].thread, NULL);
		if (writers[i].client != client)
			gw_client_close(writers[i].client);
	}
	gw_client_close(client);
	setup_end(&setup);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_row_is_torn)};
	for (size_t i = 0; argc == 4 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[1], ways[i].name) == 0)
			way = &ways[i];
	}
	if (!way) {
		fprintf(stderr, "usage: %s memory|epoll|io_uring|shm COUNT SECONDS\n", argv[0]);
		return 2;
	}
	wanted = strtoull(argv[2], NULL, 10);
	seconds = strtoull(argv[3], NULL, 10);
	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
