/* Arenas: finds the best available pages, and hands out their bytes.
 *
 *   check the NUMA node -> for each page level from the best: check free memory, map, place, populate -> log -> take …
 *
 * If a level is not available, the next one is tried, unless huge pages are required. Fails if memory does not suffice
 * (checked in advance, as far as the kernel reports it), if required huge pages are not available, or if the NUMA node
 * does not exist.
 */
#include "core/memory/arena.h"

#include <assert.h>
#include <stdio.h>

#include "core/errors/log.h"
#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/memory/arena_pages.h"
#include "core/memory/memory.h"
#include "core/system/sysfile.h"

#define NAME_BYTES   64
#define BYTES_MAX    (1ull << 46) /* half of a 47-bit address space */
#define SHARE_FULL   0.999        /* share of huge pages that counts as all, after rounding */
#define SHARE_MOSTLY 0.5          /* share from which the arena counts as collapsed */

struct gw_arena {
	struct gw_pages pages;
	uint64_t used; /* handed out by gw_arena_take */
	char name[NAME_BYTES];
};

/* The state of one call of gw_arena_create. */
struct attempt {
	const struct gw_arena_options *options;
	const char *name;
	uint64_t bytes;
	struct gw_numa_nodes nodes;
	const char *note;               /* about placement, or NULL */
	char reason[GW_ERROR_TEXT_MAX]; /* why the last level was not available */
};

static gw_status check_node(const struct attempt *attempt)
{
	int numa = attempt->options->numa;
	if (numa == GW_NUMA_SPREAD || numa == GW_NUMA_LOCAL)
		return GW_OK;
	for (uint32_t i = 0; i < attempt->nodes.count; i++) {
		if (attempt->nodes.numbers[i] == numa)
			return GW_OK;
	}
	return gw_fail(GW_INVALID, "arena %s: no NUMA node %d here (there %s %u, the last is %u)", attempt->name, numa,
		       attempt->nodes.count == 1 ? "is" : "are", attempt->nodes.count,
		       attempt->nodes.numbers[attempt->nodes.count - 1]);
}

static gw_status try_level(struct attempt *attempt, enum gw_page_level level, struct gw_pages *pages)
{
	const struct gw_arena_options *options = attempt->options;
	int node = options->numa >= 0 ? options->numa : -1;
	uint32_t spread = options->numa == GW_NUMA_SPREAD ? attempt->nodes.count : 1;
	/* The system has already reserved the memory of the hugetlb pool, so the mapping itself shows whether the pool
	 * suffices. */
	gw_status status = level == GW_PAGES_HUGETLB ? GW_OK : gw_memory_check(attempt->bytes, node, "memory");
	if (status != GW_OK)
		return status;
	status = gw_pages_map(attempt->bytes, level, options->shareable, attempt->name, spread, pages);
	if (status != GW_OK)
		return status;
	status = gw_pages_place(pages, options->numa, &attempt->nodes, &attempt->note);
	if (status == GW_OK)
		status = gw_pages_populate(pages, options->populate_threads);
	if (status == GW_OK && level == GW_PAGES_COLLAPSED && options->huge == GW_HUGE_REQUIRE &&
	    pages->huge_share < SHARE_FULL)
		status = gw_fail(GW_UNSUPPORTED, "the kernel made only %.1f %% into huge pages",
				 100 * pages->huge_share);
	if (status != GW_OK)
		gw_pages_unmap(pages);
	else if (level == GW_PAGES_COLLAPSED && pages->huge_share < SHARE_MOSTLY)
		pages->level = GW_PAGES_4K;
	return status;
}

/* The command that gives this arena hugetlb pages, in addition to those in use; or the command that raises the control
 * group's limit, if that binds. */
