/* SPDX-License-Identifier: MIT */
/* See ranking_in.h. Texts are kept once, also where a query is part of many pairs. */

#include "gateway/forms/ranking_in.h"

#include <stdio.h>
#include <string.h>

#include "common/amount.h"

static int take_text(struct ranking_in *in, const char *path, const json_t *value, struct bytes *ret_text,
                     struct refusal *refusal)
{
    const json_t *text = json_is_object(value) ? json_object_get(value, "text") : value;
    if (!json_is_string(text))
        return refuse_value(refusal, path, "%s is %s, not a string or an object with \"text\"", path,
                            json_is_object(value) ? "an object without text" : json_in_kind(value));
    if (json_string_length(text) == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    *ret_text = (struct bytes){parameters_keep(&in->in.parameters, text), json_string_length(text)};
    return ret_text->data ? 0 : parameters_out_of_memory(refusal);
}

static int take_texts(struct ranking_in *in, const struct json_row *row, const char *path, json_t *value,
                      struct ranking_texts *ret_texts, struct refusal *refusal)
{
    const bool listed = json_is_array(value);
    const size_t n = listed ? json_array_size(value) : 1;
    if (ret_texts->n > 0)
        return refuse_value(refusal, path, "%s: %s has already been given", path, ret_texts->name);
    if (n == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    if (n > RANKING_MOST_PAIRS)
        return refuse_value(refusal, path, "%s has %zu texts; at most %d are allowed", path, n,
                            RANKING_MOST_PAIRS);
    struct bytes *items = parameters_memory(&in->in.parameters, n, sizeof *items);
    if (!items)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        char where[128];
        snprintf(where, sizeof where, listed ? "%s[%zu]" : "%s", path, i);
        if (take_text(in, where, listed ? json_array_get(value, i) : value, &items[i], refusal) != 0)
            return REFUSED;
    }
    *ret_texts = (struct ranking_texts){.items = items, .n = n, .name = row->key, .listed = listed};
    return 0;
}

int ranking_query(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    struct ranking_in *in = into;
    if (json_is_array(value))
        return refuse_value(refusal, path, "%s is an array, not a string or an object with \"text\"", path);
    return take_texts(in, row, path, value, &in->queries, refusal);
}

int ranking_documents(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    struct ranking_in *in = into;
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array", path, json_in_kind(value));
    return take_texts(in, row, path, value, &in->documents, refusal);
}

int ranking_bare_documents(void *into, const struct json_row *row, const char *path, json_t *value,
                           struct refusal *refusal)
{
    ((struct ranking_in *)into)->bare = true;
    return ranking_documents(into, row, path, value, refusal);
}

int ranking_first(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    return take_texts(into, row, path, value, &((struct ranking_in *)into)->queries, refusal);
}

int ranking_second(void *into, const struct json_row *row, const char *path, json_t *value,
                   struct refusal *refusal)
{
    return take_texts(into, row, path, value, &((struct ranking_in *)into)->documents, refusal);
}

int ranking_top_n(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    int64_t number;
    if (json_in_integer(path, value, 0, INT32_MAX, &number, refusal) != 0)
        return REFUSED;
    ((struct ranking_in *)into)->top_n = (size_t)number;
    return 0;
}

/* Pairs query i, or the only one, with document i. */
static int pair(struct ranking_in *in, struct refusal *refusal)
{
    struct embeddings_in *to = &in->in;
    const size_t n = in->documents.n;
    to->inputs = parameters_memory(&to->parameters, n, sizeof *to->inputs);
    if (!to->inputs)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        const struct bytes *query = &in->queries.items[in->queries.n > 1 ? i : 0],
                           *document = &in->documents.items[i];
        to->inputs[i] = (struct embeddings_input){.text = *query, .document = document->data};
        in->bytes += query->len + document->len;
    }
    to->n = n;
    to->name = in->documents.name;
    to->ranks = true;
    return 0;
}

static int check_given(const struct ranking_texts *texts, const char *name, struct refusal *refusal)
{
    return texts->n > 0 ? 0 : refuse_value(refusal, name, "%s is missing", name);
}

int ranking_pair_all(struct ranking_in *in, struct refusal *refusal)
{
    if (check_given(&in->queries, "query", refusal) != 0 ||
        check_given(&in->documents, "documents", refusal) != 0)
        return REFUSED;
    return pair(in, refusal);
}

int ranking_pair_each(struct ranking_in *in, struct refusal *refusal)
{
    if (check_given(&in->queries, "text_1", refusal) != 0 ||
        check_given(&in->documents, "text_2", refusal) != 0)
        return REFUSED;
    if (in->queries.n > 1 && in->queries.n != in->documents.n)
        return refuse_value(refusal, in->documents.name,
                            "%s has %s and %s has %zu; give one query, or as many queries as documents",
                            in->documents.name, amount_of(in->documents.n, "text").text, in->queries.name,
                            in->queries.n);
    return pair(in, refusal);
}

/* ---- errors of the pool ---- */

struct name {
    char text[64];
};

static struct name name_of(const struct ranking_texts *texts, size_t index)
{
    struct name name;
    snprintf(name.text, sizeof name.text, texts->listed ? "%.32s[%zu]" : "%.32s", texts->name,
             texts->n > 1 ? index : 0);
    return name;
}

/* What stands behind these words, or NULL. */
static const char *behind(const char *text, const char *words)
{
    const size_t len = strlen(words);
    return strncmp(text, words, len) == 0 ? text + len : NULL;
}

void ranking_name_pair(const struct ranking_in *in, size_t index, struct refusal *refusal)
{
    const struct name document = name_of(&in->documents, index), query = name_of(&in->queries, index);
    const char *of_both = behind(refusal->text, "prompt has "),
               *of_document = behind(refusal->text, "the document ");
    char text[sizeof refusal->text + 2 * sizeof(struct name) + 32];
    if (refusal->status != 400 || (!of_both && !of_document))
        return;
    const int len = of_both ? (int)strcspn(of_both, ";") : 0; /* "500 tokens; the context holds 9" */
    if (of_both)
        snprintf(text, sizeof text, "%s and %s have %.*s together%s", query.text, document.text, len, of_both,
                 of_both + len);
    else
        snprintf(text, sizeof text, "%s %s", document.text, of_document);
    snprintf(refusal->param, sizeof refusal->param, "%s", document.text);
    snprintf(refusal->text, sizeof refusal->text, "%.*s", (int)sizeof refusal->text - 1, text);
}
