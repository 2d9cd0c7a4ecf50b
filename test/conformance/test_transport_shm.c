/* Mapped memory between processes that do not trust each other. A client can read its mapping and can change nothing,
 * by any system call. A client survives servers that send the wrong memory. A server survives clients that fault, die,
 * lie, or send descriptors.
 *
 * Servers run in separate processes, so that this one has no threads and may fork clients. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/cluster.h"
#include "test/support/transport_bed.h"
#include "transport/shm/shm.h"

#define BYTES (4u << 20)

/* --- A server in a separate process. --- */

struct served {
	pid_t pid;
	int ask, answer; /* pipes: 's' requests a struct told; 't' tries to truncate first */
	struct gw_address address;
};

struct told {
	uint64_t connections_open;
	uint32_t descriptors;
	bool truncated;
};

static uint32_t count_descriptors(void)
{
	uint32_t count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void serve(const struct bed_kind *kind, enum gw_huge_policy huge, int asked, int answers)
{
	struct bed bed;
	struct bed_options options = {.bytes = BYTES, .huge = huge};
	char question;
	gw_bed_begin(&bed, kind, &options);
	if (write(answers, &bed.address, sizeof(bed.address)) != sizeof(bed.address))
		_exit(1);
	while (read(asked, &question, 1) == 1) {
		struct gw_service_counters counters;
		gw_service_counters(bed.service, &counters);
		struct told told = {.connections_open = counters.connections_open, .descriptors = count_descriptors()};
		if (question == 't')
			told.truncated = ftruncate(gw_arena_fd(bed.arena), 0) == 0;
		if (write(answers, &told, sizeof(told)) != sizeof(told))
			break;
	}
	gw_bed_end(&bed);
	_exit(0);
}

static void served_begin(struct served *served, const struct bed_kind *kind, enum gw_huge_policy huge)
{
	int ask[2], answer[2];
	assert_int_equal(pipe2(ask, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	served->pid = gw_bed_fork();
	if (served->pid == 0) {
		close(ask[1]);
		close(answer[0]);
		serve(kind, huge, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	served->ask = ask[1];
	served->answer = answer[0];
	assert_int_equal(read(served->answer, &served->address, sizeof(served->address)), sizeof(served->address));
}

static struct told served_ask(struct served *served, char question)
{
	struct told told;
	assert_int_equal(write(served->ask, &question, 1), 1);
	assert_int_equal(read(served->answer, &told, sizeof(told)), sizeof(told));
	return told;
}

static void served_end(struct served *served)
{
	int how;
	close(served->ask);
	assert_int_equal(waitpid(served->pid, &how, 0), served->pid);
	close(served->answer);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

/* --- A handwritten client, which keeps the descriptor. --- */

static bool receive_all(int fd, void *out, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t more = recv(fd, (uint8_t *)out + got, n - got, 0);
		if (more <= 0)
			return false;
		got += (size_t)more;
	}
	return true;
}

static void send_frame(int fd, uint8_t type, const void *body, uint32_t bytes)
{
	struct wire_header header = {.bytes = bytes, .type = type};
	assert_int_equal(send(fd, &header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
	assert_int_equal(send(fd, body, bytes, MSG_NOSIGNAL), bytes);
}

/* Returns the socket; *memory: the descriptor that arrived after the welcome. */
static int connect_by_hand(const struct gw_address *address, int *memory)
{
	struct wire_header header;
	struct wire_challenge challenge;
	struct wire_hello hello = {.versions = WIRE_VERSIONS};
	uint8_t proof[WIRE_PROOF_BYTES] = {0}, bytes[8192];
	int fd;
	assert_int_equal(gw_shm_dial(address, &fd), GW_OK);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	send_frame(fd, WIRE_HELLO, &hello, sizeof(hello));
	assert_true(receive_all(fd, &header, sizeof(header)) && header.type == WIRE_CHALLENGE);
	assert_true(receive_all(fd, &challenge, sizeof(challenge)));
	send_frame(fd, WIRE_PROOF, proof, sizeof(proof));
	struct tcp_fd_passing fd_passing = {.wanted = true};
	struct iovec piece = {bytes, sizeof(bytes)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	assert_true(gw_tcp_fd_passing_receive(&fd_passing, &message));
	assert_true(recvmsg(fd, &message, MSG_CMSG_CLOEXEC) > 0);
	gw_tcp_fd_passing_received(&fd_passing, &message);
	assert_int_equal(fd_passing.in_count, 1);
	*memory = fd_passing.in[0];
	return fd;
}

static void is_as_served(const uint8_t *memory)
{
	for (uint64_t i = 0; i < BYTES; i += 8) {
		uint64_t word = gw_mix64(i);
		assert_memory_equal(memory + i, &word, 8);
	}
}

/* --- No call can write. --- */

static void no_call_changes(int fd)
{
	static uint8_t bytes[4096];
	uint64_t whole = BYTES;
	struct iovec piece = {bytes, sizeof(bytes)};
	assert_ptr_equal(mmap(NULL, BYTES, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_ptr_equal(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	uint8_t *mapped = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED) {
		assert_int_not_equal(mprotect(mapped, BYTES, PROT_READ | PROT_WRITE), 0);
		assert_int_not_equal(mprotect(mapped, BYTES, PROT_WRITE), 0);
		assert_int_not_equal(madvise(mapped, BYTES, MADV_REMOVE), 0);
		munmap(mapped, BYTES);
	}
	assert_true(write(fd, bytes, 1) < 0);
	assert_true(pwrite(fd, bytes, sizeof(bytes), 4096) < 0);
	assert_true(pwritev(fd, &piece, 1, 0) < 0);
	assert_int_not_equal(ftruncate(fd, 0), 0);
	assert_int_not_equal(ftruncate(fd, 4096), 0);
	assert_int_not_equal(ftruncate(fd, 64 << 20), 0);
	assert_int_not_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)whole), 0);
	assert_int_not_equal(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096), 0);
	assert_int_not_equal(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 2 << 20), 0);
	assert_int_not_equal(fallocate(fd, 0, 0, 64 << 20), 0);
	assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_true(sendfile(fd, zeros, NULL, 4096) < 0);
	assert_true(splice(zeros, NULL, fd, NULL, 4096, 0) < 0);
	close(zeros);
}

static void no_call_writes_to(void **state, enum gw_huge_policy huge)
{
	struct served served;
	char path[64];
	int memory;
	served_begin(&served, *state, huge);
	int fd = connect_by_hand(&served.address, &memory);
	assert_int_equal(fcntl(memory, F_GETFL) & O_ACCMODE, O_RDONLY);
	no_call_changes(memory);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	assert_int_not_equal(truncate(path, 0), 0);
	/* The descriptor may be opened again, also for writing: the seals still forbid changes. */
	static const int ways[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_APPEND, O_RDWR | O_TRUNC, O_WRONLY | O_TRUNC};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int again = open(path, ways[i] | O_CLOEXEC);
		if (again < 0)
			continue;
		no_call_changes(again);
		close(again);
	}
	snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)getpid(), memory);
	int other = open(path, O_RDWR | O_CLOEXEC);
	if (other >= 0)
		no_call_changes(other);
	close(other);
	uint8_t *mapped = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, memory, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	is_as_served(mapped);
	/* A private copy is the client's own. */
	uint8_t *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory, 0);
	if (own != MAP_FAILED) {
		own[0] ^= 1;
		own[BYTES - 1] ^= 1;
		munmap(own, BYTES);
	}
	is_as_served(mapped);
	munmap(mapped, BYTES);
	close(memory);
	close(fd);
	served_end(&served);
}

/* hugetlb pages if the machine has some, else collapsed shared memory; and small pages. */
static void no_process_can_write(void **state)
{
	no_call_writes_to(state, GW_HUGE_TRY);
	no_call_writes_to(state, GW_HUGE_OFF);
}

/* --- A client of the library. --- */

struct reader {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint8_t *landing;
	uint64_t bytes;
};

static gw_status reader_begin(struct reader *reader, const struct bed_kind *kind, const struct gw_address *address,
			      uint64_t bytes)
{
	struct gw_connect_options options = {.address = *address, .deadline_ns = gw_deadline_ns(60000)};
	reader->group = gw_bed_group(kind);
	reader->bytes = bytes;
	reader->landing = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(reader->landing, MAP_FAILED);
	assert_int_equal(gw_buffer_register(reader->group, reader->landing, bytes, &reader->buffer), GW_OK);
	return gw_bed_connect(reader->group, &options, &reader->endpoint);
}

static void reader_end(struct reader *reader)
{
	gw_endpoint_close(reader->endpoint);
	gw_buffer_release(reader->buffer);
	gw_poll_group_destroy(reader->group);
	munmap(reader->landing, reader->bytes);
}

static gw_status reader_read(struct reader *reader)
{
	struct gw_span span = {0, 0, BYTES};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(reader->endpoint, &set, &reader->endpoint->peer.regions[0], reader->buffer, &span, 1);
	struct gw_completion completion = gw_bed_wait(reader->group, &set);
	return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
}

static void reader_works(struct reader *reader)
{
	memset(reader->landing, 0, BYTES);
	assert_int_equal(reader_read(reader), GW_OK);
	is_as_served(reader->landing);
	assert_int_equal(gw_endpoint_request(reader->endpoint, BED_OP_ECHO, 0, "abc", 3, GW_NO_DEADLINE, reader),
			 GW_OK);
	assert_int_equal(gw_bed_wait(reader->group, reader).status, GW_OK);
}

/* The library's mapping is not writable either, and no server can truncate it. */
static void mappings_are_safe(void **state)
{
	struct served served;
	struct reader reader;
	served_begin(&served, *state, GW_HUGE_TRY);
	assert_int_equal(reader_begin(&reader, *state, &served.address, BYTES), GW_OK);
	uint8_t *mapped = (uint8_t *)(uintptr_t)gw_endpoint_map(reader.endpoint, &reader.endpoint->peer.regions[0]);
	assert_non_null(mapped);
	assert_int_not_equal(mprotect(mapped, BYTES, PROT_READ | PROT_WRITE), 0);
	assert_int_not_equal(madvise(mapped, BYTES, MADV_REMOVE), 0);
	assert_false(served_ask(&served, 't').truncated);
	is_as_served(mapped);
	reader_works(&reader);
	/* Endpoints share a mapping, which exists until the last of them closes. */
	struct reader other;
	assert_int_equal(reader_begin(&other, *state, &served.address, BYTES), GW_OK);
	assert_ptr_equal(gw_endpoint_map(other.endpoint, &other.endpoint->peer.regions[0]), mapped);
	reader_end(&reader);
	is_as_served(mapped);
	reader_works(&other);
	reader_end(&other);
	served_end(&served);
}

/* --- Servers that send wrong memory. --- */

enum lie { HONEST, UNSEALED, HALF_SEALED, SHORT, PIPE, ON_DISK, NONE, TWO, MANY, LIES };

static int make_memory(enum lie lie, uint64_t bytes)
{
	if (lie == PIPE) {
		int ends[2];
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		close(ends[1]);
		return ends[0];
	}
	if (lie == ON_DISK)
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, (off_t)(lie == SHORT ? bytes / 2 : bytes)), 0);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	if (lie != UNSEALED)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, lie == HALF_SEALED ? seals & ~F_SEAL_SHRINK : seals), 0);
	return fd;
}

