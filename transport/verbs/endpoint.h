/* An endpoint over RDMA, as the files that make it up see it. */
#ifndef GW_TRANSPORT_VERBS_ENDPOINT_H
#define GW_TRANSPORT_VERBS_ENDPOINT_H

#include "transport/dynamic_regions.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs/handshake.h"
#include "transport/verbs/verbs.h"

#define ENDPOINT_FRAMES_MAX   64u        /* read calls open at once */
#define ENDPOINT_REQUESTS_MAX 64u        /* a power of two */
#define ENDPOINT_SEND_BYTES   (2u << 20) /* of requests that are not sent yet, beyond the first */
#define ENDPOINT_OPENINGS_MAX 16u        /* late regions being opened at once */
#define ENDPOINT_STAGES       16u        /* frames of rows that change, open at once */
#define STAGE_ROWS            256u       /* of one of them */
#define FRAME_RANGES_MAX      (64u << 10)
/* What is in flight when a read set fails is waited for so long; then the connection is silenced. */
#define ENDPOINT_PATIENCE_NS (200 * GW_NS_PER_MS)

enum endpoint_phase {
	ENDPOINT_DIALLING,   /* the hello over TCP */
	ENDPOINT_ASKING,     /* for a token, over TCP */
	ENDPOINT_CONNECTING, /* queue pairs */
	ENDPOINT_OPENED,
	ENDPOINT_DOUBTING, /* a key was refused: silenced; a new hello will tell whether the data is another */
	ENDPOINT_LOST
};

/* Where a region is: its address at the server, and the keys of its slices. */
struct verbs_place {
	uint64_t base;
	const uint8_t *keys;
	uint32_t shift;
};

/* What a frame of versioned rows has besides: endpoint_rows.c. */
struct verbs_stage {
	struct verbs_stage *next; /* free */
	uint8_t *tails;           /* of each row, where its trailer lands */
	uint32_t lkey, tries;
	bool again; /* the frame's ranges are those of `torn` */
	uint16_t torn[STAGE_ROWS];
};

/* A read call, or a part of one, from acceptance until nothing can write for it any more. */
struct verbs_frame {
	struct verbs_frame *next; /* waiting to be posted, or free */
	struct gw_read_set *set;  /* NULL: free */
	uint8_t *base;            /* of the destination buffer */
	struct ibv_mr *mr;        /* NULL: through the bounce buffer */
	const struct gw_span *spans;
	struct gw_gather gather; /* spans == NULL */
	uint32_t n, at;          /* ranges; the one to be posted next */
	uint32_t at_done;        /* bytes of it that were posted */
	const struct verbs_place *place;
	const struct gw_region_rows *rows;       /* versioned rows: */
	struct verbs_stage *stage;               /* and their trailers; else NULL */
	struct gw_dynamic_region_entry *dynamic; /* the region's, if it is one */
	uint32_t open;                           /* work requests in flight */
	bool waiting;                            /* in the list of those to be posted */
	bool dying;                              /* nobody wants it: it only waits for what is in flight, */
	uint64_t dying_ns;                       /* since then */
};

struct verbs_request {
	uint64_t tag, deadline_ns;
	struct gw_once once;
	struct gw_note *note; /* NULL: nobody wants the reply any more */
	uint16_t op;
	bool answered;
	uint8_t *bytes;
	uint32_t n, sent;
	uint8_t *reply;
	uint32_t reply_bytes, reply_done;
};

/* A queue pair on its way. */
struct verbs_conn {
	struct verbs_cm_handler handler;
	struct verbs_endpoint *endpoint;
	uint32_t number;
	struct rdma_cm_id *id; /* until the queue pair has it */
	struct verbs_qp *qp;   /* once the route is known */
	bool established;
};

