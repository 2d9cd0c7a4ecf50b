/* Creates and opens tensors: protocol/tensor_call.h describes how their parts are bound together.
 *
 *   spec -> plan -> part 0: create it, or describe it -> complete? -> the other parts: those that part 0 names
 *                                                        else      -> the other parts: create -> all filled -> complete
 *
 * Creation repeats its requests until all rows have their values. Each call has its deadline; the creation has none.
 * The log reports the progress after one second, and then every five seconds. A repeated call does no harm. If a part
 * of a complete tensor does not exist, it was lost with its server.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/engine/remote_call.h"
#include "client/rows/tensor_handles.h"
#include "client/rows/tensors.h"
#include "client/tensors/checkpoint.h"
#include "client/tensors/leases.h"
#include "core/errors/log.h"
#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "protocol/ops.h"

#define PAUSE_MIN_NS (100000ull)
#define PAUSE_MAX_NS (20 * GW_NS_PER_MS)
#define LOG_NS       (1000 * GW_NS_PER_MS) /* faster creations are not logged */
#define LOG_EACH_NS  (5000 * GW_NS_PER_MS)

/* A tensor that is being created or opened. */
struct creation {
	struct gw_client *client;
	struct gw_tensor_create_call call;
	uint64_t *epochs;        /* [parts], as they become known */
	struct gw_place *places; /* [parts], where rows can be read */
	bool complete;
	struct gw_vec reply;
	struct gw_tensor_state state; /* of the part that replied last */
	uint64_t pause_ns, begun_ns, log_ns;
	/* The current round: rows that have their values; how many parts still fill their rows; the numbers of some of
	 * these parts. */
	uint64_t filled;
	uint32_t waiting;
	char names[64];
};

/* --- From spec to plan. --- */

static gw_status copy_name(char *to, size_t room, const char *name, const char *what)
{
	if (!name || !gw_tensor_name_valid(name) || strlen(name) >= room)
		return gw_fail(GW_INVALID, "%s \"%.64s\": letters, digits and \"._-:/+\", at most %zu", what,
			       name ? name : "", room - 1);
	memcpy(to, name, strlen(name) + 1);
	return GW_OK;
}

/* Sets the source of a copy: the key of a feature, or "=" (a tensor of the job) or "+" (a kept one) and a tensor's
 * name. */
static gw_status plan_source(const struct gw_client *client, const struct gw_tensor_spec *spec,
			     struct gw_tensor_plan *plan)
{
	gw_status status = gw_tensor_check(client, spec->from);
	if (status != GW_OK)
		return gw_context(status, "tensor \"%s\": the rows to copy", plan->name);
	const struct gw_tensor *from = spec->from;
	if (from->placement != spec->placement || (from->placement <= GW_PLACE_EDGES && from->type != spec->type) ||
	    from->dtype != spec->dtype || from->ndim != plan->ndim ||
	    memcmp(from->shape, plan->shape, sizeof(from->shape)) != 0)
		return gw_fail(GW_INVALID,
			       "tensor \"%s\": \"%s\", whose rows it is to copy, has another type, dtype or shape",
			       plan->name, from->name);
	if (from->writable) {
		plan->source[0] = ((const struct gw_tensor_handle *)from)->plan.job[0] ? '=' : '+';
		memcpy(plan->source + 1, from->name, strlen(from->name) + 1);
		return GW_OK;
	}
	const char *folder =
		from->of_edges ? client->meta->etypes[from->type].folder : client->meta->ntypes[from->type].name;
	int length = snprintf(plan->source, sizeof(plan->source), "%s/%s/%s", from->of_edges ? "edge" : "node", folder,
			      from->name);
	if (length > GW_TENSOR_SOURCE_MAX)
		return gw_fail(GW_LIMIT,
			       "tensor \"%s\": the names of the edge type and of \"%s\" have %d bytes: "
			       "rows of names with at most %d can be copied",
			       plan->name, from->name, length, GW_TENSOR_SOURCE_MAX);
	return GW_OK;
}

static uint64_t rows_of_type(const struct gw_client *client, const struct gw_tensor_spec *spec)
{
	const struct gw_graph_info *info = &client->info;
	if (spec->placement == GW_PLACE_NODES && spec->type < info->num_ntypes)
		return info->ntypes[spec->type].count;
	if (spec->placement == GW_PLACE_EDGES && spec->type < info->num_etypes)
		return info->etypes[spec->type].count;
	return 0;
}