static void write_hugetlb_command(const struct attempt *attempt, char text[GW_LIMIT_FIX_MAX])
{
	uint64_t total = 0, free_pages = 0;
	struct gw_group_use group;
	enum gw_group_limit limit = gw_group_hugetlb_read("", &group);
	if (gw_group_left(&group) < attempt->bytes) {
		gw_group_fix(limit, &group, group.used + attempt->bytes, text);
		return;
	}
	gw_sysfile_number(&total, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
	gw_sysfile_number(&free_pages, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
	uint64_t wanted = (attempt->bytes + GW_HUGETLB_BYTES - 1) / GW_HUGETLB_BYTES;
	uint64_t lent = total > free_pages ? total - free_pages : 0;
	snprintf(text, GW_LIMIT_FIX_MAX, "sysctl -w vm.nr_hugepages=%llu", (unsigned long long)(lent + wanted));
}

static gw_status try_levels(struct attempt *attempt, struct gw_pages *pages)
{
	const struct gw_arena_options *options = attempt->options;
	bool require = options->huge == GW_HUGE_REQUIRE;
	bool small = attempt->bytes < gw_pages_huge_bytes() / 2;
	enum gw_page_level level = options->shareable ? GW_PAGES_HUGETLB : GW_PAGES_COLLAPSED;
	if (options->huge == GW_HUGE_OFF || (small && !require))
		level = GW_PAGES_4K;
	for (;;) {
		gw_status status = try_level(attempt, level, pages);
		if (status == GW_OK)
			return GW_OK;
		if (level == GW_PAGES_4K || (level == GW_PAGES_COLLAPSED && status != GW_UNSUPPORTED))
			return gw_context(status, "arena %s", attempt->name);
		if (level == GW_PAGES_COLLAPSED && require) {
			char command[GW_LIMIT_FIX_MAX];
			write_hugetlb_command(attempt, command);
			snprintf(attempt->reason, sizeof(attempt->reason), "%s", gw_last_error());
			return gw_fail(status, "arena %s: huge pages are required but not available: %.400s; %s",
				       attempt->name, attempt->reason, command);
		}
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", gw_last_error());
		level--;
	}
}

static void log_result(const struct attempt *attempt, const struct gw_pages *pages)
{
	static const char *const levels[] = {[GW_PAGES_4K] = "small pages",
					     [GW_PAGES_COLLAPSED] = "huge pages (collapsed)",
					     [GW_PAGES_HUGETLB] = "huge pages (hugetlb)"};
	char hint[GW_LIMIT_FIX_MAX + 32] = "", command[GW_LIMIT_FIX_MAX];
	bool wants_more = attempt->options->huge != GW_HUGE_OFF && attempt->bytes >= gw_pages_huge_bytes() / 2;
	if (wants_more && pages->level != GW_PAGES_HUGETLB && attempt->options->shareable) {
		write_hugetlb_command(attempt, command);
		snprintf(hint, sizeof(hint), "; for hugetlb pages: %s", command);
	} else if (wants_more && pages->level == GW_PAGES_4K) {
		snprintf(hint, sizeof(hint),
			 "; for huge pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
	}
	uint64_t slices = (pages->bytes + pages->slice_bytes - 1) / pages->slice_bytes;
	char share[48] = "";
	if (pages->level == GW_PAGES_COLLAPSED && pages->huge_share < SHARE_FULL)
		snprintf(share, sizeof(share), ", %.0f %% of it", 100 * pages->huge_share);
	char size[GW_UNIT_TEXT_MAX];
	gw_log(GW_LOG_INFO, "arena %s: %s in %llu slice%s, %s%s%s%s%s%s", attempt->name,
	       gw_text_bytes(size, (double)pages->bytes), (unsigned long long)slices, slices == 1 ? "" : "s",
	       levels[pages->level], share, wants_more && pages->level == GW_PAGES_4K ? ", half as fast at random" : "",
	       attempt->note ? ", " : "", attempt->note ? attempt->note : "", hint);
}

gw_status gw_arena_create(uint64_t bytes, const struct gw_arena_options *options, struct gw_arena **out)
{
	static const struct gw_arena_options usual = {.name = "private", .numa = GW_NUMA_SPREAD};
	*out = NULL;
	if (!options)
		options = &usual;
	struct attempt attempt = {
		.options = options, .name = options->name ? options->name : "unnamed", .bytes = bytes ? bytes : 1};
	if (bytes > BYTES_MAX)
		return gw_fail(GW_NO_MEMORY, "arena %s: %llu bytes are more than a process can map", attempt.name,
			       (unsigned long long)bytes);
	gw_numa_nodes_read("", &attempt.nodes);
	gw_status status = check_node(&attempt);
	if (status != GW_OK)
		return status;
	struct gw_arena *arena = gw_calloc(1, sizeof(*arena));
	if (!arena)
		return GW_NO_MEMORY;
	snprintf(arena->name, sizeof(arena->name), "%s", attempt.name);
	attempt.name = arena->name; /* cut to the length that memfd_create takes */
	status = try_levels(&attempt, &arena->pages);
	if (status != GW_OK) {
		gw_free(arena);
		return status;
	}
	log_result(&attempt, &arena->pages);
	*out = arena;
	return GW_OK;
}

void gw_arena_shape(const struct gw_arena *arena, struct gw_arena_shape *out)
{
	*out = (struct gw_arena_shape){arena->pages.bytes, arena->pages.slice_bytes, arena->pages.level};
}

gw_status gw_arena_adopt(int fd, const char *name, const struct gw_arena_shape *shape, bool writable,
			 struct gw_arena **out)
{
	*out = NULL;
	struct gw_arena *arena = gw_calloc(1, sizeof(*arena));
	if (!arena)
		return GW_NO_MEMORY;
	snprintf(arena->name, sizeof(arena->name), "%s", name);
	arena->pages = (struct gw_pages){
		.level = shape->level, .bytes = shape->bytes, .slice_bytes = shape->slice_bytes, .fd = -1};
	gw_status status = gw_pages_adopt(fd, writable, &arena->pages);
	if (status != GW_OK) {
		gw_free(arena);
		return gw_context(status, "arena %s", name);
	}
	*out = arena;
	return GW_OK;
}

void gw_arena_destroy(struct gw_arena *arena)
{
	if (!arena)
		return;
	gw_pages_unmap(&arena->pages);
	gw_free(arena);
}

uint8_t *gw_arena_base(const struct gw_arena *arena)
{
	return arena->pages.base;
}

uint64_t gw_arena_bytes(const struct gw_arena *arena)
{
	return arena->pages.bytes;
}

uint64_t gw_arena_slice_bytes(const struct gw_arena *arena)
{
	return arena->pages.slice_bytes;
}

enum gw_page_level gw_arena_page_level(const struct gw_arena *arena)
{
	return arena->pages.level;
}

int gw_arena_fd(const struct gw_arena *arena)
{
	return arena->pages.fd;
}

gw_status gw_arena_take(struct gw_arena *arena, uint64_t bytes, uint64_t align, uint64_t *offset)
{
	assert(align > 0 && (align & (align - 1)) == 0);
	uint64_t capacity = arena->pages.bytes;
	uint64_t padding = (align - arena->used % align) % align;
	if (padding > capacity - arena->used || bytes > capacity - arena->used - padding)
		return gw_fail(GW_NO_MEMORY, "arena %s: %llu bytes wanted, %llu of %llu left", arena->name,
			       (unsigned long long)bytes, (unsigned long long)(capacity - arena->used),
			       (unsigned long long)capacity);
	*offset = arena->used + padding;
	arena->used = *offset + bytes;
	return GW_OK;
}