struct verbs_endpoint {
	struct gw_endpoint base;
	struct verbs_deferred deferred;
	struct verbs_loop *loop;
	struct verbs_endpoint *next, **previous;
	enum endpoint_phase phase;
	/* Whom and how: also for the hello that resolves a doubt. */
	struct gw_connect_options options;
	uint8_t key[GW_SERVICE_KEY_MAX];
	struct gw_note *connecting;
	uint64_t liveness_ns, heard_ns;
	bool heard, probed, room_wanted;
	bool talked; /* a message has come or gone out: requests may go on */
	/* Over TCP. */
	struct gw_endpoint *control;
	uint64_t dialled;  /* tells this endpoint's completions from those of earlier ones */
	bool control_open; /* something is awaited */
	struct tcp_dynamic_reader dynamic_reader;
	struct verbs_opening *openings; /* oldest first */
	uint32_t opening_count;
	/* What the server told. */
	struct gw_region regions[GW_REGIONS_MAX];
	uint8_t *answer_bytes;
	struct handshake_view answer;
	uint32_t address_at, requests_max, rail;
	bool whole_words; /* the server's device reads them in one */
	struct verbs_place places[GW_REGIONS_MAX];
	/* Queue pairs. */
	struct verbs_poller *poller;
	struct verbs_conn conns[VERBS_QPS_MAX];
	uint32_t qp_count, established, turn;
	/* Reads. */
	struct gw_read_set *sets;
	struct verbs_frame frames[ENDPOINT_FRAMES_MAX];
	struct verbs_frame *free_frames, *waiting, **waiting_end;
	uint32_t frames_open, dying;   /* frames: all, and those that nobody wants */
	struct verbs_staging *staging; /* from the first read of versioned rows on */
	/* Requests: [oldest, unsent) wait for replies or are being sent, [unsent, newest) wait to be sent. */
	struct verbs_stream stream;
	struct verbs_request requests[ENDPOINT_REQUESTS_MAX];
	uint32_t oldest, unsent, newest;
	uint32_t unsent_bytes;
	uint64_t tag;
};

const char *gw_verbs_name(const struct verbs_endpoint *endpoint, char text[GW_ADDRESS_MAX]);

/* The peer is lost: silenced, then everything open fails with the status and the text of gw_last_error(). */
void gw_verbs_lose(struct verbs_endpoint *endpoint, gw_status status);

/* Whether a queue pair has failed: then the endpoint has been ended, or put in doubt, by what was seen first. */
bool gw_verbs_failed(struct verbs_endpoint *endpoint);
/* Ends all queue pairs: nothing is written by them after the return. */
void gw_verbs_conns_end(struct verbs_endpoint *endpoint);
/* The outcome of the connect, told once. */
void gw_verbs_connected(struct verbs_endpoint *endpoint, gw_status status);
/* The hello after a refused key: another generation of the data (GW_STALE), or no reason that we know. */
void gw_verbs_doubt_resolve(struct verbs_endpoint *endpoint, gw_status status);

/* --- endpoint_connect.c --- */
/* Begins a hello over TCP; its outcome comes to gw_verbs_control_completed. Ends the one before it. */
gw_status gw_verbs_dial(struct verbs_endpoint *endpoint, uint64_t deadline_ns);
void gw_verbs_hang_up(struct verbs_endpoint *endpoint);
/* CONNECTING: this address does not work, says gw_last_error(). The next one is tried with a new token, unless it was
 * the last. */
void gw_verbs_address_failed(struct verbs_endpoint *endpoint, gw_status status);
/* A number that no other question over TCP has, of this process. */
uint64_t gw_verbs_number(void);
/* Whether TCP has to be looked at all the time: while something is awaited. */
void gw_verbs_control_settle(struct verbs_endpoint *endpoint);

/* --- endpoint_dynamic.c --- */
void gw_verbs_dynamic_withdrawn(struct tcp_dynamic_reader *reader, uint32_t id, uint32_t generation);
/* A frame of the region's is over. */
void gw_verbs_dynamic_read(struct verbs_endpoint *endpoint, struct gw_dynamic_region_entry *entry);
/* Questions that found no room. */
void gw_verbs_dynamic_pump(struct verbs_endpoint *endpoint);
/* A completion of the loop's TCP part; false: it is not about a late region. */
bool gw_verbs_dynamic_completed(struct verbs_loop *loop, const struct gw_completion *completion);
/* Ends what is being opened with the text of gw_last_error(). */
void gw_verbs_dynamic_fail(struct verbs_endpoint *endpoint, gw_status status);
void gw_verbs_dynamic_end(struct verbs_endpoint *endpoint);

