/* The parts of graphwire doctor, as its files see each other.
 *
 *      command.c  the command: options, the table of checks, the exit status
 *      report.c   findings: kept, printed for people and as JSON
 *      files.c    /proc and /sys under a root: numbers, words, limits, folders
 *      memory.c   memory, locked memory, pages, address space, open files
 *      limits.c   limits that containers, units and pods set
 *      kernel.c   NUMA nodes and processors, io_uring, sealed memory
 *      rdma.c     RDMA of this host: modules, device files, devices, their nodes
 *      port.c     ports of the devices: state, MTU, addresses
 *      peer.c     servers, by each transport
 *      cause.c    why a server is not reached
 *      measure.c  reads of one endpoint, timed and compared
 *
 * A check looks at one thing and adds what it finds to the report; it fails at nothing: what cannot be read is a note.
 * A finding that is a problem stops work that was asked for; a warning costs speed; a note tells what is not known, or
 * what somebody may want to know.
 */
#ifndef GW_TOOLS_DOCTOR_DOCTOR_H
#define GW_TOOLS_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "core/errors/units.h"
#include "core/memory/probe.h"
#include "transport/transport.h"
#include "transport/verbs/report.h"

/* --- report.c --- */

enum gw_doctor_status { GW_DOCTOR_OK, GW_DOCTOR_NOTE, GW_DOCTOR_WARNING, GW_DOCTOR_PROBLEM };

#define GW_DOCTOR_TEXT_MAX     640
#define GW_DOCTOR_FIGURES_MAX  6
#define GW_DOCTOR_FINDINGS_MAX 4096

struct gw_doctor_finding {
	const char *section; /* static, like the names of figures */
	char name[GW_ADDRESS_MAX + 32];
	enum gw_doctor_status status;
	char value[GW_DOCTOR_TEXT_MAX];
	char costs[GW_DOCTOR_TEXT_MAX]; /* "" where it costs nothing */
	char fix[GW_DOCTOR_TEXT_MAX];   /* the command that fixes it; "" where there is none */
	struct gw_doctor_figure {
		const char *name;
		double value;
	} figures[GW_DOCTOR_FIGURES_MAX]; /* numbers of the value, for programs; up to one without a name */
};

/* What was found so far, and where checks look. Zeroed but for the fields of the second group. */
struct gw_doctor {
	struct gw_doctor_finding *findings;
	uint32_t count, capacity;
	uint32_t left_out;              /* findings for which there was no memory */
	struct gw_doctor_finding spare; /* what these are written to */
	const char *section;            /* of findings that are added now */

	const char *root;                      /* before /proc, /sys and /dev: "" for this machine */
	const struct gw_probe *probe;          /* what was tried on this machine; NULL: nothing was */
	uint64_t bytes;                        /* that will be kept in memory and registered; 0: nobody said */
	const struct gw_verbs_report *reports; /* what libibverbs says of the devices */
	uint32_t report_count;
	const char *no_reports; /* why there are none; NULL: there are */
	bool no_libraries;      /* and that is why: libibverbs and librdmacm are not on this host, or too old */
};

