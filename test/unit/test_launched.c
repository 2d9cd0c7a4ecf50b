/* The launcher's environment variables: the list of servers, and refused lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/launched.h"
#include "core/files/staging.h"
#include "test/support/alloc_fault.h"
#include "test/support/scratch.h"

struct launched_place {
	char folder[64];
	char file[96];
};

static int set_up(void **state)
{
	struct launched_place *place = calloc(1, sizeof(*place));
	strcpy(place->folder, "/tmp/gw-test-launched-XXXXXX");
	gw_scratch_make(place->folder);
	snprintf(place->file, sizeof(place->file), "%s/ip_config", place->folder);
	unsetenv("GRAPHWIRE_PART_CONFIG");
	unsetenv("GRAPHWIRE_KEY_FILE");
	unsetenv("GRAPHWIRE_TRANSPORT");
	unsetenv("GRAPHWIRE_SPIN_US");
	setenv("GRAPHWIRE_IP_CONFIG", place->file, 1);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct launched_place *place = *state;
	unsetenv("GRAPHWIRE_IP_CONFIG");
	gw_remove_tree(place->folder);
	free(place);
	return 0;
}

static void write_file(const struct launched_place *place, const char *text)
{
	FILE *file = fopen(place->file, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void every_kind_of_line(void **state)
{
	static const char *const expected[] = {"10.0.0.1:30050", "node-2:30051", "[fe80::1]:30052", "[::2]:30050",
					       "10.0.0.5:1"};
	write_file(*state, "10.0.0.1\n# a comment\n\nnode-2 30051 # another\nfe80::1\t30052 4\r\n[::2]\n  10.0.0.5  1");
	struct gw_launched launched;
	assert_true(gw_is_launched());
	assert_int_equal(gw_launched_read(&launched), GW_OK);
	assert_int_equal(launched.server_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_string_equal(launched.servers[i], expected[i]);
	assert_null(launched.key_file);
	gw_launched_free(&launched);
}

static void what_options_name_stays(void **state)
{
	write_file(*state, "h 1\n");
	setenv("GRAPHWIRE_KEY_FILE", "/k", 1);
	setenv("GRAPHWIRE_TRANSPORT", "tcp", 1);
	setenv("GRAPHWIRE_SPIN_US", "50", 1);
	setenv("GRAPHWIRE_PART_CONFIG", "/g.json", 1);
	struct gw_launched launched;
	assert_int_equal(gw_launched_read(&launched), GW_OK);
	struct gw_client_options options = {0}, own = {.key_file = "/mine", .transport = "shm", .spin_us = 7},
				 open = {.insecure = true};
	gw_launched_fill(&launched, &options);
	assert_string_equal(options.key_file, "/k");
	assert_string_equal(options.transport, "tcp");
	assert_int_equal(options.spin_us, 50);
	assert_string_equal(options.part_config, "/g.json");
	assert_int_equal(options.server_count, 1);
	gw_launched_fill(&launched, &own);
	assert_string_equal(own.key_file, "/mine");
	assert_string_equal(own.transport, "shm");
	assert_int_equal(own.spin_us, 7);
	gw_launched_fill(&launched, &open);
	assert_null(open.key_file);
	gw_launched_free(&launched);
	for (const char *const *bad = (const char *const[]){"x", "1000001", "-1", NULL}; *bad; bad++) {
		setenv("GRAPHWIRE_SPIN_US", *bad, 1);
		assert_int_equal(gw_launched_read(&launched), GW_INVALID);
		assert_non_null(strstr(gw_last_error(), "GRAPHWIRE_SPIN_US"));
		gw_launched_free(&launched);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "no server"},
		{"# none\n", "no server"},
		{"h 0\n", ":1: "},
		{"h\nh 65536\n", ":2: "},
		{"h port\n", ":1: "},
		{"h 1 x\n", ":1: "},
		{"h 1 2 3\n", "columns"},
		{"h:1\n", "behind a space: h 1"},
		{"10.0.0.1:30050 2\n", "behind a space: 10.0.0.1 30050"},
		{"[fd00::1]:7\n", "behind a space: [fd00::1] 7"},
	};
	struct gw_launched launched;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_file(*state, cases[i].text);
		assert_int_not_equal(gw_launched_read(&launched), GW_OK);
		assert_non_null(strstr(gw_last_error(), cases[i].says));
		gw_launched_free(&launched);
	}
	/* Bytes after a NUL would not be read. */
	FILE *file = fopen(getenv("GRAPHWIRE_IP_CONFIG"), "w");
	assert_non_null(file);
	assert_int_equal(fwrite("a 1\nb\0c 2\n", 1, 11, file), 11);
	fclose(file);
	assert_int_equal(gw_launched_read(&launched), GW_FORMAT);
	assert_non_null(strstr(gw_last_error(), "NUL"));
	gw_launched_free(&launched);
	char name[400];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	write_file(*state, name);
	assert_int_equal(gw_launched_read(&launched), GW_FORMAT);
	gw_launched_free(&launched);
}

static void what_is_missing_is_named(void **state)
{
	const struct launched_place *place = *state;
	struct gw_launched launched;
	assert_int_equal(gw_launched_read(&launched), GW_NOT_FOUND);
	assert_non_null(strstr(gw_last_error(), place->file));
	gw_launched_free(&launched);
	setenv("GRAPHWIRE_IP_CONFIG", place->folder, 1);
	assert_int_equal(gw_launched_read(&launched), GW_FORMAT);
	gw_launched_free(&launched);
	unsetenv("GRAPHWIRE_IP_CONFIG");
	assert_false(gw_is_launched());
	struct gw_client_options options = {0};
	struct gw_client *client;
	assert_int_equal(gw_client_open(&options, &client), GW_NOT_FOUND);
	assert_null(client);
	assert_non_null(strstr(gw_last_error(), "GRAPHWIRE_IP_CONFIG is not set"));
}

static gw_status read_once(void *context)
{
	struct gw_launched launched;
	(void)context;
	gw_status status = gw_launched_read(&launched);
	gw_launched_free(&launched);
	return status;
}

static void memory_runs_short(void **state)
{
	write_file(*state, "a 1\nb 2\nc 3\n");
	gw_fault_each(read_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_kind_of_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_options_name_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_missing_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_runs_short, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
