/* SPDX-License-Identifier: MIT */
/* One value of a message → its field, by type.
 *
 * Each function reads exactly one value or fails; what a table says of the field is checked here. Lists are
 * taken from the arena after their count was compared with the bound and, by the reader, with the bytes that
 * are left. Texts and byte strings stay where they are, in the input. */

#include "proto/decode.h"

#include <errno.h>
#include <math.h>

int decode_broken(struct error *err)
{
    return error_set(err, MESSAGE_E_MALFORMED, "truncated, or not msgpack");
}

static int expected(struct error *err, const char *what)
{
    return error_set(err, MESSAGE_E_MALFORMED, "expected %s", what);
}

/* The head of a list: its count, checked. */
static int list_head(struct reader *reader, const char *what, uint64_t max, size_t *ret_n, struct error *err)
{
    struct item item;
    if (!reader_next(reader, &item))
        return decode_broken(err);
    if (item.type != ITEM_ARRAY)
        return expected(err, what);
    int r = field_check_count(item.n, max, err);
    if (r == 0)
        *ret_n = item.n;
    return r;
}

static int decode_pair_of_numbers(struct reader *reader, const char *what, uint64_t *ret_a, uint32_t *ret_b,
                                  struct error *err)
{
    struct item list, a, b;
    if (!reader_next(reader, &list))
        return decode_broken(err);
    if (list.type != ITEM_ARRAY || list.n != 2)
        return expected(err, what);
    if (!reader_next(reader, &a) || !reader_next(reader, &b))
        return decode_broken(err);
    if (a.type != ITEM_UNSIGNED || b.type != ITEM_UNSIGNED || b.number > UINT32_MAX)
        return expected(err, what);
    *ret_a = a.number;
    *ret_b = (uint32_t)b.number;
    return 0;
}

static int decode_token_id(struct reader *reader, int32_t *ret_id, struct error *err)
{
    struct item item;
    if (reader_id(reader, ret_id))
        return 0;
    if (!reader_next(reader, &item))
        return decode_broken(err);
    if (item.type != ITEM_UNSIGNED || item.number > INT32_MAX)
        return expected(err, "token ids (integers from 0 to 2147483647)");
    *ret_id = (int32_t)item.number;
    return 0;
}

static int decode_ids(struct decoding *decoding, size_t n, struct id_list *ret_list, struct error *err)
{
    if (n == 0)
        return 0;
    int32_t *ids = arena_take(decoding->arena, n, sizeof *ids);
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r = decode_token_id(&decoding->reader, &ids[i], err);
        if (r != 0)
            return r;
    }
    *ret_list = (struct id_list){ids, n};
    return 0;
}

/* A list of texts or of byte strings. */
static int decode_strings(struct decoding *decoding, const struct field *field, void *at, struct error *err)
{
    struct reader *reader = &decoding->reader;
    bool text = field->type == FIELD_NAMES;
    size_t n = 0;
    int r = list_head(reader, text ? "an array of texts" : "an array of byte strings", field->high, &n, err);
    if (r != 0 || n == 0)
        return r;
    struct bytes *items = arena_take(decoding->arena, n, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct item item;
        if (!reader_next(reader, &item))
            return decode_broken(err);
        if (item.type != (text ? ITEM_TEXT : ITEM_BIN))
            return expected(err, text ? "an array of texts" : "an array of byte strings");
        items[i] = (struct bytes){item.bytes, item.n};
        r = field_check_item(field, items[i], err);
        if (r != 0)
            return error_prefix(err, r, "item %zu", i);
    }
    struct list list = {items, n};
    memcpy(at, &list, sizeof list);
    return 0;
}

