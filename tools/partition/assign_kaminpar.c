/* Assigns parts with KaMinPar, the module kaminpar of Python (MIT).
 *
 *   module checked -> symmetric graph as a file (lists.h) -> memory checked -> a Python process reads the file with
 *   compression, and writes one int32 a node to another file -> answer checked -> shares repaired (refine.h)
 *   -> nodes without neighbours even out the parts
 *
 * Both files have no name, and vanish with the processes, however these end. The module has no C API, so users install
 * it into a Python of theirs, which --python names. KaMinPar balances one weight of a node, the repair each quantity.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "core/system/processors.h"
#include "tools/partition/child.h"
#include "tools/partition/refine.h"

/* The memory of its process, measured on graphs of heavy-tailed degrees (docs/PERFORMANCE.md), without the mapped file.
 */
#define KAMINPAR_BYTES_ENTRY 8u
#define KAMINPAR_BYTES_NODE  128u
#define KAMINPAR_BYTES       (64u << 20)

#define REPAIR_PASSES 8u
#define EXIT_MODULE   3
#define EXIT_PYTHON   4

/* Without arguments it only looks for the module. The folder where the program runs is no place for modules. */
static const char script[] =
	"import sys\n"
	"sys.path[:] = [folder for folder in sys.path if folder]\n"
	"try:\n"
	"    import kaminpar\n"
	"except ImportError as error:\n"
	"    print(error)\n"
	"    sys.exit(3)\n"
	"if not getattr(kaminpar, '__64bit__', True):\n"
	"    print('its module kaminpar has 32-bit ids')\n"
	"    sys.exit(3)\n"
	"if len(sys.argv) > 1:\n"
	"    from array import array\n"
	"    graph, answer, pieces, threads, seed = map(int, sys.argv[1:])\n"
	"    kaminpar.reseed(seed)\n"
	"    lists = kaminpar.load_graph(f'/proc/self/fd/{graph}', kaminpar.GraphFileFormat.PARHIP, True)\n"
	"    found = kaminpar.KaMinPar(threads, kaminpar.default_context()).compute_partition(lists, pieces, 0.03)\n"
	"    with open(answer, 'wb', closefd=False) as file:\n"
	"        array('i', found).tofile(file)\n"
	"        file.truncate()\n";

struct python_work {
	const char *python;
	int graph, answer; /* -1: only look for the module */
	char words[5][24];
};

static int python_work(void *context)
{
	struct python_work *work = context;
	char *const words[] = {(char *)work->python, "-c",           (char *)script,
			       work->words[0],       work->words[1], work->words[2],
			       work->words[3],       work->words[4], NULL};
	char *const look[] = {(char *)work->python, "-c", (char *)script, NULL};
	if (work->graph >= 0) {
		fcntl(work->graph, F_SETFD, 0);
		fcntl(work->answer, F_SETFD, 0);
	}
	execvp(work->python, work->graph >= 0 ? words : look);
	printf("%s\n", strerror(errno));
	fflush(stdout);
	return EXIT_PYTHON;
}

static gw_status run_python(struct python_work *work)
{
	struct gw_child child;
	gw_status status = gw_child_run("KaMinPar", python_work, work, &child);
	if (status == GW_OK)
		status = gw_child_judge("KaMinPar", &child);
	if (status != GW_OK || WEXITSTATUS(child.status) == 0)
		return status;
	if (WEXITSTATUS(child.status) == EXIT_PYTHON)
		return gw_fail(GW_UNSUPPORTED,
			       "%s does not run (%s): --method kaminpar needs a Python with the module "
			       "kaminpar, which --python names; or use another --method",
			       work->python, child.said);
	if (WEXITSTATUS(child.status) == EXIT_MODULE)
		return gw_fail(GW_UNSUPPORTED,
			       "%s: %s: install it (%s -m pip install kaminpar), name another Python with "
			       "--python, or use another --method",
			       work->python, child.said, work->python);
	if (strstr(child.said, "MemoryError") || strstr(child.said, "bad_alloc"))
		return gw_fail(GW_NO_MEMORY, "KaMinPar ran out of memory (%s); try --method random", child.said);
	return gw_fail(GW_IO, "KaMinPar ended its process with status %d (%s); try another --seed, or --method random",
		       WEXITSTATUS(child.status), child.said);
}

gw_status gw_kaminpar_check(const struct gw_plan *plan)
{
	struct python_work work = {.python = plan->python, .graph = -1};
	return run_python(&work);
}

uint64_t gw_kaminpar_bytes(uint64_t nodes, uint64_t entries)
{
	return KAMINPAR_BYTES + entries * KAMINPAR_BYTES_ENTRY + nodes * KAMINPAR_BYTES_NODE;
}

