/* `graphwire partition` run in this process, its output in files. All but partition_run fail the test when they cannot.
 */
#ifndef GW_TEST_PARTITION_RUN_H
#define GW_TEST_PARTITION_RUN_H

#include "test/support/graph_fixture.h"

/* A fixture of one part, written. */
void partition_begin(struct gw_fixture *fixture, uint64_t seed, uint64_t scale);
/* Runs the command with its output in root/stdout and root/stderr; the words end with NULL. Returns its exit status. */
int partition_run(const char *root, const char *in, const char *out, const char *const *words);
void partition_run_ok(const char *root, const char *in, const char *out, const char *const *words);
/* It ends with this status and one line that tells of this. */
void partition_expect_error(struct gw_fixture *fixture, const char *in, const char *out, const char *const *words,
			    int status, const char *told);
/* What root/name holds, as text. */
void partition_text(const char *root, const char *name, char *text, size_t room);

#endif
