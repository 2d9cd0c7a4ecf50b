/* The exporter of a server in each phase: it answers before the part is there, and until the server ends. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "metrics/exporter.h"
#include "server/server.h"
#include "test/support/must.h"

static struct gw_graph_meta meta = {.graph_name = "named", .graph_id = 0x1234, .num_parts = 2};
static char answer[64 << 10];

/* The answer to a request, as far as the server sends it: to the end of the stream. */
static void ask(const struct gw_server *server, const char *request)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(server->options.metrics_at.port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	size_t used = 0;
	for (ssize_t got; (got = recv(fd, answer + used, sizeof(answer) - 1 - used, 0)) > 0;)
		used += (size_t)got;
	answer[used] = '\0';
	close(fd);
}

static void answers(const struct gw_server *server, const char *path, const char *status, const char *text)
{
	char request[128];
	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
	ask(server, request);
	assert_memory_equal(answer, status, strlen(status));
	if (!strstr(answer, text))
		fail_msg("\"%s\" is not in %s", text, answer);
}

static void each_phase_answers(void **state)
{
	(void)state;
	struct gw_server server = {.meta = &meta, .options = {.part = 1, .metrics = true, .threads = 3}};
	must(gw_exporter_address("0", &server.options.metrics_at));
	must(gw_server_metrics_start(&server));
	assert_int_not_equal(server.options.metrics_at.port, 0);
	answers(&server, "/healthz", "HTTP/1.1 200 OK", "\r\n\r\nalive\n");
	answers(&server, "/readyz", "HTTP/1.1 503 Service Unavailable", "\r\n\r\nloading\n");
	answers(&server, "/metrics", "HTTP/1.1 200 OK", "\ngraphwire_ready 0\n");
	assert_non_null(strstr(answer, "graph=\"named\",graph_id=\"0000000000001234\",part=\"1\",parts=\"2\""));
	assert_non_null(strstr(answer, "\ngraphwire_threads 3\n"));
	assert_non_null(strstr(answer, "\ngraphwire_connections 0\n"));
	atomic_store(&server.serving, true);
	answers(&server, "/readyz", "HTTP/1.1 200 OK", "\r\n\r\nready\n");
	atomic_store(&server.stop_accepting, true);
	answers(&server, "/readyz", "HTTP/1.1 503 Service Unavailable", "\r\n\r\ndraining\n");
	answers(&server, "/healthz", "HTTP/1.1 200 OK", "\r\n\r\nalive\n");
	gw_exporter_stop(server.exporter);
}

static void requests_are_understood_or_refused(void **state)
{
	(void)state;
	static const struct {
		const char *request, *status;
	} cases[] = {
		{"GET /healthz HTTP/1.0\r\n\r\n", "200"},
		{"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
		{"GET /healthz HTTP/1.1\nhost:a\n\n", "200"},
		{"GET http://a:1/healthz?x=y HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
		{"GET /healthz HTTP/1.1\r\n\r\n", "400"}, /* no host */
		{"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\nHost: a\r\n folded: a\r\n\r\n", "400"},
		{"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", "505"},
		{"GET healthz HTTP/1.0\r\n\r\n", "400"},
		{"GET  /healthz HTTP/1.0\r\n\r\n", "400"},
		{"GET /healthz\r\n\r\n", "400"},
		{"\r\n\r\n", "400"},
		{"GET /health\x01z HTTP/1.0\r\n\r\n", "400"},
		{"GET /nowhere HTTP/1.0\r\n\r\n", "404"},
		{"GET * HTTP/1.0\r\n\r\n", "404"},
		{"PUT /healthz HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "405"},
		{"get /healthz HTTP/1.0\r\n\r\n", "405"},
	};
	struct gw_server server = {.meta = &meta, .options = {.metrics = true}};
	must(gw_exporter_address("127.0.0.1:0", &server.options.metrics_at));
	must(gw_server_metrics_start(&server));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ask(&server, cases[i].request);
		if (strncmp(answer + strlen("HTTP/1.1 "), cases[i].status, 3) != 0)
			fail_msg("%s is answered by %.60s, not %s", cases[i].request, answer, cases[i].status);
	}
	gw_exporter_stop(server.exporter);
}

static void a_taken_port_names_its_holder(void **state)
{
	(void)state;
	struct gw_server first = {.meta = &meta, .options = {.metrics = true}}, second = first;
	must(gw_exporter_address("0", &first.options.metrics_at));
	must(gw_server_metrics_start(&first));
	second.options.metrics_at = first.options.metrics_at;
	assert_int_equal(gw_server_metrics_start(&second), GW_BUSY);
	assert_non_null(strstr(gw_last_error(), "--metrics"));
	assert_non_null(strstr(gw_last_error(), "is taken by"));
	assert_null(second.exporter);
	gw_exporter_stop(first.exporter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_phase_answers),
		cmocka_unit_test(requests_are_understood_or_refused),
		cmocka_unit_test(a_taken_port_names_its_holder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
