/* SPDX-License-Identifier: MIT */
/* Decoding of messages never crashes, hangs or over-reads, and what it accepts is stable: decoded, encoded,
 * decoded and encoded again it is the same bytes. For libFuzzer the sources are proto/[a-z]*.c
 * common/{bytes,error}.c with -lmsgpackc -lutf8proc; a corpus is what is in the "hex" of
 * proto/golden/messages.json. */

#include "tests/fuzz/driver.h"

#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>

/* Encoding can make a message longer (an integer becomes a real of nine bytes): only far below the bounds
 * must a message that was decoded be encodable. */
#define SURELY_ENCODABLE 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct message_decoder *decoder;
    static struct buffer first, second;
    struct message message;
    struct error err = {0};
    if (!decoder && message_decoder_new(&decoder) < 0)
        return 0;
    int r = message_decode(decoder, data, len, &message, &err);
    if (r == -ENOMEM)
        return 0;
    if (r != 0) {
        /* A refusal says why, on one line. */
        if (r < 0 || err.text[0] == 0)
            abort();
        return 0;
    }
    first.len = second.len = 0;
    r = message_encode(&message, &first);
    if (r == -EINVAL && len > SURELY_ENCODABLE)
        return 0;
    if (r != 0)
        abort();
    if (message_decode(decoder, first.data, first.len, &message, &err) != 0)
        abort();
    if (message_encode(&message, &second) != 0)
        abort();
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
        abort();
    return 0;
}