static int decode_maps(struct decoding *decoding, unsigned depth, const struct field *field, void *at,
                       struct error *err)
{
    size_t n = 0;
    int r = list_head(&decoding->reader, "an array of maps", field->high, &n, err);
    if (r != 0 || n == 0)
        return r;
    uint8_t *items = arena_take(decoding->arena, n, field->table->size);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        r = decode_map(decoding, depth - 1, field->table, items + i * field->table->size, err);
        if (r != 0)
            return error_prefix(err, r, "item %zu", i);
    }
    struct list list = {items, n};
    memcpy(at, &list, sizeof list);
    return 0;
}

static int decode_chat(struct decoding *decoding, unsigned depth, size_t n, struct prompt *prompt,
                       struct error *err)
{
    int r = field_check_count(n, PROTO_MAX_MESSAGES, err);
    if (r != 0)
        return r;
    struct chat_message *items = arena_take(decoding->arena, n, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        r = decode_map(decoding, depth, field_table_of_chat(), &items[i], err);
        if (r != 0)
            return error_prefix(err, r, "message %zu", i);
    }
    prompt->form = PROMPT_CHAT;
    prompt->chat.items = items;
    prompt->chat.n = n;
    return 0;
}

/* Text, ids or chat messages: the item's own type says which. */
static int decode_prompt(struct decoding *decoding, unsigned depth, struct prompt *prompt, struct error *err)
{
    struct reader *reader = &decoding->reader;
    struct item item, first;
    if (!reader_next(reader, &item))
        return decode_broken(err);
    if (item.type != ITEM_TEXT && item.type != ITEM_ARRAY)
        return expected(err, "a text, an array of token ids, or an array of messages");
    if (item.n == 0 && item.type != ITEM_TEXT) /* a text may be, beside a suffix */
        return error_set(err, MESSAGE_E_MALFORMED, "is empty");
    if (item.type == ITEM_TEXT) {
        prompt->form = PROMPT_TEXT;
        prompt->text = (struct bytes){item.bytes, item.n};
        return field_check_text(prompt->text, PROTO_MAX_GENERATE_BYTES, false, err);
    }
    struct reader ahead = *reader;
    if (!reader_next(&ahead, &first))
        return decode_broken(err);
    if (first.type == ITEM_MAP)
        return decode_chat(decoding, depth - 1, item.n, prompt, err);
    prompt->form = PROMPT_IDS;
    int r = field_check_count(item.n, PROTO_MAX_PROMPT_IDS, err);
    return r != 0 ? r : decode_ids(decoding, item.n, &prompt->ids, err);
}

/* A real, or an integer that stands for one. */
static bool item_real(const struct item *item, double *ret_value)
{
    if (item->type == ITEM_REAL)
        *ret_value = item->real;
    else if (item->type == ITEM_UNSIGNED)
        *ret_value = (double)item->number;
    else if (item->type == ITEM_NEGATIVE)
        *ret_value = (double)item->negative;
    else
        return false;
    return true;
}

/* [id, real]; `what` says what a list of them is called. */
static int decode_id_and_real(struct reader *reader, const char *what, int32_t *ret_id, double *ret_real,
                              struct error *err)
{
    struct item pair, value;
    if (!reader_next(reader, &pair))
        return decode_broken(err);
    if (pair.type != ITEM_ARRAY || pair.n != 2)
        return expected(err, what);
    int r = decode_token_id(reader, ret_id, err);
    if (r != 0)
        return r;
    if (!reader_next(reader, &value))
        return decode_broken(err);
    return item_real(&value, ret_real) ? 0 : expected(err, what);
}

static int decode_logprob(struct reader *reader, struct token_logprob *ret_entry, struct error *err)
{
    double logprob = 0;
    int r = decode_id_and_real(reader, "pairs of id and logarithm", &ret_entry->id, &logprob, err);
    if (r != 0)
        return r;
    ret_entry->logprob = (float)logprob;
    return field_check_logprob(ret_entry->logprob, err);
}

