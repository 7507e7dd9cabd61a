/* SPDX-License-Identifier: MIT */
/* Any bytes as the gateway's file of keys: each key of it is found by its bytes and by no others, or there is
 * a reason on one line. The same bytes as headers of a request: a traceparent is taken only in the one form
 * that it has. For libFuzzer the sources are gateway and common. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/http/keys.h"
#include "gateway/http/traceparent.h"

static void try_keys(struct bytes text)
{
    struct keys keys = {0};
    struct error err = {0};
    if (keys_parse(text, "file", &keys, &err) < 0) {
        if (keys.list || !err.text[0] || strchr(err.text, '\n'))
            abort();
        return;
    }
    for (size_t i = 0; i < keys.n; i++) {
        const struct key *key = &keys.list[i];
        char other[KEY_BYTES_MOST];
        if (key->secret_len < KEY_BYTES_LEAST || key->secret_len > KEY_BYTES_MOST ||
            keys_find(&keys, (struct bytes){key->secret, key->secret_len}) != key)
            abort();
        memcpy(other, key->secret, key->secret_len);
        other[key->secret_len - 1] = '\1'; /* may stand in a key: of another one */
        if (keys_find(&keys, (struct bytes){other, key->secret_len}) == key &&
            key->secret[key->secret_len - 1] != '\1')
            abort();
    }
    keys_deinit(&keys);
}

static void try_header(const uint8_t *data, size_t len)
{
    char taken[TRACEPARENT_BYTES] = "", *text = malloc(len + 1);
    if (!text)
        return;
    memcpy(text, data, len);
    text[len] = 0;
    if (traceparent_take(text, taken) &&
        (strcmp(text, taken) != 0 || strlen(taken) != TRACEPARENT_BYTES - 1 ||
         strspn(taken, "0123456789abcdef-") != TRACEPARENT_BYTES - 1))
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_keys((struct bytes){data, len});
    try_header(data, len);
    return 0;
}
