/* Numbers original ids, texts or integers, in the order of their first appearance, a batch at a time.
 *
 *   a batch of ids -> hashes, a block ahead -> slot of each id -> its number, or a new one -> numbers of the batch
 *
 * Memory: for each text id its bytes, 4 bytes of its place and at most 10 bytes of slots; for each integer id 8 bytes
 * instead of its bytes and place. The slots grow by half and are filled anew from the ids, so no second table exists.
 *
 * Not for several threads at once.
 */
#ifndef PYTHON_NUMBERING_H
#define PYTHON_NUMBERING_H

#include <graphwire/graphwire.h>

struct numbering;

struct held_numbering {
	struct numbering *numbering; /* NULL: no id yet */
};

/* A batch of ids. Texts: text i is bytes[offsets[i]] up to bytes[offsets[i + 1]], with one of the two kinds of offsets.
 * Integers: numbers. The others are NULL. */
struct id_batch {
	const uint8_t *bytes;
	const int32_t *offsets32;
	const int64_t *offsets64;
	const int64_t *numbers;
};

/* Ids of one column and where their numbers go. add: new ids get the next number; else -1, which means missing. */
struct id_column {
	struct held_numbering *held;
	struct id_batch batch;
	bool add;
};

/* Numbers the ids of one or two columns of `rows` rows, row by row, so that two columns with one numbering have its
 * order. out: int64 [rows][columns]. GW_INVALID: a numbering of texts met integers, or the reverse. GW_LIMIT: more than
 * 2^32 - 2 ids, or a text of 2^16 bytes or more. GW_NO_MEMORY. After an error the numbering may only be ended. */
gw_status numbering_take(const struct id_column *columns, uint32_t count, uint64_t rows, int64_t *out);

/* Joins two batches of `rows` texts: text i of a, then text i of b. offsets: [2 rows + 1], from 0. bytes: room for all
 * texts. */
void numbering_interleave(const struct id_batch *a, const struct id_batch *b, uint64_t rows, int64_t *offsets,
			  uint8_t *bytes);

uint64_t numbering_count(const struct held_numbering *held);
/* All integers in the order of their numbers, int64 [count]. Valid until the next numbering_take. NULL for texts. */
const int64_t *numbering_integers(const struct held_numbering *held);
/* The bytes of all texts, without separators, in the order of their numbers, and their length. */
const uint8_t *numbering_bytes(const struct held_numbering *held, uint64_t *bytes);
/* Where texts begin to begin + rows - 1 start in these bytes; text `count` starts at their end. */
void numbering_offsets(const struct held_numbering *held, uint64_t begin, uint64_t rows, int64_t *out);
/* The bytes of memory that the numbering has. */
uint64_t numbering_memory(const struct held_numbering *held);
/* Frees the slots. No id can be numbered afterwards. */
void numbering_close(struct held_numbering *held);
void numbering_end(struct held_numbering *held);

#endif
