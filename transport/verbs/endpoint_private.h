/* An endpoint over RDMA, as the endpoint's files see it. */
#ifndef GW_TRANSPORT_VERBS_ENDPOINT_PRIVATE_H
#define GW_TRANSPORT_VERBS_ENDPOINT_PRIVATE_H

#include "transport/dynamic_regions.h"
#include "transport/tcp/client/client.h"
#include "transport/verbs/handshake.h"
#include "transport/verbs/verbs.h"

#define ENDPOINT_FRAMES_MAX   64u        /* read calls open at once */
#define ENDPOINT_REQUESTS_MAX 64u        /* a power of two */
#define ENDPOINT_SEND_BYTES   (2u << 20) /* bytes of unsent requests, at most; a single request may be longer */
#define ENDPOINT_OPENINGS_MAX 16u        /* dynamic regions being opened at once */
#define ENDPOINT_STAGES       16u        /* frames of versioned rows, open at once */
#define STAGE_ROWS            256u       /* rows of one such frame */
#define FRAME_RANGES_MAX      (64u << 10)
/* How long a failed read set waits for its work in flight. After that the endpoint is silenced: its queue pairs are
 * destroyed. */
#define ENDPOINT_PATIENCE_NS (200 * GW_NS_PER_MS)

enum endpoint_phase {
	ENDPOINT_DIALLING,   /* the hello over TCP */
	ENDPOINT_ASKING,     /* the request for a token, over TCP */
	ENDPOINT_CONNECTING, /* queue pairs are being connected */
	ENDPOINT_OPENED,
	ENDPOINT_DOUBTING, /* a key was refused, and the endpoint is silenced; a new hello shows whether the server has
			      other data */
	ENDPOINT_LOST
};

/* The place of a region: its address at the server, and the keys of its slices. */
struct verbs_place {
	uint64_t base;
	const uint8_t *keys;
	uint32_t shift;
};

/* The additional state of a frame of versioned rows: endpoint_rows.c. */
struct verbs_stage {
	struct verbs_stage *next; /* free */
	uint8_t *tails;           /* for each row, the place where its padding and trailer land */
	uint32_t lkey, tries;
	bool again; /* the frame reads the ranges in `torn` again */
	uint16_t torn[STAGE_ROWS];
};

/* A read call, or a part of one. It lives from acceptance until no work request of it can write any more. */
struct verbs_frame {
	struct verbs_frame *next; /* in the list of waiting frames or in that of free frames */
	struct gw_read_set *set;  /* NULL: free */
	uint8_t *base;            /* base of the destination buffer */
	struct ibv_mr *mr;        /* NULL: through the bounce buffer */
	const struct gw_span *spans;
	struct gw_gather gather; /* spans == NULL */
	uint32_t n, at;          /* number of ranges; the range to post next */
	uint32_t at_done;        /* posted bytes of that range */
	const struct verbs_place *place;
	const struct gw_region_rows *rows;       /* rows of the region */
	struct verbs_stage *stage;               /* of versioned rows; else NULL */
	struct gw_dynamic_region_entry *dynamic; /* entry of a dynamic region; else NULL */
	uint32_t open;                           /* work requests in flight */
	bool waiting;                            /* in the list of frames to post */
	bool dying;                              /* its set has failed: it only waits for its work in flight */
	uint64_t dying_ns;                       /* when it began to die */
};

struct verbs_request {
	uint64_t tag, deadline_ns;
	struct gw_once once;
	struct gw_note *note; /* NULL: the caller has been answered, and the reply is dropped */
	uint16_t op;
	bool answered;
	uint8_t *bytes;
	uint32_t n, sent;
	uint8_t *reply;
	uint32_t reply_bytes, reply_done;
};

/* A dynamic region that is being opened. */
struct verbs_opening {
	struct verbs_opening *next;
	uint64_t number; /* the cookie of its open request over TCP */
	struct gw_note *note;
	uint32_t id, generation;
	bool held, asked; /* the server has pinned the region for us; the request for keys was sent */
};

/* A queue pair that is being connected or is connected. */
struct verbs_conn {
	struct verbs_cm_handler handler;
	struct verbs_endpoint *endpoint;
	uint32_t number;
	struct rdma_cm_id *id; /* NULL once the queue pair owns it */
	struct verbs_qp *qp;   /* set once the route is known */
	bool established;
};

