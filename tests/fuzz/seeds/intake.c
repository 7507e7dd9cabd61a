/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_intake: what clients of ZMTP 3.0 and 3.1 send, and what older ones, and others, do. */

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

static void greet(struct input *input, uint8_t how, uint8_t minor)
{
    uint8_t greeting[64] = {[0] = 0xff, [8] = 1, [9] = 0x7f, [10] = 3, [11] = minor};
    memcpy(greeting + 12, "NULL", 4);
    input->len = 0;
    add(input, &how, 1);
    add(input, greeting, sizeof greeting);
}

static void add_frame(struct input *input, uint8_t flags, const void *body, size_t len)
{
    uint8_t header[9] = {flags, (uint8_t)len};
    for (int i = 1; flags & 2 && i < 9; i++)
        header[i] = (uint8_t)((uint64_t)len >> 8 * (8 - i));
    add(input, header, flags & 2 ? 9 : 2);
    add(input, body, len);
}

void fuzz_seeds(void)
{
    static const char ready[] = "\5READY\vSocket-Type\0\0\0\6DEALER";
    static const uint8_t body[1000] = {1};
    struct input input;
    for (uint8_t how = 0; how < 12; how++) {
        greet(&input, how < 8 ? how : (uint8_t)(how << 4 | 3), how % 2); /* the last ones: keys, told late */
        add_frame(&input, 4, ready, sizeof ready - 1);
        add_frame(&input, 0, body, 17);
        add_frame(&input, 2, body, sizeof body);
        add_frame(&input, 0, body, 0);
        for (int i = 0; i < 12 + how; i++)
            add_frame(&input, 1, body, 2);
        add_frame(&input, 0, body, 255);
        fuzz_add_seed(input.data, input.len);
    }
    greet(&input, 0, 0);
    input.data[1 + 10] = 2;
    fuzz_add_seed(input.data, input.len);
    static const char http[] = "\0GET / HTTP/1.1\r\nHost: quern\r\n\r\n";
    fuzz_add_seed(http, sizeof http - 1);
}