static int decode_biases(struct decoding *decoding, const struct field *field,
                         struct logit_bias_list *ret_list, struct error *err)
{
    struct reader *reader = &decoding->reader;
    size_t n = 0;
    int r = list_head(reader, "pairs of id and bias", field->high, &n, err);
    if (r != 0 || n == 0)
        return r;
    struct logit_bias *items = arena_take(decoding->arena, n, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double bias = 0;
        r = decode_id_and_real(reader, "pairs of id and bias", &items[i].id, &bias, err);
        if (r == 0 && bias != -INFINITY)
            r = field_check_real(field, bias, err);
        if (r != 0)
            return error_prefix(err, r, "item %zu", i);
        items[i].bias = (float)bias;
    }
    *ret_list = (struct logit_bias_list){items, n};
    return 0;
}

static int decode_logprobs(struct decoding *decoding, const struct field *field,
                           struct frame_logprobs *logprobs, struct error *err)
{
    struct reader *reader = &decoding->reader;
    size_t rows = 0, width = 0;
    int r = list_head(reader, "an array for each id", PROTO_MAX_FRAME_IDS, &rows, err);
    struct token_logprob *items = NULL;
    for (size_t i = 0; r == 0 && i < rows; i++) {
        size_t n = 0;
        r = list_head(reader, "an array for each id", field->high, &n, err);
        if (r != 0)
            return r;
        if (i == 0) {
            /* Every entry takes three bytes at least: a wide first row cannot claim more than there is. */
            if (n == 0 || (size_t)(reader->end - reader->at) / 3 < n + (rows - 1) * n)
                return expected(err, "as many entries for each id");
            width = n;
            items = arena_take(decoding->arena, rows * width, sizeof *items);
            if (!items)
                return -ENOMEM;
        } else if (n != width) {
            return expected(err, "as many entries for each id");
        }
        for (size_t j = 0; r == 0 && j < width; j++)
            r = decode_logprob(reader, &items[i * width + j], err);
    }
    if (r == 0) {
        *logprobs = (struct frame_logprobs){(uint32_t)width, items};
        decoding->logprob_rows = rows;
    }
    return r;
}

static int decode_real(const struct field *field, const struct item *item, double *ret_value,
                       struct error *err)
{
    double value;
    if (!item_real(item, &value))
        return expected(err, "a number");
    int r = field_check_real(field, value, err);
    if (r == 0)
        *ret_value = value;
    return r;
}

static int decode_integer(const struct field *field, const struct item *item, void *at, struct error *err)
{
    if (item->type != ITEM_UNSIGNED && item->type != ITEM_NEGATIVE)
        return expected(err, "an integer");
    if (item->type == ITEM_NEGATIVE || field->type == FIELD_I32) {
        if (item->type == ITEM_UNSIGNED && item->number > INT64_MAX)
            return field_check_unsigned(field, item->number, err);
        int r = field_check_signed(field, item->negative, err);
        if (r == 0)
            *(int32_t *)at = (int32_t)item->negative;
        return r;
    }
    int r = field_check_unsigned(field, item->number, err);
    if (r != 0)
        return r;
    if (field->type == FIELD_U32)
        *(uint32_t *)at = (uint32_t)item->number;
    else
        *(uint64_t *)at = item->number;
    return 0;
}

static int decode_histogram(struct reader *reader, struct histogram *ret_histogram, struct error *err)
{
    const size_t expected_items = 1 + HISTOGRAM_BUCKETS;
    uint64_t values[1 + HISTOGRAM_BUCKETS];
    size_t n = 0;
    int r = list_head(reader, "the sum and the counts of a histogram", expected_items, &n, err);
    if (r != 0)
        return r;
    if (n != expected_items)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu numbers, not %zu", n, expected_items);
    for (size_t i = 0; i < n; i++) {
        struct item item;
        if (!reader_next(reader, &item))
            return decode_broken(err);
        if (item.type != ITEM_UNSIGNED)
            return error_set(err, MESSAGE_E_MALFORMED, "item %zu: expected an integer", i);
        values[i] = item.number;
    }
    ret_histogram->sum = values[0];
    memcpy(ret_histogram->counts, values + 1, sizeof ret_histogram->counts);
    return 0;
}

