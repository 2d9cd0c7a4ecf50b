/* The parts of graphwire doctor: the interfaces between its files.
 *
 *      command.c  the command: options, the table of checks, the exit status
 *      report.c   findings: kept, printed for people and as JSON
 *      files.c    /proc and /sys under a root: numbers, words, limits, folders
 *      memory.c   memory, locked memory, pages, address space, open files
 *      limits.c   limits that containers, units and pods set
 *      kernel.c   NUMA nodes and processors, io_uring, sealed memory
 *      rdma.c     RDMA of this host: modules, device files, devices, their nodes
 *      port.c     ports of the devices: state, MTU, addresses
 *      peer.c     servers, over each transport
 *      cause.c    why a server is not reached
 *      measure.c  reads of one endpoint, timed and compared
 *
 * A check examines one thing and adds its findings to the report. A check never fails: if it cannot read something, it
 * adds a note. A problem prevents work that was asked for. A warning reports a loss of speed. A note names what is not
 * known, or what a user may want to know.
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
	const char *section; /* a static string, like the names of figures */
	char name[GW_ADDRESS_MAX + 32];
	enum gw_doctor_status status;
	char value[GW_DOCTOR_TEXT_MAX];
	char costs[GW_DOCTOR_TEXT_MAX]; /* "" if it costs nothing */
	char fix[GW_DOCTOR_TEXT_MAX];   /* the command that fixes it; "" if no command does */
	struct gw_doctor_figure {
		const char *name;
		double value;
	} figures[GW_DOCTOR_FIGURES_MAX]; /* numbers in the value, for programs; the list ends at an entry without a
					     name */
};

/* The findings so far, and what the checks examine. All fields start zeroed, except those of the second group. */
struct gw_doctor {
	struct gw_doctor_finding *findings;
	uint32_t count, capacity;
	uint32_t left_out;              /* findings that memory ran out for */
	struct gw_doctor_finding spare; /* scratch for the findings that are left out */
	const char *section;            /* the section of findings that are added from now on */

	const char *root;                      /* prefix of /proc, /sys and /dev: "" for this machine */
	const struct gw_probe *probe;          /* results of the trials on this machine; NULL: no trials were made */
	uint64_t bytes;                        /* bytes of --bytes, to keep in memory and register; 0: not given */
	uint32_t spin_us;                      /* of --spin; 0: not given */
	const struct gw_doctor_rates *rates;   /* of this machine, for the plan of --bytes; NULL: not measured */
	const struct gw_verbs_report *reports; /* libibverbs' reports of the devices */
	uint32_t report_count;
	const char *no_reports; /* why there are no reports; NULL: there are reports */
	bool no_libraries;      /* the reason is that libibverbs and librdmacm are not on this host, or too old */
};

