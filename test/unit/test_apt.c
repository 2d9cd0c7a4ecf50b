/* The package graph: relations are resolved as documented, and the label can be found nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/chi_square.h"
#include "test/support/import_bed.h"
#include "tools/import/apt.h"

static char input[300], out[300];

static int begin(void **state)
{
	import_bed_set_up(state);
	snprintf(input, sizeof(input), "%s/dump", import_bed.root);
	snprintf(out, sizeof(out), "%s", import_bed.out);
	return 0;
}

static gw_status import_dump(const char *to, unsigned threads)
{
	const struct gw_import_apt apt = {.from = input,
					  .out = to,
					  .name = "packages",
					  .apt = {.seed = 1, .transpose = true},
					  .build = {.threads = threads, .quiet = true}};
	return gw_import_apt_run(&apt, &import_bed.stats);
}

static void open_dump(const char *text)
{
	struct gw_part_options options = {.mapped = true};
	import_bed_text(&import_bed, "dump", text);
	if (import_dump(out, 2) != GW_OK || gw_meta_read(out, &import_bed.meta) != GW_OK ||
	    gw_part_open(import_bed.meta, 0, &options, &import_bed.part) != GW_OK ||
	    gw_part_check(import_bed.part, 1) != GW_OK)
		fail_msg("%s", gw_last_error());
}

static const char small[] = "Package: zed\n"
			    "Version: 1\n"
			    "Source: tools (1.2-3)\n"
			    "Maintainer: Ann <a@x>\n"
			    "Depends: libb (>= 2), libb (<< 3), mta | exim, gone | liba:any, zed\n"
			    "Pre-Depends: liba\n"
			    "recommends: virt (= 1)\n"
			    "Conflicts: mta\n"
			    "Breaks: liba (<< 1)\n"
			    "Provides: mta\n"
			    "Section: contrib/games\n"
			    "Description: A game game, of WAR!\n"
			    " and peace\n"
			    "\n"
			    "Package: liba\n"
			    "Maintainer: Bob <b@x>\n"
			    "Suggests: exim,\n"
			    " zed [amd64] <!nocheck>\n"
			    "Provides: virt (= 1), other\n"
			    "Section: libs\n"
			    "\n"
			    "\n"
			    "Package: libb\r\n"
			    "Maintainer: Ann <a@x>\r\n"
			    "Provides: virt\r\n"
			    "Section: libs\r\n"
			    "\r\n"
			    "Package: exim\n"
			    "Provides: mta\n"
			    "Section: mail\n"
			    "Description:\n"
			    "\n"
			    "Package: liba\n"
			    "Suggests: libb\n"
			    "Section: oldlibs\n";

/* By name: exim 0, liba 1, libb 2, zed 3. */
static void relations_as_documented(void **state)
{
	(void)state;
	open_dump(small);
	assert_int_equal(import_bed.meta->ntypes[0].count, 4);
	static const char *const names[] = {"exim", "liba", "libb", "zed"};
	for (uint64_t i = 0; i < 4; i++)
		assert_true(import_bed_string_is(&import_bed, "node/package/orig_id", i, names[i]));
	/* depends of zed: libb once, mta = exim (without zed itself), liba by the alternative and by Pre-Depends */
	static const uint64_t d_src[] = {3, 3, 3}, d_dst[] = {0, 1, 2};
	import_bed_check_edges(&import_bed, "package:depends:package", 3, d_src, d_dst, NULL, false);
	import_bed_check_edges(&import_bed, "package:rev_depends:package", 3, d_dst, d_src, NULL, false);
	static const uint64_t r_src[] = {3, 3}, r_dst[] = {1, 2};
	import_bed_check_edges(&import_bed, "package:recommends:package", 2, r_src, r_dst, NULL, false);
	static const uint64_t s_src[] = {1, 1}, s_dst[] = {0, 3}; /* the first stanza of liba counts */
	import_bed_check_edges(&import_bed, "package:suggests:package", 2, s_src, s_dst, NULL, false);
	static const uint64_t c_src[] = {3, 3}, c_dst[] = {0, 1};
	import_bed_check_edges(&import_bed, "package:conflicts:package", 2, c_src, c_dst, NULL, false);
	static const uint64_t all[] = {0, 1, 2, 3}, sources[] = {0, 1, 2, 3}, maintainers[] = {2, 1, 0, 0};
	import_bed_check_edges(&import_bed, "package:built-from:source", 4, all, sources, NULL, false);
	assert_true(import_bed_string_is(&import_bed, "node/source/orig_id", 3, "tools"));
	import_bed_check_edges(&import_bed, "package:maintained-by:maintainer", 4, all, maintainers, NULL, false);
	import_bed_check_edges(&import_bed, "maintainer:rev_maintained-by:package", 4, maintainers, all, NULL, false);
	assert_true(import_bed_string_is(&import_bed, "node/maintainer/orig_id", 2, "unknown"));

	static const int64_t labels[] = {2, 1, 1, 0};
	assert_memory_equal(import_bed_array(&import_bed, "node/package/label"), labels, sizeof(labels));
	static const char *const sections[] = {"games", "libs", "mail"};
	for (uint64_t i = 0; i < 3; i++)
		assert_true(import_bed_string_is(&import_bed, "node/package/label.names", i, sections[i]));
	const uint8_t *train = import_bed_array(&import_bed, "node/package/train_mask");
	const uint8_t *val = import_bed_array(&import_bed, "node/package/val_mask");
	const uint8_t *test = import_bed_array(&import_bed, "node/package/test_mask");
	for (int i = 0; i < 4; i++)
		assert_int_equal(train[i] + val[i] + test[i], 1);

	/* "game" twice, "of", "war", "and", "peace" once, "A" not at all: squares sum to 8 unless columns collide */
	const float *feat = import_bed_array(&import_bed, "node/package/feat");
	assert_int_equal(gw_part_array(import_bed.part, "node/package/feat")->row_bytes, 512);
	double squares = 0, largest = 0;
	for (int d = 0; d < 128; d++) {
		squares += (double)feat[3 * 128 + d] * (double)feat[3 * 128 + d];
		largest = largest < feat[3 * 128 + d] ? feat[3 * 128 + d] : largest;
		largest = largest < -feat[3 * 128 + d] ? -feat[3 * 128 + d] : largest;
		assert_true(feat[d] == 0); /* exim has no words */
	}
	assert_true(squares > 0.9999 && squares < 1.0001 && largest > 0.5);
	import_bed_reset(&import_bed);
}

