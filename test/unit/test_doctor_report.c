/* The doctor's report. Foreign text stays in its field, and is harmless to terminals and parsers. The JSON has the
 * same findings. Short memory is reported. The doctor's files: numbers are read completely, or not at all. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "test/support/alloc_fault.h"
#include "test/support/doctor_host.h"

static char *capture_stdout(void (*print)(void *context), void *context)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	fflush(stdout);
	int before = dup(1);
	assert_true(before >= 0 && dup2(fileno(file), 1) == 1);
	print(context);
	fflush(stdout);
	assert_int_equal(dup2(before, 1), 1);
	close(before);
	long bytes = lseek(fileno(file), 0, SEEK_END);
	char *text = calloc(1, (size_t)bytes + 1);
	assert_int_equal(pread(fileno(file), text, (size_t)bytes, 0), bytes);
	fclose(file);
	return text;
}

static void print_json(void *context)
{
	assert_int_equal(gw_doctor_print_json(context), GW_OK);
}

static void print_text(void *context)
{
	gw_doctor_print(context);
}

static const char *string_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	assert_non_null(text);
	return text;
}

static void json_has_the_findings(void **state)
{
	(void)state;
	static const char *const words[] = {"ok", "note", "warning", "problem"};
	struct gw_doctor doctor = {.section = "one"};
	for (int i = 0; i < 200; i++) {
		struct gw_doctor_finding *finding = gw_doctor_find(&doctor, (unsigned)i % 4, "finding %d", i);
		gw_doctor_value(finding, "a \"value\" \\ of %d", i);
		gw_doctor_value(finding, ", and more");
		gw_doctor_costs(finding, "costs %d", i);
		gw_doctor_fix(finding, "sudo fix '%d'", i);
		if (i % 3 == 0) {
			gw_doctor_figure(finding, "number", i + 0.5);
			gw_doctor_figure(finding, "none", NAN);
		}
	}
	char *text = capture_stdout(print_json, &doctor);
	json_error_t error;
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	assert_non_null(all);
	assert_string_equal(string_of(all, "status"), "problem");
	json_t *findings = json_object_get(all, "findings");
	assert_int_equal(json_array_size(findings), 200);
	for (int i = 0; i < 200; i++) {
		char expected[64];
		const json_t *finding = json_array_get(findings, (size_t)i);
		snprintf(expected, sizeof(expected), "finding %d", i);
		assert_string_equal(string_of(finding, "name"), expected);
		assert_string_equal(string_of(finding, "section"), "one");
		assert_string_equal(string_of(finding, "status"), words[i % 4]);
		snprintf(expected, sizeof(expected), "a \"value\" \\ of %d, and more", i);
		assert_string_equal(string_of(finding, "value"), expected);
		snprintf(expected, sizeof(expected), "sudo fix '%d'", i);
		assert_string_equal(string_of(finding, "fix"), expected);
		const json_t *figures = json_object_get(finding, "figures");
		assert_int_equal(figures != NULL, i % 3 == 0);
		if (figures) {
			assert_true(json_real_value(json_object_get(figures, "number")) == i + 0.5);
			assert_true(json_is_null(json_object_get(figures, "none")));
		}
	}
	json_decref(all);
	free(text);
	gw_doctor_free(&doctor);
}

static void texts_are_cut_and_plain(void **state)
{
	(void)state;
	struct gw_doctor doctor = {0};
	char *big = malloc(100000);
	memset(big, 'x', 99999);
	big[99999] = 0;
	struct gw_doctor_finding *finding = gw_doctor_find(&doctor, GW_DOCTOR_OK, "\x1b[2J%s", big);
	for (int i = 0; i < 3; i++) {
		gw_doctor_value(finding, "\xff\n\t%s", i ? big : "");
		gw_doctor_costs(finding, "%s", big);
		gw_doctor_fix(finding, "%s", big);
	}
	for (int i = 0; i < 3 * GW_DOCTOR_FIGURES_MAX; i++)
		gw_doctor_figure(finding, "figure", i);
	assert_int_equal(strlen(finding->name), sizeof(finding->name) - 1);
	assert_int_equal(strlen(finding->value), GW_DOCTOR_TEXT_MAX - 1);
	assert_int_equal(strlen(finding->costs), GW_DOCTOR_TEXT_MAX - 1);
	assert_memory_equal(finding->name, "?[2Jx", 5);
	assert_memory_equal(finding->value, "??????", 3);
	assert_true(finding->figures[GW_DOCTOR_FIGURES_MAX - 1].value == GW_DOCTOR_FIGURES_MAX - 1);
	char *text = capture_stdout(print_text, &doctor);
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= 0x20 && *c <= 0x7e));
	free(text);
	free(big);
	gw_doctor_free(&doctor);
}

static void a_status_only_gets_worse(void **state)
{
	(void)state;
	struct gw_doctor doctor = {0};
	assert_int_equal(gw_doctor_worst(&doctor), GW_DOCTOR_OK);
	struct gw_doctor_finding *finding = gw_doctor_find(&doctor, GW_DOCTOR_NOTE, "one");
	gw_doctor_raise(finding, GW_DOCTOR_OK);
	assert_int_equal(gw_doctor_worst(&doctor), GW_DOCTOR_NOTE);
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_unread(finding, "/a/file");
	assert_int_equal(gw_doctor_worst(&doctor), GW_DOCTOR_WARNING);
	gw_doctor_find(&doctor, GW_DOCTOR_OK, "two");
	assert_int_equal(gw_doctor_worst(&doctor), GW_DOCTOR_WARNING);
	gw_doctor_free(&doctor);
}

static void findings_have_a_limit(void **state)
{
	(void)state;
	struct gw_doctor doctor = {0};
	for (int i = 0; i < GW_DOCTOR_FINDINGS_MAX + 7; i++)
		gw_doctor_value(gw_doctor_find(&doctor, GW_DOCTOR_OK, "%d", i), "value");
	assert_int_equal(doctor.count, GW_DOCTOR_FINDINGS_MAX);
	assert_int_equal(doctor.left_out, 7);
	assert_string_equal(doctor.findings[GW_DOCTOR_FINDINGS_MAX - 1].name, "4095");
	gw_doctor_free(&doctor);
}

/* Findings for which memory is missing are counted. */
static gw_status check_host(void *context)
{
	struct doctor_host *host = context;
	host->doctor.left_out = 0;
	gw_doctor_host(&host->doctor);
	gw_status status = host->doctor.left_out ? GW_NO_MEMORY : GW_OK;
	gw_doctor_free(&host->doctor);
	return status;
}