/* --- endpoint_rows.c --- */
/* Before the first read of versioned rows. */
gw_status gw_verbs_rows_begin(struct verbs_endpoint *endpoint);
void gw_verbs_rows_end(struct verbs_endpoint *endpoint);                     /* after the queue pairs */
struct verbs_stage *gw_verbs_stage_acquire(struct verbs_endpoint *endpoint); /* NULL: none now */
void gw_verbs_stage_release(struct verbs_endpoint *endpoint, struct verbs_stage *stage);
/* One work request; its scatter elements, or 0: nothing is left, or there is no bounce buffer now. */
uint32_t gw_verbs_rows_build(struct verbs_qp *qp, struct verbs_frame *frame, struct verbs_wr *wr, struct ibv_sge *sges,
			     uint64_t *remote);
/* All of the frame has landed. False: some rows are torn, and the frame is theirs now, to be posted again. */
bool gw_verbs_rows_landed(struct verbs_frame *frame);

/* --- endpoint_read.c --- */
void gw_verbs_reads_begin(struct verbs_endpoint *endpoint);
void gw_verbs_reads_pump(struct verbs_endpoint *endpoint);
void gw_verbs_read_done(struct verbs_qp *qp, struct verbs_wr *wr);
/* Nobody wants the set's bytes any more: it completes when what is in flight for it is over. */
void gw_verbs_set_drop(struct verbs_endpoint *endpoint, struct gw_read_set *set);
/* Since when the frame waits that nobody wants for longest; there is one. */
uint64_t gw_verbs_dying_since(const struct verbs_endpoint *endpoint);
/* Its queue pairs are gone: no frame has anything in flight. */
void gw_verbs_reads_silenced(struct verbs_endpoint *endpoint);
/* Read sets that read from it fail with the text of gw_last_error() (GW_NOT_FOUND), when what is in flight has landed.
 */
void gw_verbs_reads_withdraw(struct verbs_endpoint *endpoint, const struct gw_dynamic_region_entry *entry);
/* A place for so many bytes in the bounce buffer; false: not now. */
#define VERBS_BOUNCE_PIECE (32u << 10) /* of the bounce buffer, at most, for one work request */
bool gw_verbs_bounce_take(struct verbs_qp *qp, uint32_t bytes, struct verbs_wr *wr);

/* Ranges of a frame. */
static inline uint32_t verbs_range_bytes(const struct verbs_frame *frame, uint32_t i)
{
	return frame->spans ? frame->spans[i].bytes : frame->gather.row_bytes;
}
static inline uint64_t verbs_range_remote(const struct verbs_frame *frame, uint32_t i)
{
	return frame->spans ? frame->spans[i].remote : frame->gather.remote[i];
}
static inline uint8_t *verbs_range_local(const struct verbs_frame *frame, uint32_t i)
{
	if (frame->spans)
		return frame->base + frame->spans[i].local;
	uint64_t row = frame->gather.rows ? frame->gather.rows[i] : i;
	return frame->base + frame->gather.local + row * frame->gather.stride;
}

/* GW_UNSUPPORTED: rows without trailers that the server's device might read in parts. */
gw_status gw_verbs_words_check(const struct verbs_endpoint *endpoint, const struct gw_region *region);

/* --- endpoint_request.c --- */
void gw_verbs_requests_pump(struct verbs_endpoint *endpoint);
/* Ends every request with the text of gw_last_error(). */
void gw_verbs_requests_fail(struct verbs_endpoint *endpoint, gw_status status);
void gw_verbs_requests_tick(struct verbs_endpoint *endpoint, uint64_t now_ns);
static inline uint32_t verbs_requests_open(const struct verbs_endpoint *endpoint)
{
	return endpoint->newest - endpoint->oldest;
}

#endif
