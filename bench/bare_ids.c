/* See bare_ids.h.
 *
 *   client: ids -> keys by part -> {count, keys} to each part -> {nodes} from each part, in turn
 *   a thread for each part: count, keys -> gw_id_index_look_up -> nodes
 *
 * No code of the client, the transports or the server runs. Fails if a socket or a thread cannot be made, or if memory
 * runs out.
 */
#include "bench/bare_ids.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "bench/sockets.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"

struct bare_part {
	const struct gw_id_index *index;
	uint32_t words;
	int client, server;
	pthread_t thread;
	bool started;
	uint64_t count;           /* of the batch's keys */
	uint64_t *keys, *at;      /* [ids of a batch][words], [ids of a batch] */
	uint64_t *theirs, *nodes; /* of the thread: keys and answers */
};

static void *bare_ids_serve(void *context)
{
	struct bare_part *part = context;
	uint64_t count;
	while (gw_sockets_receive(part->server, &count, sizeof(count)) &&
	       gw_sockets_receive(part->server, part->theirs, count * part->words * sizeof(uint64_t))) {
		if (gw_id_index_look_up(part->index, part->theirs, count, part->nodes) != GW_OK ||
		    !gw_sockets_send(part->server, part->nodes, count * sizeof(uint64_t)))
			break;
	}
	return NULL;
}

static void bare_ids_sort(const struct gw_bare_ids *bare, const struct gw_orig_ids *ids, struct bare_part *parts)
{
	uint64_t key[GW_ID_KEY_WORDS] = {0};
	for (uint32_t p = 0; p < bare->parts; p++)
		parts[p].count = 0;
	for (uint64_t i = 0; i < ids->count; i++) {
		uint32_t owner;
		if (bare->form == GW_IDS_TEXTS) {
			gw_id_text_key(ids->bytes + ids->offsets[i], ids->offsets[i + 1] - ids->offsets[i], key);
			owner = gw_id_key_owner(key[0], bare->parts);
		} else {
			int64_t id = ((const int64_t *)ids->numbers)[i];
			key[0] = bare->form == GW_IDS_DENSE ? (uint64_t)id : gw_id_number_key(id);
			owner = bare->form == GW_IDS_DENSE ? gw_dense_owner(key[0], bare->node_count, bare->parts)
							   : gw_id_key_owner(key[0], bare->parts);
			if (bare->form == GW_IDS_DENSE)
				key[0] -= gw_dense_start(bare->node_count, owner, bare->parts);
		}
		struct bare_part *part = &parts[owner];
		part->at[part->count] = i;
		for (uint32_t k = 0; k < part->words; k++)
			part->keys[part->count * part->words + k] = key[k];
		part->count++;
	}
}

/* words: a whole message at a time, so that one send has the count too. */
static bool bare_ids_batch(const struct gw_bare_ids *bare, const struct gw_orig_ids *ids, struct bare_part *parts,
			   uint64_t *answers, int64_t *nodes)
{
	bare_ids_sort(bare, ids, parts);
	for (uint32_t p = 0; p < bare->parts; p++) {
		parts[p].keys[-1] = parts[p].count; /* the word before the keys */
		if (!gw_sockets_send(parts[p].client, parts[p].keys - 1,
				     (parts[p].count * parts[p].words + 1) * sizeof(uint64_t)))
			return false;
	}
	for (uint32_t p = 0; p < bare->parts; p++) {
		if (!gw_sockets_receive(parts[p].client, answers, parts[p].count * sizeof(*answers)))
			return false;
		for (uint64_t i = 0; i < parts[p].count; i++)
			nodes[parts[p].at[i]] = (int64_t)answers[i];
	}
	return true;
}

static int bare_part_begin(const struct gw_bare_ids *bare, uint32_t p, uint64_t ids, struct bare_part *part)
{
	uint32_t words = gw_id_key_words(bare->form);
	*part = (struct bare_part){.index = &bare->indexes[p], .words = words, .client = -1, .server = -1};
	uint64_t *keys = gw_malloc((ids * words + 1) * sizeof(*keys));
	part->keys = keys ? keys + 1 : NULL;
	part->at = gw_malloc(ids * sizeof(*part->at));
	part->theirs = gw_malloc(ids * words * sizeof(*part->theirs));
	part->nodes = gw_malloc(ids * sizeof(*part->nodes));
	if (!keys || !part->at || !part->theirs || !part->nodes)
		return ENOMEM;
	int error = gw_sockets_connect(&part->client, &part->server);
	if (!error)
		error = pthread_create(&part->thread, NULL, bare_ids_serve, part);
	part->started = !error;
	return error;
}

static void bare_part_end(struct bare_part *part)
{
	if (part->client >= 0)
		close(part->client);
	if (part->started)
		pthread_join(part->thread, NULL);
	if (part->server >= 0)
		close(part->server);
	gw_free(part->keys ? part->keys - 1 : NULL);
	gw_free(part->at);
	gw_free(part->theirs);
	gw_free(part->nodes);
}

int gw_bare_ids_run(const struct gw_bare_ids *bare, const struct gw_orig_ids *batches, uint32_t batch_count,
		    uint32_t rounds, int64_t *nodes)
{
	struct bare_part parts[GW_BARE_IDS_PARTS_MAX] = {0};
	uint64_t ids = batches[0].count, *answers = gw_malloc(ids * sizeof(*answers));
	int error = answers ? 0 : ENOMEM;
	uint32_t begun = 0;
	assert(bare->parts > 0);
	for (; begun < bare->parts && !error; begun++)
		error = bare_part_begin(bare, begun, ids, &parts[begun]);
	for (uint32_t r = 0; r < rounds && !error; r++) {
		if (!bare_ids_batch(bare, &batches[r % batch_count], parts, answers, nodes))
			error = EPIPE;
	}
	for (uint32_t p = 0; p < begun; p++)
		bare_part_end(&parts[p]);
	gw_free(answers);
	return error;
}