static void short_memory_is_reported(void **state)
{
	(void)state;
	struct doctor_host host;
	doctor_host_make(&host);
	assert_true(gw_fault_each(check_host, &host) > 0);
	assert_true(gw_fault_each_from(check_host, &host) > 0);
	doctor_host_end(&host);
}

static void numbers_are_taken_whole(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} rows[] = {
		{"0\n", true, 0},     {"42", true, 42},
		{"-1\n", true, -1},   {"9223372036854775807\n", true, INT64_MAX},
		{"7 \n\n", true, 7},  {"9223372036854775808\n", false, 0},
		{"", false, 0},       {"\n", false, 0},
		{"1x\n", false, 0},   {"1 2\n", false, 0},
		{"x\n", false, 0},    {" 1\n", false, 0},
		{"0x10\n", false, 0}, {"1.5\n", false, 0},
		{"max\n", false, 0},
	};
	struct doctor_host host;
	doctor_host_make(&host);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t value = 99;
		doctor_host_put(&host, "/number", rows[i].text);
		if (gw_doctor_number(&host.doctor, &value, "/%s", "number") != rows[i].good)
			fail_msg("\"%s\"", rows[i].text);
		assert_true(value == (rows[i].good ? rows[i].value : 99));
	}
	int64_t value = 99;
	assert_false(gw_doctor_number(&host.doctor, &value, "/absent"));
	assert_false(gw_doctor_number(&host.doctor, &value, "/proc"));
	assert_false(gw_doctor_number(&host.doctor, &value, "/%05000d", 1)); /* the path is too long */
	doctor_host_end(&host);
}

