/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_workerlog: lines of a log, last words, a line that is too long, and what a terminal would
 * obey. */

#include "tests/fuzz/driver.h"

#include <string.h>

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "\1"
        "09:41:00.123 worker-0 info ready\n09:41:00.124 worker-0 error m.gguf: not GGUF\n",
        "\377"
        "one\ntwo\n\n\nterminate called after throwing an instance\nAborted",
        "\2"
        "09:41:00.123\n09:41:00.123 worker-0\n09:41:00.123 worker-0 debug \n",
        "\3"
        "caf\303\251 \342\200\246 \033]0;title\007 \033[2J \302\233 \377\376 \tx\r\n",
    };
    static char line[3000];
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
    memset(line, 'x', sizeof line);
    memcpy(line + 1020, "\303\251\303\251", 4);
    line[0] = 40;
    fuzz_add_seed(line, sizeof line);
}
