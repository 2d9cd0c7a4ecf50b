/* Maps, places and faults in the pages of an arena.
 *
 *   reserve addresses -> memfd (hugetlb or shmem) or private mapping over them -> mbind per slice -> populate
 *
 * Huge pages are made from ordinary ones in three steps. First, one small page is faulted in at the place of each huge
 * page. MADV_COLLAPSE then makes the place one huge page and zeroes its holes. For shared memory this is 6 to 15 times
 * as fast as faulting all small pages first. Finally MADV_POPULATE_WRITE fills the places that did not collapse. All
 * steps precede pinning, because pinned pages do not collapse.
 *
 * Each system call covers about one huge page, because a control group's quota of processor time is charged once per
 * call. After a long call a thread may have used up the quota of many periods. It then receives no signal until they
 * have passed (64 MiB under 1 % of a processor: 10 s and more).
 *
 * Fails if the kernel has no pages of the kind, if memory runs out, or if a bound node's pool is empty.
 */
#include "core/memory/arena_pages.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/system/limits.h"
#include "core/system/parallel.h"
#include "core/system/syscalls.h"
#include "core/system/sysfile.h"

/* Some C libraries' headers lack these numbers. A kernel that does not know one refuses it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define HUGETLB_BYTES  (2ull << 20)
#define POPULATE_BYTES (64ull << 20) /* one thread's slice of the work */
#define POPULATE_TRIES 1000          /* retries after a signal or a shortage in the kernel */

