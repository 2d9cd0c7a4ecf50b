/* The package graph: numbers names, resolves relations, hashes descriptions.
 *
 *   index -> packages, sources, maintainers numbered by name -> edges, package by package -> features, labels, split
 *
 * Everything except the label comes from names, relations and descriptions. Fails if memory runs out, or if the index
 * is malformed; the error names the line.
 */
#include "tools/import/apt_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/vec.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/system/parallel.h"
#include "tools/import/apt_index.h"

#define GRAIN       512u
#define WORD_MIN    2u          /* shorter words carry no meaning */
#define WORD_MAX    64u         /* longer words are cut */
#define TRAIN_BELOW 2576980378u /* .6 * 2^32 */
#define VAL_BELOW   3435973837u /* .8 * 2^32 */

struct building {
	struct gw_builder *builder;
	const struct gw_apt_options *options;
	struct apt_index index;
	uint64_t unresolved;
};

static void *take(struct building *b, uint64_t count, size_t bytes, gw_status *status)
{
	return gw_builder_take(b->builder, count, bytes, status);
}

/* ---- names ---- */

/* Numbered names: sorted, each once. */
struct names {
	struct gw_text_span *spans;
	uint32_t count;
};

static int compare_spans(const void *left, const void *right)
{
	return gw_text_span_compare(*(const struct gw_text_span *)left, *(const struct gw_text_span *)right);
}

static struct gw_text_span unknown(void)
{
	return (struct gw_text_span){.at = "unknown", .bytes = 7};
}

/* "Source: foo (1.2-3)" gives foo; without the field, the package's own name. */
static struct gw_text_span apt_source_of(const struct apt_package *package)
{
	struct gw_text_span field = package->fields[APT_SOURCE];
	const char *at = field.at;
	struct gw_text_span name = field.bytes ? gw_apt_next_name(&at, field.at + field.bytes) : field;
	return name.bytes ? name : package->fields[APT_PACKAGE];
}

static struct gw_text_span maintainer_of(const struct apt_package *package)
{
	return package->fields[APT_MAINTAINER].bytes ? package->fields[APT_MAINTAINER] : unknown();
}

/* "contrib/games" gives games: the archive's component is not part of the section. */
static struct gw_text_span section_of(const struct apt_package *package)
{
	struct gw_text_span field = package->fields[APT_SECTION];
	const char *slash = field.bytes ? memrchr(field.at, '/', field.bytes) : NULL;
	if (slash) {
		field.bytes -= (uint64_t)(slash + 1 - field.at);
		field.at = slash + 1;
	}
	return field.bytes ? field : unknown();
}

static gw_status collect_names(const struct building *b, struct gw_text_span (*name_of)(const struct apt_package *),
			       struct names *out)
{
	out->spans = gw_malloc(b->index.count * sizeof(*out->spans));
	if (!out->spans)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < b->index.count; i++)
		out->spans[i] = name_of(&b->index.packages[i]);
	qsort(out->spans, b->index.count, sizeof(*out->spans), compare_spans);
	out->count = 0;
	for (uint32_t i = 0; i < b->index.count; i++) {
		if (out->count == 0 || gw_text_span_compare(out->spans[out->count - 1], out->spans[i]) != 0)
			out->spans[out->count++] = out->spans[i];
	}
	return GW_OK;
}

static uint64_t apt_number_of(const struct names *names, struct gw_text_span name)
{
	const struct gw_text_span *found = bsearch(&name, names->spans, names->count, sizeof(name), compare_spans);
	return (uint64_t)(found - names->spans); /* always found: the names came from the same fields */
}

/* Adds names as strings of a node type. */
static gw_status add_strings(struct building *b, uint32_t ntype, const char *key, const struct gw_text_span *spans,
			     uint64_t count)
{
	gw_status status = GW_OK;
	uint64_t bytes = 0;
	for (uint64_t i = 0; i < count; i++)
		bytes += spans[i].bytes;
	uint64_t *offsets = take(b, count + 1, sizeof(*offsets), &status);
	char *text = take(b, bytes, 1, &status);
	if (status != GW_OK)
		return status;
	offsets[0] = 0;
	for (uint64_t i = 0; i < count; i++) {
		memcpy(text + offsets[i], spans[i].at, spans[i].bytes);
		offsets[i + 1] = offsets[i] + spans[i].bytes;
	}
	return gw_builder_node_strings(b->builder, ntype, key, count, offsets, text);
}

