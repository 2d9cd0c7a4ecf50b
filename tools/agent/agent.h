/* graphwire agent: starts, watches and ends the processes of one job on this host. A launcher controls it through its
 * standard input and output (of ssh, or of a pipe).
 *
 *   guardian (guard.c) -- forks, waits --> worker: loop.c <- lines of JSON -> the launcher
 *                                            request.c: the launcher's requests; process.c: the processes
 *
 * No process of the job outlives the agent. The worker ends everything when:
 *   - the launcher sends bye, hangs up, or is silent for too long
 *   - a signal comes
 *   - the guardian dies
 * The guardian ends everything when the worker dies. Both are subreapers: a process that a trainer leaves behind
 * becomes a child of one of them, even if it has detached itself. If both are killed at once, left.c finds the
 * remaining processes by their mark, for cluster.py to show and to end.
 */
#ifndef GW_TOOLS_AGENT_AGENT_H
#define GW_TOOLS_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/errors/status.h"

#define GW_AGENT_LINE_MAX  4096 /* the most bytes of a line of output that are sent; the log has the complete line */
#define GW_AGENT_TAIL      64 /* last lines of a process that are sent with its end: an exception, torchrun's report */
#define GW_AGENT_TAIL_LINE 512
#define GW_AGENT_PATH_MAX  1024
#define GW_AGENT_NAME_MAX  96
#define GW_AGENT_MARK      "GRAPHWIRE_AGENT" /* in the environment of every process of a job */
#define GW_AGENT_MARK_MAX  (GW_AGENT_NAME_MAX + 48)

/* The mark of a process: pid, time of start and job of the worker that started the process or its ancestor. */
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
	int error; /* errno of a failed write; reported once */
};

gw_status gw_agent_log_open(struct gw_agent_log *log, const char *path, uint64_t bytes_max);
void gw_agent_log_write(struct gw_agent_log *log, const char *text, size_t bytes);
void gw_agent_log_close(struct gw_agent_log *log);

/* --- A process of the job. --- */

struct gw_agent_process {
	char name[GW_AGENT_NAME_MAX];
	char *ready; /* a line with this prefix is reported as "ready"; NULL: no line */
	pid_t pid;
	int output; /* its standard output and error; -1: closed */
	int status; /* from waitpid, once the process has ended */
	bool ended, told, is_ready;
	uint16_t port;        /* the port, if the process is a server on record; else 0 */
	json_t *server, *env; /* of its request; server: NULL unless it is on record */
	bool quiet; /* its end is not reported: a server that was replaced, or a successor that does not serve */
	uint32_t generation; /* how many servers it has succeeded */
	int64_t pause_ms;    /* a successor: the pause of the hand-over; negative: not reported yet */
	struct gw_agent_log log;
	char line[GW_AGENT_LINE_MAX];
	size_t line_bytes;
	char tail[GW_AGENT_TAIL][GW_AGENT_TAIL_LINE];
	uint32_t tail_next, tail_count;
	uint64_t allowance_ns, dropped; /* allowance_ns: process.c; dropped: lines that were not sent */
	struct gw_agent_process *next;
};

/* --- A server that another agent started, watched until it ends. --- */

struct gw_agent_watch {
	int fd;    /* pidfd of the process; -1: not available */
	pid_t pid; /* 0: none is watched; -1: it has ended */
	uint16_t port;
	uint64_t look_ns; /* when to check the server's record next; GW_NO_DEADLINE: not needed, since fd signals the
			   * end */
};

/* --- A server that is being replaced: process_replace.c. At most one at a time. --- */

struct gw_agent_replacement {
	int asker; /* the connection that asked for it; -1: none is in progress */
	struct gw_agent_process *old, *successor;
	json_t *words, *server; /* the successor's command and record */
	bool cold;
};

struct gw_agent {
	bool keep, set_up, ending, finished, released;
	bool deaf, hung_up; /* deaf: the input from the launcher has ended; hung_up: the launcher does not read */
	int guardian, release, signals; /* descriptors, or -1: a pipe that closes with the guardian; a pipe to it; a
					 * signalfd */
	uint64_t silence_ns, heard_ns, reported_ns, kill_ns, log_bytes_max;
	char job[GW_AGENT_NAME_MAX];
	struct gw_agent_mark mark; /* the mark of the processes that this agent starts */
	char workspace[GW_AGENT_PATH_MAX], logs[GW_AGENT_PATH_MAX];
	char folder[GW_AGENT_PATH_MAX]; /* key and ip_config of this job; "": not made */
	struct gw_agent_process *processes;
	struct gw_agent_watch watch;
	int control; /* the socket of process_replace.c; -1: no server was started yet */
	struct gw_agent_replacement replacement;
	char *input, *output; /* input: an incomplete line; output: events that the launcher has not read yet */
	size_t input_bytes, output_bytes, output_sent;
	int exit_status;
};

/* The queue of events. All events for the launcher pass through it in order. gw_agent_report takes over the
 * caller's reference to the event. If the launcher does not keep up, lines of output are dropped, but events are not.
 */
