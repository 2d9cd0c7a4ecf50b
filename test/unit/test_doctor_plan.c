/* The plan of a part: its arithmetic, its findings, and the rates that it takes from this host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/doctor_host.h"
#include "test/support/scratch.h"

#define IGBH 1100000000000ull /* bytes of a part like MLPerf's IGBH-Full */

static const struct gw_doctor_rates rates = {
	.touch = 2e9, .digest = 5e9, .pin = 50e9, .read = 1e9, .threads = 4, .file = "/parts/feat.npy"};

static void expect_near(double counted, double by_hand)
{
	if (!(counted > by_hand * 0.999999 && counted < by_hand * 1.000001))
		fail_msg("%f, by hand %f", counted, by_hand);
}

static void a_plan_by_hand(void **state)
{
	(void)state;
	struct gw_doctor_plan plan;
	gw_doctor_plan_make(IGBH, &rates, &plan);
	assert_int_equal(plan.pages, 268554688);
	assert_int_equal(plan.translations, 268554688ull * 8);
	assert_int_equal(plan.huge_pages, 524521);
	assert_int_equal(plan.huge_translations, 524521 * 8);
	assert_int_equal(plan.keys, 1025);
	expect_near(plan.touch_s, 137.5);        /* 4 threads */
	expect_near(plan.digest_s, 220.0 / 3.0); /* one thread reads */
	expect_near(plan.read_s, 1100);
	expect_near(plan.pin_s, 22);
	expect_near(plan.load_s, 1237.5);
}

static void the_slower_of_reading_and_digests(void **state)
{
	(void)state;
	struct gw_doctor_plan plan;
	struct gw_doctor_rates fast = rates;
	fast.read = 100e9;
	gw_doctor_plan_make(IGBH, &fast, &plan);
	expect_near(plan.load_s, 137.5 + 220.0 / 3.0);
	fast.read = 0; /* not measured */
	gw_doctor_plan_make(IGBH, &fast, &plan);
	assert_true(plan.read_s == 0);
	expect_near(plan.load_s, 137.5 + 220.0 / 3.0);
	/* One thread reads, and compares digests too. */
	fast = rates;
	fast.threads = 1;
	gw_doctor_plan_make(IGBH, &fast, &plan);
	expect_near(plan.digest_s, 220);
	expect_near(plan.touch_s, 550);
}

static void sizes_at_the_ends(void **state)
{
	(void)state;
	struct gw_doctor_plan plan;
	gw_doctor_plan_make(1, &rates, &plan);
	assert_int_equal(plan.pages, 1);
	assert_int_equal(plan.huge_pages, 1);
	assert_int_equal(plan.keys, 1);
	gw_doctor_plan_make(1ull << 50, &rates, &plan);
	assert_int_equal(plan.pages, 1ull << 38);
	assert_int_equal(plan.huge_pages, 1ull << 29);
	assert_int_equal(plan.keys, 1ull << 20);
	expect_near(plan.read_s, 1125899.906842624);
	gw_doctor_plan_make(IGBH, &(struct gw_doctor_rates){0}, &plan);
	assert_true(plan.load_s == 0 && plan.pin_s == 0);
}

static void the_findings(void **state)
{
	struct doctor_host *host = *state;
	host->doctor.bytes = IGBH;
	host->doctor.rates = &rates;
	const struct gw_doctor_finding *finding = doctor_expect(host, "load time", GW_DOCTOR_OK, "20 min 38 s", NULL);
	doctor_has(finding->value, "reading 18 min 20 s");
	doctor_has(finding->value, "from /parts/feat.npy");
	expect_near(doctor_figure(finding, "load_s"), 1237.5);
	expect_near(doctor_figure(finding, "read_bytes_per_second"), 1e9);
	finding = doctor_expect(host, "registration", GW_DOCTOR_OK, "1025 keys", NULL);
	doctor_has(finding->value, "524521 pages");
	doctor_has(finding->value, "at least 22");
	expect_near(doctor_figure(finding, "pin_s"), 22);

	struct gw_doctor_rates less = rates;
	less.read = less.pin = 0;
	host->doctor.rates = &less;
	doctor_expect(host, "load time", GW_DOCTOR_NOTE, "reading is not measured", "--read FILE");
	doctor_expect(host, "registration", GW_DOCTOR_NOTE, "mlock is refused", NULL);
	host->doctor.bytes = 0;
	doctor_host_check(host);
	for (uint32_t i = 0; i < host->doctor.count; i++)
		assert_string_not_equal(host->doctor.findings[i].name, "load time");
}

static void the_rates_of_this_host(void **state)
{
	(void)state;
	struct gw_doctor_rates measured;
	char folder[] = "/tmp/gw-test-plan-XXXXXX", path[64], text[1000];
	gw_scratch_make(folder);
	snprintf(path, sizeof(path), "%s/part", folder);
	assert_int_equal(gw_doctor_rates_measure(&measured, 3, NULL), GW_OK);
	assert_true(measured.touch > 0 && measured.digest > 0 && measured.read == 0);
	assert_int_equal(measured.threads, 3);
	assert_int_equal(gw_doctor_rates_measure(&measured, 3, path), GW_IO);
	doctor_has(gw_last_error(), "No such file");
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(gw_doctor_rates_measure(&measured, 3, path), GW_INVALID);
	doctor_has(gw_last_error(), "is empty");
	assert_int_equal(gw_doctor_rates_measure(&measured, 3, folder), GW_IO);
	file = fopen(path, "w");
	assert_non_null(file);
	memset(text, 7, sizeof(text));
	assert_int_equal(fwrite(text, 1, sizeof(text), file), sizeof(text));
	assert_int_equal(fclose(file), 0);
	assert_int_equal(gw_doctor_rates_measure(&measured, 3, path), GW_OK);
	assert_true(measured.read > 0);
	assert_string_equal(measured.file, path);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_by_hand),         cmocka_unit_test(the_slower_of_reading_and_digests),
		cmocka_unit_test(sizes_at_the_ends),      DOCTOR_TEST(the_findings),
		cmocka_unit_test(the_rates_of_this_host),
	};
	return cmocka_run_group_tests_name("the doctor's plan", tests, NULL, NULL);
}
