/* SPDX-License-Identifier: MIT */
/* Takers of parameters (parameters.h) that are lists of ids and texts: what they are more or less likely to
 * be, never, or where a repetition ends. An entry is an id if it is a number, also as the key of an object.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"
#include "gateway/core/parameters.h"
#include "proto/message.h"

/* The lists of sampling that are being read from a logit_bias. */
struct bias_lists {
    struct quern_logit_bias *ids;
    struct quern_text_bias *texts;
    const char **words; /* that are never to come */
    size_t n_ids, n_texts, n_words;
};

static int check_word(const char *path, size_t len, struct refusal *refusal)
{
    if (len > 0 && len <= PROTO_MAX_WORD_BYTES)
        return 0;
    return refuse_value(refusal, path, "%s: a text of %zu bytes; 1 to %d are allowed", path, len,
                        PROTO_MAX_WORD_BYTES);
}

/* A bias of an id or of a text: `key` of an object, or of a pair, which then may be a number. */
static int take_bias(struct bias_lists *lists, const char *path, const char *key, const json_t *value,
                     struct refusal *refusal)
{
    uint32_t id;
    const bool is_id = number_read_u32(key, 0, INT32_MAX, &id, NULL) == 0;
    const char *digits = key + (key[0] == '-');
    double bias = json_number_value(value);
    if (!is_id && digits[0] && digits[strspn(digits, "0123456789")] == 0)
        return refuse_value(refusal, path, "%s: \"%.40s\" is not a token id", path, key);
    if (!is_id && check_word(path, strlen(key), refusal) != 0)
        return REFUSED;
    if (json_is_false(value) && is_id) {
        lists->ids[lists->n_ids++] = (struct quern_logit_bias){(int32_t)id, -INFINITY};
        return 0;
    }
    if (json_is_false(value)) {
        lists->words[lists->n_words++] = key;
        return 0;
    }
    if (!json_is_number(value))
        return refuse_value(refusal, path,
                            "%s: the value of \"%.40s\" is %s, not a number from %d to %d, or false", path,
                            key, json_in_kind(value), -SAMPLING_MAX_BIAS, SAMPLING_MAX_BIAS);
    if (!(fabs(bias) <= SAMPLING_MAX_BIAS)) {
        struct error err;
        error_out_of_range_real(&err, -EINVAL, "", bias, -SAMPLING_MAX_BIAS, SAMPLING_MAX_BIAS);
        return refuse_value(refusal, path, "%s of \"%.40s\": %s", path, key, err.text);
    }
    if (is_id)
        lists->ids[lists->n_ids++] = (struct quern_logit_bias){(int32_t)id, (float)bias};
    else
        lists->texts[lists->n_texts++] = (struct quern_text_bias){key, (float)bias};
    return 0;
}

/* A pair of an array: [15043, 1.5], ["Hello", false]. */
static int take_pair(struct parameters *parameters, struct bias_lists *lists, const char *path, json_t *pair,
                     struct refusal *refusal)
{
    json_t *of = json_array_get(pair, 0);
    if (!json_is_array(pair) || json_array_size(pair) != 2 ||
        !(json_is_string(of) || (json_is_integer(of) && json_integer_value(of) >= 0)))
        return refuse_value(refusal, path, "%s: expected a pair of a token id or a text and a number", path);
    if (json_is_integer(of)) {
        char id[32];
        snprintf(id, sizeof id, "%lld", (long long)json_integer_value(of));
        if (json_integer_value(of) > INT32_MAX)
            return refuse_value(refusal, path, "%s: %s is not a token id", path, id);
        return take_bias(lists, path, id, json_array_get(pair, 1), refusal);
    }
    const char *text = parameters_keep(parameters, of);
    return text ? take_bias(lists, path, text, json_array_get(pair, 1), refusal)
                : parameters_out_of_memory(refusal);
}