/* A made-up archive with every feature of the real one. Sections come from a list in the order given. */
static char *make_dump(const uint32_t *section_of, uint32_t packages)
{
	static const char *const sections[] = {"libs", "games", "contrib/net", "doc", "non-free/math", "x11"};
	static const char *const words[] = {"library", "tool", "documentation", "game", "network", "server", "fast"};
	char *text = malloc((size_t)packages * 600), *at = text;
	for (uint32_t i = 0; i < packages; i++) {
		struct gw_words w = gw_philox(3, i, 0), v = gw_philox(3, i, 1);
		at += sprintf(at, "Package: p%u\nSource: s%u\nMaintainer: m%u <m@x>\nSection: %s\n",
			      i * 7919 % packages, w.word[0] % 100, w.word[1] % 9, sections[section_of[i]]);
		at += sprintf(at, "Depends: p%u (>= 1), p%u | v%u, nothing%u\nRecommends: v%u\nSuggests: p%u\n",
			      w.word[2] % packages, w.word[3] % packages, v.word[0] % 20, i, v.word[1] % 20,
			      v.word[2] % packages);
		at += sprintf(at,
			      "Conflicts: v%u\nProvides: v%u\nTag: role::game, interface::x11\nPriority: optional\n",
			      v.word[3] % 20, w.word[0] % 20);
		at += sprintf(at, "Filename: pool/main/p%u.deb\nDescription: %s %s for %s\n\n", i, words[w.word[1] % 7],
			      words[w.word[2] % 7], words[w.word[3] % 7]);
	}
	return text;
}

static void expect_same_array(const struct gw_part *a, const struct gw_part *b, uint32_t number, bool *label)
{
	const struct gw_array *x = gw_part_array_at(a, number), *y = gw_part_array_at(b, number);
	assert_non_null(y);
	assert_string_equal(x->meta->key, y->meta->key);
	*label = strncmp(x->meta->key, "node/package/label", 18) == 0;
	if (*label)
		return;
	assert_int_equal(x->meta->digest, y->meta->digest);
	assert_int_equal(x->rows * x->row_bytes, y->rows * y->row_bytes);
	assert_memory_equal(x->data, y->data, x->rows * x->row_bytes);
}

/* Distributes the sections anew. Everything except the label stays the same, byte by byte, so no other array contains
 * the label. */
