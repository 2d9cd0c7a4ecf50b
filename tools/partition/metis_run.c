/* Runs METIS once, in its own process (child.h).
 *
 *   result mapped shared -> the child calls METIS -> its end, METIS's status and its last line of output become GW_OK
 * or an error
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
#include <sys/mman.h>

#include "core/numbers/rng.h"
#include "tools/partition/child.h"
#include "tools/partition/plan.h"

#ifdef GRAPHWIRE_METIS
_Static_assert(sizeof(idx_t) == sizeof(int32_t), "METIS with 32-bit ids, as Debian builds it");

#define RECURSIVE_MAX 64

/* METIS's own limits of a share over the mean. */
#define ROOM_BISECTION 1.01f /* of several constraints */
#define ROOM_KWAY      1.03f

#define CONSTRAINTS_MAX (2 * GW_PLAN_CONSTRAINTS_MAX)

struct shared {
	int32_t done, status;
	int64_t measure;
	int32_t piece[];
};

static bool is_recursive(const struct gw_metis_job *job)
{
	return job->objective != GW_PLAN_VOL && job->pieces <= RECURSIVE_MAX;
}

/* room: for each constraint its limit; NULL: METIS's own. */
static int call_metis(const struct gw_metis_job *job, real_t *room, struct shared *shared)
{
	idx_t options[METIS_NOPTIONS], measure = 0;
	METIS_SetDefaultOptions(options);
	bool volume = job->objective == GW_PLAN_VOL, recursive = is_recursive(job);
	options[METIS_OPTION_NUMBERING] = 0;
	options[METIS_OPTION_SEED] = (idx_t)(gw_mix64(job->seed) & INT32_MAX);
	options[METIS_OPTION_OBJTYPE] = volume ? METIS_OBJTYPE_VOL : METIS_OBJTYPE_CUT;
	idx_t nodes = job->nodes, constraints = job->constraints, pieces = job->pieces;
	int status = (recursive ? METIS_PartGraphRecursive : METIS_PartGraphKway)(
		&nodes, &constraints, job->xadj, job->adjncy, job->vwgt, NULL, volume ? NULL : job->adjwgt, &pieces,
		NULL, room, options, &measure, shared->piece);
	shared->measure = measure;
	return status;
}

struct metis_work {
	const struct gw_metis_job *job;
	real_t *room;
	struct shared *shared;
};

static int metis_work(void *context)
{
	const struct metis_work *work = context;
	work->shared->status = call_metis(work->job, work->room, work->shared);
	work->shared->done = 1;
	return 0;
}

static gw_status judge(const struct gw_child *child, const struct shared *shared)
{
	gw_status status = gw_child_judge("METIS", child);
	if (status != GW_OK)
		return status;
	if (!shared->done)
		return gw_fail(GW_IO, "METIS ended its process (%s); try another --seed, or --method random",
			       child->said);
	if (shared->status == METIS_ERROR_MEMORY)
		return gw_fail(GW_NO_MEMORY, "METIS ran out of memory (%s); try --method random", child->said);
	if (shared->status != METIS_OK)
		return gw_fail(GW_INVALID, "METIS gave up with status %d (%s); try --method random", shared->status,
			       child->said);
	return GW_OK;
}

struct total {
	uint64_t sum, most; /* of a constraint's weights */
};

/* METIS would divide by the sum. */
static void drop_empty(struct gw_metis_job *job, struct total *total)
{
	int32_t kept = 0, place[CONSTRAINTS_MAX] = {0}, all = job->constraints;
	for (int32_t v = 0; v < job->nodes; v++) {
		for (int32_t c = 0; c < all; c++) {
			uint64_t weight = (uint64_t)job->vwgt[(int64_t)v * all + c];
			total[c].sum += weight;
			total[c].most = weight > total[c].most ? weight : total[c].most;
		}
	}
	for (int32_t c = 0; c < all; c++) {
		if (total[c].sum == 0)
			continue;
		total[kept] = total[c];
		place[kept++] = c;
	}
	for (int32_t v = 0; v < job->nodes; v++) {
		for (int32_t k = 0; k < kept; k++)
			job->vwgt[(int64_t)v * kept + k] = job->vwgt[(int64_t)v * all + place[k]];
	}
	job->constraints = kept;
}

/* Whether a constraint needs more room than METIS gives it. */
static bool widen_limits(const struct gw_metis_job *job, const struct total *total, real_t *room)
{
	uint64_t pieces = (uint64_t)job->pieces;
	bool more = false;
	for (int32_t c = 0; c < job->constraints; c++) {
		uint64_t least = (total[c].sum + pieces - 1) / pieces;
		least = total[c].most > least ? total[c].most : least;
		real_t needed = (real_t)((double)least * (double)pieces / (double)total[c].sum);
		room[c] = is_recursive(job) ? ROOM_BISECTION : ROOM_KWAY;
		if (needed > room[c]) {
			room[c] = needed;
			more = true;
		}
	}
	return more;
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
	struct gw_child child;
	size_t bytes = sizeof(struct shared) + (size_t)job->nodes * sizeof(int32_t);
	struct shared *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "METIS: out of memory for its result");
	struct metis_work work = {.job = job, .shared = shared};
	struct total total[CONSTRAINTS_MAX] = {0};
	real_t room[CONSTRAINTS_MAX];
	if (job->vwgt) {
		drop_empty(job, total);
		if (job->constraints > 1 && widen_limits(job, total, room))
			work.room = room;
	}
	gw_status status = gw_child_run("METIS", metis_work, &work, &child);
	if (status == GW_OK)
		status = judge(&child, shared);
	if (status == GW_OK)
		status = take_result(job, shared);
	munmap(shared, bytes);
	return status;
}

#else /* without METIS */

gw_status gw_metis_check_built(void)
{
	return gw_fail(
		GW_UNSUPPORTED,
		"this graphwire was built without METIS: use --method lp or --method random, or install METIS (Debian: "
		"libmetis-dev) and build again");
}

gw_status gw_metis_run(struct gw_metis_job *job)
{
	(void)job;
	return gw_metis_check_built();
}
#endif
