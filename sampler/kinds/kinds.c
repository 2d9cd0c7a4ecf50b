/* The table of kinds. A kind's number is part of the wire format: never change or reuse one. */
#include <stddef.h>

#include "sampler/draw.h"

static const struct gw_sampling_kind *const kinds[] = {&gw_sample_uniform, &gw_sample_weighted};
static const struct gw_sampling_kind *tried; /* by a test */

void gw_sampling_kind_try(const struct gw_sampling_kind *kind)
{
	tried = kind;
}

const struct gw_sampling_kind *gw_sampling_kind_at(uint32_t number)
{
	if (tried && tried->number == number)
		return tried;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i]->number == number)
			return kinds[i];
	}
	return NULL;
}
