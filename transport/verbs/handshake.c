/* Decodes questions, answers and tokens, and checks them: lengths against counts, counts against limits, slices against
 * regions.
 */
#include "transport/verbs/handshake.h"

#include <stddef.h>
#include <string.h>

#include "transport/verbs/verbs.h"
#include "transport/versions.h"

#define SHIFT_MIN 12u
#define SHIFT_MAX 40u

/* The bytes of a question, and of one that names no oldest version. */
#define QUESTION_BYTES     sizeof(struct handshake_question)
#define OLD_QUESTION_BYTES offsetof(struct handshake_question, oldest)

static gw_status handshake_version(uint32_t newest, uint32_t oldest, const char *self, const char *other,
				   uint32_t *version)
{
	return gw_versions_common("RDMA hello", (struct gw_versions){HANDSHAKE_VERSION, HANDSHAKE_OLDEST}, self,
				  (struct gw_versions){newest, oldest}, other, version);
}

/* The version in a message that follows the hello, or answers it. */
static gw_status handshake_check_version(uint32_t version, const char *self, const char *other)
{
	uint32_t common;
	return handshake_version(version, version, self, other, &common);
}

uint32_t gw_handshake_ask(bool in_oldest, uint32_t qps, struct handshake_question *out)
{
	*out = (struct handshake_question){.version = in_oldest ? HANDSHAKE_OLDEST : HANDSHAKE_VERSION,
					   .qps = qps,
					   .receives = VERBS_RECEIVES,
					   .chunk_bytes = VERBS_CHUNK_BYTES,
					   .oldest = HANDSHAKE_OLDEST};
	return (uint32_t)(out->version < HANDSHAKE_RANGES_FIRST ? OLD_QUESTION_BYTES : QUESTION_BYTES);
}

uint32_t gw_handshake_slices(uint64_t bytes, uint32_t shift)
{
	return (uint32_t)((bytes >> shift) + ((bytes & ((1ull << shift) - 1)) != 0));
}

gw_status gw_handshake_question(const uint8_t *bytes, uint32_t n, struct handshake_question *out)
{
	if (n < 4)
		return gw_fail(GW_PROTOCOL, "an RDMA hello of %u bytes", n);
	*out = (struct handshake_question){0};
	memcpy(out, bytes, n < QUESTION_BYTES ? n : QUESTION_BYTES);
	const uint32_t newest = out->version;
	const bool old = newest < HANDSHAKE_RANGES_FIRST || n < QUESTION_BYTES;
	if (!old && (!out->oldest || out->oldest > newest))
		return gw_fail(GW_PROTOCOL, "an RDMA hello in versions %u to %u", out->oldest, newest);
	gw_status status = handshake_version(newest, old ? newest : out->oldest, "server", "client", &out->version);
	if (status != GW_OK)
		return status;
	const uint64_t length = old && newest < HANDSHAKE_RANGES_FIRST ? OLD_QUESTION_BYTES : QUESTION_BYTES;
	if (newest > HANDSHAKE_VERSION ? n < length : n != length)
		return gw_fail(GW_PROTOCOL, "an RDMA hello of %u bytes", n);
	if (newest <= HANDSHAKE_VERSION && out->zero)
		return gw_fail(GW_PROTOCOL, "an RDMA hello with reserved bits set");
	if (out->qps == 0 || out->receives != VERBS_RECEIVES || out->chunk_bytes != VERBS_CHUNK_BYTES)
		return gw_fail(GW_PROTOCOL, "an RDMA hello for %u queue pairs, %u messages of %u bytes", out->qps,
			       out->receives, out->chunk_bytes);
	return GW_OK;
}

gw_status gw_handshake_token(const void *bytes, uint32_t n, struct handshake_token *out)
{
	/* The connection manager pads private data. */
	if (!bytes || n < sizeof(*out))
		return gw_fail(GW_PROTOCOL, "a connection request without a token");
	memcpy(out, bytes, sizeof(*out));
	if (out->magic != HANDSHAKE_MAGIC || out->version < HANDSHAKE_OLDEST || out->version > HANDSHAKE_VERSION)
		return gw_fail(GW_PROTOCOL, "a connection request without a token");
	return GW_OK;
}

gw_status gw_handshake_keys_question(const uint8_t *bytes, uint32_t n, struct handshake_keys_question *out)
{
	if (n != sizeof(*out))
		return gw_fail(GW_PROTOCOL, "a question for RDMA keys of %u bytes", n);
	memcpy(out, bytes, sizeof(*out));
	return handshake_check_version(out->version, "server", "client");
}