/* ---- relations ---- */

struct targets {
	uint32_t *packages;
	size_t count, room;
};

static gw_status add_target(struct targets *targets, uint32_t package)
{
	if (targets->count == targets->room) {
		size_t room = targets->room ? targets->room * 2 : 256;
		void *grown = gw_realloc(targets->packages, room, sizeof(*targets->packages));
		if (!grown)
			return GW_NO_MEMORY;
		targets->packages = grown;
		targets->room = room;
	}
	targets->packages[targets->count++] = package;
	return GW_OK;
}

/* Resolves a relation field to all packages that it names, or that provide a name in it. */
static gw_status resolve_field(struct building *b, struct gw_text_span field, struct targets *targets)
{
	const char *at = field.at, *end = field.at + field.bytes;
	gw_status status = GW_OK;
	while (at < end && status == GW_OK) {
		struct gw_text_span name = gw_apt_next_name(&at, end);
		if (name.bytes == 0)
			continue;
		uint32_t package = gw_apt_index_find(&b->index, name), count = 0;
		if (package != UINT32_MAX) {
			status = add_target(targets, package);
			continue;
		}
		const struct apt_provider *providers = gw_apt_index_providers(&b->index, name, &count);
		b->unresolved += count == 0;
		for (uint32_t i = 0; i < count && status == GW_OK; i++)
			status = add_target(targets, providers[i].package);
	}
	return status;
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	return (a > b) - (a < b);
}

/* The edges of one relation: each target once, and never the package itself. */
struct relation_edges {
	struct gw_vec src, dst;
	uint64_t count;
};

static gw_status append_edges(struct relation_edges *edges, uint32_t package, struct targets *targets)
{
	size_t bytes = (edges->count + targets->count) * sizeof(uint64_t);
	gw_status status = gw_vec_reserve(&edges->src, bytes);
	if (status == GW_OK)
		status = gw_vec_reserve(&edges->dst, bytes);
	if (status != GW_OK || targets->count == 0)
		return status;
	qsort(targets->packages, targets->count, sizeof(*targets->packages), compare_numbers);
	for (size_t i = 0; i < targets->count; i++) {
		if (targets->packages[i] == package || (i && targets->packages[i] == targets->packages[i - 1]))
			continue;
		((uint64_t *)edges->src.data)[edges->count] = package;
		((uint64_t *)edges->dst.data)[edges->count++] = targets->packages[i];
	}
	return GW_OK;
}

static gw_status add_etype(struct building *b, uint32_t src_type, const char *name, uint32_t dst_type, uint64_t count,
			   const uint64_t *src, const uint64_t *dst)
{
	uint32_t etype;
	struct gw_builder_edges edges = {
		.count = count, .src = src, .dst = dst, .reverse = true, .transpose = b->options->transpose};
	return gw_builder_etype(b->builder, src_type, name, dst_type, &edges, &etype);
}

static gw_status add_relation(struct building *b, uint32_t ntype, const char *name, enum apt_field first,
			      enum apt_field second)
{
	struct relation_edges edges = {0};
	struct targets targets = {0};
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < b->index.count && status == GW_OK; i++) {
		targets.count = 0;
		status = resolve_field(b, b->index.packages[i].fields[first], &targets);
		if (status == GW_OK && second != first)
			status = resolve_field(b, b->index.packages[i].fields[second], &targets);
		if (status == GW_OK)
			status = append_edges(&edges, i, &targets);
	}
	uint64_t *src = take(b, edges.count, sizeof(*src), &status);
	uint64_t *dst = take(b, edges.count, sizeof(*dst), &status);
	if (status == GW_OK) {
		if (edges.count) {
			memcpy(src, edges.src.data, edges.count * sizeof(*src));
			memcpy(dst, edges.dst.data, edges.count * sizeof(*dst));
		}
		status = add_etype(b, ntype, name, ntype, edges.count, src, dst);
	}
	gw_vec_free(&edges.src);
	gw_vec_free(&edges.dst);
	gw_free(targets.packages);
	return status;
}

