/* Tensors that change, kept on disk: written while they are trained, and read back, also by servers of the same graph
 * in other parts. Part of graphwire.h; docs/FORMAT.md says what the folder holds, which NumPy reads.
 *
 *   gw_checkpoint(client, "/data/step-1000", NULL)   the client's own disk: servers need not see the folder
 *   gw_checkpoint_start(..., &ticket), train, gw_wait(ticket, -1)
 *   gw_restore(client, "/data/step-1000", NULL, 0)   before the tensors are trained on
 */
#ifndef GRAPHWIRE_CHECKPOINT_H
#define GRAPHWIRE_CHECKPOINT_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;
struct gw_ticket;

/* Zero-initialize, then set what differs. */
struct gw_checkpoint_options {
	/* [name_count], 1 or more; NULL: all tensors of the client's job, and the kept ones. */
	const char *const *names;
	uint32_t name_count;
	uint64_t bytes_per_second; /* at most, so that others have the disk and the network too; 0: no limit */
	bool replace;              /* a checkpoint that has this name already; other files in its folder stay there */
};

/* Writes tensors into a folder, which is there whole or not at all. Every write that was acknowledged before the call
 * is in it, of this client and of others; of later ones some. Each row is of one moment with what an optimizer
 * remembers of it; different rows may be of different moments. Takes as long as it takes, in the calling thread,
 * without a limit for the whole. Its memory does not grow with the tensors. options: NULL for the defaults. GW_EXISTS:
 * the folder is there; or with replace: it is no checkpoint, or it holds a file that no checkpoint wrote and that can
 * not stay, as one by the name of a new array; the folder is as it was then. GW_NOT_FOUND: no tensor of such a name, or
 * one was deleted meanwhile; GW_INVALID: an empty list of names; GW_NO_SPACE, GW_IO; the errors of reading. */
GW_API gw_status gw_checkpoint(struct gw_client *client, const char *folder,
			       const struct gw_checkpoint_options *options);

/* The same in the background, in a thread of its own, while others train with the same client. folder and options are
 * copied. gw_wait has the errors above, and says when it is there; gw_cancel ends it soon: the folder is not there
 * then, unless it was whole already. GW_LIMIT: no thread is to be had. */
GW_API gw_status gw_checkpoint_start(struct gw_client *client, const char *folder,
				     const struct gw_checkpoint_options *options, struct gw_ticket **ticket);

/* Creates the tensors that a checkpoint has, or opens those that are there and writes over all their rows; optimizers
 * go on where they were. names NULL: all of them; an empty list is GW_INVALID. Into a graph of the same types, in any
 * number of parts: where these are not those of the checkpoint, rows of nodes and edges are found by their original
 * ids. What began as a copy is created whether its source is there or not. Not beside trainers: they would see some
 * rows restored and others not. GW_EXISTS: there is another tensor of that name, or one trained by another optimizer;
 * GW_DIGEST, GW_FORMAT: the files are not what was written, or not of one save; GW_VERSION: of a newer major version;
 * GW_UNSUPPORTED: other parts, and ids that are not unique, or edges without ids; GW_NOT_FOUND. After an error some
 * rows may be restored; of a copy that was created, the others are zeros. */
GW_API gw_status gw_restore(struct gw_client *client, const char *folder, const char *const *names,
			    uint32_t name_count);

#ifdef __cplusplus
}
#endif
#endif