static gw_status check_addresses(const struct handshake_view *view)
{
	for (uint32_t i = 0; i < view->answer.address_count; i++) {
		struct handshake_address address;
		memcpy(&address, view->addresses + i * sizeof(address), sizeof(address));
		if (address.rail >= view->answer.rail_count || (address.family != 4 && address.family != 6))
			return gw_fail(GW_PROTOCOL, "an RDMA hello whose address %u is malformed", i);
	}
	return GW_OK;
}

static bool place_fits(const struct handshake_region *place, const struct gw_region *region)
{
	return place->slice_shift >= SHIFT_MIN && place->slice_shift <= SHIFT_MAX &&
	       region->bytes >> place->slice_shift < UINT32_MAX &&
	       place->slice_count == gw_handshake_slices(region->bytes, place->slice_shift) &&
	       place->base + region->bytes >= place->base;
}

/* *keys: the number of keys of one rail. */
static gw_status check_places(const struct handshake_view *view, const struct gw_region *regions, uint64_t *keys)
{
	*keys = 0;
	for (uint32_t i = 0; i < view->answer.region_count; i++) {
		struct handshake_region place;
		memcpy(&place, view->places + i * sizeof(place), sizeof(place));
		if (!place_fits(&place, &regions[i]))
			return gw_fail(GW_PROTOCOL, "an RDMA hello whose region %u is malformed", i);
		*keys += place.slice_count;
	}
	return GW_OK;
}

gw_status gw_handshake_answer(const uint8_t *bytes, uint32_t n, const struct gw_region *regions, uint32_t region_count,
			      struct handshake_view *out)
{
	if (n < 4)
		return gw_fail(GW_PROTOCOL, "an answer to the RDMA hello of %u bytes", n);
	memcpy(&out->answer.version, bytes, 4);
	gw_status status = handshake_check_version(out->answer.version, "client", "server");
	if (status != GW_OK)
		return status;
	struct handshake_answer *answer = &out->answer;
	uint64_t left = n;
	if (left < sizeof(*answer))
		return gw_fail(GW_PROTOCOL, "an answer to the RDMA hello of %u bytes", n);
	memcpy(answer, bytes, sizeof(*answer));
	left -= sizeof(*answer);
	if (answer->qps == 0 || answer->qps > VERBS_QPS_MAX || answer->receives != VERBS_RECEIVES ||
	    answer->chunk_bytes != VERBS_CHUNK_BYTES || answer->port == 0 || answer->port > UINT16_MAX ||
	    answer->requests_max == 0 || answer->rail_count == 0 || answer->rail_count > VERBS_RAILS_MAX ||
	    answer->address_count == 0 || answer->address_count > HANDSHAKE_ADDRESSES_MAX ||
	    answer->region_count != region_count || answer->whole_words >> answer->rail_count)
		return gw_fail(GW_PROTOCOL, "a malformed answer to the RDMA hello");
	uint64_t fixed = answer->address_count * sizeof(struct handshake_address) +
			 answer->region_count * sizeof(struct handshake_region);
	if (left < fixed)
		return gw_fail(GW_PROTOCOL, "an answer to the RDMA hello of %u bytes", n);
	out->addresses = bytes + sizeof(*answer);
	out->places = out->addresses + answer->address_count * sizeof(struct handshake_address);
	out->keys = out->places + answer->region_count * sizeof(struct handshake_region);
	left -= fixed;
	status = check_addresses(out);
	if (status == GW_OK)
		status = check_places(out, regions, &out->keys_per_rail);
	if (status == GW_OK && left != answer->rail_count * out->keys_per_rail * 4)
		status = gw_fail(GW_PROTOCOL, "an answer to the RDMA hello with %llu bytes of keys",
				 (unsigned long long)left);
	return status;
}

gw_status gw_handshake_keys(const uint8_t *bytes, uint32_t n, const struct gw_region *region,
			    struct handshake_region *place, const uint8_t **keys)
{
	if (n < sizeof(*place))
		return gw_fail(GW_PROTOCOL, "RDMA keys of %u bytes", n);
	memcpy(place, bytes, sizeof(*place));
	if (!place_fits(place, region) || n - sizeof(*place) != 4ull * place->slice_count)
		return gw_fail(GW_PROTOCOL, "RDMA keys of region %u that do not fit it", region->id);
	*keys = bytes + sizeof(*place);
	return GW_OK;
}