/* The types whose value is one item. */
static int decode_scalar(struct reader *reader, const struct field *field, void *at, struct error *err)
{
    struct item item;
    if (!reader_next(reader, &item))
        return decode_broken(err);
    struct bytes bytes = {NULL, 0};
    if (item.type == ITEM_TEXT || item.type == ITEM_BIN)
        bytes = (struct bytes){item.bytes, item.n};
    int r;
    switch (field->type) {
    case FIELD_BOOL:
        if (item.type != ITEM_BOOL)
            return expected(err, "true or false");
        *(bool *)at = item.boolean;
        return 0;
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
        return decode_integer(field, &item, at, err);
    case FIELD_REAL:
        return decode_real(field, &item, at, err);
    case FIELD_ENUM: {
        uint32_t value;
        if (item.type != ITEM_TEXT)
            return expected(err, "a text");
        if (!name_find(field->names, bytes, &value) || value < field->low)
            return error_set(err, MESSAGE_E_MALFORMED, "unknown value \"%.*s\"",
                             (int)(item.n < 40 ? item.n : 40), (const char *)item.bytes);
        memcpy(at, &value, sizeof value);
        return 0;
    }
    case FIELD_ID:
    case FIELD_DIGEST:
        if (item.type != ITEM_BIN || item.n != 16)
            return expected(err, "a byte string of 16 bytes");
        if (field->type == FIELD_ID)
            memcpy(at, item.bytes, 16);
        else
            *(struct bytes *)at = bytes;
        return 0;
    case FIELD_FLOATS:
    case FIELD_BIN:
        if (item.type != ITEM_BIN)
            return expected(err, "a byte string");
        r = field->type == FIELD_BIN ? field_check_bin(field, bytes, err)
                                     : field_check_floats(field, bytes, err);
        if (r == 0)
            *(struct bytes *)at = bytes;
        return r;
    case FIELD_TEXT:
    case FIELD_NAME:
        if (item.type != ITEM_TEXT)
            return expected(err, "a text");
        r = field_check_text(bytes, field->high, field->type == FIELD_NAME, err);
        if (r == 0)
            *(struct bytes *)at = bytes;
        return r;
    default:
        return error_set(err, -EINVAL, "a field of no known type");
    }
}

int decode_value(struct decoding *decoding, unsigned depth, const struct field *field, void *at,
                 struct error *err)
{
    struct reader *reader = &decoding->reader;
    size_t n = 0;
    int r;
    switch (field->type) {
    case FIELD_EPOCH: {
        struct epoch *epoch = at;
        return decode_pair_of_numbers(reader, "[boot, move]", &epoch->boot, &epoch->move, err);
    }
    case FIELD_RANGE: {
        struct version_range *range = at;
        uint64_t min;
        r = decode_pair_of_numbers(reader, "[min, max]", &min, &range->max, err);
        if (r == 0 && min > range->max)
            return expected(err, "[min, max]");
        if (r == 0)
            range->min = (uint32_t)min;
        return r;
    }
    case FIELD_NAMES:
    case FIELD_BINS:
        return decode_strings(decoding, field, at, err);
    case FIELD_IDS:
        r = list_head(reader, "an array of token ids", field->high, &n, err);
        return r != 0 ? r : decode_ids(decoding, n, at, err);
    case FIELD_PROMPT:
        return decode_prompt(decoding, depth, at, err);
    case FIELD_BIASES:
        return decode_biases(decoding, field, at, err);
    case FIELD_LOGPROBS:
        return decode_logprobs(decoding, field, at, err);
    case FIELD_HISTOGRAM:
        return decode_histogram(reader, at, err);
    case FIELD_MAP:
        return decode_map(decoding, depth, field->table, at, err);
    case FIELD_MAPS:
        return decode_maps(decoding, depth, field, at, err);
    default:
        return decode_scalar(reader, field, at, err);
    }
}
