/* SPDX-License-Identifier: MIT */
/* A body is filled with one unit over and over, up to its size; only members with distinct names are made one
 * by one. */

#include "tests/integration/hostile/bodies.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *memory_for(size_t size)
{
    char *memory = malloc(size);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        abort();
    }
    return memory;
}

static void append(struct body *body, const char *text, size_t len)
{
    memcpy(body->text + body->len, text, len);
    body->len += len;
}

struct body body_repeat(const char *before, const char *unit, size_t n, bool comma, const char *after)
{
    const size_t unit_len = strlen(unit);
    struct body body = {.text = memory_for(strlen(before) + n * (unit_len + comma) + strlen(after) + 1)};
    append(&body, before, strlen(before));
    for (size_t i = 0; i < n; i++) {
        if (comma && i > 0)
            append(&body, ",", 1);
        append(&body, unit, unit_len);
    }
    append(&body, after, strlen(after));
    body.text[body.len] = 0;
    return body;
}

/* Units up to about `size` bytes. */
static struct body fill(const char *before, const char *unit, bool comma, const char *after, size_t size)
{
    size_t around = strlen(before) + strlen(after), each = strlen(unit) + comma;
    return body_repeat(before, unit, (size - around) / each, comma, after);
}

/* {"a0":1,"a1":1,… with as many names, or the same one. */
static struct body members(size_t size, bool distinct)
{
    struct body body = {.text = memory_for(size + 32)};
    char member[32];
    append(&body, "{", 1);
    for (unsigned i = 0; body.len + sizeof member < size; i++) {
        int len = snprintf(member, sizeof member, "%s\"a%u\":1", i ? "," : "", distinct ? i : 0);
        append(&body, member, (size_t)len);
    }
    append(&body, "}", 1);
    return body;
}

struct body body_bad(enum body_kind kind, size_t size)
{
    switch (kind) {
    case BODY_BROKEN:
        return fill("{\"prompt\":[", "1", true, "]?", size);
    case BODY_TYPES:
        return fill("{\"prompt\":[1,", "true", true, "]}", size);
    case BODY_OBJECTS:
        return fill("{\"prompt\":[", "{}", true, "]}", size);
    case BODY_UNKNOWN:
        return members(size, true);
    case BODY_DUPLICATES:
        return members(size, false);
    case BODY_NESTING:
        return fill("{\"prompt\":", "[", false, "}", size);
    case BODY_ESCAPES:
        return fill("{\"prompt\":\"", "\\u00e9\\n\\ud83d\\ude00", false, "\"?", size);
    case BODY_NUMBERS:
        return fill("{\"prompt\":[", "1234567890123456789,1.25e-300", true, "]}", size);
    case BODY_DIGITS:
    case BODY_KINDS:
        break;
    }
    return fill("{\"max_tokens\":", "9", false, "}", size);
}

struct crowd_request request_post(const char *path, const char *key, struct body body)
{
    struct crowd_request request =
        request_head("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\n"
                     "%s%s%sContent-Length: %zu\r\n\r\n",
                     path, key ? "Authorization: Bearer " : "", key ? key : "", key ? "\r\n" : "", body.len);
    request.body = body.text;
    request.body_len = body.len;
    return request;
}

struct crowd_request request_head(const char *format, ...)
{
    char *head;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&head, format, args);
    va_end(args);
    if (len < 0)
        abort();
    return (struct crowd_request){.head = head, .head_len = (size_t)len};
}
