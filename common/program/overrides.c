/* SPDX-License-Identifier: MIT */
/* See overrides.h. Values are checked as far as their form goes: what they mean depends on the file. */

#include "common/program/overrides.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"

#define ROW(...) {__VA_ARGS__},
static const struct override_option known[] = {OVERRIDE_OPTIONS(ROW)};
#undef ROW
#define N_KNOWN (sizeof known / sizeof *known)

const struct override_option *override_option(size_t i)
{
    return i < N_KNOWN ? &known[i] : NULL;
}

const struct override_option *override_option_find(const char *name)
{
    size_t i = 0;
    while (i < N_KNOWN && strcmp(known[i].name, name) != 0)
        i++;
    return override_option(i);
}

/* KEY=TYPE:VALUE. */
static int check_key(const char *value, struct error *err)
{
    const char *equals = strchr(value, '='), *colon = equals ? strchr(equals, ':') : NULL;
    const size_t len = colon ? (size_t)(colon - equals - 1) : 0;
    struct error reason = {0};
    double real;
    int64_t number;
    if (!equals || equals == value || !colon || strcspn(value, " \t\n") < (size_t)(equals - value))
        return error_set(err, -EINVAL, "\"%.80s\" is not KEY=TYPE:VALUE", value);
    if (strchr(value, '\n'))
        return error_set(err, -EINVAL, "a value of several lines is not supported");
    int r = 0;
    if (len == 3 && memcmp(equals + 1, "int", 3) == 0)
        r = number_read_signed(colon + 1, INT64_MIN, INT64_MAX, &number, &reason);
    else if (len == 5 && memcmp(equals + 1, "float", 5) == 0)
        r = number_read_real(colon + 1, -1e300, 1e300, &real, &reason);
    else if (len == 4 && memcmp(equals + 1, "bool", 4) == 0)
        r = strcmp(colon + 1, "true") == 0 || strcmp(colon + 1, "false") == 0
                ? 0
                : error_set(&reason, -EINVAL, "\"%.40s\" is neither true nor false", colon + 1);
    else if (len != 3 || memcmp(equals + 1, "str", 3) != 0)
        return error_set(err, -EINVAL, "\"%.80s\": unknown type; expected int, float, bool or str", value);
    return r < 0 ? error_set(err, -EINVAL, "%.*s: %s", (int)(equals - value < 80 ? equals - value : 80),
                             value, reason.text)
                 : 0;
}

static int check(const struct override_option *option, const char *value, struct error *err)
{
    double real;
    uint32_t count;
    switch (option->kind) {
    case OVERRIDE_KEY:
        return check_key(value, err);
    case OVERRIDE_WORD:
        return strcmp(value, "none") == 0 || strcmp(value, "linear") == 0 || strcmp(value, "yarn") == 0
                   ? 0
                   : error_set(err, -EINVAL, "\"%.40s\": expected none, linear or yarn", value);
    case OVERRIDE_COUNT:
        return number_read_u32(value, (uint32_t)option->least, (uint32_t)option->most, &count, err);
    case OVERRIDE_REAL:
        break;
    }
    return number_read_real(value, option->least, option->most, &real, err);
}

/* Whether a line sets what the option would: the same name, and of override-kv the same key. */
static bool is_same(const char *line, const struct override_option *option, const char *value)
{
    const size_t len = strlen(option->name);
    const bool by_key = option->kind == OVERRIDE_KEY;
    return strncmp(line, option->name, len) == 0 && line[len] == ' ' &&
           (!by_key || strncmp(line + len + 1, value, strcspn(value, "=") + 1) == 0);
}

int overrides_add(char text[OVERRIDES_TEXT], const char *name, const char *value, struct error *err)
{
    const struct override_option *option = override_option_find(name);
    int r = option ? check(option, value, err) : error_set(err, -EINVAL, "unknown override");
    if (r < 0)
        return r;
    for (char *line = text; *line;) {
        char *next = strchr(line, '\n') + 1;
        if (is_same(line, option, value))
            memmove(line, next, strlen(next) + 1);
        else
            line = next;
    }
    const size_t used = strlen(text);
    if (used + strlen(name) + strlen(value) + 3 > OVERRIDES_TEXT)
        return error_set(err, -EINVAL, "overrides of more than %d bytes", OVERRIDES_TEXT - 1);
    snprintf(text + used, OVERRIDES_TEXT - used, "%s %s\n", name, value);
    return 0;
}

bool overrides_next(struct bytes *text, const struct override_option **ret_option,
                    char ret_value[OVERRIDES_TEXT])
{
    const char *line = text->data, *end = text->len > 0 ? memchr(line, '\n', text->len) : NULL;
    const char *space = end ? memchr(line, ' ', (size_t)(end - line)) : NULL;
    char name[64];
    if (!end)
        return false;
    *text = (struct bytes){end + 1, text->len - (size_t)(end + 1 - line)};
    *ret_option = NULL;
    ret_value[0] = 0;
    if (!space || (size_t)(space - line) >= sizeof name || end - space > OVERRIDES_TEXT)
        return true;
    memcpy(name, line, (size_t)(space - line));
    name[space - line] = 0;
    memcpy(ret_value, space + 1, (size_t)(end - space - 1));
    ret_value[end - space - 1] = 0;
    *ret_option = override_option_find(name);
    return true;
}