struct verbs_endpoint {
	struct gw_endpoint base;
	struct verbs_deferred deferred, leaving; /* leaving: requests leave with the next poll */
	struct verbs_loop *loop;
	struct verbs_endpoint *next, **previous;
	enum endpoint_phase phase;
	/* Options of the connect; the hello that resolves a doubt uses them again. */
	struct gw_connect_options options;
	uint8_t key[GW_SERVICE_KEY_MAX];
	struct gw_note *connecting;
	uint64_t liveness_ns, heard_ns;
	bool heard, probed, room_wanted;
	bool talked; /* a message has arrived or has been sent: requests may go on */
	/* Over TCP. */
	struct gw_endpoint *control;
	uint64_t dialled;  /* cookie of this attempt; completions of earlier attempts have another number */
	bool control_open; /* an answer over TCP is awaited */
	struct tcp_dynamic_reader dynamic_reader;
	struct verbs_opening *openings; /* oldest first */
	uint32_t opening_count;
	/* What the server sent. */
	struct gw_region regions[GW_REGIONS_MAX];
	uint8_t *answer_bytes;
	bool asks_in_oldest; /* the server refused a question in this program's newest version */
	struct handshake_view answer;
	uint32_t address_at, requests_max, rail;
	bool whole_words; /* the server's device reads an aligned word of 8 bytes in one access */
	struct verbs_place places[GW_REGIONS_MAX];
	/* Queue pairs. */
	struct verbs_poller *poller;
	struct verbs_conn conns[VERBS_QPS_MAX];
	uint32_t qp_count, established, turn;
	/* Reads. */
	struct gw_read_set *sets;
	struct verbs_frame frames[ENDPOINT_FRAMES_MAX];
	struct verbs_frame *free_frames, *waiting, **waiting_end;
	uint32_t frames_open, dying;   /* number of open frames, and of dying frames */
	struct verbs_staging *staging; /* set by the first read of versioned rows */
	/* Requests: [oldest, unsent) wait for replies or are being sent, [unsent, newest) wait to be sent. */
	struct verbs_stream stream;
	struct verbs_request requests[ENDPOINT_REQUESTS_MAX];
	uint32_t oldest, unsent, newest;
	uint32_t unsent_bytes;
	uint64_t tag;
};

static inline const char *gw_verbs_name(const struct verbs_endpoint *endpoint, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&endpoint->options.address, text);
}

/* --- endpoint.c --- */
/* Silences the endpoint, then fails everything open with `status` and the text of gw_last_error(). */
void gw_verbs_lose(struct verbs_endpoint *endpoint, gw_status status);

/* Ends all queue pairs. After the return they write nothing more. */
void gw_verbs_conns_end(struct verbs_endpoint *endpoint);
/* Completes the connect; later calls do nothing. */
void gw_verbs_connected(struct verbs_endpoint *endpoint, gw_status status);
/* The hello after a refused key has ended with `status`. Loses the endpoint: with GW_STALE if the server has reloaded
 * its data, else with GW_PEER_LOST. */
void gw_verbs_doubt_resolve(struct verbs_endpoint *endpoint, gw_status status);

void gw_verbs_hang_up(struct verbs_endpoint *endpoint);
void gw_verbs_control_wait(struct verbs_endpoint *endpoint, bool wait); /* whether an answer over TCP is awaited */
/* Polls the TCP part at every look while dynamic regions are being opened. */
void gw_verbs_control_settle(struct verbs_endpoint *endpoint);
/* Returns a number that is unique in this process, as the cookie of a question over TCP. */
uint64_t gw_verbs_number(void);

/* --- endpoint_connect.c --- */
/* Checks whether a queue pair has failed. If so, it handles the failure: the endpoint is lost, in doubt, or tries its
 * next address. */
bool gw_verbs_failed(struct verbs_endpoint *endpoint);
/* Begins a hello over TCP, and ends an earlier one. gw_verbs_control_completed gets the outcome. */
gw_status gw_verbs_dial(struct verbs_endpoint *endpoint, uint64_t deadline_ns);

