/* The table of kinds. A kind's number is part of the wire format: never change or reuse one. */
#include <stdio.h>

#include "sampler/columns.h"

static const struct gw_sampling_kind *const kinds[] = {&gw_sample_uniform, &gw_sample_weighted, &gw_sample_temporal,
						       &gw_sample_last};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
static const struct gw_sampling_kind *tried; /* by a test */

void gw_sampling_kind_try(const struct gw_sampling_kind *kind)
{
	tried = kind;
}

/* Kind i of the table and the tried one; NULL: there are no more. */
static const struct gw_sampling_kind *kind_number(size_t i)
{
	return i < KINDS ? kinds[i] : i == KINDS ? tried : NULL;
}

const struct gw_sampling_kind *gw_sampling_kind_at(uint32_t number)
{
	if (tried && tried->number == number)
		return tried;
	for (size_t i = 0; i < KINDS; i++) {
		if (kinds[i]->number == number)
			return kinds[i];
	}
	return NULL;
}

static gw_status fail_unsupported(const struct gw_column_names *names)
{
	uint32_t known = 0, unknown;
	char type[GW_EDGE_FOLDER_MAX + 1], columns[GW_COLUMN_NAMES_TEXT], hows[256] = "";
	const struct gw_sampling_kind *kind;
	for (size_t i = 0, at = 0; (kind = kind_number(i)); i++) {
		known |= kind->columns;
		if (at < sizeof(hows) && kind->how)
			at += (size_t)snprintf(hows + at, sizeof(hows) - at, "%s%s", at ? " or " : "", kind->how);
	}
	gw_meta_etype_text(names->meta, names->etype, type);
	unknown = gw_column_names_bits(names) & ~known;
	if (unknown)
		return gw_fail(GW_UNSUPPORTED, "edge type %s: the rule's %s is not supported: this version samples %s",
			       type, gw_column_name((enum gw_column)__builtin_ctz(unknown)), hows);
	return gw_fail(GW_UNSUPPORTED, "edge type %s: the rule has %s together: this version samples %s", type,
		       gw_column_names_text(names, NULL, columns), hows);
}

/* The members of a rule that only draws by time read. */
static gw_status check_timeless(const struct gw_column_names *names)
{
	char type[GW_EDGE_FOLDER_MAX + 1];
	gw_meta_etype_text(names->meta, names->etype, type);
	if (names->pick != GW_PICK_UNIFORM && names->pick != GW_PICK_LAST)
		return gw_fail(GW_INVALID, "edge type %s: the rule's pick is %d: give GW_PICK_UNIFORM or GW_PICK_LAST",
			       type, (int)names->pick);
	if (names->of[GW_COLUMN_TIME])
		return GW_OK;
	if (names->of[GW_COLUMN_END])
		return gw_fail(GW_INVALID, "edge type %s: the rule has an end and no time", type);
	if (names->pick != GW_PICK_UNIFORM)
		return gw_fail(GW_INVALID, "edge type %s: the rule picks the last edges and has no time", type);
	return GW_OK;
}

bool gw_sampling_kind_takes(const struct gw_sampling_kind *kind, uint32_t bits)
{
	uint32_t nameable = kind->columns & gw_columns_nameable();
	return (bits & ~nameable) == 0 && (nameable & ~kind->optional & ~bits) == 0;
}

gw_status gw_sampling_kind_of(const struct gw_column_names *names, const struct gw_sampling_kind **out)
{
	uint32_t bits = gw_column_names_bits(names);
	gw_status status = check_timeless(names);
	*out = NULL;
	if (status != GW_OK)
		return status;
	for (size_t i = 0; (*out = kind_number(i)); i++) {
		if ((*out)->pick == names->pick && gw_sampling_kind_takes(*out, bits))
			return GW_OK;
	}
	return fail_unsupported(names);
}
