/* A client that creates a tensor that takes long to fill: it waits beyond the operation's deadline, and logs the
 * progress. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "test/support/striped.h"
#include "transport/service/service_backend.h"

#define PARTS 3
#define SLOW  1 /* the part that does not finish */

/* Blocks before the server publishes the tensor. */
struct gate {
	struct gw_dynamic_region_registrar registrar; /* first */
	sem_t go;
};

static void *gate_add(struct gw_dynamic_region_registrar *registrar, const struct gw_dynamic_region *region)
{
	(void)region;
	sem_wait(&((struct gate *)registrar)->go);
	gw_fail(GW_UNSUPPORTED, "a gate registers nothing");
	return NULL;
}

struct ear {
	pthread_mutex_t lock;
	char line[256];
	sem_t heard;
};

static void ear_hear(void *context, enum gw_log_level level, const char *line)
{
	struct ear *ear = context;
	if (level > GW_LOG_WARN || !strstr(line, "waiting for part"))
		return;
	pthread_mutex_lock(&ear->lock);
	snprintf(ear->line, sizeof(ear->line), "%s", line);
	pthread_mutex_unlock(&ear->lock);
	sem_post(&ear->heard);
}

static void *create(void *argument)
{
	struct gw_tensor_spec spec = striped_spec("slow");
	striped_create(argument, &spec);
	return NULL;
}

static void progress_is_logged(void **state)
{
	(void)state;
	static struct setup setup;
	struct gate gate = {.registrar = {.add = gate_add}};
	static struct ear ear = {.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t threads[2];
	sem_init(&gate.go, 0, 0);
	sem_init(&ear.heard, 0, 0);
	setup_begin(&setup, 247, PARTS, NULL);
	gw_dynamic_region_registrar_set(setup.cluster.servers[SLOW]->service, &gate.registrar);
	struct gw_client *client = striped_client(&setup.cluster, "waits", 400);
	gw_log_set_sink(ear_hear, &ear);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create, client), 0);
	for (int i = 0; i < 2; i++) /* a second at least, which is longer than the operation's deadline */
		sem_wait(&ear.heard);
	pthread_mutex_lock(&ear.lock);
	assert_non_null(strstr(ear.line, "\"slow\""));
	assert_non_null(strstr(ear.line, "100 % of 300 rows"));
	assert_non_null(strstr(ear.line, "waiting for part 1"));
	pthread_mutex_unlock(&ear.lock);
	sem_post(&gate.go);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	gw_client_close(client);
	gw_log_set_sink(NULL, NULL);
	gw_dynamic_region_registrar_set(setup.cluster.servers[SLOW]->service, NULL);
	setup_end(&setup);
	sem_destroy(&gate.go);
	sem_destroy(&ear.heard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(progress_is_logged)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