static int add_bad_words(struct parameters *parameters, const char *path, const char *const *words, size_t n,
                         struct refusal *refusal)
{
    struct quern_request *request = &parameters->request;
    const size_t all = request->n_bad_words + n;
    if (all > PROTO_MAX_BAD_WORDS)
        return refuse_value(refusal, path, "%s has %zu texts; at most %d are allowed", path, all,
                            PROTO_MAX_BAD_WORDS);
    const char **list = parameters_memory(parameters, all, sizeof *list);
    if (!list)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < all; i++)
        list[i] = i < request->n_bad_words ? request->bad_words[i] : words[i - request->n_bad_words];
    request->bad_words = list;
    request->n_bad_words = all;
    return 0;
}

static int take_biases(struct parameters *parameters, struct bias_lists *lists, const char *path,
                       json_t *value, struct refusal *refusal)
{
    const char *key;
    json_t *bias;
    for (size_t i = 0; i < json_array_size(value); i++) {
        char where[64];
        snprintf(where, sizeof where, "%.24s[%zu]", path, i);
        if (take_pair(parameters, lists, where, json_array_get(value, i), refusal) != 0)
            return REFUSED;
    }
    json_object_foreach(value, key, bias)
    {
        json_t *name = json_string(key);
        const char *kept = name ? parameters_keep(parameters, name) : NULL;
        json_decref(name);
        if (!kept)
            return parameters_out_of_memory(refusal);
        if (take_bias(lists, path, kept, bias, refusal) != 0)
            return REFUSED;
    }
    return 0;
}

int parameters_logit_bias(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    struct parameters *parameters = into;
    struct quern_request *request = &parameters->request;
    const size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if (!json_is_object(value) && !json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an object or an array", path, json_in_kind(value));
    if (n > SAMPLING_MAX_BIASES)
        return refuse_value(refusal, path, "%s has %zu entries; at most %d are allowed", path, n,
                            SAMPLING_MAX_BIASES);
    struct bias_lists lists = {.ids = parameters_memory(parameters, n, sizeof *lists.ids),
                               .texts = parameters_memory(parameters, n, sizeof *lists.texts),
                               .words = parameters_memory(parameters, n, sizeof *lists.words)};
    if (!lists.ids || !lists.texts || !lists.words)
        return parameters_out_of_memory(refusal);
    if (take_biases(parameters, &lists, path, value, refusal) != 0)
        return REFUSED;
    request->logit_bias = lists.ids;
    request->n_logit_bias = lists.n_ids;
    request->logit_bias_text = lists.texts;
    request->n_logit_bias_text = lists.n_texts;
    return lists.n_words == 0 ? 0 : add_bad_words(parameters, path, lists.words, lists.n_words, refusal);
}

/* An array of texts that are not empty, or one text. */
static int take_words(struct parameters *parameters, const char *path, json_t *value, size_t most,
                      const char ***ret_words, size_t *ret_n, struct refusal *refusal)
{
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n > most)
        return refuse_value(refusal, path, "%s has %zu texts; at most %zu are allowed", path, n, most);
    const char **words = parameters_memory(parameters, n, sizeof *words);
    if (!words)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        json_t *word = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(word))
            return refuse_value(refusal, path, "%s: %s, not a text", path, json_in_kind(word));
        if (check_word(path, json_string_length(word), refusal) != 0)
            return REFUSED;
        words[i] = parameters_keep(parameters, word);
        if (!words[i])
            return parameters_out_of_memory(refusal);
    }
    *ret_words = words;
    *ret_n = n;
    return 0;
}

int parameters_bad_words(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    const char **words;
    size_t n;
    if (take_words(into, path, value, PROTO_MAX_BAD_WORDS, &words, &n, refusal) != 0)
        return REFUSED;
    return n == 0 ? 0 : add_bad_words(into, path, words, n, refusal);
}

int parameters_dry_breakers(void *into, const struct json_row *row, const char *path, json_t *value,
                            struct refusal *refusal)
{
    struct quern_request *request = &((struct parameters *)into)->request;
    const char **words;
    if (take_words(into, path, value, PROTO_MAX_DRY_BREAKERS, &words, &request->n_dry_sequence_breakers,
                   refusal) != 0)
        return REFUSED;
    request->dry_sequence_breakers = words;
    return 0;
}
