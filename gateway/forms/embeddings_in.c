/* SPDX-License-Identifier: MIT */
/* See embeddings_in.h. An array of numbers is one input, of ids; any other array is as many as it has. */

#include "gateway/forms/embeddings_in.h"

#include <stdio.h>
#include <string.h>

static int take_one(struct embeddings_in *in, const char *path, const json_t *value,
                    struct embeddings_input *ret_input, struct refusal *refusal)
{
    if (!json_is_string(value) && !json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not a string or an array of token ids", path,
                            json_in_kind(value));
    if (json_is_string(value) ? json_string_length(value) == 0 : json_array_size(value) == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    if (json_is_array(value))
        return parameters_ids(&in->parameters, path, value, &ret_input->ids, &ret_input->n_ids, refusal);
    ret_input->text = (struct bytes){parameters_keep(&in->parameters, value), json_string_length(value)};
    return ret_input->text.data ? 0 : parameters_out_of_memory(refusal);
}

int embeddings_input(void *into, const struct json_row *row, const char *path, json_t *value,
                     struct refusal *refusal)
{
    struct embeddings_in *in = into;
    const bool several = json_is_array(value) && !json_is_integer(json_array_get(value, 0));
    const size_t n = several ? json_array_size(value) : 1;
    if (n == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    if (n > EMBEDDINGS_MOST_INPUTS)
        return refuse_value(refusal, path, "%s has %zu inputs; at most %d are allowed", path, n,
                            EMBEDDINGS_MOST_INPUTS);
    in->inputs = parameters_memory(&in->parameters, n, sizeof *in->inputs);
    if (!in->inputs)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        char where[128];
        snprintf(where, sizeof where, several ? "%s[%zu]" : "%s", path, i);
        if (take_one(in, where, several ? json_array_get(value, i) : value, &in->inputs[i], refusal) != 0)
            return REFUSED;
    }
    in->n = n;
    return 0;
}

int embeddings_format(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    if (strcmp(name, "float") != 0 && strcmp(name, "base64") != 0)
        return refuse_value(refusal, path, "%s is neither \"float\" nor \"base64\"", path);
    ((struct embeddings_in *)into)->base64 = name[0] == 'b';
    return 0;
}

int embeddings_dimensions(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    int64_t number;
    if (json_in_integer(path, value, 1, INT32_MAX, &number, refusal) != 0)
        return REFUSED;
    ((struct embeddings_in *)into)->dimensions = (uint32_t)number;
    return 0;
}

void embeddings_name_input(const struct embeddings_in *in, size_t index, struct refusal *refusal)
{
    /* "prompt[5] is …", "the prompt has …" */
    static const char *const words[] = {"prompt", "the prompt"};
    char input[32], text[sizeof refusal->text];
    const char *rest = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words && !rest; i++)
        if (strncmp(refusal->text, words[i], strlen(words[i])) == 0)
            rest = refusal->text + strlen(words[i]);
    if (!rest || refusal->status != 400)
        return;
    snprintf(input, sizeof input, in->n > 1 ? "input[%zu]" : "input", index);
    snprintf(text, sizeof text, "%.*s", (int)(sizeof text - sizeof input), rest);
    const int of_id = text[0] == '[' ? (int)strcspn(text, "]") + 1 : 0;
    snprintf(refusal->param, sizeof refusal->param, "%s%.*s", input, of_id < 32 ? of_id : 0, text);
    snprintf(refusal->text, sizeof refusal->text, "%s%.*s", input, (int)(sizeof text - sizeof input), text);
}