struct kaminpar_plan {
	const struct gw_plan *plan;
	struct gw_balance balance;
	struct gw_spill spill;
	struct gw_list_file lists;
	struct gw_assignment *assignment;
};

/* Reads the answer, which must be one piece for each node. */
static gw_status kaminpar_take(const struct kaminpar_plan *k, int fd, int32_t *piece)
{
	struct stat found;
	uint64_t bytes = k->lists.nodes * sizeof(*piece), done = 0;
	if (fstat(fd, &found) != 0 || (uint64_t)found.st_size != bytes)
		return gw_fail(GW_RANGE,
			       "KaMinPar answered %" PRIu64 " bytes for %" PRIu64 " nodes; try --method random",
			       (uint64_t)found.st_size, k->lists.nodes);
	while (done < bytes) {
		ssize_t got = pread(fd, (char *)piece + done, bytes - done, (off_t)done);
		if (got <= 0 && errno != EINTR)
			return gw_fail_errno(GW_IO, errno, "KaMinPar's answer cannot be read");
		done += got > 0 ? (uint64_t)got : 0;
	}
	for (uint64_t v = 0; v < k->lists.nodes; v++) {
		if (piece[v] < 0 || (uint32_t)piece[v] >= k->assignment->pieces)
			return gw_fail(GW_RANGE,
				       "KaMinPar put node %" PRIu64 " into part %d of %u; try --method random", v,
				       piece[v], k->assignment->pieces);
	}
	return GW_OK;
}

static gw_status ask(struct kaminpar_plan *k, int32_t *piece)
{
	const struct gw_plan *plan = k->plan;
	struct python_work work = {.python = plan->python, .graph = k->lists.fd};
	const uint64_t words[] = {(uint64_t)work.graph, 0, k->assignment->pieces,
				  plan->threads ? plan->threads : gw_processors(), gw_mix64(plan->seed) & INT32_MAX};
	/* One byte more than an answer, so that a process that writes none is noticed. */
	gw_status status = gw_spill_file(&k->spill, k->lists.nodes * sizeof(*piece) + 1, &work.answer);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < 5; i++)
		snprintf(work.words[i], sizeof(work.words[i]), "%" PRIu64, i == 1 ? (uint64_t)work.answer : words[i]);
	k->assignment->process = "KaMinPar";
	k->assignment->keep = words[3] > 1;
	status = run_python(&work);
	if (status == GW_OK)
		status = kaminpar_take(k, work.answer, piece);
	close(work.answer);
	return status;
}

static gw_status kaminpar_assign(struct kaminpar_plan *k)
{
	const struct gw_balance *balance = &k->balance;
	struct gw_assignment *assignment = k->assignment;
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_spill_open(&k->spill, k->plan->out, 0);
	k->spill.reports = true;
	if (status == GW_OK)
		status = gw_list_file_make(balance, &k->spill, gw_plan_lists_bytes(k->plan), balance->quantities > 1,
					   &k->lists);
	if (status == GW_OK)
		status = gw_plan_memory_check(k->plan, gw_kaminpar_bytes(k->lists.nodes, k->lists.entries), "KaMinPar",
					      GW_PLAN_LESS_THAN_METIS);
	if (status != GW_OK)
		return status;
	assignment->symmetric_s = (double)(gw_now_ns() - start_ns) * 1e-9;

	start_ns = gw_now_ns();
	int32_t *piece = gw_calloc(k->lists.nodes + 1, sizeof(*piece));
	if (!piece)
		return GW_NO_MEMORY;
	if (k->lists.nodes > 0)
		status = ask(k, piece);
	if (status == GW_OK)
		status = gw_refine(balance, &k->lists, assignment->pieces, REPAIR_PASSES, piece);
	if (status == GW_OK)
		status = gw_balance_fill_up(balance, k->lists.origin, k->lists.nodes, piece, assignment);
	gw_free(piece);
	assignment->file_bytes = k->spill.file_bytes;
	assignment->method_s = (double)(gw_now_ns() - start_ns) * 1e-9;
	return status;
}

gw_status gw_assign_kaminpar(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	struct kaminpar_plan k = {.plan = plan, .assignment = assignment, .lists = {.fd = -1}};
	gw_status status = gw_kaminpar_check(plan);
	if (status == GW_OK)
		status = gw_balance_open(plan, part, &k.balance);
	if (status == GW_OK && assignment->pieces > 1)
		status = kaminpar_assign(&k);
	gw_list_file_close(&k.lists);
	gw_spill_close(&k.spill);
	gw_balance_free(&k.balance);
	return status;
}
