/* Gives up or tries again: see away.h. Retry times are random, so that not all clients of a lost server reconnect at
 * the same moment. Pauses grow, so that no client overloads a server that keeps dying. */
#include "client/link/away.h"

#include <stdio.h>
#include <string.h>

#include "client/link/link_trace.h"
#include "client/link/op_end.h"
#include "core/errors/log.h"
#include "core/errors/units.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define BACKOFF_MAX_NS (2000 * GW_NS_PER_MS)
/* Long enough for a restarting server to write its key, and for other processes to free resources. */
#define LASTING_MAX_MS 5000
#define LASTING_MAX_NS (LASTING_MAX_MS * GW_NS_PER_MS)
#define LOG_AFTER_MS   1000 /* shorter absences are not logged, nor are waits limited to less than twice this */
#define LOG_AFTER_NS   (LOG_AFTER_MS * GW_NS_PER_MS)

/* --- Logging. --- */

/* From when on the server has been away long enough for a log line. If another engine has reconnected recently, the
 * server is back, and this link only waits for its next attempt. */
static uint64_t worth_logging_ns(const struct gw_link *link)
{
	uint64_t back_ns = atomic_load(&link->server->back_ns);
	uint64_t away = link->away_ns + LOG_AFTER_NS, back = back_ns ? back_ns + BACKOFF_MAX_NS + LOG_AFTER_NS : 0;
	return !link->away_ns ? GW_NO_DEADLINE : away > back ? away : back;
}

uint64_t gw_link_log_away(struct gw_link *link, uint64_t now_ns, int64_t limit_ms)
{
	char reason[GW_ERROR_TEXT_MAX], limit[GW_UNIT_TEXT_MAX];
	if (link->logged_away || (limit_ms >= 0 && limit_ms / 2 < LOG_AFTER_MS))
		return GW_NO_DEADLINE;
	uint64_t due_ns = worth_logging_ns(link);
	if (now_ns < due_ns)
		return due_ns;
	if (link->lasting_ns && (limit_ms < 0 || limit_ms > LASTING_MAX_MS))
		limit_ms = LASTING_MAX_MS;
	link->logged_away = true;
	if (atomic_fetch_add(&link->server->waited_for, 1) > 0)
		return GW_NO_DEADLINE;
	if (link->failure)
		snprintf(reason, sizeof(reason), "%s", link->reason);
	else
		gw_link_name(link, "no answer yet", reason);
	if (limit_ms < 0)
		gw_log(GW_LOG_WARN, "%s; waiting for it, as long as it takes", reason);
	else
		gw_log(GW_LOG_WARN, "%s; waiting for it, up to %s", reason,
		       gw_text_duration(limit, (double)limit_ms / 1000));
	return GW_NO_DEADLINE;
}

/* Records that the link no longer waits. Returns how many links still wait for the server; UINT32_MAX: this link had
 * not logged that it waits. */
static uint32_t away_end_wait(struct gw_link *link)
{
	if (!link->logged_away)
		return UINT32_MAX;
	link->logged_away = false;
	return atomic_fetch_sub(&link->server->waited_for, 1) - 1;
}

void gw_link_log_recovered(struct gw_link *link)
{
	char away[GW_UNIT_TEXT_MAX], text[GW_ERROR_TEXT_MAX];
	bool last = away_end_wait(link) == 0;
	atomic_store(&link->server->back_ns, gw_now_ns());
	if (!last && !link->failure)
		return;
	gw_text_duration(away, (double)(gw_now_ns() - link->away_ns) / (double)GW_NS_PER_SECOND);
	gw_link_name(link, "back", text);
	gw_log(last ? GW_LOG_WARN : GW_LOG_INFO, "%s after %s", text, away);
}

/* --- State changes. --- */

/* An op that is still open on a closed connection fails when its completion arrives. */
static void fail_queue(struct gw_link *link)
{
	while (link->head && link->state == GW_LINK_DOWN) {
		struct gw_link_op *op = link->head;
		gw_link_dequeue(link, op);
		if (op->open)
			continue;
		gw_fail_text(link->failure, link->reason);
		gw_link_op_end(link, op, link->failure, NULL);
	}
}

/* The next read starts to connect again with a fresh budget. */
static void away_give_up(struct gw_link *link)
{
	gw_link_set_state(link, GW_LINK_DOWN);
	away_end_wait(link);
	link->away_ns = 0;
	link->lasting_ns = 0;
	link->backoff_ns = 0;
	fail_queue(link);
}

/* Errors that waiting cannot remove, such as another graph or another version. */
static bool is_final(gw_status status)
{
	return status == GW_WRONG_GRAPH || status == GW_VERSION || status == GW_UNSUPPORTED || status == GW_INVALID;
}

/* Errors that waiting rarely removes: the key is wrong, another program uses the port, or this process has run out of a
 * resource. */
static bool away_is_lasting(gw_status status)
{
	return status == GW_REFUSED || status == GW_PROTOCOL || status == GW_NO_MEMORY || status == GW_LIMIT ||
	       status == GW_LOCKED_MEMORY;
}

/* Records when the current series of lasting failures began. */
static void away_note_lasting(struct gw_link *link, gw_status status, uint64_t now_ns)
{
	if (!away_is_lasting(status))
		link->lasting_ns = 0;
	else if (!link->lasting_ns)
		link->lasting_ns = now_ns;
}

static bool has_failed_too_long(const struct gw_link *link, uint64_t now_ns)
{
	return link->lasting_ns && now_ns - link->lasting_ns >= LASTING_MAX_NS;
}

/* Whether the end of the budget interrupted this attempt. Its failure then explains less than the failure of the
 * attempt before it. */
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
	away_note_lasting(link, status, now);
	if (has_failed_too_long(link, now)) {
		away_append(link, "waiting does not help");
		away_give_up(link);
		return;
	}
	gw_link_set_state(link, GW_LINK_WAITING);
	if (link->head)
		gw_link_tick_soon(link);
	for (struct gw_link_op *op = link->head; op; op = op->next)
		gw_link_op_stop_clock(op, now);
	/* A successor is asked at once, unless the server said so without answering a request on this connection. */
	bool at_once = link->moved && !link->backoff_ns;
	link->backoff_ns = link->backoff_ns ? link->backoff_ns * 2 : GW_BACKOFF_MIN_NS;
	if (link->backoff_ns > BACKOFF_MAX_NS)
		link->backoff_ns = BACKOFF_MAX_NS;
	link->retry_ns =
		at_once ? now : now + link->backoff_ns - gw_mix64(now ^ (uintptr_t)link) % (link->backoff_ns / 2);
	gw_log(GW_LOG_INFO, "%s; trying again in %llu ms", link->reason,
	       (unsigned long long)((link->retry_ns - now) / GW_NS_PER_MS));
}

bool gw_link_give_up_if_overdue(struct gw_link *link, uint64_t now_ns)
{
	char budget[64];
	if (now_ns < gw_link_budget_end(link, link->away_ns))
		return false;
	snprintf(budget, sizeof(budget), "not back within the reconnect budget of %lld ms",
		 (long long)link->engine->client->reconnect_ms);
	if (!strstr(link->reason, budget)) /* an attempt that the budget cut short has kept the earlier reason */
		away_append(link, budget);
	if (link->failure == GW_DEADLINE) /* the deadline of a connect, not of the operation */
		link->failure = GW_PEER_LOST;
	away_give_up(link);
	return true;
}
