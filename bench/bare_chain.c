/* connect -> start the answering thread -> chains by the caller, any number of times -> shut down, join.
 *
 * A question begins with its struct gw_bare_round, so that the answering thread knows the sizes. */
#include "bench/bare_chain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bare_rows.h"
#include "bench/sockets.h"

#define ANSWER_HEADER 16u
#define AHEAD         12u

struct gw_bare_chain {
	int client, server;
	const uint8_t *table;
	uint64_t table_bytes;
	uint8_t *asked, *answer; /* buffers of the client and of the answering thread */
	uint64_t drawn;
	pthread_t thread;
	bool answering;
};

static const uint8_t *chain_row(const struct gw_bare_chain *chain, const struct gw_bare_round *round, uint32_t i)
{
	uint64_t rows = round->row_bytes ? chain->table_bytes / round->row_bytes : 0;
	return chain->table + (rows ? gw_bare_mix(chain->drawn + i) % rows : 0) * round->row_bytes;
}

static void chain_gather(struct gw_bare_chain *chain, const struct gw_bare_round *round, uint8_t *out)
{
	for (uint32_t i = 0; i < round->rows; i++) {
		const uint8_t *later = i + AHEAD < round->rows ? chain_row(chain, round, i + AHEAD) : chain->table;
		for (uint32_t at = 0; at < round->row_bytes; at += 64)
			__builtin_prefetch(later + at);
		memcpy(out + (size_t)i * round->row_bytes, chain_row(chain, round, i), round->row_bytes);
	}
	chain->drawn += round->rows;
}

static void *chain_answer_all(void *argument)
{
	struct gw_bare_chain *chain = argument;
	struct gw_bare_round round;
	for (;;) {
		ssize_t n = recv(chain->server, chain->answer, GW_BARE_HEADER, MSG_WAITALL);
		if (n != GW_BARE_HEADER)
			return NULL;
		memcpy(&round, chain->answer, sizeof(round));
		if (!gw_sockets_receive(chain->server, chain->answer, round.question_bytes - GW_BARE_HEADER))
			return NULL;
		chain_gather(chain, &round, chain->answer + ANSWER_HEADER);
		if (!gw_sockets_send(chain->server, chain->answer,
				     ANSWER_HEADER + (size_t)round.rows * round.row_bytes))
			return NULL;
	}
}

int gw_bare_chain_begin(const uint8_t *table, uint64_t table_bytes, uint32_t bytes_max, bool by_socket,
			struct gw_bare_chain **out)
{
	struct gw_bare_chain *chain = calloc(1, sizeof(*chain));
	*out = NULL;
	if (!chain)
		return ENOMEM;
	chain->client = chain->server = -1;
	chain->table = table;
	chain->table_bytes = table_bytes;
	chain->asked = calloc(1, ANSWER_HEADER + bytes_max);
	chain->answer = calloc(1, ANSWER_HEADER + bytes_max);
	int error = chain->asked && chain->answer ? 0 : ENOMEM;
	if (!error && by_socket)
		error = gw_sockets_connect(&chain->client, &chain->server);
	if (!error && by_socket) {
		error = pthread_create(&chain->thread, NULL, chain_answer_all, chain);
		chain->answering = !error;
	}
	if (error)
		gw_bare_chain_end(chain);
	else
		*out = chain;
	return error;
}

int gw_bare_chain_run(struct gw_bare_chain *chain, const struct gw_bare_round *rounds, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!chain->answering) {
			chain_gather(chain, &rounds[i], chain->asked);
			continue;
		}
		memcpy(chain->asked, &rounds[i], sizeof(rounds[i]));
		if (!gw_sockets_send(chain->client, chain->asked, rounds[i].question_bytes) ||
		    !gw_sockets_receive(chain->client, chain->asked,
					ANSWER_HEADER + (size_t)rounds[i].rows * rounds[i].row_bytes))
			return EIO;
	}
	return 0;
}

void gw_bare_chain_end(struct gw_bare_chain *chain)
{
	if (!chain)
		return;
	if (chain->answering) {
		shutdown(chain->client, SHUT_RDWR);
		pthread_join(chain->thread, NULL);
	}
	if (chain->client >= 0)
		close(chain->client);
	if (chain->server >= 0)
		close(chain->server);
	free(chain->asked);
	free(chain->answer);
	free(chain);
}
