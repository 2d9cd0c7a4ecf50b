/* Looking at the machine: files of /proc and /sys, limits, and small trials where only trying tells. Then judging. */
#include "core/memory/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/errors/options.h"
#include "core/memory/arena_pages.h"
#include "core/system/parallel.h"
#include "core/system/sysfile.h"
#include "core/system/thread.h"
#include "core/system/uring.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

#define RINGS_MAX   64u  /* tried at once */
#define THREADS_MAX 256u /* likewise */

/* ---- looking ---- */

/* A limit does not bind who has CAP_IPC_LOCK outside any user namespace; only trying to pass it tells. Nothing is
 * faulted in for that. */
static uint64_t read_locked_limit(uint64_t page_bytes)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	size_t bytes = (limit.rlim_cur / page_bytes + 1) * page_bytes;
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return limit.rlim_cur;
	bool passed = mlock2(memory, bytes, MLOCK_ONFAULT) == 0;
	munmap(memory, bytes);
	return passed ? UINT64_MAX : limit.rlim_cur;
}

/* A server has a ring for each of its threads, and the limit of locked memory may have room for some of them only. */
static void try_rings(struct gw_probe *out)
{
	struct io_uring rings[RINGS_MAX];
	uint32_t wanted = out->processors < RINGS_MAX ? out->processors : RINGS_MAX;
	int error = 0;
	while (out->io_uring_rings < wanted && !error) {
		struct io_uring_params parameters = {.flags = IORING_SETUP_CQSIZE,
						     .cq_entries = 8 * GW_URING_SOCKET_ENTRIES};
		error = gw_uring_init(GW_URING_SOCKET_ENTRIES, &rings[out->io_uring_rings], &parameters);
		out->io_uring_rings += !error;
	}
	for (uint32_t i = 0; i < out->io_uring_rings; i++)
		gw_uring_exit(&rings[i]);
	if (out->io_uring_rings == wanted)
		out->io_uring_rings = out->processors;
}

static void try_io_uring(struct gw_probe *out)
{
	struct io_uring ring;
	struct io_uring_params parameters = {0};
	int error = gw_uring_init(2, &ring, &parameters);
	out->io_uring_error = -error;
	if (error)
		return;
	struct io_uring_cqe *cqe;
	io_uring_prep_nop(io_uring_get_sqe(&ring));
	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe) || cqe->res < 0)
		out->io_uring_error = EIO;
	void *page = mmap(NULL, out->page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED) {
		const struct iovec buffer = {.iov_base = page, .iov_len = out->page_bytes};
		out->io_uring_buffers = io_uring_register_buffers(&ring, &buffer, 1) == 0;
	}
	gw_uring_exit(&ring);
	if (page != MAP_FAILED)
		munmap(page, out->page_bytes);
	if (!out->io_uring_error)
		try_rings(out);
}

