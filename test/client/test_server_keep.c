/* A server whose runtime folder is emptied or removed while it serves. Clients on its host find it again, with the
 * same key and mapped memory; no second server gets its part; and if the folder cannot be created, it logs that once.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/files/staging.h"
#include "test/support/client_setup.h"

static char folder[GW_RUNTIME_PATH_MAX];

static struct {
	uint32_t count;
	char last[1024];
} warned, told;

static void take_line(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	bool back = strstr(line, "complete again") != NULL;
	if (level != GW_LOG_WARN)
		return;
	warned.count += !back;
	told.count += back;
	snprintf(back ? told.last : warned.last, sizeof(told.last), "%s", line);
}

static void begin(struct setup *setup)
{
	setup_begin(setup, 71, 1, NULL);
	assert_int_equal(gw_runtime_folder(folder), GW_OK);
	memset(&warned, 0, sizeof(warned));
	memset(&told, 0, sizeof(told));
	gw_log_set_sink(take_line, NULL);
}

static void finish(struct setup *setup)
{
	gw_log_set_sink(NULL, NULL);
	setup_end(setup);
}

/* It reads the same bytes as an earlier client. */
static void expect_found(struct setup *setup)
{
	struct gw_client_options options = {
		.servers = setup->cluster.list, .server_count = 1, .threads = 1, .transport = "shm"};
	struct gw_client *client = open_client(&options);
	struct plan plan;
	uint64_t digests[EPOCH_MAX];
	expect_transport(client, "shm");
	make_plan(client, &plan, false, false);
	assert_true(run_epoch(client, &plan, 1, digests) > 0);
	gw_client_close(client);
}

static void expect_guarded(const struct setup *setup)
{
	struct gw_server_options options = setup->cluster.servers[0]->options;
	struct gw_server *second;
	options.listen.port = 0;
	expect(gw_server_start(&options, &second), GW_BUSY, "serves part 0");
}

#define SUCCESSORS "shm-part-" /* the socket by which a successor finds the server */

/* Returns how many files the folder has, and the path of the one with the prefix. */
static uint32_t list_files(const char *prefix, char path[GW_RUNTIME_PATH_MAX + 300])
{
	uint32_t count = 0;
	DIR *list = opendir(folder);
	assert_non_null(list);
	for (struct dirent *entry; (entry = readdir(list));) {
		count += entry->d_name[0] != '.';
		bool successors = strncmp(entry->d_name, SUCCESSORS, strlen(SUCCESSORS)) == 0;
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    successors == (strcmp(prefix, SUCCESSORS) == 0))
			snprintf(path, GW_RUNTIME_PATH_MAX + 300, "%s/%s", folder, entry->d_name);
	}
	closedir(list);
	return count;
}

static uint32_t open_descriptors(void)
{
	uint32_t count = 0;
	DIR *list = opendir("/proc/self/fd");
	assert_non_null(list);
	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

/* The whole folder is removed, or one of its files. A client that is connected does not notice. */
static void what_is_removed_comes_back(void **state)
{
	static const char *const prefixes[] = {"key-", "shm-", SUCCESSORS, "part-"};
	struct setup setup;
	uint8_t before[GW_KEY_BYTES], after[GW_KEY_BYTES];
	uint64_t digests[EPOCH_MAX];
	(void)state;
	begin(&setup);
	struct gw_server *server = setup.cluster.servers[0];
	uint16_t port = setup.cluster.addresses[0].port;
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 1, .threads = 1};
	struct gw_client *old = open_client(&options);
	struct plan plan;
	make_plan(old, &plan, false, false);
	expect_transport(old, "shm");
	assert_int_equal(gw_key_find(port, before), GW_OK);
	for (int i = 0; i < 5; i++) {
		char path[GW_RUNTIME_PATH_MAX + 300] = "";
		if (i == 4)
			assert_int_equal(gw_remove_tree(folder), GW_OK);
		else
			assert_int_equal(list_files(prefixes[i], path), 4);
		assert_true(i == 4 || unlink(path) == 0);
		gw_server_keep(server);
		assert_int_equal(list_files("", path), 4);
		assert_int_equal(gw_key_find(port, after), GW_OK);
		assert_memory_equal(before, after, GW_KEY_BYTES);
		expect_guarded(&setup);
		expect_found(&setup);
		assert_true(run_epoch(old, &plan, 1, digests) > 0);
		expect_transport(old, "shm");
	}
	gw_client_close(old);
	assert_int_equal(warned.count, 0);
	finish(&setup);
	char path[GW_RUNTIME_PATH_MAX + 300];
	assert_int_equal(list_files("", path), 0); /* the server removes what it created again */
}