/* Serves one connection: the hello, then memory that differs from the announcement. */
static void lie_to(int listener, enum lie lie)
{
	struct wire_header header;
	struct wire_hello hello;
	uint8_t proof[WIRE_PROOF_BYTES];
	struct wire_challenge challenge = {.versions = WIRE_VERSIONS};
	struct {
		struct wire_welcome head;
		struct wire_region region;
	} welcome = {.head = {.region_count = 1, .requests_max = 1}, .region = {.bytes = 1 << 16}};
	struct {
		struct wire_header header;
		struct wire_memory head;
		uint64_t bytes;
		struct wire_place place;
	} told = {{.bytes = sizeof(told) - sizeof(told.header), .type = WIRE_MEMORY}, {1, 1}, 1 << 16, {0}};
	struct pollfd ready = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 60000), 1);
	int fd = accept(listener, NULL, NULL);
	assert_true(receive_all(fd, &header, sizeof(header)) && receive_all(fd, &hello, sizeof(hello)));
	send_frame(fd, WIRE_CHALLENGE, &challenge, sizeof(challenge));
	assert_true(receive_all(fd, &header, sizeof(header)) && receive_all(fd, proof, sizeof(proof)));
	send_frame(fd, WIRE_WELCOME, &welcome, sizeof(welcome));
	struct tcp_fd_passing fd_passing = {.out_count = lie == NONE   ? 0
							 : lie == TWO  ? 2
							 : lie == MANY ? TCP_PASSED_MAX
								       : 1};
	for (uint32_t i = 0; i < fd_passing.out_count; i++)
		fd_passing.out[i] = make_memory(lie, 1 << 16);
	struct iovec piece = {&told, sizeof(told)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	gw_tcp_fd_passing_send(&fd_passing, &message);
	assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), sizeof(told));
	char ignored;
	(void)!read(fd, &ignored, 1); /* until the client leaves */
	_exit(0);
}

