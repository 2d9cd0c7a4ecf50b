/* Memory of servers that clients of this process map. */
#ifndef GW_TEST_MAPPINGS_H
#define GW_TEST_MAPPINGS_H

#include <stdint.h>

/* Mappings of parts that can only be read. Servers map their own parts writable. */
uint32_t mappings_of_clients(void);
/* Waits until there are so many; fails the test when that takes too long. */
void mappings_wait(uint32_t count);

#endif
