/* Addresses of servers: slow names, names with several addresses, IPv6, a taken port. A look-up blocks no caller, may
 * be abandoned at any time, and ends at the connect's deadline. This file replaces the resolver. */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/client/resolve.h"

#define SLOW   "slow.example"   /* 127.0.0.1, once the test releases it */
#define NOBODY "nobody.example" /* an unknown name */
#define LATER  "later.example"  /* a temporary failure */
#define DEAF   "deaf.example"   /* first the deaf port of 127.0.0.1, which never answers, then 127.0.0.1 */

static _Atomic bool held;
static _Atomic uint32_t asked, answered;
static uint16_t deaf_port;

typedef int (*resolver)(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list);

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Replaces the C library's function in this program. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's begin with "__" */
int getaddrinfo(const char *restrict host, const char *restrict port, const struct addrinfo *restrict hints,
		struct addrinfo **restrict list)
{
	resolver real = (resolver)(uintptr_t)dlsym(RTLD_NEXT, "getaddrinfo");
	bool slow = strcmp(host, SLOW) == 0, deaf = strcmp(host, DEAF) == 0;
	int outcome = strcmp(host, NOBODY) == 0 ? EAI_NONAME : strcmp(host, LATER) == 0 ? EAI_AGAIN : 0;
	if ((!slow && !deaf && !outcome) || (hints->ai_flags & AI_NUMERICHOST))
		return real(host, port, hints, list);
	if (outcome)
		return outcome;
	atomic_fetch_add(&asked, 1);
	while (slow && atomic_load(&held))
		pause_ms(1);
	int error = real("127.0.0.1", port, hints, list);
	if (!error && deaf) {
		struct addrinfo *second = *list;
		char first[8];
		snprintf(first, sizeof(first), "%u", deaf_port);
		error = real("127.0.0.1", first, hints, list);
		if (!error)
			(*list)->ai_next = second;
	}
	atomic_fetch_add(&answered, 1);
	return error;
}

static struct gw_endpoint *connect_slow(struct one *one, uint64_t deadline_ms, void *cookie)
{
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	struct gw_endpoint *endpoint;
	strcpy(connect.address.host, SLOW);
	if (deadline_ms)
		connect.deadline_ns = gw_now_ns() + deadline_ms * GW_NS_PER_MS;
	assert_int_equal(gw_endpoint_connect(one->group, &connect, cookie, &endpoint), GW_OK);
	return endpoint;
}

/* Waits until every resolving thread has ended, or nearly. */
static void resolves_end(void)
{
	atomic_store(&held, false);
	for (int i = 0; i < 60000 && atomic_load(&answered) != atomic_load(&asked); i++)
		pause_ms(1);
	assert_int_equal(atomic_load(&answered), atomic_load(&asked));
	pause_ms(20);
}

static void a_look_up_blocks_no_caller(void **state)
{
	struct one one;
	int cookie;
	gw_one_begin(&one, state, NULL, 4096);
	atomic_store(&held, true);
	struct gw_endpoint *slow = connect_slow(&one, 0, &cookie);
	assert_int_equal(slow->state, GW_ENDPOINT_CONNECTING);
	for (int i = 0; i < 100; i++)
		gw_one_read_works(&one);
	gw_one_nothing_more(&one, 20);
	atomic_store(&held, false);
	assert_int_equal(gw_bed_wait(one.group, &cookie).status, GW_OK);
	assert_int_equal(slow->state, GW_ENDPOINT_OPEN);
	gw_endpoint_close(slow);
	resolves_end();
	gw_one_end(&one);
}

/* The status shows whether a name is unknown or the look-up failed for now. */
static void an_unknown_name_is_not_a_lost_peer(void **state)
{
	static const struct {
		const char *host;
		gw_status status;
	} cases[] = {{NOBODY, GW_NOT_FOUND}, {LATER, GW_PEER_LOST}};
	struct one one;
	int cookie;
	gw_one_begin(&one, state, NULL, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gw_connect_options connect = gw_bed_options(&one.bed);
		struct gw_endpoint *endpoint;
		strcpy(connect.address.host, cases[i].host);
		assert_int_equal(gw_endpoint_connect(one.group, &connect, &cookie, &endpoint), GW_OK);
		struct gw_completion completion = gw_bed_wait(one.group, &cookie);
		assert_int_equal(completion.status, cases[i].status);
		assert_non_null(strstr(completion.text, cases[i].host));
		gw_endpoint_close(endpoint);
	}
	gw_one_end(&one);
}

static void a_look_up_is_abandoned(void **state)
{
	struct one one;
	int closed, late, shut;
	gw_one_begin(&one, state, NULL, 4096);
	atomic_store(&held, true);
	gw_endpoint_close(connect_slow(&one, 0, &closed));
	assert_int_equal(gw_bed_wait(one.group, &closed).status, GW_CANCELLED);
	struct gw_endpoint *endpoint = connect_slow(&one, 30, &late);
	struct gw_completion completion = gw_bed_wait(one.group, &late);
	assert_int_equal(completion.status, GW_DEADLINE);
	assert_non_null(strstr(completion.text, SLOW));
	gw_endpoint_close(endpoint);
	/* Destroys the whole group while the thread still asks. */
	connect_slow(&one, 0, &shut);
	gw_one_read_works(&one);
	gw_one_end(&one);
	resolves_end();
}