static void label_is_out_of_reach(void **state)
{
	(void)state;
	const uint32_t packages = 500;
	uint32_t sections[500];
	char other[320];
	snprintf(other, sizeof(other), "%s/out2", import_bed.root);
	for (uint32_t i = 0; i < packages; i++)
		sections[i] = gw_philox(9, i, 0).word[0] % 6;
	char *text = make_dump(sections, packages);
	open_dump(text);
	free(text);
	for (uint32_t i = packages - 1; i > 0; i--) { /* shuffled */
		uint32_t j = gw_philox(10, i, 0).word[0] % (i + 1), kept = sections[i];
		sections[i] = sections[j];
		sections[j] = kept;
	}
	text = make_dump(sections, packages);
	import_bed_text(&import_bed, "dump", text);
	free(text);
	assert_int_equal(import_dump(other, 1), GW_OK);
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_part_options options = {.mapped = true};
	assert_int_equal(gw_meta_read(other, &meta), GW_OK);
	assert_int_equal(gw_part_open(meta, 0, &options, &part), GW_OK);
	uint32_t count = 0, labels = 0;
	for (; gw_part_array_at(import_bed.part, count); count++) {
		bool label;
		expect_same_array(import_bed.part, part, count, &label);
		labels += label;
	}
	assert_null(gw_part_array_at(part, count));
	assert_int_equal(labels, 3); /* label, label.names.bytes, label.names.offsets */
	assert_true(count > 40);
	/* The labels changed as the input did; the names of the classes are the same. */
	assert_memory_not_equal(import_bed_array(&import_bed, "node/package/label"),
				gw_part_array(part, "node/package/label")->data, (size_t)packages * 8);
	assert_true(import_bed_string_is(&import_bed, "node/package/label.names", 3, "math"));
	gw_part_close(part);
	gw_meta_destroy(meta);
	assert_int_equal(gw_remove_tree(other), GW_OK);
	import_bed_reset(&import_bed);
}

/* The split of a package does not depend on that of the next package, nor on its section. */
static void splits_follow_their_shares(void **state)
{
	(void)state;
	enum { PACKAGES = 4000, SECTIONS = 6 };
	static const double shares[] = {.6, .2, .2};
	static const char *const masks[] = {"node/package/train_mask", "node/package/val_mask",
					    "node/package/test_mask"};
	uint32_t sections[PACKAGES], pairs[9] = {0}, both[3 * SECTIONS] = {0}, split[PACKAGES] = {0};
	double chances[9], mixed[3 * SECTIONS];
	for (uint32_t i = 0; i < PACKAGES; i++)
		sections[i] = i % SECTIONS;
	char *text = make_dump(sections, PACKAGES);
	open_dump(text);
	free(text);
	const int64_t *label = import_bed_array(&import_bed, "node/package/label");
	for (uint32_t m = 0; m < 3; m++) {
		const uint8_t *mask = import_bed_array(&import_bed, masks[m]);
		for (uint32_t i = 0; i < PACKAGES; i++)
			split[i] += m * mask[i];
	}
	for (uint32_t i = 0; i < PACKAGES; i++) {
		pairs[3 * split[i] + split[(i + 1) % PACKAGES]]++;
		both[split[i] * SECTIONS + (uint64_t)label[i]]++;
	}
	for (int i = 0; i < 9; i++)
		chances[i] = shares[i / 3] * shares[i % 3];
	for (int i = 0; i < 3 * SECTIONS; i++)
		mixed[i] = shares[i / SECTIONS] / SECTIONS;
	assert_chances(pairs, chances, 9, "splits of packages that follow each other", PACKAGES);
	assert_chances(both, mixed, 3 * SECTIONS, "splits and sections", PACKAGES);
	import_bed_reset(&import_bed);
}

static void faults(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} broken[] = {{"", "apt-get update"},
		      {"\n\n", "apt-get update"},
		      {"Version: 1\n", "line 1: a stanza without"},
		      {"Package: a\n\nVersion: 1\nSection: x\n", "line 3: a stanza without"},
		      {" Package: a\n", "line 1: a continuation"},
		      {"Package: a\nnonsense\n", "line 2: not \"Field: value\""},
		      {"Package:\n", "line 1"},
		      {": a\n", "line 1"}};
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		import_bed_text(&import_bed, "dump", broken[i].text);
		assert_int_equal(import_dump(out, 1), GW_FORMAT);
		if (!strstr(gw_last_error(), broken[i].why))
			fail_msg("no \"%s\" in \"%s\"", broken[i].why, gw_last_error());
	}
}

static gw_status import_small(void *context)
{
	(void)context;
	const struct gw_import_apt apt = {
		.from = input, .out = out, .name = "packages", .build = {.threads = 1, .quiet = true, .replace = true}};
	return gw_import_apt_run(&apt, &import_bed.stats);
}

static void shortage(void **state)
{
	(void)state;
	import_bed_text(&import_bed, "dump", small);
	assert_true(gw_fault_each(import_small, NULL) > 40);
	import_bed_reset(&import_bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relations_as_documented),
		cmocka_unit_test(label_is_out_of_reach),
		cmocka_unit_test(splits_follow_their_shares),
		cmocka_unit_test(faults),
		cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("apt", tests, begin, import_bed_tear_down);
}