/* --- endpoint_dynamic.c --- */
void gw_verbs_dynamic_withdrawn(struct tcp_dynamic_reader *reader, uint32_t id, uint32_t generation);
/* Sends questions for keys that found no room before. */
void gw_verbs_dynamic_pump(struct verbs_endpoint *endpoint);
/* Handles a completion of the loop's TCP part; false: it does not belong to a dynamic region. */
bool gw_verbs_dynamic_completed(struct verbs_loop *loop, const struct gw_completion *completion);

/* A frame of the region has ended. */
void gw_verbs_dynamic_read(struct verbs_endpoint *endpoint, struct gw_dynamic_region_entry *entry);
/* Fails every region that is being opened, with `status` and the text of gw_last_error(). */
void gw_verbs_dynamic_fail(struct verbs_endpoint *endpoint, gw_status status);
void gw_verbs_dynamic_end(struct verbs_endpoint *endpoint);

/* --- endpoint_rows.c --- */
/* Prepares for reads of versioned rows; every such read calls it. */
gw_status gw_verbs_rows_begin(struct verbs_endpoint *endpoint);
void gw_verbs_rows_end(struct verbs_endpoint *endpoint); /* call it after the queue pairs have ended */
struct verbs_stage *gw_verbs_stage_acquire(struct verbs_endpoint *endpoint); /* NULL: none now */
void gw_verbs_stage_release(struct verbs_endpoint *endpoint, struct verbs_stage *stage);
/* Builds one work request. Returns the number of its scatter elements; 0: no rows are left, or the bounce buffer has no
 * room now. */
uint32_t gw_verbs_rows_build(struct verbs_qp *qp, struct verbs_frame *frame, struct verbs_wr *wr, struct ibv_sge *sges,
			     uint64_t *remote);
/* Checks a frame that has landed completely. False: some rows are torn; the frame now holds only those rows and must be
 * posted again. */
bool gw_verbs_rows_landed(struct verbs_frame *frame);

/* --- endpoint_read.c --- */
void gw_verbs_reads_begin(struct verbs_endpoint *endpoint);
void gw_verbs_reads_pump(struct verbs_endpoint *endpoint);
void gw_verbs_read_done(struct verbs_qp *qp, struct verbs_wr *wr);
/* Drops the rest of a failed set. The set completes when its work in flight has ended. */
void gw_verbs_set_drop(struct verbs_endpoint *endpoint, struct gw_read_set *set);
/* When the oldest dying frame began to die. Needs at least one dying frame. */
uint64_t gw_verbs_dying_since(const struct verbs_endpoint *endpoint);
/* The queue pairs have ended: no frame has work in flight any more. */
void gw_verbs_reads_silenced(struct verbs_endpoint *endpoint);
/* Fails the read sets that read from the region, with GW_NOT_FOUND and the text of gw_last_error(). Each completes when
 * its work in flight has landed. */
void gw_verbs_reads_withdraw(struct verbs_endpoint *endpoint, const struct gw_dynamic_region_entry *entry);

/* Properties of range i of a frame. */
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

/* GW_UNSUPPORTED: the rows have no trailers, and the server's device might read them in parts. */
gw_status gw_verbs_words_check(const struct verbs_endpoint *endpoint, const struct gw_region *region);

/* --- endpoint_request.c --- */
static inline struct verbs_request *verbs_request_at(struct verbs_endpoint *endpoint, uint32_t at)
{
	return &endpoint->requests[at % ENDPOINT_REQUESTS_MAX];
}

/* Fails every request, with `status` and the text of gw_last_error(). */
void gw_verbs_requests_fail(struct verbs_endpoint *endpoint, gw_status status);

void gw_verbs_requests_pump(struct verbs_endpoint *endpoint);
/* endpoint->leaving: sends as far as credits and send buffers allow. The endpoint is open. */
void gw_verbs_requests_leave(struct verbs_deferred *leaving);
void gw_verbs_requests_tick(struct verbs_endpoint *endpoint, uint64_t now_ns);
static inline uint32_t verbs_requests_open(const struct verbs_endpoint *endpoint)
{
	return endpoint->newest - endpoint->oldest;
}

#endif