static void lying_servers(void **state)
{
	for (enum lie lie = HONEST; lie < LIES; lie++) {
		struct gw_address address = {.scheme = "shm"};
		struct reader reader;
		int listener;
		gw_bed_name(*state, &address);
		assert_int_equal(gw_shm_socket_listen(address.host, &listener), GW_OK);
		pid_t child = gw_bed_fork();
		if (child == 0)
			lie_to(listener, lie);
		close(listener);
		uint32_t before = count_descriptors();
		gw_status status = reader_begin(&reader, *state, &address, 1 << 16);
		if (status != (lie == HONEST ? GW_OK : GW_PROTOCOL))
			fail_msg("lie %d: %s: %s", lie, gw_status_text(status), status != GW_OK ? gw_last_error() : "");
		reader_end(&reader);
		assert_int_equal(count_descriptors(), before);
		gw_shm_socket_forget(address.host);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

/* --- Clients that fail. --- */

static void no_core(void)
{
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

/* Faults in the middle of a read: the second half of the destination is not mapped. */
static void fault(const struct bed_kind *kind, const struct gw_address *address)
{
	struct reader reader;
	no_core();
	if (reader_begin(&reader, kind, address, BYTES))
		_exit(2);
	if (gw_endpoint_request(reader.endpoint, BED_OP_SLOW, 0, "\x14\0\0", 4, GW_NO_DEADLINE, &reader))
		_exit(3);
	mprotect(reader.landing + BYTES / 2, BYTES / 2, PROT_NONE);
	reader_read(&reader);
	_exit(0);
}

static void die(const struct bed_kind *kind, const struct gw_address *address)
{
	struct reader reader;
	if (reader_begin(&reader, kind, address, BYTES) || reader_read(&reader))
		_exit(2);
	kill(getpid(), SIGKILL);
}

static void rave(const struct bed_kind *kind, const struct gw_address *address)
{
	(void)kind;
	int memory, fd = connect_by_hand(address, &memory);
	struct wire_header ping = {.type = WIRE_PING, .tag = 1};
	struct tcp_fd_passing fd_passing = {.out_count = TCP_PASSED_MAX};
	for (uint32_t i = 0; i < TCP_PASSED_MAX; i++)
		fd_passing.out[i] = memory;
	for (int i = 0; i < 100; i++) { /* between valid frames */
		struct iovec piece = {&ping, sizeof(ping)};
		struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
		gw_tcp_fd_passing_send(&fd_passing, &message);
		if (sendmsg(fd, &message, MSG_NOSIGNAL) != sizeof(ping) || !receive_all(fd, &ping, sizeof(ping)))
			_exit(2);
		ping.type = WIRE_PING;
	}
	uint64_t garbage[512];
	/* The server reads for a while, so that its ERROR frame arrives, and then closes. */
	uint64_t end = gw_deadline_ns(100000);
	for (uint64_t word = 0; gw_now_ns() < end;) {
		for (uint64_t i = 0; i < 512; i++)
			garbage[i] = gw_mix64(word++);
		if (send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL) <= 0)
			_exit(0);
	}
	_exit(3);
}

static void clients_that_fail(void **state)
{
	static void (*const failures[])(const struct bed_kind *, const struct gw_address *) = {fault, die, rave};
	struct served served;
	struct reader reader;
	served_begin(&served, *state, GW_HUGE_TRY);
	assert_int_equal(reader_begin(&reader, *state, &served.address, BYTES), GW_OK);
	reader_works(&reader);
	uint32_t before = served_ask(&served, 's').descriptors;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++) {
			pid_t child = gw_bed_fork();
			if (child == 0)
				failures[i](*state, &served.address);
			int how;
			reader_works(&reader); /* a well-behaved reader is served meanwhile */
			assert_int_equal(waitpid(child, &how, 0), child);
			if (i == 0)
				assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV);
			else if (i == 1)
				assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
			else
				assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
			reader_works(&reader);
		}
	}
	struct told told = {.connections_open = 9};
	for (int i = 0; i < 6000 && (told.connections_open != 1 || told.descriptors != before); i++) {
		told = served_ask(&served, 's');
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	assert_int_equal(told.connections_open, 1);
	assert_int_equal(told.descriptors, before);
	reader_works(&reader);
	reader_end(&reader);
	served_end(&served);
}