#define GW_AGENT_OUTPUT_MAX (8u << 20) /* bytes of unread events; with more, the launcher counts as gone */
void gw_agent_report(struct gw_agent *agent, json_t *event);
void gw_agent_send(struct gw_agent *agent); /* sends queued events until standard output accepts no more */
bool gw_agent_may_report_output(const struct gw_agent *agent);
/* Starts to end all processes: SIGTERM now, SIGKILL after the grace. The launcher gets `why`. Only the first call
 * counts. */
void gw_agent_end(struct gw_agent *agent, const char *why);
void gw_agent_process_signal(const struct gw_agent_process *process, int number);

/* loop.c */
int gw_agent_loop(struct gw_agent *agent);

/* request.c */
void gw_agent_request(struct gw_agent *agent, json_t *request);

/* process.c */
gw_status gw_agent_process_start(struct gw_agent *agent, const json_t *request);
void gw_agent_process_read(struct gw_agent *agent, struct gw_agent_process *process);
/* Reaps children, and reports the end of each process whose output was read to its end. */
void gw_agent_process_reap(struct gw_agent *agent);
void gw_agent_process_report_end(struct gw_agent *agent, struct gw_agent_process *process);

/* mark.c */
uint64_t gw_agent_start_of(pid_t pid); /* the time of its start; 0: it has ended, or does not exist */
void gw_agent_mark_text(const struct gw_agent_mark *mark, char out[GW_AGENT_MARK_MAX]);
bool gw_agent_mark_parse(const char *text, struct gw_agent_mark *mark);
bool gw_agent_worker_lives(const struct gw_agent_mark *mark);

/* home.c: ~/.graphwire/HOST, 0700: a folder for each agent, and a record of each server. */
gw_status gw_agent_home(char path[GW_AGENT_PATH_MAX]);
gw_status gw_agent_folder_make(struct gw_agent *agent);
bool gw_agent_folder_mark(const char *home, const char *entry,
			  struct gw_agent_mark *mark); /* false: the folder is not an agent's */
void gw_agent_folder_remove(pid_t worker);
gw_status gw_agent_expand(const char *path, char out[GW_AGENT_PATH_MAX]);

/* record.c: servers on this host that agents of this user started. */
#define GW_AGENT_BOOT_MAX 64
void gw_agent_boot(char out[GW_AGENT_BOOT_MAX]); /* the id of this boot of the host; "": unknown */
/* successor: a process that may take the server's place; 0: none. While the server runs, the record is of the server,
 * and then of the successor, whose record has the server's pid as "before". */
gw_status gw_agent_record_write(const struct gw_agent *agent, const json_t *server, pid_t pid, const char *log,
				pid_t successor);
void gw_agent_record_remove(uint16_t port, pid_t pid);
json_t *gw_agent_record_read(uint16_t port); /* NULL: no record, or its server is gone */
json_t *gw_agent_records(void);

/* old_logs.c: keeps this job's folder of logs while this agent runs; removes the folders of all but the last `keep`
 * jobs. */
gw_status gw_agent_logs_lock(struct gw_agent *agent);
void gw_agent_logs_remove_old(const struct gw_agent *agent, size_t keep);

/* watch.c: sends "gone" when the server of a port and pid has ended. The loop calls gw_agent_watch_look whenever it
 * wakes. */
gw_status gw_agent_watch(struct gw_agent *agent, uint16_t port, pid_t pid);
void gw_agent_watch_look(struct gw_agent *agent, bool ended);

/* process_replace.c. gw_agent_control_hear takes a request from the socket. */
void gw_agent_control_hear(struct gw_agent *agent);
void gw_agent_replace_look(struct gw_agent *agent); /* the loop calls it whenever it wakes */
/* Whether the end of this process is not to be reported yet: its successor may serve. */
bool gw_agent_replace_holds(const struct gw_agent *agent, const struct gw_agent_process *process);
/* The command: asks the agent of the server at this port, and prints its answer as a line of JSON. options: words for
 * the successor in addition to the server's own; NULL-terminated. */
gw_status gw_agent_replace(uint16_t port, bool cold, const char *const *options);

/* left.c: the remaining processes on this host of jobs whose agents were killed. gw_agent_left returns an array with
 * one object for each agent. gw_agent_left_signal signals the remaining processes of a job and returns their number.
 * gw_agent_left_sweep removes the folders of workers that are gone and have no running process. */
json_t *gw_agent_left(void);
int gw_agent_left_signal(const char *job, int number);
void gw_agent_left_sweep(void);

/* own.c: sends "own": the first address that `name` has on this host, whether the address is loopback, and an id of the
 * host's network namespace. Agents with the same id share their loopback. */
gw_status gw_agent_own(struct gw_agent *agent, const char *name);

/* descendants.c: kills all descendants of this process and waits for their end, two seconds at most. Returns the
 * remaining processes as an array of {"pid", "command"}; NULL: out of memory. agent: in the worker, its agent, which
 * records the ends of its processes; NULL in the guardian. */
json_t *gw_agent_descendants_kill(struct gw_agent *agent);

/* {"pid": N, "command": its command line}; for a zombie, its name. */
json_t *gw_agent_process_json(pid_t pid);

/* guard.c: forks, and returns only in the worker, with the descriptors guardian, release and signals set. In the
 * guardian the call does not return: the guardian exits. */
gw_status gw_agent_guard(struct gw_agent *agent);

#endif
