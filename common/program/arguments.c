/* SPDX-License-Identifier: MIT */
#include "common/program/arguments.h"

#include <assert.h>
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

/* ---- -h ---- */

#define MOST_CHILDREN 8

static error_t help(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != 'h')
        return ARGP_ERR_UNKNOWN;
    argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
    return 0;
}

void arguments_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    static const struct argp_option options[] = {{NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0}, {0}};
    static const struct argp helper = {.options = options, .parser = help};
    /* The last of the children, so that the others keep their numbers (child_inputs) and their options. */
    struct argp_child children[MOST_CHILDREN + 2] = {{0}};
    struct argp whole = *argp;
    size_t n = 0;
    while (argp->children && argp->children[n].argp && n < MOST_CHILDREN) {
        children[n] = argp->children[n];
        n++;
    }
    assert(!argp->children || !argp->children[n].argp);
    children[n].argp = &helper;
    whole.children = children;
    argp_parse(&whole, argc, argv, 0, NULL, input);
}