/* --- A server that is killed. --- */

static void a_killed_server_is_missed(void **state)
{
	struct served served;
	struct reader reader;
	int how;
	served_begin(&served, *state, GW_HUGE_TRY);
	assert_int_equal(reader_begin(&reader, *state, &served.address, BYTES), GW_OK);
	reader_works(&reader);
	const uint8_t *mapped = gw_endpoint_map(reader.endpoint, &reader.endpoint->peer.regions[0]);
	kill(served.pid, SIGKILL);
	assert_int_equal(waitpid(served.pid, &how, 0), served.pid);
	/* A client that only reads cannot do it either. */
	gw_status status = GW_OK;
	for (uint64_t end = gw_deadline_ns(60000); status == GW_OK && gw_now_ns() < end;)
		status = reader_read(&reader);
	assert_int_equal(status, GW_PEER_LOST);
	assert_int_equal(reader.endpoint->state, GW_ENDPOINT_LOST);
	is_as_served(mapped); /* readable until it is closed */
	/* The server's name has no listener, and is free. */
	struct gw_connect_options options = {.address = served.address, .deadline_ns = gw_deadline_ns(60000)};
	struct gw_endpoint *nobody;
	assert_int_equal(gw_bed_connect(reader.group, &options, &nobody), GW_PEER_LOST);
	gw_endpoint_close(nobody);
	reader_end(&reader);
	close(served.ask);
	close(served.answer);
	int again;
	assert_int_equal(gw_shm_socket_listen(served.address.host, &again), GW_OK);
	gw_shm_socket_forget(served.address.host);
	close(again);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(no_process_can_write)}, {BED_TEST(mappings_are_safe)},         {BED_TEST(lying_servers)},
		{BED_TEST(clients_that_fail)},    {BED_TEST(a_killed_server_is_missed)},
	};
	cluster_use_own_runtime_folder();
	return gw_bed_run_shm("shm", tests, sizeof(tests) / sizeof(tests[0]));
}
