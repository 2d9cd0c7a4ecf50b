/* gw_checkpoint, and gw_checkpoint_start, which runs in a thread of its own with copies of its arguments. */

#include "client/engine/background.h"
#include "client/tensors/checkpoint.h"
#include "core/memory/alloc.h"

struct checkpoint_call {
	struct gw_background background; /* first: the ticket */
	char *folder;
	char **names; /* copies of the options' names */
	struct gw_checkpoint_options options;
};

static const struct gw_checkpoint_options checkpoint_usual = {0};

static void checkpoint_call_free(struct gw_background *background)
{
	struct checkpoint_call *call = (struct checkpoint_call *)background;
	for (uint32_t i = 0; call->names && i < call->options.name_count; i++)
		gw_free(call->names[i]);
	gw_free(call->names);
	gw_free(call->folder);
	gw_free(call);
}

static gw_status checkpoint_call_work(struct gw_background *background)
{
	struct checkpoint_call *call = (struct checkpoint_call *)background;
	return gw_checkpoint_save(background->ticket.client, call->folder, &call->options);
}

static gw_status checkpoint_call_copy(struct checkpoint_call *call, const char *folder,
				      const struct gw_checkpoint_options *options)
{
	call->options = *options;
	call->options.names = NULL;
	call->folder = gw_strdup(folder);
	if (!call->folder)
		return GW_NO_MEMORY;
	if (!options->names || options->name_count == 0)
		return GW_OK;
	call->names = gw_calloc(options->name_count, sizeof(*call->names));
	for (uint32_t i = 0; call->names && i < options->name_count; i++) {
		call->names[i] = gw_strdup(options->names[i]);
		if (!call->names[i])
			return GW_NO_MEMORY;
	}
	call->options.names = (const char *const *)call->names;
	return call->names ? GW_OK : GW_NO_MEMORY;
}

gw_status gw_checkpoint(struct gw_client *client, const char *folder, const struct gw_checkpoint_options *options)
{
	return gw_checkpoint_save(client, folder, options ? options : &checkpoint_usual);
}

gw_status gw_checkpoint_start(struct gw_client *client, const char *folder, const struct gw_checkpoint_options *options,
			      struct gw_ticket **ticket)
{
	*ticket = NULL;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	struct checkpoint_call *call = gw_calloc(1, sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	call->background.work = checkpoint_call_work;
	call->background.free = checkpoint_call_free;
	status = checkpoint_call_copy(call, folder, options ? options : &checkpoint_usual);
	if (status == GW_OK)
		status = gw_background_start(&call->background, client);
	if (status != GW_OK) {
		checkpoint_call_free(&call->background);
		return status;
	}
	*ticket = &call->background.ticket;
	return GW_OK;
}
