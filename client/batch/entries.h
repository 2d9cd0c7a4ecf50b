/* Entries of one array of a part: of a column, of neighbours, of an index of ids, or of offsets, which are read as
 * degree records.
 *
 *   numbers of entries -> the array is in a region:    spans, including small gaps, in one read
 *                      -> it stays on the server's disk: a request for each entry's bytes (client/rows/rows_pull.h)
 *
 * Entries that are close together are read as one span, including the gaps between them. A separate range costs as much
 * as reading some extra bytes; the transport defines how many. So the picks of a short list are usually one read.
 */
#ifndef GW_CLIENT_BATCH_ENTRIES_H
#define GW_CLIENT_BATCH_ENTRIES_H

#include "client/engine/fan_in.h"
#include "client/link/link.h"
#include "client/rows/rows_pull.h"
#include "client/state/recv_buffer.h"
#include "sampler/picks_rounds.h"

/* What a read needs: entries [first[i], first[i] + count[i]) of an array, or one entry each. */
struct gw_entry_list {
	const uint64_t *firsts;               /* of single entries; or NULL, and then: */
	const struct gw_column_read *entries; /* those of column `column` */
	enum gw_column column;
	uint32_t width; /* bytes of an entry */
	uint32_t step;  /* of single ones: bytes from one entry to the next; 0: width */
	uint64_t n;
};

/* Reused from read to read. Zero-initialized is empty. */
struct gw_entries {
	struct gw_link_op link_op; /* owner: the caller's, while a read is open */
	struct gw_vec spans;       /* struct gw_span, or of an array on disk uint64_t: the entries' numbers */
	struct gw_vec received_at; /* uint64_t [n]: where each item of the list begins in `received` */
	struct gw_recv_buffer received;
	struct gw_pull pull;
};

/* Starts a read, a piece of `answers`. done is called in the engine with link_op.owner = owner, unless this fails. */
gw_status gw_entries_read(struct gw_entries *read, struct gw_fan_in *answers, uint32_t part,
			  const struct gw_place *place, const struct gw_entry_list *list,
			  void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion),
			  void *owner);
/* Makes an open read end soon. */
void gw_entries_cancel(struct gw_entries *read);
void gw_entries_free(struct gw_entries *read);

/* Reads in rounds, each of which says what the next one reads. */
struct gw_entry_calls {
	gw_status (*ask)(void *owner);  /* posts the next round. GW_END: no round is left */
	gw_status (*take)(void *owner); /* what the round read */
	/* Once, in the engine, perhaps before the start returns. */
	void (*done)(void *owner, gw_status status);
};

/* Reused. Zero-initialized is empty. */
struct gw_entry_rounds {
	struct gw_entries read;
	/* Private: */
	const struct gw_entry_calls *calls;
	void *owner;
	struct gw_fan_in *answers;
	uint32_t part;
	gw_status status;    /* of the last round */
	bool steps, arrived; /* it is in a step; its round has ended meanwhile */
};

/* Starts the rounds of a part, a piece of `answers`. status: not GW_OK ends them before the first. */
void gw_entry_rounds_start(struct gw_entry_rounds *rounds, struct gw_fan_in *answers, uint32_t part,
			   const struct gw_entry_calls *calls, void *owner, gw_status status);
/* For `ask`, once in each round. */
gw_status gw_entry_rounds_post(struct gw_entry_rounds *rounds, const struct gw_place *place,
			       const struct gw_entry_list *list);

static inline const uint8_t *gw_entries_at(const struct gw_entries *read, uint64_t i)
{
	return read->received.data + ((const uint64_t *)read->received_at.data)[i];
}

/* Entry i of the list, of 4 or 8 bytes. */
static inline uint64_t gw_entries_id(const struct gw_entries *read, uint8_t width, uint64_t i)
{
	uint64_t id = 0;
	memcpy(&id, gw_entries_at(read, i), width);
	return id;
}

#endif
