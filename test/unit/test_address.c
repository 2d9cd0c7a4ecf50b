/* Addresses: parsing gives the intended address, printed addresses parse to the same address, and text with two
 * readings or with no reading is refused with the text in the error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "transport/address.h"

struct good {
	const char *text, *scheme, *host;
	uint16_t port;
	const char *printed;
};

static const struct good goods[] = {
	{"host", "tcp", "host", 30050, "host:30050"},
	{"host:1", "tcp", "host", 1, "host:1"},
	{"host:0", "tcp", "host", 0, "host:0"},
	{"host:65535", "tcp", "host", 65535, "host:65535"},
	{"host:00080", "tcp", "host", 80, "host:80"},
	{"node-7.rack_2.example.org:9000", "tcp", "node-7.rack_2.example.org", 9000, "node-7.rack_2.example.org:9000"},
	{"10.1.2.3", "tcp", "10.1.2.3", 30050, "10.1.2.3:30050"},
	{"10.1.2.3:80", "tcp", "10.1.2.3", 80, "10.1.2.3:80"},
	{"[::1]", "tcp", "::1", 30050, "[::1]:30050"},
	{"[::1]:80", "tcp", "::1", 80, "[::1]:80"},
	{"[::]:0", "tcp", "::", 0, "[::]:0"},
	{"[fe80::1%eth0]:7", "tcp", "fe80::1%eth0", 7, "[fe80::1%eth0]:7"},
	{"[::ffff:10.1.2.3]:7", "tcp", "::ffff:10.1.2.3", 7, "[::ffff:10.1.2.3]:7"},
	{"tcp:host:5", "tcp", "host", 5, "host:5"},
	{"tcp://host:5", "tcp", "host", 5, "host:5"},
	{"tcp:[::1]:5", "tcp", "::1", 5, "[::1]:5"},
	{"tcp", "tcp", "tcp", 30050, "tcp:30050"},
	{"verbs:host:5", "verbs", "host", 5, "verbs:host:5"},
	{"verbs:[::1]", "verbs", "::1", 30050, "verbs:[::1]:30050"},
	{"shm:host", "shm", "host", 0, "shm:host"},
	{"shm://0123456789abcdef", "shm", "0123456789abcdef", 0, "shm:0123456789abcdef"},
	{"shm:a.b-c_9", "shm", "a.b-c_9", 0, "shm:a.b-c_9"},
	{"memory:a", "memory", "a", 0, "memory:a"},
	{"memory://a", "memory", "a", 0, "memory:a"},
	{"memory:a:5", "memory", "a:5", 0, "memory:a:5"},
	{"memory", "tcp", "memory", 30050, "memory:30050"},
};

static void are_read_and_printed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		struct gw_address address, again;
		char printed[GW_ADDRESS_MAX];
		assert_int_equal(gw_address_parse(goods[i].text, &address), GW_OK);
		assert_string_equal(address.scheme, goods[i].scheme);
		assert_string_equal(address.host, goods[i].host);
		assert_int_equal(address.port, goods[i].port);
		assert_ptr_equal(gw_address_text(&address, printed), printed);
		assert_string_equal(printed, goods[i].printed);
		/* A host named like a scheme can be written only with a scheme before it. */
		if (strcmp(address.host, "tcp") == 0 || strcmp(address.host, "memory") == 0)
			continue;
		assert_int_equal(gw_address_parse(printed, &again), GW_OK);
		assert_string_equal(again.scheme, address.scheme);
		assert_string_equal(again.host, address.host);
		assert_int_equal(again.port, address.port);
	}
}

static void malformed_ones_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		":",
		":80",
		"host:",
		"host:http",
		"host:-1",
		"host:+1",
		"host: 1",
		"host:1 ",
		"host:0x50",
		"host:65536",
		"host:99999",
		"host:000080",
		"host:18446744073709551697",
		"::1",
		"::1:80",
		"fe80::1",
		"a:b:c",
		"host:1:2",
		"[",
		"[]",
		"[]:80",
		"[::1",
		"[::1:80",
		"[host]:80",
		"[10.1.2.3]:80",
		"[::1]80",
		"[::1]:",
		"[::1]:x",
		"[::1]:80:90",
		"[[::1]]:80",
		"x[::1]:80",
		"::1]:80",
		"host]:80",
		"ho st:80",
		" host:80",
		"host/path",
		"host\n:80",
		"shm:",
		"shm:/etc/passwd",
		"shm:../x",
		"shm:a/b",
		"shm:a b",
		"shm:a:5",
		"shm:01234567890123456789012345678901234567890123456789012345678901234",
		"h\xc3\xb6st",
		"user@host:80",
		"http://host",
		"tcp:",
		"tcp://",
		"tcp::80",
		"tcp:///host",
		"tcp:tcp:host:1",
		"80",
		"tcp:80",
		"tcp:80:90",
		"tcp://host:80x",
		"[:]",
		"[1:2]:80",
		"[::zz]",
		"[::1%]:80",
		"[fe80::1::2]",
		"[1:2:3:4:5:6:7:8:9]",
		"memory:",
		"memory://",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gw_address address;
		if (gw_address_parse(bad[i], &address) != GW_INVALID)
			fail_msg("\"%s\" is not refused", bad[i]);
		assert_null(strchr(gw_last_error(), '\n'));
		if (strchr(bad[i], '\n'))
			continue;
		char quoted[80];
		snprintf(quoted, sizeof(quoted), "\"%s\"", bad[i]);
		assert_non_null(strstr(gw_last_error(), quoted));
	}
}

static void length_is_limited(void **state)
{
	struct gw_address address, again;
	char text[600], printed[GW_ADDRESS_MAX];
	static const char *const forms[][2] = {
		{"h", ":65535"}, {"verbs:h", ":1"}, {"[::1%", "]:65535"}, {"memory:", ""}};
	(void)state;
	for (size_t f = 0; f < 4; f++) {
		size_t fixed = f == 2 ? 4 : f < 2; /* bytes besides the host's */
		for (size_t n = 250; n < 500; n++) {
			snprintf(text, sizeof(text), "%s%0*d%s", forms[f][0], (int)(n - fixed), 1, forms[f][1]);
			gw_status status = gw_address_parse(text, &address);
			assert_int_equal(status, n < sizeof(address.host) ? GW_OK : GW_INVALID);
			if (status != GW_OK)
				continue;
			assert_int_equal(strlen(address.host), n);
			assert_string_equal(gw_address_text(&address, printed), text);
			assert_int_equal(gw_address_parse(printed, &again), GW_OK);
		}
	}
}

static void loopback(void **state)
{
	static const char *const local[] = {"127.0.0.1", "127.0.0.1:80", "127.9.8.7",     "[::1]:80",
					    "localhost", "LocalHost:1",  "tcp:127.0.0.1", "memory:example.org"};
	static const char *const remote[] = {"128.0.0.1", "10.0.0.1",    "0.0.0.0",           "[::]",
					     "[::2]",     "1.127.0.0.1", "127.0.0.1.example", "127.example",
					     "12.7.0.1",  "1270.0.0.1",  "localhost.example", "alocalhost",
					     "[::1:1]"};
	struct gw_address address;
	(void)state;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		assert_int_equal(gw_address_parse(local[i], &address), GW_OK);
		assert_true(gw_address_is_loopback(&address));
	}
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
		assert_int_equal(gw_address_parse(remote[i], &address), GW_OK);
		assert_false(gw_address_is_loopback(&address));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_read_and_printed),
		cmocka_unit_test(malformed_ones_are_refused),
		cmocka_unit_test(length_is_limited),
		cmocka_unit_test(loopback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