static gw_status plan_make(const struct gw_client *client, const struct gw_tensor_spec *spec,
			   struct gw_tensor_plan *plan)
{
	*plan = (struct gw_tensor_plan){.dtype = (uint32_t)spec->dtype,
					.ndim = spec->ndim,
					.placement = (uint32_t)spec->placement,
					.type = spec->placement <= GW_PLACE_EDGES ? spec->type : 0,
					.initial = (uint32_t)spec->initial};
	gw_status status = copy_name(plan->name, sizeof(plan->name), spec->name, "a tensor's name");
	if (status != GW_OK)
		return status;
	if ((unsigned)spec->lifetime > GW_KEPT)
		return gw_fail(GW_INVALID, "tensor \"%s\": lifetime %u", plan->name, (unsigned)spec->lifetime);
	if (spec->lifetime == GW_OF_JOB)
		memcpy(plan->job, client->job, sizeof(plan->job));
	for (uint32_t i = 0; i < spec->ndim && i < GW_DIMS_MAX; i++)
		plan->shape[i] = spec->shape[i];
	if (plan->shape[0] == 0)
		plan->shape[0] = rows_of_type(client, spec);
	/* Unused fields are zero, so that equal plans have equal bytes. */
	bool random = spec->initial == GW_INITIAL_UNIFORM || spec->initial == GW_INITIAL_NORMAL;
	plan->low = spec->initial == GW_INITIAL_CONSTANT || random ? spec->low : 0;
	plan->high = random ? spec->high : 0;
	plan->seed = random ? spec->seed : 0;
	status = gw_tensor_plan_check(client->meta, plan);
	return status == GW_OK && spec->initial == GW_INITIAL_COPY ? plan_source(client, spec, plan) : status;
}

/* --- The parts. --- */

static gw_status lost_with(const struct creation *creation, uint32_t part, gw_status status)
{
	if (status != GW_NOT_FOUND && status != GW_OK)
		return status;
	return gw_fail(GW_NOT_FOUND, "tensor \"%s\" lost its rows of part %u%s: delete it, and create it again",
		       creation->call.plan.name, part, creation->client->local_group ? "" : ", whose server ended");
}

/* Requests the state of a part, and creates the part if the call says so. *epochs: the epochs that part 0 returns for a
 * complete tensor. */
static gw_status creation_ask(struct creation *creation, uint32_t part, const uint8_t **epochs)
{
	size_t bytes = 0;
	gw_status status = gw_remote_call(creation->client, part, GW_OP_TENSOR_CREATE, &creation->call,
					  sizeof(creation->call), &creation->reply, &bytes);
	if (status == GW_OK)
		status = gw_tensor_state_parse(creation->reply.data, bytes, creation->client->meta->num_parts,
					       &creation->state, epochs);
	if (status == GW_OK)
		creation->places[part] =
			(struct gw_place){.region = creation->state.region, .generation = creation->state.generation};
	if (status == GW_OK && (strcmp(creation->state.plan.name, creation->call.plan.name) != 0 ||
				strcmp(creation->state.plan.job, creation->call.plan.job) != 0))
		status = gw_fail(GW_PROTOCOL, "part %u was asked for tensor \"%s\" and describes another", part,
				 creation->call.plan.name);
	return status;
}

/* Sleeps, longer each time, while servers fill rows. How long they need depends only on the tensor. */
static void creation_pause(struct creation *creation)
{
	struct timespec pause = {.tv_nsec = (long)creation->pause_ns};
	nanosleep(&pause, NULL);
	creation->pause_ns = creation->pause_ns * 2 < PAUSE_MAX_NS ? creation->pause_ns * 2 : PAUSE_MAX_NS;
}

/* Part 0 reports whether the tensor is complete, and the epochs of its shards. */
static gw_status creation_lead(struct creation *creation)
{
	const uint8_t *epochs = NULL;
	creation->call.leader = 0;
	gw_status status = creation_ask(creation, 0, &epochs);
	if (status != GW_OK)
		return status;
	uint32_t parts = creation->client->meta->num_parts;
	creation->epochs[0] = creation->call.leader = creation->state.epoch;
	creation->call.restored = creation->state.restored;
	creation->complete = creation->state.epochs != 0;
	for (uint32_t p = 0; p < parts && creation->complete; p++)
		creation->epochs[p] = gw_tensor_number(epochs, p);
	if (creation->complete && creation->epochs[0] != creation->state.epoch)
		return gw_fail(GW_PROTOCOL, "tensor \"%s\": part 0 reports a wrong epoch of itself",
			       creation->call.plan.name);
	return GW_OK;
}

