/* Runs METIS once, in its own process.
 *
 *   result mapped shared -> fork -> the child calls METIS, its output caught in a memfd -> the parent waits and shows
 *   progress -> exit status, METIS's status and its last line of output become GW_OK or an error
 *
 * METIS prints to stdout, handles SIGABRT and SIGTERM, draws from the C library's generator, and may exit, abort or
 * leak memory after an error. In a child none of this affects the program, and the kernel frees all memory at the end.
 * The child dies with its parent.
 *
 * Bisection or k-way: recursive bisection runs up to RECURSIVE_MAX pieces. K-way runs above that, and for the volume,
 * which bisection cannot minimise. On heavy-tailed graphs coarsening stalls at a large graph, and k-way's first cut of
 * that graph takes as long as several bisections. R-MAT of scale 20 in two parts took 41 s and cut 39 % of the edges
 * with k-way, 11 s and 19 % with bisection (METIS 5.1.0).
 *
 * A build without METIS (GRAPHWIRE_METIS, CMakeLists.txt) refuses every run.
 */
#include <errno.h>
#ifdef GRAPHWIRE_METIS
#include <metis.h>
#endif
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/numbers/rng.h"
#include "core/system/progress.h"
#include "tools/partition/plan.h"

#ifdef GRAPHWIRE_METIS
_Static_assert(sizeof(idx_t) == sizeof(int32_t), "METIS with 32-bit ids, as Debian builds it");

#define RECURSIVE_MAX 64
#define LOOK_MS       200 /* interval of the parent's progress updates */

struct shared {
	int32_t done, status;
	int64_t measure;
	int32_t piece[];
};

static int call_metis(const struct gw_metis_job *job, struct shared *shared)
{
	idx_t options[METIS_NOPTIONS], measure = 0;
	METIS_SetDefaultOptions(options);
	bool volume = job->objective == GW_PLAN_VOL;
	options[METIS_OPTION_NUMBERING] = 0;
	options[METIS_OPTION_SEED] = (idx_t)(gw_mix64(job->seed) & INT32_MAX);
	options[METIS_OPTION_OBJTYPE] = volume ? METIS_OBJTYPE_VOL : METIS_OBJTYPE_CUT;
	idx_t nodes = job->nodes, constraints = job->constraints, pieces = job->pieces;
	bool recursive = !volume && pieces <= RECURSIVE_MAX;
	int status = (recursive ? METIS_PartGraphRecursive : METIS_PartGraphKway)(
		&nodes, &constraints, job->xadj, job->adjncy, job->vwgt, NULL, volume ? NULL : job->adjwgt, &pieces,
		NULL, NULL, options, &measure, shared->piece);
	shared->measure = measure;
	return status;
}

static void child_main(const struct gw_metis_job *job, struct shared *shared, int output, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	shared->status = call_metis(job, shared);
	shared->done = 1;
	_exit(0);
}

static void last_line(int output, char *line, size_t room)
{
	char text[2048];
	off_t end = lseek(output, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
	ssize_t got = pread(output, text, sizeof(text) - 1, from);
	text[got > 0 ? got : 0] = '\0';
	size_t length = strlen(text);
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		text[--length] = '\0';
	const char *newline = strrchr(text, '\n');
	snprintf(line, room, "%s", newline ? newline + 1 : text);
}

/* The child's end closes `alive`. Returns the child's wait status. */
static int wait_child(pid_t child, int alive)
{
	struct gw_progress progress;
	struct pollfd closed = {.fd = alive, .events = POLLIN};
	gw_progress_begin(&progress, "METIS", NULL, 0);
	while (poll(&closed, 1, LOOK_MS) <= 0)
		gw_progress_update(&progress, 0);
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	gw_progress_end(&progress, 0);
	return status;
}

static gw_status judge(int wait_status, const struct shared *shared, int output)
{
	char line[256];
	last_line(output, line, sizeof(line));
	const char *said = line[0] ? line : "no output";
	if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL)
		return gw_fail(GW_NO_MEMORY, "METIS was killed, probably because the machine ran out of memory; "
					     "partition on a machine with more memory, or use --method random");
	if (WIFSIGNALED(wait_status))
		return gw_fail(GW_IO, "METIS died of signal %d (%s); try another --seed, or --method random",
			       WTERMSIG(wait_status), said);
	if (!shared->done)
		return gw_fail(GW_IO, "METIS ended its process (%s); try another --seed, or --method random", said);
	if (shared->status == METIS_ERROR_MEMORY)
		return gw_fail(GW_NO_MEMORY, "METIS ran out of memory (%s); try --method random", said);
	if (shared->status != METIS_OK)
		return gw_fail(GW_INVALID, "METIS gave up with status %d (%s); try --method random", shared->status,
			       said);
	return GW_OK;
}

static gw_status take_result(struct gw_metis_job *job, const struct shared *shared)
{
	job->measure = shared->measure;
	for (int32_t v = 0; v < job->nodes; v++) {
		if (shared->piece[v] < 0 || shared->piece[v] >= job->pieces)
			return gw_fail(GW_RANGE, "METIS put node %d into part %d of %d; try --method random", v,
				       shared->piece[v], job->pieces);
		job->piece[v] = shared->piece[v];
	}
	return GW_OK;
}

gw_status gw_metis_check_built(void)
{
	return GW_OK;
}

gw_status gw_metis_run(struct gw_metis_job *job)
{
	gw_status status = GW_OK;
	int alive[2], output = memfd_create("metis output", MFD_CLOEXEC);
	if (output < 0)
		return gw_fail_errno(GW_IO, errno, "METIS: cannot make a memfd");
	if (pipe(alive) < 0) {
		status = gw_fail_errno(GW_IO, errno, "METIS: cannot make a pipe");
		goto close_output;
	}
	size_t bytes = sizeof(struct shared) + (size_t)job->nodes * sizeof(int32_t);
	struct shared *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		status = gw_fail_errno(GW_NO_MEMORY, errno, "METIS: out of memory for its result");
		goto close_pipe;
	}
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		close(alive[0]);
		child_main(job, shared, output, parent);
	}
	if (child < 0) {
		status = gw_fail_errno(GW_NO_MEMORY, errno, "METIS: cannot start its process");
		goto unmap;
	}
	close(alive[1]);
	alive[1] = -1;
	status = judge(wait_child(child, alive[0]), shared, output);
	if (status == GW_OK)
		status = take_result(job, shared);
unmap:
	munmap(shared, bytes);
close_pipe:
	close(alive[0]);
	if (alive[1] >= 0)
		close(alive[1]);
close_output:
	close(output);
	return status;
}

#else /* without METIS */

gw_status gw_metis_check_built(void)
{
	return gw_fail(GW_UNSUPPORTED,
		       "this graphwire was built without METIS: use --method random, or install METIS (Debian: "
		       "libmetis-dev) and build again");
}

gw_status gw_metis_run(struct gw_metis_job *job)
{
	(void)job;
	return gw_metis_check_built();
}
#endif