/* After many removals, sockets and memory have not accumulated. */
static void again_and_again(void **state)
{
	struct setup setup;
	uint32_t first = 0;
	(void)state;
	begin(&setup);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gw_remove_tree(folder), GW_OK);
		gw_server_keep(setup.cluster.servers[0]);
		gw_server_keep(setup.cluster.servers[0]);
		expect_found(&setup);
		if (i == 1)
			first = open_descriptors();
	}
	assert_in_range(open_descriptors(), 1, first + 4); /* some connections of the last clients may still be open */
	finish(&setup);
}

static time_t age_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return time(NULL) - (st.st_mtime < st.st_atime ? st.st_mtime : st.st_atime);
}

/* Existing files stay the same, and are never old enough for a cleaner to remove. */
static void old_files_become_young(void **state)
{
	static const char *const prefixes[] = {"key-", "shm-", SUCCESSORS, "part-"};
	struct timespec old[2] = {{.tv_sec = time(NULL) - 86400}, {.tv_sec = time(NULL) - 86400}};
	struct setup setup;
	(void)state;
	begin(&setup);
	for (int i = 0; i < 4; i++) {
		char path[GW_RUNTIME_PATH_MAX + 300] = "";
		struct stat before, after;
		assert_int_equal(list_files(prefixes[i], path), 4);
		assert_int_equal(utimensat(AT_FDCWD, path, old, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(lstat(path, &before), 0);
		gw_server_keep(setup.cluster.servers[0]);
		assert_int_equal(lstat(path, &after), 0);
		assert_true(before.st_ino == after.st_ino);
		assert_true(age_of(path) < 3600); /* times of files may be a tick ahead of time() */
	}
	expect_found(&setup);
	finish(&setup);
}

/* The folder's parent is gone, and only root can create it: one warning, and one line when it is back. */
static void one_warning_while_the_folder_cannot_be_made(void **state)
{
	struct setup setup;
	(void)state;
	begin(&setup);
	char runtime[GW_RUNTIME_PATH_MAX];
	snprintf(runtime, sizeof(runtime), "%.*s", (int)(strlen(folder) - strlen("/graphwire")), folder);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 1, .threads = 1};
	struct gw_client *old = open_client(&options);
	struct plan plan;
	uint64_t digests[EPOCH_MAX];
	make_plan(old, &plan, false, false);
	for (int round = 1; round <= 2; round++) {
		assert_int_equal(gw_remove_tree(runtime), GW_OK);
		for (int look = 0; look < 3; look++)
			gw_server_keep(setup.cluster.servers[0]);
		assert_int_equal(warned.count, round);
		assert_non_null(strstr(warned.last, "--runtime-dir"));
		assert_non_null(strstr(warned.last, folder));
		assert_true(run_epoch(old, &plan, 1, digests) > 0);
		assert_int_equal(mkdir(runtime, 0700), 0);
		for (int look = 0; look < 3; look++)
			gw_server_keep(setup.cluster.servers[0]);
		assert_int_equal(told.count, round);
		expect_guarded(&setup);
		expect_found(&setup);
	}
	gw_client_close(old);
	finish(&setup);
}

/* Another server took the part before the first one looked: the first logs it, continues, and does not touch the
 * other's lock. */
static void another_server_has_taken_the_part(void **state)
{
	struct setup setup;
	struct gw_server *second;
	(void)state;
	begin(&setup);
	struct gw_server_options options = setup.cluster.servers[0]->options;
	options.listen.port = 0;
	assert_int_equal(gw_remove_tree(folder), GW_OK);
	assert_int_equal(gw_server_start(&options, &second), GW_OK);
	for (int look = 0; look < 3; look++)
		gw_server_keep(setup.cluster.servers[0]);
	assert_int_equal(warned.count, 1);
	assert_non_null(strstr(warned.last, "serves part 0"));
	cluster_kill(&setup.cluster, 0);
	expect(gw_server_start(&options, &setup.cluster.servers[0]), GW_BUSY, "serves part 0");
	gw_server_end(second, 0);
	finish(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_removed_comes_back),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(old_files_become_young),
		cmocka_unit_test(one_warning_while_the_folder_cannot_be_made),
		cmocka_unit_test(another_server_has_taken_the_part),
	};
	cluster_offer("shm");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
