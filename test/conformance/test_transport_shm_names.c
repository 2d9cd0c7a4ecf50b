/* Names of servers on this host, and admission: one server at a time takes a name in the runtime folder, and the name
 * is free when the server has died. Memory that can be shared. Only the same user is admitted. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/cluster.h"
#include "test/support/transport_bed.h"
#include "transport/shm/shm.h"

static bool is_there(const char *name)
{
	char path[GW_RUNTIME_PATH_MAX + 80], folder[GW_RUNTIME_PATH_MAX];
	struct stat ignored;
	assert_int_equal(gw_runtime_folder(folder), GW_OK);
	snprintf(path, sizeof(path), "%s/shm-%s", folder, name);
	return lstat(path, &ignored) == 0;
}

static void names(void **state)
{
	int first, second, third;
	(void)state;
	assert_int_equal(gw_shm_socket_listen("taken", &first), GW_OK);
	assert_int_equal(gw_shm_socket_listen("taken", &second), GW_BUSY);
	assert_int_equal(second, -1);
	assert_int_equal(gw_shm_socket_listen("other", &third), GW_OK);
	assert_true(is_there("taken") && is_there("other"));
	/* A dead server leaves a socket: its name is free, and the next server removes the socket. */
	close(first);
	assert_int_equal(gw_shm_socket_listen("taken", &first), GW_OK);
	close(first);
	assert_true(is_there("taken"));
	assert_int_equal(gw_shm_socket_listen("next", &second), GW_OK);
	assert_true(!is_there("taken") && is_there("other") && is_there("next"));
	gw_shm_socket_forget("other");
	gw_shm_socket_forget("next");
	assert_true(!is_there("other") && !is_there("next"));
	close(second);
	close(third);
}

#define RACERS 6
#define RACES  40

static void one_name_for_many(void **state)
{
	struct gw_address address = {.scheme = "shm", .host = "wanted"};
	(void)state;
	for (int race = 0; race < RACES; race++) {
		int start[2], outcome[2], dead, fd;
		assert_int_equal(pipe2(start, O_CLOEXEC), 0);
		assert_int_equal(pipe2(outcome, O_CLOEXEC), 0);
		if (race % 2 && gw_shm_socket_listen(address.host, &dead) == GW_OK)
			close(dead);
		pid_t racers[RACERS];
		for (int i = 0; i < RACERS; i++) {
			racers[i] = gw_bed_fork();
			if (racers[i])
				continue;
			char ignored;
			close(start[1]);
			(void)!read(start[0], &ignored, 1);
			char status = (char)gw_shm_socket_listen(address.host, &fd);
			if (write(outcome[1], &status, 1) != 1)
				_exit(1);
			pause();
		}
		close(start[0]);
		close(start[1]); /* starts all of them */
		int winners = 0;
		for (int i = 0; i < RACERS; i++) {
			char status;
			assert_int_equal(read(outcome[0], &status, 1), 1);
			assert_true(status == GW_OK || status == GW_BUSY);
			winners += status == GW_OK;
		}
		assert_int_equal(winners, 1);
		assert_int_equal(gw_shm_dial(&address, &fd), GW_OK);
		close(fd);
		for (int i = 0; i < RACERS; i++) {
			kill(racers[i], SIGKILL);
			assert_int_equal(waitpid(racers[i], NULL, 0), racers[i]);
		}
		close(outcome[0]);
		close(outcome[1]);
		gw_shm_socket_forget(address.host);
	}
}

/* Memory that is not a memfd is not offered, and the reason is reported. */
static void memory_that_cannot_be_shared(void **state)
{
	static uint8_t bytes[4096];
	struct gw_service_identity identity = {.incarnation = 0xabcdef};
	struct gw_address address = {.scheme = "shm"};
	struct gw_poll_group *group = gw_bed_group(*state);
	struct gw_arena_options sealed = {.name = "shared", .numa = GW_NUMA_LOCAL, .shareable = true};
	struct gw_arena *arena;
	assert_int_equal(gw_arena_create(8192, &sealed, &arena), GW_OK);
	for (int way = 0; way < 4; way++) {
		struct gw_service *service;
		struct gw_listener *listener;
		uint32_t id;
		assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
		/* No memory named; not a memfd; a memfd with only a part of the region; all valid. */
		const uint8_t *base = way > 1 ? gw_arena_base(arena) : bytes;
		assert_int_equal(gw_service_expose(service, base + (way == 2 ? 8192 - 100 : 0), 4096, 0, NULL, &id),
				 GW_OK);
		if (way == 1)
			assert_int_equal(gw_service_memory(service, bytes, sizeof(bytes), -1), GW_OK);
		if (way > 1)
			assert_int_equal(gw_service_memory(service, base, 8192, gw_arena_fd(arena)), GW_OK);
		gw_status status = gw_listen(&group, 1, &address, service, &listener);
		assert_int_equal(status, way == 3 ? GW_OK : GW_UNSUPPORTED);
		assert_true(status == GW_OK || strstr(gw_last_error(), "memfd"));
		assert_true(is_there("0000000000abcdef") == (way == 3));
		if (status == GW_OK)
			assert_string_equal(listener->address.host, "0000000000abcdef");
		gw_listener_free(listener);
		gw_service_destroy(service);
	}
	gw_arena_destroy(arena);
	gw_poll_group_destroy(group);
}

/* Another user is refused, even if the folder's mode would admit that user. */
static void another_user(void **state)
{
	int ends[2];
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(gw_shm_admit(ends[0]), GW_OK);
	pid_t child = gw_bed_fork();
	if (child == 0) {
		struct tcp_fd_passing fd_passing = {.out_count = 1};
		struct iovec piece = {"x", 1};
		struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
		int his[2];
		if (setresuid(65534, 65534, 65534) || socketpair(AF_UNIX, SOCK_STREAM, 0, his))
			_exit(1);
		fd_passing.out[0] = his[0];
		gw_tcp_fd_passing_send(&fd_passing, &message);
		_exit(sendmsg(ends[1], &message, 0) == 1 ? 0 : 2);
	}
	int how;
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
	char byte;
	struct tcp_fd_passing fd_passing = {.wanted = true};
	struct iovec piece = {&byte, 1};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	gw_tcp_fd_passing_receive(&fd_passing, &message);
	assert_int_equal(recvmsg(ends[0], &message, MSG_CMSG_CLOEXEC), 1);
	gw_tcp_fd_passing_received(&fd_passing, &message);
	assert_int_equal(fd_passing.in_count, 1);
	assert_int_equal(gw_shm_admit(fd_passing.in[0]), GW_REFUSED);
	assert_non_null(strstr(gw_last_error(), "65534"));
	gw_tcp_fd_passing_end(&fd_passing);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(names)},
		{BED_TEST(one_name_for_many)},
		{BED_TEST(memory_that_cannot_be_shared)},
		{BED_TEST(another_user)},
	};
	cluster_use_own_runtime_folder();
	return gw_bed_run_shm("shm names", tests, sizeof(tests) / sizeof(tests[0]));
}
