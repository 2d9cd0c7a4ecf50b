/* A host made of files, for graphwire doctor: a tree with the files of /proc, /sys and /dev that it looks at, and what
 * libibverbs would say of its one device.
 *
 * It has two nodes with four processors each, and this process may use those of node 0; an mlx5 device sits on node 1,
 * with one active Ethernet port at an MTU of 1024; 64 KiB may be locked, io_uring is forbidden to all, and node 1 has a
 * pool of 100 huge pages, 40 of them free. Nothing was tried on it. */
#ifndef GW_TEST_DOCTOR_HOST_H
#define GW_TEST_DOCTOR_HOST_H

#include "tools/doctor/doctor.h"

struct doctor_host {
	char root[64];
	struct gw_verbs_report report;
	struct gw_doctor doctor;
};

extern const struct doctor_file {
	const char *path, *text;
} doctor_files[];
extern const size_t doctor_file_count;

void doctor_host_make(struct doctor_host *host);
void doctor_host_end(struct doctor_host *host);
/* Replaces a file; its folders are made. text: n bytes. */
void doctor_host_put(const struct doctor_host *host, const char *path, const char *text);
void doctor_host_put_bytes(const struct doctor_host *host, const char *path, const void *bytes, size_t n);
/* Takes a file or a whole folder away. */
void doctor_host_remove(const struct doctor_host *host, const char *path);
/* All checks, again; fails the test where a finding is not as every finding should be. */
void doctor_host_check(struct doctor_host *host);
/* The finding of this name; fails the test if there is none. */
const struct gw_doctor_finding *doctor_find(const struct gw_doctor *doctor, const char *name);
/* Fails the test unless the text has the part in it. */
void doctor_has(const char *text, const char *part);
/* Runs the checks and looks at one finding. fix: part of it; NULL: none. */
const struct gw_doctor_finding *doctor_expect(struct doctor_host *host, const char *name, enum gw_doctor_status status,
					      const char *value, const char *fix);
double doctor_figure(const struct gw_doctor_finding *finding, const char *name);

/* A test that has such a host as its state. */
#define DOCTOR_TEST(function) cmocka_unit_test_setup_teardown(function, doctor_host_set_up, doctor_host_tear_down)
int doctor_host_set_up(void **state);
int doctor_host_tear_down(void **state);

#endif
