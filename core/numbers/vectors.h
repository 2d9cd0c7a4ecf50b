/* The vector instructions that loops over numbers use, chosen at run time. A file is compiled for each of them, on
 * every machine of the architecture; which one runs never changes a result. */
#ifndef GW_NUMBERS_VECTORS_H
#define GW_NUMBERS_VECTORS_H

#include <stdbool.h>

/* OFF: portable code. FOUR: four lanes, which every supported processor has (SSE4.1, NEON). AVX2: with F16C. AUTO: the
 * widest of this processor, unless GRAPHWIRE_VECTORS=off, four, avx2 or avx512 in the environment names another. An
 * unknown name, or one that this processor lacks, is ignored. */
enum gw_vectors { GW_VECTORS_AUTO, GW_VECTORS_OFF, GW_VECTORS_FOUR, GW_VECTORS_AVX2, GW_VECTORS_AVX512 };
#define GW_VECTORS_COUNT 5

/* For tests and benchmarks. Returns false and changes nothing if the processor lacks the vectors. Any thread may call
 * it at any time: results stay the same. */
bool gw_vectors_set(enum gw_vectors vectors);
enum gw_vectors gw_vectors_used(void); /* never AUTO */

const char *gw_vectors_name(enum gw_vectors vectors); /* "off" and so on */

#endif
