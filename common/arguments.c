/* SPDX-License-Identifier: MIT */
#include "common/arguments.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"

/* Under the name by which it was given. */
static void refuse(const struct argp_option *known, int key, const struct argp_state *state,
                   const struct error *err)
{
    while (known->key != key)
        known++;
    if (known->name)
        argp_error(state, "--%s: %s", known->name, err->text);
    else
        argp_error(state, "-%c: %s", key, err->text);
}

error_t arguments_take(const struct argument *arguments, const struct argp_option *known, int key,
                       const char *text, const struct argp_state *state, void *into)
{
    struct error err = {0};
    uint32_t number;
    while (arguments->key != 0 && arguments->key != key)
        arguments++;
    if (arguments->key == 0)
        return ARGP_ERR_UNKNOWN;
    void *member = (char *)into + arguments->offset;
    switch (arguments->kind) {
    case ARGUMENT_NUMBER:
        if (number_read_u32(text, arguments->least, arguments->most, &number, &err) < 0)
            refuse(known, key, state, &err);
        else
            memcpy(member, &number, sizeof number);
        break;
    case ARGUMENT_TEXT:
        memcpy(member, &text, sizeof text);
        break;
    case ARGUMENT_FLAG:
        *(bool *)member = true;
        break;
    }
    return 0;
}