static void limits_are_rows_of_two(void **state)
{
	(void)state;
	struct doctor_host host;
	uint64_t soft = 1, hard = 2;
	doctor_host_make(&host);
	assert_true(gw_doctor_limit(&host.doctor, "Max open files", &soft, &hard));
	assert_true(soft == 1024 && hard == 524288);
	assert_true(gw_doctor_limit(&host.doctor, "Max address space", &soft, &hard));
	assert_true(soft == UINT64_MAX && hard == UINT64_MAX);
	soft = hard = 5;
	assert_false(gw_doctor_limit(&host.doctor, "Max nothing", &soft, &hard));
	doctor_host_put(&host, "/proc/self/limits", "Max open files  7\nMax locked memory  7 -3\nMax x 7 8");
	assert_false(gw_doctor_limit(&host.doctor, "Max open files", &soft, &hard));
	assert_false(gw_doctor_limit(&host.doctor, "Max locked memory", &soft, &hard));
	assert_true(soft == 5 && hard == 5);
	assert_true(gw_doctor_limit(&host.doctor, "Max x", &soft, &hard));
	assert_true(soft == 7 && hard == 8);
	doctor_host_end(&host);
}

static void words_names_and_links(void **state)
{
	(void)state;
	struct doctor_host host;
	struct gw_doctor_names names;
	char word[GW_DOCTOR_WORD_MAX], path[128];
	doctor_host_make(&host);
	doctor_host_put(&host, "/word", "  two words \nanother line\n");
	assert_true(gw_doctor_word(&host.doctor, word, "/word"));
	assert_string_equal(word, "two words");
	doctor_host_put(&host, "/word", " \n\n");
	assert_false(gw_doctor_word(&host.doctor, word, "/word"));
	assert_true(gw_doctor_self(&host.doctor, "Cpus_allowed_list", word));
	assert_string_equal(word, "0-3");
	assert_false(gw_doctor_self(&host.doctor, "Cpus_allowed", word)); /* a prefix of another field's name */
	for (int i = 11; i > 0; i--) {
		snprintf(path, sizeof(path), "/folder/n%d", i);
		doctor_host_put(&host, path, "");
	}
	doctor_host_put(&host, "/folder/.hidden", "");
	doctor_host_put(&host, "/folder/other", "");
	assert_true(gw_doctor_folder(&host.doctor, "n", &names, "/folder"));
	assert_int_equal(names.count, 11);
	assert_string_equal(names.names[1], "n2"); /* sorted as numbers */
	assert_string_equal(names.names[10], "n11");
	assert_false(gw_doctor_folder(&host.doctor, "", &names, "/absent"));
	assert_int_equal(names.count, 0);
	snprintf(path, sizeof(path), "%s/link", host.root);
	assert_int_equal(symlink("../../bus/drivers/mlx5_core", path), 0);
	assert_true(gw_doctor_link(&host.doctor, word, "/link"));
	assert_string_equal(word, "mlx5_core");
	assert_false(gw_doctor_link(&host.doctor, word, "/folder"));
	doctor_host_end(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_the_findings),    cmocka_unit_test(texts_are_cut_and_plain),
		cmocka_unit_test(a_status_only_gets_worse), cmocka_unit_test(findings_have_a_limit),
		cmocka_unit_test(short_memory_is_reported), cmocka_unit_test(numbers_are_taken_whole),
		cmocka_unit_test(limits_are_rows_of_two),   cmocka_unit_test(words_names_and_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
