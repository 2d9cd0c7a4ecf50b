/* The table of kinds. A kind's number is part of the wire format: never change or reuse one. */
#include <stddef.h>

#include "sampler/draw.h"

static const struct gw_sampling_kind *const kinds[] = {&gw_sample_uniform, &gw_sample_weighted};

const struct gw_sampling_kind *gw_sampling_kind_at(uint32_t number)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i]->number == number)
			return kinds[i];
	}
	return NULL;
}
