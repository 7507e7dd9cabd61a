/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_memberfile: whole files and halves. */

#include <string.h>

#include "tests/fuzz/driver.h"

#define KEY   "zuA0t=ptrw0C(CjAPZd)wm/0@EIsyN}-G3w=zHim"
#define OTHER "#{}.-:+=^!/*?&<>()[]@%$abcdefghijk012345"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "connect = \"tcp://10.77.0.1:7700\"\nserver-key = \"" KEY "\"\n",
        "# pool 1\nconnect=tcp://[::1]:1\r\nserver-key='" KEY "'\nserver-key-next = \"" OTHER "\"\n",
        "connect = \"tcp://10.77.0.1:7700\"\nserver-key = \"" KEY "\"",
        "connect = \"tcp://10.77.0.1:770\n",
        "connect = \"tcp://*:7700\"\nserver-key = \"" KEY "\"\n",
        "connect = \"ipc:///tmp/x\"\nserver-key = \"" OTHER "\"\nserver-key = \"" KEY "\"\n",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
