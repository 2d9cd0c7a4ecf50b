/* A graph, its servers, and tensors of every placement and of several widths, with and without an optimizer's state:
 * what tests of checkpoints begin with. Everything here fails the test when it cannot be done. */
#ifndef GW_TEST_SAVE_BED_H
#define GW_TEST_SAVE_BED_H

#include "test/support/client_setup.h"
#include "test/support/must.h"

#define SAVE_BED_PARTS   3
#define SAVE_BED_COLUMNS 700 /* with an optimizer's state some sixty rows to a request */

enum { TRAINED, EDGES, HALF, WORDS, TENSORS };
extern const char *const save_bed_names[TENSORS];
extern const struct gw_optimizer save_bed_optimizers[2]; /* of TRAINED and EDGES */
extern struct setup save_bed;
extern char save_bed_scratch[64];

/* As cmocka's state. */
int save_bed_begin(void **state);
int save_bed_end(void **state);

/* A name below the scratch folder; the last four stay. */
const char *save_bed_path(const char *name);
/* Standalone, and of the servers over TCP, or over RDMA where a test is taken there; jobs "kept-job" and "served-job".
 */
struct gw_client *save_bed_open_folder(const char *folder);
struct gw_client *save_bed_open_servers(void);

void save_bed_create(struct gw_client *client, const struct gw_tensor *tensors[TENSORS]);
void save_bed_open(struct gw_client *client, const struct gw_tensor *tensors[TENSORS]);

int64_t *save_bed_ids(uint64_t n);                                                /* 0, 1, ... */
uint8_t *save_bed_rows(struct gw_client *client, const struct gw_tensor *tensor); /* all of them */
void save_bed_check_rows(struct gw_client *client, const struct gw_tensor *tensor, const uint8_t *expected);
/* Rows of a are those of b that are called so, in another order: find gives the row of b, or n where there is none. */
void save_bed_compare_moved(struct gw_client *one, struct gw_client *other, const struct gw_tensor *a,
			    const struct gw_tensor *b, uint64_t (*find)(void *names, uint64_t row_of_a), void *names);
/* Gradients that follow from the key, for ids of which some are equal. */
void save_bed_push(struct gw_client *client, const struct gw_tensor *tensor, const struct gw_optimizer *optimizer,
		   uint64_t key);
void save_bed_train(struct gw_client *client, const struct gw_tensor *tensors[TENSORS], uint64_t key);
void save_bed_fill(struct gw_client *client, const struct gw_tensor *tensor, uint8_t with);

/* Another text in a checkpoint's JSON, in the place of the first one that is there; the JSON's digest is made anew. */
void save_bed_change_json(const char *folder, const char *from, const char *to);

#endif