static void creation_note(struct creation *creation, uint32_t part)
{
	size_t used = creation->waiting ? strlen(creation->names) : 0;
	creation->filled += creation->state.filled;
	if (creation->state.ready)
		return;
	if (used + 16 < sizeof(creation->names))
		snprintf(creation->names + used, sizeof(creation->names) - used, "%s%u", used ? ", " : "", part);
	else if (creation->names[used - 1] != '.')
		snprintf(creation->names + used, sizeof(creation->names) - used, " ...");
	creation->waiting++;
}

static void creation_log(struct creation *creation)
{
	char after[GW_UNIT_TEXT_MAX];
	const struct gw_tensor_plan *plan = &creation->call.plan;
	uint64_t now = gw_now_ns();
	if (now < creation->log_ns)
		return;
	creation->log_ns = now + LOG_EACH_NS;
	double share = plan->shape[0] ? (double)creation->filled / (double)plan->shape[0] : 1;
	gw_log(GW_LOG_WARN, "tensor \"%s\": after %s %.0f %% of %llu rows have their values; waiting for part%s %s",
	       plan->name, gw_text_duration(after, (double)(now - creation->begun_ns) / (double)GW_NS_PER_SECOND),
	       share < 1 ? 100 * share : 100, (unsigned long long)plan->shape[0], creation->waiting == 1 ? "" : "s",
	       creation->names);
}

static gw_status creation_fill(struct creation *creation)
{
	uint32_t parts = creation->client->meta->num_parts;
	const uint8_t *epochs = NULL;
	gw_status status = GW_OK;
	do {
		creation->filled = creation->waiting = 0;
		for (uint32_t p = 0; p < parts && status == GW_OK; p++) {
			creation->call.open = p == 0; /* part 0 was created before */
			status = creation_ask(creation, p, &epochs);
			if (status != GW_OK)
				break;
			if (creation->epochs[p] && creation->epochs[p] != creation->state.epoch)
				return lost_with(creation, p, GW_OK);
			creation->epochs[p] = creation->state.epoch;
			creation_note(creation, p);
		}
		if (creation->waiting && status == GW_OK) {
			creation_log(creation);
			creation_pause(creation);
		}
	} while (creation->waiting && status == GW_OK);
	return status;
}

/* Sends part 0 the epochs that belong together. Another client may have done so before. */
static gw_status creation_complete(struct creation *creation)
{
	uint32_t parts = creation->client->meta->num_parts;
	size_t bytes = sizeof(struct gw_tensor_complete_call) + parts * sizeof(uint64_t), reply_bytes = 0;
	struct gw_tensor_complete_call *call = gw_calloc(1, bytes);
	if (!call)
		return GW_NO_MEMORY;
	*call = (struct gw_tensor_complete_call){.epoch = creation->epochs[0], .parts = parts};
	memcpy(call + 1, creation->epochs, parts * sizeof(uint64_t));
	gw_status status = gw_remote_call(creation->client, 0, GW_OP_TENSOR_COMPLETE, call, (uint32_t)bytes,
					  &creation->reply, &reply_bytes);
	gw_free(call);
	if (status != GW_OK)
		return lost_with(creation, 0, status);
	if (reply_bytes != parts * sizeof(uint64_t))
		return gw_fail(GW_PROTOCOL, "tensor \"%s\": epochs in %zu bytes", creation->call.plan.name,
			       reply_bytes);
	for (uint32_t p = 0; p < parts; p++) {
		if (gw_tensor_number(creation->reply.data, p) != creation->epochs[p])
			return lost_with(creation, p, GW_OK);
	}
	return GW_OK;
}

/* They must have the epochs that part 0 names. */
static gw_status creation_join(struct creation *creation)
{
	const uint8_t *epochs = NULL;
	creation->call.open = 1;
	for (uint32_t p = 1; p < creation->client->meta->num_parts; p++) {
		gw_status status = creation_ask(creation, p, &epochs);
		if (status != GW_OK || creation->state.epoch != creation->epochs[p])
			return lost_with(creation, p, status);
	}
	return GW_OK;
}

/* Deletes the parts of a failed creation, unless another client has completed the tensor. For other clients that are
 * creating the same tensor, the creation fails too. */
