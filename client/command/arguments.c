/* SPDX-License-Identifier: MIT */
/* Parts of command lines that verbs share: strict numbers (the whole text must be one), words, MODEL. */

#include "client/command/arguments.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/terminal/prompt.h"
#include "common/number.h"
#include "engine/backend/kv_type.h"
#include "engine/backend/library_rows.h"

uint64_t argument_number(struct argp_state *state, const char *option, const char *text, uint64_t min,
                         uint64_t max)
{
    struct error err = {0};
    uint64_t n = 0;
    if (number_read(text, min, max, &n, &err) < 0)
        argp_error(state, "%s: %s", option, err.text);
    return n;
}

void argument_ids(struct argp_state *state, char *list, struct ids *ids)
{
    char *item;
    ids->len = 0;
    while ((item = strsep(&list, ","))) {
        item += strspn(item, " ");
        const uint64_t id = argument_number(state, "--tokens", item, 0, INT32_MAX);
        if (ids_push(ids, (int32_t)id) < 0)
            argp_failure(state, EXIT_FAILURE, ENOMEM, "%s", "--tokens");
    }
}

enum backend_kv_type argument_kv_type(struct argp_state *state, const char *text)
{
    enum backend_kv_type type = BACKEND_KV_DEFAULT;
    struct error err = {0};
    if (kv_type_by_name(text, &type, &err) < 0)
        argp_error(state, "--kv-type: %s", err.text);
    return type;
}

uint32_t argument_library_rows(struct argp_state *state, const char *text)
{
    uint32_t rows = 0;
    struct error err = {0};
    if (library_rows_by_name(text, &rows, &err) < 0)
        argp_error(state, "--cublas: %s", err.text);
    return rows;
}

int argument_words(int key, char *arg, struct argp_state *state, const char **words, unsigned n)
{
    bool wrong = key == ARGP_KEY_ARG ? state->arg_num >= n : key == ARGP_KEY_END && state->arg_num < n;
    if (wrong)
        argp_usage(state);
    if (key == ARGP_KEY_ARG)
        words[state->arg_num] = arg;
    return key == ARGP_KEY_ARG || key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

int argument_model(int key, char *arg, struct argp_state *state, const char **ret_model)
{
    return argument_words(key, arg, state, ret_model, 1);
}

void argument_refuse_model(struct argp_state *state, const char *word)
{
    if (prompt_names_model(word))
        argp_error(state, "\"%s\" looks like a model file, not a prompt: give it with --model", word);
}