/* Adds one edge from each package to its source or its maintainer. */
static gw_status add_belonging(struct building *b, uint32_t package_type, const char *name, const char *type,
			       struct gw_text_span (*name_of)(const struct apt_package *))
{
	struct names names = {0};
	uint32_t ntype;
	gw_status status = gw_builder_ntype(b->builder, type, &ntype);
	if (status == GW_OK)
		status = collect_names(b, name_of, &names);
	if (status != GW_OK)
		return status;
	gw_builder_ntype_count(b->builder, ntype, names.count);
	status = add_strings(b, ntype, "orig_id", names.spans, names.count);
	uint64_t *src = take(b, b->index.count, sizeof(*src), &status);
	uint64_t *dst = take(b, b->index.count, sizeof(*dst), &status);
	for (uint32_t i = 0; i < b->index.count && status == GW_OK; i++) {
		src[i] = i;
		dst[i] = apt_number_of(&names, name_of(&b->index.packages[i]));
	}
	if (status == GW_OK)
		status = add_etype(b, package_type, name, ntype, b->index.count, src, dst);
	gw_free(names.spans);
	return status;
}

/* ---- features, labels, split ---- */

static bool is_word_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 128;
}

struct hashing {
	const struct building *b;
	float *rows;
};

/* The next word, in lower case; 0 at the end. */
static size_t next_word(const char **at, const char *end, char word[WORD_MAX])
{
	size_t bytes = 0;
	while (*at < end && !is_word_byte((unsigned char)**at))
		(*at)++;
	for (; *at < end && is_word_byte((unsigned char)**at); (*at)++) {
		char c = **at;
		if (bytes < WORD_MAX)
			word[bytes++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	return bytes;
}

/* Feature hashing (Weinberger et al., ICML 2009): each word adds 1 or -1 to one column, and each row is scaled to
 * length 1. The sums are whole numbers, and division and square root round correctly, so the bytes are the same on
 * every machine. */
static gw_status hash_descriptions(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct hashing *hashing = context;
	for (uint64_t i = begin; i < end; i++) {
		struct gw_text_span field = hashing->b->index.packages[i].fields[APT_DESCRIPTION];
		const char *at = field.at, *stop = field.at + field.bytes;
		int32_t sums[GW_APT_FEATURES] = {0};
		char word[WORD_MAX];
		for (size_t bytes = next_word(&at, stop, word); bytes; bytes = next_word(&at, stop, word)) {
			uint64_t hash = gw_digest(word, bytes);
			if (bytes >= WORD_MIN)
				sums[hash % GW_APT_FEATURES] += hash >> 63 ? 1 : -1;
		}
		int64_t squares = 0;
		for (uint32_t d = 0; d < GW_APT_FEATURES; d++)
			squares += (int64_t)sums[d] * sums[d];
		float length = squares ? sqrtf((float)squares) : 1;
		for (uint32_t d = 0; d < GW_APT_FEATURES; d++)
			hashing->rows[i * GW_APT_FEATURES + d] = (float)sums[d] / length;
	}
	return GW_OK;
}

static gw_status add_features(struct building *b, uint32_t ntype)
{
	gw_status status = GW_OK;
	struct hashing hashing = {.b = b};
	hashing.rows = take(b, (uint64_t)b->index.count * GW_APT_FEATURES, sizeof(float), &status);
	if (status != GW_OK)
		return status;
	gw_parallel_for(b->options->threads, b->index.count, GRAIN, hash_descriptions, &hashing);
	struct gw_builder_array array = {.name = "feat",
					 .dtype = GW_FLOAT32,
					 .ndim = 2,
					 .shape = {b->index.count, GW_APT_FEATURES},
					 .data = hashing.rows};
	return gw_builder_node_array(b->builder, ntype, &array);
}

static gw_status add_labels(struct building *b, uint32_t ntype)
{
	struct names sections = {0};
	gw_status status = collect_names(b, section_of, &sections);
	int64_t *labels = take(b, b->index.count, sizeof(*labels), &status);
	for (uint32_t i = 0; i < b->index.count && status == GW_OK; i++)
		labels[i] = (int64_t)apt_number_of(&sections, section_of(&b->index.packages[i]));
	struct gw_builder_array array = {
		.name = "label", .dtype = GW_INT64, .ndim = 1, .shape = {b->index.count}, .data = labels};
	if (status == GW_OK)
		status = gw_builder_node_array(b->builder, ntype, &array);
	if (status == GW_OK)
		status = add_strings(b, ntype, "label.names", sections.spans, sections.count);
	gw_free(sections.spans);
	return status;
}

/* Splits by the hash of the name: a package keeps its part of the split when other packages are added or removed. */
static gw_status add_split(struct building *b, uint32_t ntype)
{
	static const char *const names[] = {"train_mask", "val_mask", "test_mask"};
	gw_status status = GW_OK;
	uint64_t count = b->index.count;
	uint8_t *masks = take(b, 3 * count, 1, &status);
	if (status != GW_OK)
		return status;
	memset(masks, 0, 3 * count);
	for (uint64_t i = 0; i < count; i++) {
		struct gw_text_span name = b->index.packages[i].fields[APT_PACKAGE];
		uint64_t key = gw_draw_key(b->options->seed, gw_digest(name.at, name.bytes), GW_DRAW_GENERATE, 0, 0);
		uint32_t u = gw_philox(key, 0, 0).word[0];
		masks[(u < TRAIN_BELOW ? 0 : u < VAL_BELOW ? 1 : 2) * count + i] = 1;
	}
	for (int m = 0; m < 3 && status == GW_OK; m++) {
		struct gw_builder_array array = {.name = names[m],
						 .dtype = GW_BOOL,
						 .ndim = 1,
						 .shape = {count},
						 .data = masks + (uint64_t)m * count};
		status = gw_builder_node_array(b->builder, ntype, &array);
	}
	return status;
}

static struct gw_text_span apt_name_of(const struct apt_package *package)
{
	return package->fields[APT_PACKAGE];
}

static gw_status add_packages(struct building *b, uint32_t *ntype)
{
	struct names names = {0};
	gw_status status = gw_builder_ntype(b->builder, "package", ntype);
	if (status != GW_OK)
		return status;
	gw_builder_ntype_count(b->builder, *ntype, b->index.count);
	status = collect_names(b, apt_name_of, &names);
	if (status == GW_OK)
		status = add_strings(b, *ntype, "orig_id", names.spans, names.count);
	gw_free(names.spans);
	if (status == GW_OK)
		status = add_features(b, *ntype);
	if (status == GW_OK)
		status = add_labels(b, *ntype);
	return status != GW_OK ? status : add_split(b, *ntype);
}

gw_status gw_apt_build(const struct gw_text *text, const struct gw_apt_options *options, struct gw_builder *builder,
		       struct gw_apt_stats *stats)
{
	struct building b = {.builder = builder, .options = options};
	uint32_t package;
	gw_status status = gw_apt_index_read(text, &b.index);
	if (status != GW_OK)
		return status;
	status = add_packages(&b, &package);
	if (status == GW_OK)
		status = add_relation(&b, package, "depends", APT_DEPENDS, APT_PRE_DEPENDS);
	if (status == GW_OK)
		status = add_relation(&b, package, "recommends", APT_RECOMMENDS, APT_RECOMMENDS);
	if (status == GW_OK)
		status = add_relation(&b, package, "suggests", APT_SUGGESTS, APT_SUGGESTS);
	if (status == GW_OK)
		status = add_relation(&b, package, "conflicts", APT_CONFLICTS, APT_BREAKS);
	if (status == GW_OK)
		status = add_belonging(&b, package, "built-from", "source", apt_source_of);
	if (status == GW_OK)
		status = add_belonging(&b, package, "maintained-by", "maintainer", maintainer_of);
	if (status == GW_OK && stats)
		*stats = (struct gw_apt_stats){
			.stanzas = b.index.stanzas, .packages = b.index.count, .unresolved = b.unresolved};
	gw_apt_index_free(&b.index);
	return status;
}