uint64_t gw_pages_huge_bytes(void)
{
	uint64_t bytes;
	if (gw_sysfile_number(&bytes, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") && bytes >= 4096 &&
	    bytes <= GW_ARENA_SLICE_MAX && (bytes & (bytes - 1)) == 0)
		return bytes;
	return HUGETLB_BYTES;
}

static uint64_t pages_round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static uint64_t level_page_bytes(enum gw_page_level level)
{
	if (level == GW_PAGES_HUGETLB)
		return HUGETLB_BYTES;
	return level == GW_PAGES_COLLAPSED ? gw_pages_huge_bytes() : (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- map ---- */

static int make_memfd(const char *name, enum gw_page_level level)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	if (level == GW_PAGES_HUGETLB)
		flags |= MFD_HUGETLB | MFD_HUGE_2MB;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

/* The error of a failed mapping. It names the process's own limit and its remedy, because ENOMEM alone would point to
 * the machine's memory. */
static gw_status map_failed(int error, const char *what, uint64_t bytes)
{
	uint64_t limit = gw_process_limit(GW_PROCESS_SPACE);
	char fix[GW_LIMIT_FIX_MAX];
	if (error == ENOMEM && limit != UINT64_MAX)
		return gw_fail(GW_NO_MEMORY, "%s of %llu bytes: the address space is limited to %llu: %s", what,
			       (unsigned long long)bytes, (unsigned long long)limit,
			       gw_process_fix_own(GW_PROCESS_SPACE, UINT64_MAX, fix));
	return gw_fail_errno(GW_NO_MEMORY, error, "%s of %llu bytes", what, (unsigned long long)bytes);
}

/* Reserves addresses for the mapping, aligned, with at least one spare page on both sides. The spare strips stay
 * inaccessible. So overruns trap, and adjacent mappings never merge in smaps. */
static gw_status pages_reserve(struct gw_pages *pages, uint64_t align)
{
	pages->reservation_bytes = pages->bytes + 2 * align;
	pages->reservation =
		mmap(NULL, pages->reservation_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages->reservation == MAP_FAILED) {
		pages->reservation = NULL;
		return map_failed(errno, "addresses for a mapping", pages->reservation_bytes);
	}
	uint64_t first = (uint64_t)(uintptr_t)pages->reservation + 4096;
	pages->base = (uint8_t *)(uintptr_t)pages_round_up(first, align);
	return GW_OK;
}

/* The error of a refused hugetlb mapping: the control group's limit if that is used up (the pool may still have pages),
 * else `otherwise`. */
static gw_status hugetlb_failed(enum gw_group_limit limit, uint64_t bytes, const char *otherwise)
{
	struct gw_group_use group;
	char fix[GW_LIMIT_FIX_MAX];
	gw_group_limit_read("", limit, &group);
	if (gw_group_left(&group) >= bytes)
		return gw_fail(GW_UNSUPPORTED, "%s", otherwise);
	return gw_fail(GW_UNSUPPORTED, "the control group may have %llu bytes of huge pages, and uses %llu: %s",
		       (unsigned long long)group.limit, (unsigned long long)group.used,
		       gw_group_fix(limit, &group, group.used + bytes, fix));
}

static gw_status map_shared(struct gw_pages *pages, const char *name)
{
	bool hugetlb = pages->level == GW_PAGES_HUGETLB;
	uint64_t limit = gw_process_limit(GW_PROCESS_FILE_SIZE);
	char fix[GW_LIMIT_FIX_MAX];
	/* Growing a memfd past this limit would raise SIGXFSZ. */
	if (limit < pages->bytes)
		return gw_fail(GW_NO_MEMORY, "memfd of %llu bytes: files and shared memory are limited to %llu: %s",
			       (unsigned long long)pages->bytes, (unsigned long long)limit,
			       gw_process_fix_own(GW_PROCESS_FILE_SIZE, UINT64_MAX, fix));
	pages->fd = make_memfd(name, pages->level);
	if (pages->fd < 0)
		return gw_fail_errno(hugetlb ? GW_UNSUPPORTED : GW_NO_MEMORY, errno, "memfd_create");
	if (ftruncate(pages->fd, (off_t)pages->bytes))
		return gw_fail_errno(hugetlb ? GW_UNSUPPORTED : GW_NO_MEMORY, errno, "memfd of %llu bytes",
				     (unsigned long long)pages->bytes);
	void *at = mmap(pages->base, pages->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pages->fd, 0);
	if (at == MAP_FAILED && hugetlb)
		return hugetlb_failed(GW_GROUP_HUGETLB_RESERVED, pages->bytes, "the hugetlb pool lacks free pages");
	return at == MAP_FAILED ? map_failed(errno, "a mapping", pages->bytes) : GW_OK;
}

static gw_status map_private(struct gw_pages *pages, const char *name)
{
	void *at =
		mmap(pages->base, pages->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (at == MAP_FAILED)
		return map_failed(errno, "a mapping", pages->bytes);
	madvise(pages->base, pages->bytes, pages->level == GW_PAGES_4K ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	/* optional: a name for /proc/PID/maps */
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, pages->base, pages->bytes, name);
	return GW_OK;
}

/* Memory that fits in one slice gets one. Over several NUMA nodes, each node gets several slices, so that the nodes'
 * shares are even. */
static uint64_t choose_slice_bytes(uint64_t bytes, uint64_t page_bytes, uint32_t nodes)
{
	uint64_t slice = GW_ARENA_SLICE_MAX;
	uint64_t floor = page_bytes > HUGETLB_BYTES ? page_bytes : HUGETLB_BYTES;
	uint64_t wanted = nodes > 1 ? bytes / (4ull * nodes) : bytes;
	while (slice > floor && slice / 2 >= wanted)
		slice /= 2;
	return slice;
}

gw_status gw_pages_map(uint64_t bytes, enum gw_page_level level, bool shareable, const char *name, uint32_t spread,
		       struct gw_pages *out)
{
	uint64_t page_bytes = level_page_bytes(level);
	uint64_t align = gw_pages_huge_bytes() > HUGETLB_BYTES ? gw_pages_huge_bytes() : HUGETLB_BYTES;
	*out = (struct gw_pages){.level = level, .fd = -1, .bytes = pages_round_up(bytes ? bytes : 1, page_bytes)};
	out->slice_bytes = choose_slice_bytes(out->bytes, page_bytes, spread);
	gw_status status = pages_reserve(out, align);
	if (status == GW_OK)
		status = shareable ? map_shared(out, name) : map_private(out, name);
	if (status != GW_OK)
		gw_pages_unmap(out);
	return status;
}

void gw_pages_unmap(struct gw_pages *pages)
{
	if (pages->reservation)
		munmap(pages->reservation, pages->reservation_bytes);
	if (pages->mark)
		munmap(pages->mark, pages->mark_bytes);
	if (pages->fd >= 0)
		close(pages->fd);
	*pages = (struct gw_pages){.fd = -1};
}

/* ---- place ---- */

static int bind_range(uint8_t *base, uint64_t bytes, int mode, unsigned node)
{
	const unsigned word_bits = 8 * sizeof(unsigned long);
	unsigned long mask[GW_NUMA_NODES_MAX / (8 * sizeof(unsigned long))] = {0};
	mask[node / word_bits] |= 1ul << (node % word_bits);
	unsigned long bits = GW_NUMA_NODES_MAX + 1; /* the kernel counts one less */
	return syscall(SYS_mbind, base, bytes, (unsigned long)mode, mask, bits, 0ul) == 0 ? 0 : errno;
}

gw_status gw_pages_place(const struct gw_pages *pages, int numa, const struct gw_numa_nodes *nodes, const char **note)
{
	*note = NULL;
	if (nodes->count == 1 || numa == GW_NUMA_LOCAL)
		return GW_OK; /* nothing to choose, and containers often forbid mbind */
	int error = 0;
	if (numa >= 0) {
		error = bind_range(pages->base, pages->bytes, MPOL_BIND, (unsigned)numa);
		if (error)
			return gw_fail_errno(
				GW_UNSUPPORTED, error,
				"memory cannot be bound to NUMA node %d (a container needs --cap-add SYS_NICE; "
				"or bind the process with numactl)",
				numa);
		return GW_OK;
	}
	/* The slices prefer their node but are not bound to it: if a node is full, other nodes take the rest of its
	 * share. */
	for (uint64_t at = 0, slice = 0; at < pages->bytes && !error; at += pages->slice_bytes, slice++) {
		uint64_t left = pages->bytes - at;
		error = bind_range(pages->base + at, left < pages->slice_bytes ? left : pages->slice_bytes,
				   MPOL_PREFERRED, nodes->numbers[slice % nodes->count]);
	}
	if (error)
		*note = "not spread over the NUMA nodes, because mbind is refused (a container needs --cap-add "
			"SYS_NICE)";
	return GW_OK;
}

/* ---- populate ---- */

/* Kernels before 5.14 cannot populate by madvise, so write to each page instead. A missing hugetlb page would raise
 * SIGBUS here. */
static gw_status pages_touch(const struct gw_pages *pages, uint64_t begin, uint64_t end)
{
	if (pages->level == GW_PAGES_HUGETLB)
		return gw_fail(GW_UNSUPPORTED, "this kernel cannot populate hugetlb pages safely (it is before 5.14)");
	uint64_t step = (uint64_t)sysconf(_SC_PAGESIZE);
	for (uint64_t at = begin; at < end; at += step)
		*(volatile uint8_t *)(pages->base + at) = 0;
	return GW_OK;
}

static gw_status pages_populate(const struct gw_pages *pages, uint64_t begin, uint64_t end)
{
	int error = EAGAIN;
	for (int tries = 0; (error == EAGAIN || error == EINTR) && tries < POPULATE_TRIES; tries++)
		error = madvise(pages->base + begin, end - begin, MADV_POPULATE_WRITE) ? errno : 0;
	if (error == EINVAL || gw_syscall_missing(error))
		return pages_touch(pages, begin, end);
	switch (error) {
	case 0:
		return GW_OK;
	case EFAULT: /* touching the page would have raised SIGBUS */
		if (pages->level == GW_PAGES_HUGETLB)
			return hugetlb_failed(GW_GROUP_HUGETLB, end - begin,
					      "the hugetlb pool of the NUMA node asked for is empty");
		return gw_fail_errno(GW_NO_MEMORY, error, "the kernel has no free page");
	case EHWPOISON:
		return gw_fail_errno(GW_IO, error, "the kernel reports broken memory");
	default:
		return gw_fail_errno(GW_NO_MEMORY, error, "the kernel has no free page");
	}
}

#define COLLAPSE_TRIES 3 /* a page that is locked for a moment gives EAGAIN */

/* Best effort: a place that does not collapse keeps its small pages, which lowers huge_share. */
static gw_status populate_collapsed(const struct gw_pages *pages, uint64_t begin, uint64_t end)
{
	gw_status status = pages_populate(pages, begin, begin + (uint64_t)sysconf(_SC_PAGESIZE));
	if (status != GW_OK)
		return status;
	for (int i = 0; i < COLLAPSE_TRIES; i++) {
		if (madvise(pages->base + begin, end - begin, MADV_COLLAPSE) == 0 || errno != EAGAIN)
			break;
	}
	return GW_OK;
}

static gw_status populate_range(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct gw_pages *pages = context;
	bool collapse = pages->level == GW_PAGES_COLLAPSED;
	uint64_t step = collapse ? gw_pages_huge_bytes() : HUGETLB_BYTES;
	gw_status status = GW_OK;
	for (uint64_t at = begin, next; at < end && status == GW_OK; at = next) {
		next = end - at < step ? end : at + step;
		if (collapse)
			status = populate_collapsed(pages, at, next);
		if (status == GW_OK)
			status = pages_populate(pages, at, next);
	}
	return status;
}

gw_status gw_pages_populate(struct gw_pages *pages, unsigned threads)
{
	uint64_t grain = pages_round_up(POPULATE_BYTES, level_page_bytes(pages->level));
	gw_status status = gw_parallel_for(threads, pages->bytes, grain, populate_range, pages);
	if (status != GW_OK)
		return status;
	if (pages->level == GW_PAGES_COLLAPSED)
		pages->huge_share = gw_pages_huge_share(pages->base, pages->bytes);
	else
		pages->huge_share = pages->level == GW_PAGES_HUGETLB ? 1.0 : 0.0;
	return GW_OK;
}

/* ---- adopt ---- */

static gw_status adopt_check(int fd, const struct gw_pages *pages)
{
	struct stat st;
	uint64_t page = pages->level == GW_PAGES_HUGETLB ? HUGETLB_BYTES : (uint64_t)sysconf(_SC_PAGESIZE);
	if (fstat(fd, &st) != 0)
		return gw_fail_errno(GW_INVALID, errno, "the memory of another process");
	if (pages->level > GW_PAGES_HUGETLB || !pages->bytes || pages->bytes % page ||
	    (uint64_t)st.st_size != pages->bytes || !pages->slice_bytes || pages->slice_bytes % page ||
	    (pages->slice_bytes & (pages->slice_bytes - 1)))
		return gw_fail(GW_INVALID, "memory of %llu bytes in slices of %llu is described, and %llu bytes came",
			       (unsigned long long)pages->bytes, (unsigned long long)pages->slice_bytes,
			       (unsigned long long)st.st_size);
	return GW_OK;
}

/* Fills the page tables, so that the first clients do not wait for them. Best effort. */
static gw_status adopt_range(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct gw_pages *pages = context;
	(void)thread;
	for (uint64_t at = begin, next; at < end; at = next) {
		next = end - at < HUGETLB_BYTES ? end : at + HUGETLB_BYTES;
		if (madvise(pages->base + at, next - at, MADV_POPULATE_READ) != 0 && errno != EAGAIN)
			break;
	}
	return GW_OK;
}

gw_status gw_pages_adopt(int fd, bool writable, struct gw_pages *out)
{
	uint64_t align = gw_pages_huge_bytes() > HUGETLB_BYTES ? gw_pages_huge_bytes() : HUGETLB_BYTES;
	int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	gw_status status = adopt_check(fd, out);
	out->fd = -1;
	out->mark = out->reservation = NULL;
	if (status == GW_OK)
		status = pages_reserve(out, align);
	if (status == GW_OK && mmap(out->base, out->bytes, rights, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		status = errno == ENOMEM ? map_failed(errno, "a mapping", out->bytes)
					 : gw_fail_errno(GW_UNSUPPORTED, errno, "the memory of another process");
	if (status == GW_OK && !writable) {
		out->mark_bytes = out->level == GW_PAGES_HUGETLB ? HUGETLB_BYTES : (uint64_t)sysconf(_SC_PAGESIZE);
		out->mark = mmap(NULL, out->mark_bytes, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
		if (out->mark == MAP_FAILED) {
			out->mark = NULL;
			status = map_failed(errno, "a mapping", out->mark_bytes);
		}
	}
	if (status != GW_OK) {
		gw_pages_unmap(out);
		return status;
	}
	gw_parallel_for(0, out->bytes, pages_round_up(POPULATE_BYTES, level_page_bytes(out->level)), adopt_range, out);
	out->fd = fd;
	return GW_OK;
}

/* ---- what huge pages back ---- */

/* Adds up the huge pages of the mappings that start in the range. The strips around it keep mappings separate. */
double gw_pages_huge_share(const uint8_t *base, uint64_t bytes)
{
	static const char *const fields[] = {
		"AnonHugePages:", "ShmemPmdMapped:", "Private_Hugetlb:", "Shared_Hugetlb:"};
	FILE *file = fopen("/proc/self/smaps", "re");
	if (!file)
		return 0;
	char line[512];
	bool inside = false;
	uint64_t kib = 0;
	while (fgets(line, sizeof(line), file)) {
		char *end;
		uint64_t first = strtoull(line, &end, 16);
		if (*end == '-') {
			inside = first >= (uintptr_t)base && first < (uintptr_t)base + bytes;
			continue;
		}
		uint64_t value;
		for (size_t i = 0; inside && i < sizeof(fields) / sizeof(*fields); i++) {
			if (gw_sysfile_field(line, fields[i], &value))
				kib += value;
		}
	}
	fclose(file);
	double share = (double)kib * 1024 / (double)bytes;
	return share > 1 ? 1 : share;
}
