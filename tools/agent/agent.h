/* graphwire agent: starts, watches and ends the processes of one job on this host, for a launcher at the other end of
 * its standard input and output (ssh's, or a pipe).
 *
 *   guardian (guard.c) -- forks, waits --> worker: loop.c <- lines of JSON -> the launcher
 *                                            request.c: what the launcher wants; process.c: the processes
 *
 * Nothing of the job outlives it: the worker ends everything when the launcher says so, hangs up or is silent for too
 * long, when a signal comes, and when the guardian dies; the guardian ends everything when the worker dies. Both are
 * subreapers, so that whatever a trainer leaves behind becomes their child, however it detached itself. If both are
 * killed at once, what is left is found by its mark (left.c), for cluster.py to show and to end.
 */
#ifndef GW_TOOLS_AGENT_AGENT_H
#define GW_TOOLS_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/errors/status.h"

#define GW_AGENT_LINE_MAX  4096 /* bytes of a line of output that are told; the log has all */
#define GW_AGENT_TAIL      64 /* last lines of a process that are told with its end: an exception and torchrun's report */
#define GW_AGENT_TAIL_LINE 512
#define GW_AGENT_PATH_MAX  1024
#define GW_AGENT_NAME_MAX  96
#define GW_AGENT_MARK      "GRAPHWIRE_AGENT" /* in the environment of every process of a job */
#define GW_AGENT_MARK_MAX  (GW_AGENT_NAME_MAX + 48)

/* Whose a process is: the worker that started it, or what started it; by its pid, its time of start and its job. */
struct gw_agent_mark {
	pid_t worker;
	uint64_t start;
	char job[GW_AGENT_NAME_MAX];
};

/* --- A log that rotates: FILE, FILE.1, ... --- */

struct gw_agent_log {
	char path[GW_AGENT_PATH_MAX];
	int fd;
	uint64_t bytes, bytes_max;
	int error; /* of the last write: told once */
};

gw_status gw_agent_log_open(struct gw_agent_log *log, const char *path, uint64_t bytes_max);
void gw_agent_log_write(struct gw_agent_log *log, const char *text, size_t bytes);
void gw_agent_log_close(struct gw_agent_log *log);

/* --- A process of the job. --- */

struct gw_agent_process {
	char name[GW_AGENT_NAME_MAX];
	char *ready; /* a line that begins so is told as "ready"; NULL: none */
	pid_t pid;
	int output; /* its standard output and error; -1: closed */
	int status; /* as waitpid gave it, when ended */
	bool ended, told, is_ready;
	uint16_t port; /* of a server that is on record; 0: none */
	struct gw_agent_log log;
	char line[GW_AGENT_LINE_MAX];
	size_t line_bytes;
	char tail[GW_AGENT_TAIL][GW_AGENT_TAIL_LINE];
	uint32_t tail_next, tail_count;
	uint64_t allowance_ns, dropped; /* lines that may still be told; lines that were not */
	struct gw_agent_process *next;
};

/* --- A server that somebody else's agent started, until it has ended. --- */

struct gw_agent_watch {
	int fd;    /* of the process; -1: none to be had */
	pid_t pid; /* 0: none is watched yet; -1: it has ended */
	uint16_t port;
	uint64_t look_ns; /* when its record is looked at; GW_NO_DEADLINE: the descriptor tells */
};

struct gw_agent {
	bool keep, set_up, ending, finished, released;
	bool deaf, hung_up;             /* the launcher's lines have ended; it reads nothing more */
	int guardian, release, signals; /* descriptors: ends with the guardian; a word to it; signalfd. -1: none */
	uint64_t silence_ns, heard_ns, reported_ns, kill_ns, end_ns, log_bytes_max;
	char job[GW_AGENT_NAME_MAX];
	struct gw_agent_mark mark; /* of what it starts */
	char workspace[GW_AGENT_PATH_MAX], logs[GW_AGENT_PATH_MAX];
	char folder[GW_AGENT_PATH_MAX]; /* key and ip_config of this job; "": not made */
	struct gw_agent_process *processes;
	struct gw_agent_watch watch;
	char *input, *output; /* lines that came in part; what the launcher has not read yet */
	size_t input_bytes, output_bytes, output_sent;
	int exit_status;
};

