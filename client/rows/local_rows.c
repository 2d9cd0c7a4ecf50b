/* Copies of rows that this process can address, in one pass over the ids: see local_rows.h.
 *
 *   id -> bounds -> owner (book) -> address -> [prefetch -> AHEAD rows later] -> copy
 *
 * Rows are prefetched, because the processor by itself looks ahead only some twenty rows, fewer than the memory serves
 * at once: narrow rows further ahead than wide ones. Each width, with rows of one part or of several, has a loop of its
 * own, in which a narrow row is copied as one word.
 */
#include "client/rows/local_rows.h"

#include <string.h>

#include "client/engine/engine.h"
#include "core/graph/book.h"
#include "transport/copy.h"

#define RING         64u /* addresses of rows that are prefetched */
#define NARROW_BYTES 16u
#define NARROW_AHEAD 63u

static_assert(RING > GW_COPY_AHEAD && RING > NARROW_AHEAD, "a row's address must stay until the row is copied");

/* NULL: the rows cannot be addressed, or exceed their region. */
static const uint8_t *part_rows(struct gw_engine *engine, const struct gw_rows *rows, uint32_t part)
{
	const struct gw_link *link = gw_engine_link(engine, part);
	const struct gw_place *place = &rows->places[part];
	if (place->on_disk || link->state != GW_LINK_OPEN || !(link->mapped || engine->client->standalone) ||
	    place->region >= link->endpoint->peer.region_count)
		return NULL;
	const struct gw_region *region = &link->endpoint->peer.regions[place->region];
	uint64_t count = rows->starts[part + 1] - rows->starts[part], bytes;
	if (count > 0 && (__builtin_mul_overflow(count - 1, rows->step, &bytes) ||
			  __builtin_add_overflow(bytes, rows->row_bytes, &bytes) ||
			  __builtin_add_overflow(bytes, place->offset, &bytes) || bytes > region->bytes))
		return NULL;
	const uint8_t *base = gw_endpoint_map(link->endpoint, region);
	return base ? base + place->offset : NULL;
}

static bool find_part(struct gw_engine *engine, const struct gw_rows *rows, uint32_t part, struct gw_local_rows *local)
{
	const uint8_t *base = part_rows(engine, rows, part);
	local->origins[part] = base ? (uintptr_t)base - rows->starts[part] * rows->step : 0;
	return local->origins[part] != 0;
}

uint32_t gw_local_rows_find(struct gw_engine *engine, const struct gw_rows *rows, struct gw_local_rows *local)
{
	uint32_t found = 0;
	local->starts = rows->starts;
	local->parts = engine->client->meta->num_parts;
	local->step = rows->step;
	local->row_bytes = rows->row_bytes;
	if (rows->epochs || rows->striped)
		return 0;
	if (!engine->client->standalone) {
		if (!engine->mapped)
			return 0;
		memset(local->origins, 0, local->parts * sizeof(*local->origins));
		for (const struct gw_link *link = engine->mapped; link; link = link->next_mapped)
			found += find_part(engine, rows, link->server->part, local);
		return found;
	}
	for (uint32_t p = 0; p < local->parts; p++)
		found += find_part(engine, rows, p, local);
	return found;
}

/* The part of all rows that this process can address; the number of parts if they are of several. */
static uint32_t only_part(const struct gw_local_rows *local)
{
	uint32_t found = 0, part = local->parts;
	for (uint32_t p = 0; p < local->parts; p++) {
		found += local->origins[p] != 0;
		part = local->origins[p] ? p : part;
	}
	return found == 1 ? part : local->parts;
}

/* part: of all rows that are here, if they are not of several. */
static inline __attribute__((always_inline)) uint64_t divide(const struct gw_local_rows *local, uint32_t part,
							     const int64_t *ids, uint64_t first, uint64_t end,
							     struct gw_divided_rows *to, bool several)
{
	const struct gw_local_rows in = *local; /* the lists may be any memory: it would be read again for each row */
	const uint64_t count = in.starts[in.parts];
	const uint64_t start = several ? 0 : in.starts[part], length = several ? 0 : in.starts[part + 1] - start;
	uint32_t *here = to->here + to->here_count, *elsewhere = to->elsewhere + to->elsewhere_count;
	uint64_t i = first;
	for (; i < end && (uint64_t)ids[i] < count; i++) {
		const uint64_t id = (uint64_t)ids[i];
		bool is_here = several ? in.origins[gw_book_owner(in.starts, in.parts, id)] != 0 : id - start < length;
		*here = *elsewhere = (uint32_t)i;
		here += is_here;
		elsewhere += !is_here;
	}
	to->here_count = (uint64_t)(here - to->here);
	to->elsewhere_count = (uint64_t)(elsewhere - to->elsewhere);
	return i;
}