/* Adds a finding of this name; never NULL. Valid until the next one is added. */
struct gw_doctor_finding *gw_doctor_find(struct gw_doctor *doctor, enum gw_doctor_status status, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/* Each adds to its text, which is cut where it is full; all but printable ASCII becomes '?'. */
void gw_doctor_value(struct gw_doctor_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gw_doctor_costs(struct gw_doctor_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gw_doctor_fix(struct gw_doctor_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gw_doctor_figure(struct gw_doctor_finding *finding, const char *name, double value);
/* The status becomes this one, unless it is worse already. */
void gw_doctor_raise(struct gw_doctor_finding *finding, enum gw_doctor_status status);
/* The text of a number of bytes; UINT64_MAX is "unlimited". */
const char *gw_doctor_bytes(char text[GW_UNIT_TEXT_MAX], uint64_t bytes);
/* Makes it a note that this file could not be read. */
void gw_doctor_unread(struct gw_doctor_finding *finding, const char *path);

enum gw_doctor_status gw_doctor_worst(const struct gw_doctor *doctor);
void gw_doctor_print(const struct gw_doctor *doctor);
gw_status gw_doctor_print_json(const struct gw_doctor *doctor); /* GW_NO_MEMORY */
void gw_doctor_free(struct gw_doctor *doctor);

/* --- files.c: paths are printf style, and stand behind the doctor's root. false: not there, or not what is
 * asked for; then *out is untouched. --- */

#define GW_DOCTOR_WORD_MAX   1024
#define GW_DOCTOR_FOLDER_MAX 64 /* names of a folder that are looked at */

/* The first line, without spaces around it. */
bool gw_doctor_word(const struct gw_doctor *doctor, char out[GW_DOCTOR_WORD_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A file that holds one whole number, and nothing else. */
bool gw_doctor_number(const struct gw_doctor *doctor, int64_t *out, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The word behind "Field:" in /proc/self/status. */
bool gw_doctor_self(const struct gw_doctor *doctor, const char *field, char out[GW_DOCTOR_WORD_MAX]);
/* A row of /proc/self/limits; UINT64_MAX: unlimited. */
bool gw_doctor_limit(const struct gw_doctor *doctor, const char *row, uint64_t *soft, uint64_t *hard);
bool gw_doctor_exists(const struct gw_doctor *doctor, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The names in a folder that begin with the prefix, sorted, those with a dot in front and very long ones left out. */
struct gw_doctor_names {
	uint32_t count;
	char names[GW_DOCTOR_FOLDER_MAX][64];
};
bool gw_doctor_folder(const struct gw_doctor *doctor, const char *prefix, struct gw_doctor_names *out,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The last name of the path that a link leads to: a device's driver, say. */
bool gw_doctor_link(const struct gw_doctor *doctor, char out[GW_DOCTOR_WORD_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- Checks: rows of the table in doctor.c. --- */

void gw_doctor_memory(struct gw_doctor *doctor);
void gw_doctor_locked(struct gw_doctor *doctor);
void gw_doctor_hugepages(struct gw_doctor *doctor);
void gw_doctor_transparent(struct gw_doctor *doctor);
void gw_doctor_overcommit(struct gw_doctor *doctor);
void gw_doctor_address_space(struct gw_doctor *doctor);
void gw_doctor_open_files(struct gw_doctor *doctor);
void gw_doctor_swap(struct gw_doctor *doctor);
void gw_doctor_huge_group(struct gw_doctor *doctor);
void gw_doctor_file_size(struct gw_doctor *doctor);
void gw_doctor_dev_shm(struct gw_doctor *doctor);
void gw_doctor_threads(struct gw_doctor *doctor);
void gw_doctor_rdma_group(struct gw_doctor *doctor);
void gw_doctor_nodes(struct gw_doctor *doctor);
void gw_doctor_processors(struct gw_doctor *doctor);
void gw_doctor_io_uring(struct gw_doctor *doctor);
void gw_doctor_io_uring_switch(struct gw_doctor *doctor);
void gw_doctor_seccomp(struct gw_doctor *doctor);
void gw_doctor_sealed(struct gw_doctor *doctor);
void gw_doctor_modules(struct gw_doctor *doctor);
void gw_doctor_device_files(struct gw_doctor *doctor);
void gw_doctor_devices(struct gw_doctor *doctor);
void gw_doctor_transports(struct gw_doctor *doctor);

/* All of them, in the order of the table. */
void gw_doctor_host(struct gw_doctor *doctor);

/* The devices that the kernel has: false if there are none, or their folder cannot be read. */
bool gw_doctor_device_names(const struct gw_doctor *doctor, struct gw_doctor_names *out);
/* Of a device and its ports; NULL: libibverbs does not know it. */
const struct gw_verbs_report *gw_doctor_report(const struct gw_doctor *doctor, const char *device);
void gw_doctor_ports(struct gw_doctor *doctor, const char *device);

/* --- peer.c --- */

struct gw_doctor_peers {
	const char *const *servers; /* as they were given: HOST:PORT */
	uint32_t count;
	const uint8_t *key; /* or NULL: on loopback it is found */
	uint32_t key_bytes;
	bool insecure;         /* servers on loopback need not have one */
	const char *transport; /* that must work: "tcp", "shm", "verbs"; NULL or "auto": any */
	uint32_t row_bytes;
	uint64_t timeout_ms; /* of a connect */
	uint64_t measure_ms; /* of one transport of one server */
};

/* HOST:PORT, with or without tcp: or verbs:; GW_INVALID for others. */
gw_status gw_doctor_server_check(const char *text);
void gw_doctor_ask(struct gw_doctor *doctor, const struct gw_doctor_peers *peers);

/* --- cause.c: why a server is not reached. --- */

/* Adds to the finding what it is, and what helps: status and reason are of the connect over TCP that failed. Takes as
 * long as another connect. */
void gw_doctor_cause(const struct gw_doctor_peers *peers, const char *server, gw_status status, const char *reason,
		     struct gw_doctor_finding *finding);
/* The same of one that answers in short, and not at length. */
void gw_doctor_cause_large(const char *server, struct gw_doctor_finding *finding);

/* --- measure.c --- */

struct gw_doctor_reader; /* one endpoint that is read from, its poll group, and the memory that bytes land in */

#define GW_DOCTOR_SAMPLE_BYTES (64u << 10)
#define GW_DOCTOR_ROW_MAX      (64u << 10)

struct gw_doctor_figures {
	uint32_t row_bytes;    /* as asked for, or the whole region, if it is smaller */
	double p50_us, p99_us; /* a row, asked for and waited for */
	double rows_per_second, bytes_per_second;
	double range_cost_bytes; /* what a range costs besides its bytes, in bytes; NAN: the times did not tell */
};

/* Connects and waits for the outcome, until options->deadline_ns at the latest; 2 s and measure_ms later is the
 * deadline of all reads. */
gw_status gw_doctor_reader_open(const char *scheme, const struct gw_connect_options *options, uint32_t row_bytes,
				uint64_t measure_ms, struct gw_doctor_reader **out);
/* It will not come back: the server need not remember it. To be closed next; NULL is allowed. */
void gw_doctor_reader_goodbye(struct gw_doctor_reader *reader);
void gw_doctor_reader_close(struct gw_doctor_reader *reader); /* NULL is allowed */
const struct gw_endpoint *gw_doctor_reader_endpoint(const struct gw_doctor_reader *reader);

/* The time of a short read, alone: all that follows is given as much time as it needs. */
gw_status gw_doctor_reader_ping(struct gw_doctor_reader *reader, uint64_t *ns);
/* Both read region 0, which is not empty, as does ping. After a failure the reader can only be closed. */
/* The same bytes of the same region each time, its first and last ones among them; *used of them, the rest is zero. */
gw_status gw_doctor_reader_sample(struct gw_doctor_reader *reader, uint8_t out[GW_DOCTOR_SAMPLE_BYTES], uint32_t *used);
/* Takes about measure_ms. */
gw_status gw_doctor_reader_measure(struct gw_doctor_reader *reader, struct gw_doctor_figures *out);

#endif
