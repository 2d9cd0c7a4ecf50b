/* Checkpoints: writes tensors that change to disk during training, and restores them. A checkpoint can also be restored
 * after the same graph was cut into other parts. Part of graphwire.h. docs/FORMAT.md describes the folder, which NumPy
 * can read.
 *
 *   gw_checkpoint(client, "/data/step-1000", NULL)   to the client's disk: servers need not see the folder
 *   gw_checkpoint_start(..., &ticket), train, gw_wait(ticket, -1)
 *   gw_restore(client, "/data/step-1000", NULL, 0)   before training
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

/* Zero-initialize, then set the fields that differ from the default. */
struct gw_checkpoint_options {
	/* [name_count], 1 or more; NULL: all tensors of the client's job, and all kept tensors. */
	const char *const *names;
	uint32_t name_count;
	uint64_t bytes_per_second; /* limit that leaves disk and network to other programs; 0: no limit */
	bool replace;              /* replace a checkpoint of this name; other files in its folder stay */
};

/* Writes tensors into a folder, which appears complete or not at all.
 *   contents  All writes, of any client, that were acknowledged before the call, and possibly some later writes. A row
 *             and its optimizer state are of one moment; different rows may be of different moments.
 *   duration  The call blocks until the folder is complete; the operation's deadline does not apply.
 *   memory    The memory that the call needs does not grow with the tensors.
 *   options   NULL for the defaults.
 * Errors:
 *   GW_EXISTS     The folder exists. With `replace`: the folder is no checkpoint, or it contains a file that no
 *                 checkpoint wrote and that cannot stay, for example under the name of a new array. The folder is
 *                 unchanged.
 *   GW_NOT_FOUND  No tensor has such a name, or one was deleted meanwhile.
 *   GW_INVALID    The list of names is empty.
 *   GW_NO_SPACE, GW_IO, and the errors of gw_gather */
GW_API gw_status gw_checkpoint(struct gw_client *client, const char *folder,
			       const struct gw_checkpoint_options *options);

/* Starts gw_checkpoint in a thread of its own, while other threads train with the same client. The call copies folder
 * and options. gw_wait returns the status when the folder is complete, with the errors above. gw_cancel ends the
 * checkpoint soon; the folder then does not exist, unless it was complete already. GW_LIMIT: no thread could be
 * created. */
GW_API gw_status gw_checkpoint_start(struct gw_client *client, const char *folder,
				     const struct gw_checkpoint_options *options, struct gw_ticket **ticket);

/* Creates the tensors of a checkpoint, or opens existing ones and overwrites all their rows. Optimizers continue with
 * their saved state. names: NULL for all tensors; an empty list is GW_INVALID. The graph must have the same types but
 * may have any number of parts. If its parts differ from the checkpoint's, original ids identify the rows of nodes and
 * edges. A tensor that was created as a copy is created even if its source does not exist. If another program replaces
 * the checkpoint during the call (gw_checkpoint_options.replace), all rows are those of the new one. Do not restore
 * while trainers run: they would see some rows restored and others not. Errors: GW_EXISTS             another tensor
 * has that name, or the tensor is trained by another optimizer GW_DIGEST, GW_FORMAT  the files are not those that were
 * written, or not of one checkpoint GW_VERSION            a newer major version GW_BUSY               the checkpoint is
 * replaced again and again, faster than it can be read GW_UNSUPPORTED        the parts differ, and ids are not unique
 * or edges have no ids GW_NOT_FOUND After an error some rows may be restored. If this call has created a tensor that
 * was once created as a copy, the remaining rows of that tensor are zeros. */
GW_API gw_status gw_restore(struct gw_client *client, const char *folder, const char *const *names,
			    uint32_t name_count);

#ifdef __cplusplus
}
#endif
#endif
