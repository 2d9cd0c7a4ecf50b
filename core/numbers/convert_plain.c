/* Conversions in portable code. The compiler uses the vectors that every processor of the architecture has (SSE2,
 * NEON). */
#include "core/numbers/convert_private.h"

#define TARGET
#define LANES      4
#define NAME(loop) loop##_plain

#include "core/numbers/convert_kernel.h"

const struct gw_convert_loops gw_convert_plain = LOOPS;