/* loop.c: everything there is to say goes through here; takes the reference. Told in order; lines of output are left
 * out where the launcher does not keep up, events are not. */
void gw_agent_report(struct gw_agent *agent, json_t *event);
bool gw_agent_may_report_output(const struct gw_agent *agent);
/* Begins to end everything: SIGTERM now, SIGKILL after the grace; `why` is told. The first call counts. */
void gw_agent_end(struct gw_agent *agent, const char *why);
int gw_agent_loop(struct gw_agent *agent);

/* request.c */
void gw_agent_request(struct gw_agent *agent, json_t *request);

/* process.c */
gw_status gw_agent_process_start(struct gw_agent *agent, const json_t *request);
void gw_agent_process_read(struct gw_agent *agent, struct gw_agent_process *process);
void gw_agent_process_signal(const struct gw_agent_process *process, int number);
/* Takes the ends of children, and tells those of processes whose output was read to its end. */
void gw_agent_process_reap(struct gw_agent *agent);
void gw_agent_process_report_end(struct gw_agent *agent, struct gw_agent_process *process);

/* home.c: ~/.graphwire/HOST, 0700: a folder for each agent, and a record of each server. */
gw_status gw_agent_home(char path[GW_AGENT_PATH_MAX]);
gw_status gw_agent_folder_make(struct gw_agent *agent);
bool gw_agent_folder_mark(const char *home, const char *entry, struct gw_agent_mark *mark); /* false: it is none */
gw_status gw_agent_file_write(const char *folder, const char *name, const void *bytes, size_t count);
void gw_agent_folder_remove(pid_t worker);
gw_status gw_agent_expand(const char *path, char out[GW_AGENT_PATH_MAX]);

/* record.c: servers on this host that agents of this user started. */
gw_status gw_agent_record_write(const struct gw_agent *agent, const json_t *server, pid_t pid, const char *log);
void gw_agent_record_remove(uint16_t port, pid_t pid);
json_t *gw_agent_record_read(uint16_t port); /* NULL: none, or its server is gone */
json_t *gw_agent_records(void);
uint64_t gw_agent_start_of(pid_t pid); /* its time of start; 0: it is not there, or has ended */

/* old_logs.c: this job's folder of logs stays while this agent is there; those of jobs before the last `keep` go. */
gw_status gw_agent_logs_lock(struct gw_agent *agent);
void gw_agent_logs_remove_old(const struct gw_agent *agent, size_t keep);

/* watch.c: tells "gone" when the server of a port and pid has ended. The loop calls the second, whenever it wakes. */
gw_status gw_agent_watch(struct gw_agent *agent, uint16_t port, pid_t pid);
void gw_agent_watch_look(struct gw_agent *agent, bool ended);

/* left.c: what is left here of jobs whose agents were killed: an array of objects, one an agent; a signal to what is
 * left of a job, and to how many processes; folders whose worker is gone, and of which nothing runs, go. */
void gw_agent_mark_text(const struct gw_agent_mark *mark, char out[GW_AGENT_MARK_MAX]);
bool gw_agent_mark_parse(const char *text, struct gw_agent_mark *mark);
bool gw_agent_worker_lives(const struct gw_agent_mark *mark);
json_t *gw_agent_left(void);
int gw_agent_left_signal(const char *job, int number);
void gw_agent_left_sweep(void);

/* own.c: tells "own": the first address that a name of this host has here, whether it is loopback, and which network
 * that loopback belongs to. */
gw_status gw_agent_own(struct gw_agent *agent, const char *name);

/* descendants.c: kills whatever descends from this process, and waits until it is gone, two seconds at most. Returns
 * what is left: an array of {"pid", "command"}; NULL: no memory for it. `agent`: of the worker, whose processes' ends
 * are kept; NULL in the guardian. */
json_t *gw_agent_descendants_kill(struct gw_agent *agent);

/* {"pid": N, "command": its words}; of a zombie, its name. */
json_t *gw_agent_process_json(pid_t pid);

/* guard.c: forks, and returns in the worker alone, with its two descriptors set. The guardian exits. */
gw_status gw_agent_guard(struct gw_agent *agent);

#endif