static void *wait_for_end(void *context)
{
	pthread_mutex_t *lock = context;
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* Which limits bind is not to be read from files: of a user's threads that run elsewhere, and of privileges. */
static void try_threads(struct gw_probe *out)
{
	pthread_t threads[THREADS_MAX] = {0};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t wanted = out->processors < THREADS_MAX ? out->processors : THREADS_MAX;
	pthread_mutex_lock(&lock);
	while (out->threads < wanted && gw_thread_start(&threads[out->threads], wait_for_end, &lock) == 0)
		out->threads++;
	pthread_mutex_unlock(&lock);
	for (uint32_t i = 0; i < out->threads; i++)
		pthread_join(threads[i], NULL);
	if (out->threads == wanted)
		out->threads = out->processors;
}

static bool try_collapse(uint64_t huge_bytes)
{
	struct gw_pages pages;
	if (gw_memory_check(huge_bytes, -1, "probe") ||
	    gw_pages_map(huge_bytes, GW_PAGES_COLLAPSED, true, "probe", 1, &pages))
		return false;
	bool works = gw_pages_populate(&pages, 1) == GW_OK && pages.huge_share > 0.5;
	gw_pages_unmap(&pages);
	return works;
}

static void read_hugetlb(struct gw_probe *out)
{
	const char *pool = "hugepages/hugepages-2048kB";
	gw_sysfile_number(&out->hugetlb_pages, "/sys/kernel/mm/%s/nr_hugepages", pool);
	gw_sysfile_number(&out->hugetlb_free, "/sys/kernel/mm/%s/free_hugepages", pool);
	for (uint32_t i = 0; i < out->nodes.count; i++)
		gw_sysfile_number(&out->node_hugetlb_free[i], "/sys/devices/system/node/node%u/%s/free_hugepages",
				  out->nodes.numbers[i], pool);
}

void gw_probe_read(struct gw_probe *out)
{
	*out = (struct gw_probe){.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	char text[256];
	struct rlimit files;
	out->processors = gw_processors();
	out->huge_bytes = gw_pages_huge_bytes();
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		out->open_files_max = files.rlim_cur;
	out->locked_bytes_max = read_locked_limit(out->page_bytes);
	if (gw_sysfile_read(text, sizeof(text), "/sys/kernel/mm/transparent_hugepage/enabled"))
		gw_sysfile_choice(text, out->thp, sizeof(out->thp));
	if (gw_sysfile_read(text, sizeof(text), "/sys/kernel/mm/transparent_hugepage/shmem_enabled"))
		gw_sysfile_choice(text, out->thp_shared, sizeof(out->thp_shared));
	out->collapse = try_collapse(out->huge_bytes);
	out->io_uring_switch = gw_uring_switch("");
	try_io_uring(out);
	try_threads(out);
	gw_memory_read("", -1, &out->memory);
	gw_numa_nodes_read("", &out->nodes);
	read_hugetlb(out);
}

/* ---- judging ---- */

static void probe_note(char text[GW_FINDING_TEXT_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void probe_note(char text[GW_FINDING_TEXT_MAX], const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, GW_FINDING_TEXT_MAX, format, arguments);
	va_end(arguments);
}

static void judge_memory(const struct gw_probe *probe, uint64_t bytes, struct gw_finding *finding)
{
	char available[GW_UNIT_TEXT_MAX];
	finding->what = "memory";
	/* Pages in the hugetlb pool are taken already and serve us all the same. */
	uint64_t pool = probe->hugetlb_free * GW_HUGETLB_BYTES;
	finding->ok = bytes <= probe->memory.available || bytes <= pool;
	probe_note(finding->found, "%s available", gw_text_bytes(available, (double)probe->memory.available));
	if (!finding->ok && gw_memory_is_grouped(&probe->memory))
		probe_note(finding->remedy, "raise the control group's limit of %s, %s",
			   gw_text_bytes(available, (double)probe->memory.group.limit), probe->memory.group.file);
	else if (!finding->ok)
		probe_note(finding->remedy, "more parts, or a machine with more memory");
}

static void judge_locked(const struct gw_probe *probe, uint64_t bytes, struct gw_finding *finding)
{
	char limit[GW_UNIT_TEXT_MAX];
	bool unlimited = probe->locked_bytes_max == UINT64_MAX;
	finding->what = "locked memory";
	finding->ok = unlimited || probe->locked_bytes_max >= (bytes ? bytes : 1);
	probe_note(finding->found, "%s",
		   unlimited ? "no limit" : gw_text_bytes(limit, (double)probe->locked_bytes_max));
	if (!finding->ok)
		probe_note(finding->remedy, "ulimit -l unlimited (a unit: LimitMEMLOCK=infinity; a container: docker "
					    "run --ulimit memlock=-1)");
}

static void judge_hugetlb(const struct gw_probe *probe, uint64_t bytes, struct gw_finding *finding)
{
	uint64_t wanted = bytes / GW_HUGETLB_BYTES + (bytes % GW_HUGETLB_BYTES != 0);
	uint64_t lent = probe->hugetlb_pages - probe->hugetlb_free;
	finding->what = "hugetlb pages";
	finding->ok = probe->hugetlb_free >= wanted;
	probe_note(finding->found, "%llu of 2 MiB free", (unsigned long long)probe->hugetlb_free);
	if (!finding->ok)
		probe_note(finding->remedy, "sysctl -w vm.nr_hugepages=%llu", (unsigned long long)(lent + wanted));
}

static void judge_huge(const struct gw_probe *probe, struct gw_finding *finding)
{
	bool shared = strcmp(probe->thp_shared, "always") == 0 || strcmp(probe->thp_shared, "advise") == 0 ||
		      strcmp(probe->thp_shared, "force") == 0 || strcmp(probe->thp_shared, "within_size") == 0;
	finding->what = "huge pages";
	finding->ok = probe->collapse || shared;
	probe_note(finding->found, "%s; %s, for shared memory %s", probe->collapse ? "can be made" : "cannot be made",
		   probe->thp[0] ? probe->thp : "none", probe->thp_shared[0] ? probe->thp_shared : "none");
	if (!finding->ok && probe->thp_shared[0])
		probe_note(finding->remedy, "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	else if (!finding->ok)
		probe_note(finding->remedy, "a kernel with CONFIG_TRANSPARENT_HUGEPAGE, 6.1 or later");
}

static void judge_io_uring(const struct gw_probe *probe, struct gw_finding *finding)
{
	char buffer[128];
	finding->what = "io_uring";
	bool enough = probe->io_uring_rings >= probe->processors;
	finding->ok = probe->io_uring_error == 0 && probe->io_uring_buffers && enough;
	if (probe->io_uring_error)
		probe_note(finding->found, "refused: %s", strerror_r(probe->io_uring_error, buffer, sizeof(buffer)));
	else if (!enough)
		probe_note(finding->found,
			   "works for %u of %u threads: the limit of locked memory has no room for more",
			   probe->io_uring_rings, probe->processors);
	else
		probe_note(finding->found, "%s",
			   probe->io_uring_buffers ? "works" : "works, without registered buffers");
	if (!finding->ok)
		probe_note(finding->remedy, "%s",
			   gw_uring_remedy(probe->io_uring_error ? probe->io_uring_error : ENOMEM,
					   probe->io_uring_switch));
}

static void judge_open_files(const struct gw_probe *probe, struct gw_finding *finding)
{
	const uint64_t wanted = 1024;
	finding->what = "open files";
	finding->ok = probe->open_files_max >= wanted;
	probe_note(finding->found, "at most %llu", (unsigned long long)probe->open_files_max);
	if (!finding->ok)
		probe_note(finding->remedy,
			   "ulimit -n %llu (a unit: LimitNOFILE=%llu; a container: docker run --ulimit nofile=%llu)",
			   (unsigned long long)wanted, (unsigned long long)wanted, (unsigned long long)wanted);
}

static void judge_nodes(const struct gw_probe *probe, struct gw_finding *finding)
{
	finding->what = "NUMA nodes";
	finding->ok = true;
	probe_note(finding->found, "%u, %u processors", probe->nodes.count, probe->processors);
}

uint32_t gw_probe_findings(const struct gw_probe *probe, uint64_t bytes, struct gw_finding findings[GW_FINDINGS_MAX])
{
	uint32_t count = 0;
	memset(findings, 0, GW_FINDINGS_MAX * sizeof(*findings));
	judge_memory(probe, bytes, &findings[count++]);
	judge_locked(probe, bytes, &findings[count++]);
	judge_hugetlb(probe, bytes, &findings[count++]);
	judge_huge(probe, &findings[count++]);
	judge_io_uring(probe, &findings[count++]);
	judge_open_files(probe, &findings[count++]);
	judge_nodes(probe, &findings[count++]);
	return count;
}

char *gw_probe_missing(const struct gw_finding *findings, uint32_t count, char *buffer, size_t bytes)
{
	size_t used = 0;
	buffer[0] = 0;
	for (uint32_t i = 0; i < count && used < bytes; i++) {
		if (findings[i].ok)
			continue;
		int length = snprintf(buffer + used, bytes - used, "%s%s: %s%s%s%s", used ? "; " : "", findings[i].what,
				      findings[i].found, findings[i].remedy[0] ? " (" : "", findings[i].remedy,
				      findings[i].remedy[0] ? ")" : "");
		if (length < 0)
			break;
		used += (size_t)length;
	}
	return buffer;
}
