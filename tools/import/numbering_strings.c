/* The strings of a numbering of text: a pass for their lengths, and one for their bytes. Fails if memory runs out, or
 * the disk. */
#include <string.h>

#include "core/system/parallel.h"
#include "tools/import/numbering.h"
#include "tools/import/span.h"

struct copying {
	const struct gw_numbering *numbering;
	const struct gw_numbering_column *columns;
	const uint64_t *offsets;
	char *bytes;
};

static struct gw_text_span numbered_span(const struct copying *copying, uint64_t number)
{
	const struct gw_numbering *numbering = copying->numbering;
	return gw_text_span(copying->columns[numbering->columns[number]].text, numbering->values[number]);
}

/* The number of bytes of a field after "" becomes one quote. */
static uint64_t plain_bytes(struct gw_text_span span)
{
	uint64_t quotes = 0;
	for (uint64_t i = 0; span.escaped && i < span.bytes; i++)
		quotes += span.at[i] == '"';
	return span.bytes - quotes / 2;
}

static gw_status copy_strings(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct copying *copying = context;
	for (uint64_t i = begin; i < end; i++) {
		struct gw_text_span span = numbered_span(copying, i);
		char *to = copying->bytes + copying->offsets[i];
		if (!span.escaped) {
			memcpy(to, span.at, span.bytes);
			continue;
		}
		for (uint64_t at = 0; at < span.bytes; at++) {
			*to++ = span.at[at];
			at += span.at[at] == '"'; /* skip the second quote of the pair */
		}
	}
	return GW_OK;
}

gw_status gw_numbering_strings(const struct gw_numbering *numbering, const struct gw_numbering_column *columns,
			       unsigned threads, struct gw_spill *spill, uint64_t **offsets, char **bytes)
{
	struct copying copying = {.numbering = numbering, .columns = columns};
	gw_status status = GW_OK;
	*bytes = NULL;
	*offsets = gw_spill_take(spill, (numbering->count + 1) * sizeof(**offsets), &status);
	if (status != GW_OK)
		return status;
	uint64_t total = 0;
	for (uint64_t i = 0; i < numbering->count; i++) {
		(*offsets)[i] = total;
		total += plain_bytes(numbered_span(&copying, i));
	}
	(*offsets)[numbering->count] = total;
	*bytes = gw_spill_take(spill, total, &status);
	if (status != GW_OK) {
		gw_spill_give(*offsets);
		*offsets = NULL;
		return status;
	}
	copying.offsets = *offsets;
	copying.bytes = *bytes;
	gw_parallel_for(threads, numbering->count, 4096, copy_strings, &copying);
	return GW_OK;
}
