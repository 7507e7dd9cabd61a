/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of a fleet's member: either both an address and a key are there, or there is a reason
 * on one line and nothing was touched. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "common/files/member_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct member_file member = {.connect = "untouched"};
    struct error err = {0};
    if (member_file_parse(data, len, "input", &member, &err) == 0) {
        if (strncmp(member.connect, "tcp://", 6) != 0 || !certificate_is_key(member.server_key) ||
            (member.server_key_next[0] && !certificate_is_key(member.server_key_next)))
            abort();
    } else if (strcmp(member.connect, "untouched") != 0 || member.server_key[0] || !err.text[0] ||
               strchr(err.text, '\n')) {
        abort();
    }
    return 0;
}
