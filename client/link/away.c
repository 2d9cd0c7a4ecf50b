/* Giving up, or trying again: see away.h. Not all clients of a server that was lost at the same moment come back at the
 * same moment, and none hurries a server that keeps dying. */
#include "client/link/away.h"

#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/errors/units.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define BACKOFF_MAX_NS (2000 * GW_NS_PER_MS)
/* Long enough for a server that restarts to leave its key, and for others to give back what has run out. */
#define STUBBORN_MS 5000
#define STUBBORN_NS (STUBBORN_MS * GW_NS_PER_MS)
#define TELL_MS     1000 /* shorter absences are nobody's news, nor are waits that end so soon */
#define LOG_NS      (TELL_MS * GW_NS_PER_MS)

/* --- What is said. --- */

/* Whether the server is waited for, and not just this link's next attempt: engines come back one by one. */
static bool is_news(const struct gw_link *link, uint64_t now_ns)
{
	uint64_t back_ns = atomic_load(&link->server->back_ns);
	return link->away_ns && now_ns >= link->away_ns + LOG_NS &&
	       (!back_ns || now_ns >= back_ns + BACKOFF_MAX_NS + LOG_NS);
}

void gw_link_log_away(struct gw_link *link, uint64_t now_ns, int64_t limit_ms)
{
	char reason[GW_ERROR_TEXT_MAX], limit[GW_UNIT_TEXT_MAX];
	if (link->told || (limit_ms >= 0 && limit_ms / 2 < TELL_MS) || !is_news(link, now_ns))
		return;
	if (link->lasting_ns && (limit_ms < 0 || limit_ms > STUBBORN_MS))
		limit_ms = STUBBORN_MS;
	link->told = true;
	if (atomic_fetch_add(&link->server->waited_for, 1) > 0)
		return;
	if (link->failure)
		snprintf(reason, sizeof(reason), "%s", link->reason);
	else
		gw_link_name(link, "no answer yet", reason);
	if (limit_ms < 0)
		gw_log(GW_LOG_WARN, "%s; waiting for it, as long as it takes", reason);
	else
		gw_log(GW_LOG_WARN, "%s; waiting for it, up to %s", reason,
		       gw_text_duration(limit, (double)limit_ms / 1000));
}

/* Returns whether it was the last one that waited. */
static bool nobody_waits(struct gw_link *link)
{
	if (!link->told)
		return false;
	link->told = false;
	return atomic_fetch_sub(&link->server->waited_for, 1) == 1;
}

void gw_link_log_recovered(struct gw_link *link)
{
	char away[GW_UNIT_TEXT_MAX], text[GW_ERROR_TEXT_MAX];
	bool last = nobody_waits(link);
	atomic_store(&link->server->back_ns, gw_now_ns());
	if (!last && !link->failure)
		return;
	gw_text_duration(away, (double)(gw_now_ns() - link->away_ns) / (double)GW_NS_PER_SECOND);
	gw_link_name(link, "back", text);
	gw_log(last ? GW_LOG_WARN : GW_LOG_INFO, "%s after %s", text, away);
}

/* --- What is done. --- */

/* Fails every op that waits. One that a closed connection has not let go of yet fails when its completion comes. */
static void fail_queue(struct gw_link *link)
{
	while (link->head && link->state == GW_LINK_DOWN) {
		struct gw_link_op *op = link->head;
		gw_link_dequeue(link, op);
		if (op->open)
			continue;
		gw_fail_text(link->failure, link->reason);
		op->done(op, link->failure, NULL);
	}
}

/* The reads that wait fail, and the next one starts from the beginning. */
static void away_give_up(struct gw_link *link)
{
	link->state = GW_LINK_DOWN;
	nobody_waits(link);
	link->away_ns = 0;
	link->lasting_ns = 0;
	link->backoff_ns = 0;
	fail_queue(link);
}

/* Another graph or version does not become right by waiting. */
static bool is_final(gw_status status)
{
	return status == GW_WRONG_GRAPH || status == GW_VERSION || status == GW_UNSUPPORTED || status == GW_INVALID;
}

/* Nor do, as a rule, another key, a stranger on the port, and what this process has run out of. */
static bool is_lasting(gw_status status)
{
	return status == GW_REFUSED || status == GW_PROTOCOL || status == GW_NO_MEMORY || status == GW_LIMIT ||
	       status == GW_LOCKED_MEMORY;
}

/* Whether it has been one stubborn failure after another for too long. */
static bool has_failed_too_long(struct gw_link *link, gw_status status, uint64_t now_ns)
{
	if (!is_lasting(status))
		link->lasting_ns = 0;
	else if (!link->lasting_ns)
		link->lasting_ns = now_ns;
	return link->lasting_ns && now_ns - link->lasting_ns >= STUBBORN_NS;
}

/* An attempt that the end of the budget cut short says less than the one before it. */
static bool is_cut_short(const struct gw_link *link, gw_status status, uint64_t now_ns)
{
	return status == GW_DEADLINE && link->failure && link->away_ns &&
	       now_ns >= gw_link_budget_end(link, link->away_ns);
}

static void away_append(struct gw_link *link, const char *more)
{
	size_t used = strlen(link->reason);
	snprintf(link->reason + used, sizeof(link->reason) - used, "; %s", more);
}

void gw_link_note_failure(struct gw_link *link, gw_status status, const char *reason)
{
	if (is_cut_short(link, status, gw_now_ns()))
		return;
	gw_link_name(link, reason && *reason ? reason : gw_status_text(status), link->reason);
	link->failure = status;
}

void gw_link_wait_or_give_up(struct gw_link *link, gw_status status)
{
	uint64_t now = gw_now_ns();
	if (!link->away_ns)
		link->away_ns = now;
	if (is_final(status)) {
		away_give_up(link);
		return;
	}
	if (has_failed_too_long(link, status, now)) {
		away_append(link, "waiting does not help");
		away_give_up(link);
		return;
	}
	link->state = GW_LINK_WAITING;
	for (struct gw_link_op *op = link->head; op; op = op->next)
		gw_link_op_stop_clock(op, now);
	link->backoff_ns = link->backoff_ns ? link->backoff_ns * 2 : GW_BACKOFF_MIN_NS;
	if (link->backoff_ns > BACKOFF_MAX_NS)
		link->backoff_ns = BACKOFF_MAX_NS;
	link->retry_ns = now + link->backoff_ns - gw_mix64(now ^ (uintptr_t)link) % (link->backoff_ns / 2);
	gw_log(GW_LOG_INFO, "%s; trying again in %llu ms", link->reason,
	       (unsigned long long)((link->retry_ns - now) / GW_NS_PER_MS));
}

bool gw_link_overdue(struct gw_link *link, uint64_t now_ns)
{
	char budget[64];
	if (now_ns < gw_link_budget_end(link, link->away_ns))
		return false;
	snprintf(budget, sizeof(budget), "not back within the reconnect budget of %lld ms",
		 (long long)link->engine->client->reconnect_ms);
	away_append(link, budget);
	if (link->failure == GW_DEADLINE) /* of a connect, not of the operation */
		link->failure = GW_PEER_LOST;
	away_give_up(link);
	return true;
}