uint64_t gw_local_rows_divide(const struct gw_local_rows *local, const int64_t *ids, uint64_t first, uint64_t end,
			      struct gw_divided_rows *to)
{
	const uint32_t part = only_part(local);
	return part == local->parts ? divide(local, part, ids, first, end, to, true)
				    : divide(local, part, ids, first, end, to, false);
}

static inline __attribute__((always_inline)) const uint8_t *row_address(const struct gw_local_rows *local, uint64_t id,
									bool several)
{
	uint32_t part = several ? gw_book_owner(local->starts, local->parts, id) : 0;
	return (const uint8_t *)(local->origins[part] + id * local->step);
}

/* conversion: of the rows, or NULL. */
static inline __attribute__((always_inline)) uint64_t copy_width(const struct gw_local_rows *local, const int64_t *ids,
								 const uint32_t *list, uint64_t n, uint8_t *out,
								 uint64_t bytes, const struct gw_conversion *conversion,
								 bool several)
{
	const struct gw_local_rows in = *local; /* out may be any memory: it would be read again for each row */
	const uint64_t count = in.starts[in.parts], ahead = bytes <= NARROW_BYTES ? NARROW_AHEAD : GW_COPY_AHEAD;
	const uint8_t *ring[RING];
	uint64_t looked = 0;
	for (uint64_t i = 0; i < n; i++) {
		for (; looked < n && looked <= i + ahead; looked++) {
			uint64_t id = (uint64_t)ids[list ? list[looked] : looked];
			if (id >= count) {
				n = looked;
				break;
			}
			const uint8_t *row = ring[looked % RING] = row_address(&in, id, several);
			if (bytes <= NARROW_BYTES)
				__builtin_prefetch(row);
			else
				gw_prefetch_range(row, (uint32_t)bytes);
		}
		if (i < n && conversion)
			gw_convert_rows(conversion, ring[i % RING], out + i * conversion->to_bytes, 1);
		else if (i < n)
			memcpy(out + (list ? list[i] : i) * bytes, ring[i % RING], bytes);
	}
	return n;
}

/* The loops, each with its constants. */
static inline __attribute__((always_inline)) uint64_t copy_rows(const struct gw_local_rows *local, const int64_t *ids,
								const uint32_t *list, uint64_t n, uint8_t *out,
								bool several)
{
	switch (local->row_bytes) {
	case 1:
		return copy_width(local, ids, list, n, out, 1, NULL, several);
	case 2:
		return copy_width(local, ids, list, n, out, 2, NULL, several);
	case 4:
		return copy_width(local, ids, list, n, out, 4, NULL, several);
	case 8:
		return copy_width(local, ids, list, n, out, 8, NULL, several);
	case 16:
		return copy_width(local, ids, list, n, out, 16, NULL, several);
	case 32:
		return copy_width(local, ids, list, n, out, 32, NULL, several);
	case 64:
		return copy_width(local, ids, list, n, out, 64, NULL, several);
	case 128:
		return copy_width(local, ids, list, n, out, 128, NULL, several);
	default:
		return copy_width(local, ids, list, n, out, local->row_bytes, NULL, several);
	}
}

/* Rows of one part need no search for their owner. */
static inline __attribute__((always_inline)) uint64_t copy_all(const struct gw_local_rows *local, const int64_t *ids,
							       const uint32_t *list, uint64_t n, uint8_t *out)
{
	const uint32_t part = only_part(local);
	if (part == local->parts)
		return copy_rows(local, ids, list, n, out, true);
	struct gw_local_rows one = *local;
	one.origins = &local->origins[part];
	return copy_rows(&one, ids, list, n, out, false);
}

uint64_t gw_local_rows_copy(const struct gw_local_rows *local, const int64_t *ids, uint64_t n, uint8_t *out)
{
	return copy_all(local, ids, NULL, n, out);
}

uint64_t gw_local_rows_copy_listed(const struct gw_local_rows *local, const int64_t *ids, const uint32_t *list,
				   uint64_t n, uint8_t *out)
{
	return copy_all(local, ids, list, n, out);
}

uint64_t gw_local_rows_convert(const struct gw_local_rows *local, const int64_t *ids, uint64_t n,
			       const struct gw_conversion *conversion, uint8_t *out)
{
	const uint32_t part = only_part(local);
	if (part == local->parts)
		return copy_width(local, ids, NULL, n, out, local->row_bytes, conversion, true);
	struct gw_local_rows one = *local;
	one.origins = &local->origins[part];
	return copy_width(&one, ids, NULL, n, out, local->row_bytes, conversion, false);
}