static void creation_undo(struct creation *creation)
{
	struct gw_error_kept kept;
	struct gw_tensor_delete_call call = {.leader = creation->epochs[0]};
	gw_status status = GW_OK;
	if (!call.leader || creation->complete)
		return;
	gw_error_keep(&kept);
	memcpy(call.name, creation->call.plan.name, sizeof(call.name));
	memcpy(call.job, creation->call.plan.job, sizeof(call.job));
	for (uint32_t p = 0; p < creation->client->meta->num_parts && status == GW_OK; p++) {
		size_t bytes;
		status = gw_remote_call(creation->client, p, GW_OP_TENSOR_DELETE, &call, sizeof(call), &creation->reply,
					&bytes);
	}
	gw_error_restore(&kept);
}

static gw_status creation_run(struct creation *creation)
{
	gw_status status = creation_lead(creation);
	bool open = creation->call.open;
	if (status == GW_OK && open)
		creation->call.plan = creation->state.plan;
	if (status != GW_OK)
		return status;
	if (creation->complete)
		return creation_join(creation);
	/* The creator may have ended before the tensor was complete. Any client that opens the tensor continues, since
	 * the plan is known. */
	if (open)
		status = gw_tensor_plan_check(creation->client->meta, &creation->call.plan);
	if (status == GW_OK)
		status = creation_fill(creation);
	if (status == GW_OK)
		status = creation_complete(creation);
	/* Undo only if the servers can be reached: otherwise the requests to delete would fail too. */
	if (status != GW_OK && status != GW_DEADLINE && status != GW_PEER_LOST)
		creation_undo(creation);
	return status;
}

static gw_status creation_result(struct creation *creation, const struct gw_tensor **out)
{
	struct gw_tensor_handle *handle = NULL;
	const struct gw_tensor_plan *plan = &creation->call.plan;
	uint32_t lease_ms = creation->state.lease_ms;
	gw_status status = gw_tensor_plan_check(creation->client->meta, plan);
	bool leased = plan->job[0] && lease_ms;
	if (status == GW_OK && (leased || !creation->client->local_group))
		status = gw_tensor_leases_begin(creation->client, leased, leased ? lease_ms : 0);
	if (status == GW_OK)
		status = gw_tensor_handle_make(creation->client, plan, creation->epochs, creation->places, &handle);
	*out = handle ? &handle->base.tensor : NULL;
	return status;
}

static gw_status creation_do(struct creation *creation, const struct gw_tensor **out)
{
	creation->pause_ns = PAUSE_MIN_NS;
	creation->begun_ns = gw_now_ns();
	creation->log_ns = creation->begun_ns + LOG_NS;
	uint32_t parts = creation->client->meta->num_parts;
	creation->epochs = gw_calloc(parts, sizeof(uint64_t));
	creation->places = gw_calloc(parts, sizeof(*creation->places));
	gw_status status = creation->epochs && creation->places ? creation_run(creation) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = creation_result(creation, out);
	gw_free(creation->epochs);
	gw_free(creation->places);
	gw_vec_free(&creation->reply);
	return status;
}

gw_status gw_tensor_create(struct gw_client *client, const struct gw_tensor_spec *spec, const struct gw_tensor **out)
{
	struct creation creation = {.client = client};
	*out = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = plan_make(client, spec, &creation.call.plan);
	return status == GW_OK ? creation_do(&creation, out) : status;
}

gw_status gw_tensor_create_planned(struct gw_client *client, const struct gw_tensor_plan *plan, bool restored,
				   const struct gw_tensor **out)
{
	struct creation creation = {.client = client, .call = {.plan = *plan, .restored = restored}};
	*out = NULL;
	gw_status status = gw_tensor_plan_check(client->meta, plan);
	return status == GW_OK ? creation_do(&creation, out) : status;
}

gw_status gw_tensor_open(struct gw_client *client, const char *name, enum gw_lifetime lifetime,
			 const struct gw_tensor **out)
{
	struct creation creation = {.client = client, .call.open = 1};
	*out = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = copy_name(creation.call.plan.name, sizeof(creation.call.plan.name), name, "a tensor's name");
	if (status != GW_OK)
		return status;
	if (lifetime == GW_OF_JOB)
		memcpy(creation.call.plan.job, client->job, sizeof(creation.call.plan.job));
	return creation_do(&creation, out);
}