static void look_ups_are_limited(void **state)
{
	struct one one;
	struct gw_endpoint *endpoints[TCP_RESOLVES_MAX + 1];
	int cookies[TCP_RESOLVES_MAX + 1];
	gw_one_begin(&one, state, NULL, 4096);
	atomic_store(&held, true);
	for (int i = 0; i <= TCP_RESOLVES_MAX; i++)
		endpoints[i] = connect_slow(&one, 0, &cookies[i]);
	assert_int_equal(gw_bed_wait(one.group, &cookies[TCP_RESOLVES_MAX]).status, GW_BUSY);
	gw_one_read_works(&one);
	atomic_store(&held, false);
	for (int open = TCP_RESOLVES_MAX; open > 0;) {
		struct gw_completion completion;
		if (!gw_poll_group_poll(one.group, &completion, 1, 5 * GW_NS_PER_SECOND))
			continue;
		assert_int_equal(completion.status, GW_OK);
		open--;
	}
	for (int i = 0; i <= TCP_RESOLVES_MAX; i++)
		gw_endpoint_close(endpoints[i]);
	resolves_end();
	gw_one_end(&one);
}

/* The first address drops packets. After its share of the time, the next address is tried. */
static void an_address_that_never_answers(void **state)
{
	struct one one;
	struct gw_endpoint *endpoint;
	int fill[4];
	gw_one_begin(&one, state, NULL, 4096);
	int deaf = gw_fake_listen(&deaf_port);
	assert_true(deaf >= 0);
	assert_int_equal(listen(deaf, 0), 0);
	for (int i = 0; i < 4; i++) { /* fills the queue of connections, which no thread accepts */
		struct sockaddr_in to = {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(deaf_port)};
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_true(connect(fill[i], (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS);
	}
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	strcpy(connect.address.host, DEAF);
	gw_status status = GW_DEADLINE; /* a busy machine may need more than its half of six seconds */
	for (uint64_t seconds = 6; status == GW_DEADLINE && seconds < 100; seconds *= 2) {
		connect.deadline_ns = gw_now_ns() + seconds * GW_NS_PER_SECOND;
		status = gw_bed_connect(one.group, &connect, &endpoint);
		gw_endpoint_close(endpoint);
	}
	assert_int_equal(status, GW_OK);
	for (int i = 0; i < 4; i++)
		close(fill[i]);
	close(deaf);
	gw_one_end(&one);
}

static void names(void **state)
{
	struct one one;
	struct gw_endpoint *endpoint;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	/* "localhost" may be ::1 first, where no server listens: the next address is tried. */
	strcpy(connect.address.host, "localhost");
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoint), GW_OK);
	gw_endpoint_close(endpoint);
	gw_one_end(&one);
}

static void ipv6(void **state)
{
	struct bed bed;
	gw_bed_begin(&bed, *state, NULL);
	struct gw_poll_group *group = gw_bed_group(*state), *server = gw_bed_group(*state);
	struct gw_connect_options connect = gw_bed_options(&bed);
	struct gw_address six = {.scheme = "tcp", .host = "::1"};
	struct gw_listener *listener;
	if (gw_listen(&server, 1, &six, bed.service, &listener) == GW_OK) {
		struct gw_endpoint *endpoint;
		connect.address = listener->address;
		assert_int_equal(gw_endpoint_connect(group, &connect, &connect, &endpoint), GW_OK);
		struct gw_completion completion;
		size_t n = 0;
		for (int i = 0; i < 30000 && !n; i++) {
			gw_poll_group_poll(server, NULL, 0, GW_NS_PER_MS);
			n = gw_poll_group_poll(group, &completion, 1, GW_NS_PER_MS);
		}
		assert_int_equal(n, 1);
		assert_int_equal(completion.status, GW_OK);
		gw_endpoint_close(endpoint);
		gw_listener_free(listener);
	} else {
		print_message("no IPv6 here: %s\n", gw_last_error());
	}
	gw_poll_group_destroy(server);
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

static void a_taken_port(void **state)
{
	struct bed bed;
	gw_bed_begin(&bed, *state, NULL);
	struct gw_poll_group *group = gw_bed_group(*state);
	struct gw_listener *listener;
	assert_int_equal(gw_listen(&group, 1, &bed.address, bed.service, &listener), GW_BUSY);
	assert_null(listener);
	char self[32];
	snprintf(self, sizeof(self), "process %d (", getpid());
	assert_non_null(strstr(gw_last_error(), self));
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(a_look_up_blocks_no_caller)},
		{BED_TEST(an_unknown_name_is_not_a_lost_peer)},
		{BED_TEST(a_look_up_is_abandoned)},
		{BED_TEST(look_ups_are_limited)},
		{BED_TEST(an_address_that_never_answers)},
		{BED_TEST(names)},
		{BED_TEST(ipv6)},
		{BED_TEST(a_taken_port)},
	};
	return gw_bed_run_tcp("transport names", tests, sizeof(tests) / sizeof(tests[0]));
}
