/* The table of kinds. A kind's number is part of the wire format: never change or reuse one. */
#include <stdio.h>

#include "sampler/columns.h"

static const struct gw_sampling_kind *const kinds[] = {&gw_sample_uniform, &gw_sample_weighted};
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

gw_status gw_sampling_kind_of(const struct gw_column_names *names, const struct gw_sampling_kind **out)
{
	uint32_t bits = gw_column_names_bits(names), nameable = gw_columns_nameable();
	for (size_t i = 0; (*out = kind_number(i)); i++) {
		if (((*out)->columns & nameable) == bits)
			return GW_OK;
	}
	return fail_unsupported(names);
}
