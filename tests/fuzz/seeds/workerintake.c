/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_workerintake: what workers send on link and stream, whole, begun, and with too many parts. */

#include "tests/fuzz/driver.h"

#include <string.h>

struct input {
    uint8_t data[4096];
    size_t len;
};

static void add(struct input *input, const void *data, size_t len)
{
    memcpy(input->data + input->len, data, len);
    input->len += len;
}

static void add_frame(struct input *input, uint8_t flags, const void *body, size_t len)
{
    uint8_t header[9] = {flags, (uint8_t)len};
    for (int i = 1; flags & 2 && i < 9; i++)
        header[i] = (uint8_t)((uint64_t)len >> 8 * (8 - i));
    add(input, header, flags & 2 ? 9 : 2);
    add(input, body, len);
}

static void greet(struct input *input, uint8_t how)
{
    static const char ready[] = "\5READY\vSocket-Type\0\0\0\4XPUB";
    uint8_t greeting[64] = {[0] = 0xff, [8] = 1, [9] = 0x7f, [10] = 3};
    memcpy(greeting + 12, "NULL", 4);
    input->len = 0;
    add(input, &how, 1);
    add(input, greeting, sizeof greeting);
    add_frame(input, 4, ready, sizeof ready - 1);
}

void fuzz_seeds(void)
{
    static const uint8_t body[1000] = {1};
    struct input input;
    for (uint8_t how = 0; how < 8; how++) {
        greet(&input, how);
        for (int i = 0; i < 3; i++) {
            if (how & 1)
                add_frame(&input, 1, body, 32);
            add_frame(&input, 4, "\4PING\0\0ab", 9);
            add_frame(&input, 2, body, 300);
            add_frame(&input, 0, body, how);
        }
        add_frame(&input, 4, "\11SUBSCRIBEx", 11);
        fuzz_add_seed(input.data, input.len);
        add_frame(&input, 1, body, 3); /* too many parts */
        add_frame(&input, 1, body, 3);
        fuzz_add_seed(input.data, input.len);
    }
    greet(&input, 1);
    input.data[1 + 10] = 2;
    fuzz_add_seed(input.data, input.len);
}