/* Adds a finding with this name; never NULL. Valid until the next finding is added. */
struct gw_doctor_finding *gw_doctor_find(struct gw_doctor *doctor, enum gw_doctor_status status, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/* Each appends to its text. A full text is cut; every byte that is not printable ASCII becomes '?'. */
void gw_doctor_add(char text[GW_DOCTOR_TEXT_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));
#define gw_doctor_value(finding, ...) gw_doctor_add((finding)->value, __VA_ARGS__)
#define gw_doctor_costs(finding, ...) gw_doctor_add((finding)->costs, __VA_ARGS__)
#define gw_doctor_fix(finding, ...)   gw_doctor_add((finding)->fix, __VA_ARGS__)
void gw_doctor_figure(struct gw_doctor_finding *finding, const char *name, double value);
/* Sets the status, unless the finding's status is worse already. */
void gw_doctor_raise(struct gw_doctor_finding *finding, enum gw_doctor_status status);
/* The text of a number of bytes; UINT64_MAX is "unlimited". */
const char *gw_doctor_bytes(char text[GW_UNIT_TEXT_MAX], uint64_t bytes);
/* Makes the finding a note that this file could not be read. */
void gw_doctor_unread(struct gw_doctor_finding *finding, const char *path);

enum gw_doctor_status gw_doctor_worst(const struct gw_doctor *doctor);
void gw_doctor_print(const struct gw_doctor *doctor);
gw_status gw_doctor_print_json(const struct gw_doctor *doctor); /* GW_NO_MEMORY */
void gw_doctor_free(struct gw_doctor *doctor);

/* --- files.c: paths are in printf style, and are relative to the doctor's root. false: the file is missing or has
 * other content; then *out is unchanged. --- */

#define GW_DOCTOR_WORD_MAX   1024
#define GW_DOCTOR_FOLDER_MAX 64 /* names of a folder that the doctor examines */

/* The first line, without spaces around it. */
bool gw_doctor_word(const struct gw_doctor *doctor, char out[GW_DOCTOR_WORD_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A file that holds one whole number and nothing else. */
bool gw_doctor_number(const struct gw_doctor *doctor, int64_t *out, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The word after "Field:" in /proc/self/status. */
bool gw_doctor_self(const struct gw_doctor *doctor, const char *field, char out[GW_DOCTOR_WORD_MAX]);
/* A row of /proc/self/limits; UINT64_MAX: unlimited. */
bool gw_doctor_limit(const struct gw_doctor *doctor, const char *row, uint64_t *soft, uint64_t *hard);
bool gw_doctor_exists(const struct gw_doctor *doctor, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The names in a folder that start with the prefix, sorted. Names that start with a dot and very long names are left
 * out. */
struct gw_doctor_names {
	uint32_t count;
	char names[GW_DOCTOR_FOLDER_MAX][64];
};
bool gw_doctor_folder(const struct gw_doctor *doctor, const char *prefix, struct gw_doctor_names *out,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The last name of the path that a link leads to: a device's driver, say. */
bool gw_doctor_link(const struct gw_doctor *doctor, char out[GW_DOCTOR_WORD_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- Checks: rows of the table in command.c. --- */

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
void gw_doctor_spin(struct gw_doctor *doctor); /* only with --spin */
void gw_doctor_io_uring(struct gw_doctor *doctor);
void gw_doctor_io_uring_switch(struct gw_doctor *doctor);
void gw_doctor_seccomp(struct gw_doctor *doctor);
void gw_doctor_sealed(struct gw_doctor *doctor);
void gw_doctor_modules(struct gw_doctor *doctor);
void gw_doctor_device_files(struct gw_doctor *doctor);
void gw_doctor_devices(struct gw_doctor *doctor);
void gw_doctor_transports(struct gw_doctor *doctor);

/* --- plan.c: what a part of --bytes needs, by rates that were measured here. --- */

struct gw_doctor_rates {
	double touch, digest, pin, read; /* bytes a second, of one thread; 0: not measured */
	uint32_t threads;                /* that load */
	const char *file;                /* of `read` */
};

struct gw_doctor_plan {
	uint64_t pages, huge_pages;               /* of 4 KiB, of 2 MiB */
	uint64_t translations, huge_translations; /* bytes of a card's table */
	uint64_t keys;                            /* memory regions of a device */
	double touch_s, digest_s, read_s, pin_s;  /* 0: the rate is not measured */
	double load_s;
};

/* file: a large file on the disk of the parts, or NULL. GW_IO, GW_INVALID: it cannot be read, is empty. */
gw_status gw_doctor_rates_measure(struct gw_doctor_rates *rates, uint32_t threads, const char *file);
void gw_doctor_plan_make(uint64_t bytes, const struct gw_doctor_rates *rates, struct gw_doctor_plan *plan);
void gw_doctor_plan(struct gw_doctor *doctor); /* only with --bytes */

/* Runs all checks of the host, in the order of the table. */
void gw_doctor_host(struct gw_doctor *doctor);

/* The devices of the kernel. false: the host has none, or their folder cannot be read. */
bool gw_doctor_device_names(const struct gw_doctor *doctor, struct gw_doctor_names *out);
/* The report of a device and its ports; NULL: libibverbs does not know the device. */
const struct gw_verbs_report *gw_doctor_report(const struct gw_doctor *doctor, const char *device);
void gw_doctor_ports(struct gw_doctor *doctor, const char *device);

/* --- peer.c --- */

struct gw_doctor_peers {
	const char *const *servers; /* as the user gave them: HOST:PORT */
	uint32_t count;
	const uint8_t *key; /* NULL: no key; on loopback the doctor finds it */
	uint32_t key_bytes;
	bool insecure;         /* allow servers on loopback without a key */
	const char *transport; /* the transport that must work: "tcp", "shm", "verbs"; NULL or "auto": any */
	uint32_t row_bytes;
	uint64_t timeout_ms; /* limit of a connect */
	uint64_t measure_ms; /* time to measure one transport of one server */
};

/* HOST:PORT, with or without tcp: or verbs:; GW_INVALID for others. */
gw_status gw_doctor_server_check(const char *text);
void gw_doctor_ask(struct gw_doctor *doctor, const struct gw_doctor_peers *peers);

/* --- cause.c: why a server is not reached. --- */

/* Adds the cause and the remedy to the finding. status and reason are those of the failed connect over TCP. Takes as
 * long as another connect. */
void gw_doctor_cause(const struct gw_doctor_peers *peers, const char *server, gw_status status, const char *reason,
		     struct gw_doctor_finding *finding);
/* The same for a server that sends short answers but not long ones. */
void gw_doctor_cause_large(const char *server, struct gw_doctor_finding *finding);

/* --- measure.c --- */

struct gw_doctor_reader; /* one endpoint to read from, its poll group and its receive buffer */

#define GW_DOCTOR_SAMPLE_BYTES (64u << 10)
#define GW_DOCTOR_ROW_MAX      (64u << 10)

struct gw_doctor_figures {
	uint32_t row_bytes;    /* as asked for, or the size of the region if that is smaller */
	double p50_us, p99_us; /* one row: from the request to its completion */
	double rows_per_second, bytes_per_second;
	double range_cost_bytes; /* the cost of a range in addition to its bytes, in bytes; NAN: could not be measured
				  */
};

/* Connects and waits for the result, until options->deadline_ns at most. The deadline of all reads is 2 s and
 * measure_ms later. */
gw_status gw_doctor_reader_open(const char *scheme, const struct gw_connect_options *options, uint32_t row_bytes,
				uint64_t measure_ms, struct gw_doctor_reader **out);
/* Announces that this client does not come back, so that the server need not remember it. Close the reader next. NULL
 * is allowed. */
void gw_doctor_reader_goodbye(struct gw_doctor_reader *reader);
void gw_doctor_reader_close(struct gw_doctor_reader *reader); /* NULL is allowed */
const struct gw_endpoint *gw_doctor_reader_endpoint(const struct gw_doctor_reader *reader);

/* Measures a short read on its own, and extends the deadline of later reads in proportion to its time. */
gw_status gw_doctor_reader_ping(struct gw_doctor_reader *reader, uint64_t *ns);
/* ping, sample and measure read region 0, which is not empty. After a failure the reader can only be closed. */
/* Reads the same bytes of the same region each time, including its first and last bytes. *used bytes are set, the
 * rest is zero. */
gw_status gw_doctor_reader_sample(struct gw_doctor_reader *reader, uint8_t out[GW_DOCTOR_SAMPLE_BYTES], uint32_t *used);
/* Takes about measure_ms. */
gw_status gw_doctor_reader_measure(struct gw_doctor_reader *reader, struct gw_doctor_figures *out);

#endif
