/* See record_names.h. */
#include "core/graph/record_names.h"

#include <string.h>

#include "core/memory/alloc.h"

const char *const gw_record_names[] = {"tables", "build", NULL};

gw_status gw_records_own(struct gw_owned *owned, const char *json)
{
	char *assignment = gw_format("%.*s" GW_ASSIGNMENT_FILE, (int)strlen(json) - 5, json);
	gw_status status = assignment ? gw_owned_add(owned, assignment) : GW_NO_MEMORY;
	gw_free(assignment);
	for (size_t i = 0; gw_record_names[i] && status == GW_OK; i++) {
		char *name = gw_format("%.*s.%s.json", (int)strlen(json) - 5, json, gw_record_names[i]);
		status = name ? gw_owned_add(owned, name) : GW_NO_MEMORY;
		gw_free(name);
	}
	return status;
}
