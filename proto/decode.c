/* SPDX-License-Identifier: MIT */
/* Bytes → message.
 *
 * One walk over the input, driven by the tables of fields.c: each key is looked up in its table (the next
 * field in order is tried first, so that our own encoding is matched without a search), each value goes
 * straight into the struct. Texts and byte strings point into the input; arrays are taken from the decoder's
 * arena, after their count was compared with both the bound and the bytes that are left. So a message of n
 * bytes costs O(n) time and memory whatever it says. The kind may stand anywhere in the map: if "k" is not
 * the first key, a first walk looks for it.
 *
 * Everything is decoded into the decoder's own message and copied out at the end: the caller's is untouched
 * on failure. */

#include "proto/arena.h"
#include "proto/fields.h"
#include "proto/reader.h"

#include <errno.h>
#include <stdlib.h>

struct message_decoder {
    struct message message;
    struct arena arena;
    size_t logprob_rows; /* of the frame being decoded: checked against its ids at the end */
    bool has_failed_id;
    struct id128 failed_id;
};

int message_decoder_new(struct message_decoder **ret_decoder)
{
    struct message_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return -ENOMEM;
    *ret_decoder = decoder;
    return 0;
}

struct message_decoder *message_decoder_free(struct message_decoder *decoder)
{
    if (decoder) {
        arena_deinit(&decoder->arena);
        free(decoder);
    }
    return NULL;
}

bool message_decoder_failed_id(const struct message_decoder *decoder, struct id128 *ret_id)
{
    if (decoder->has_failed_id)
        *ret_id = decoder->failed_id;
    return decoder->has_failed_id;
}

static int broken(struct error *err)
{
    return error_set(err, MESSAGE_E_MALFORMED, "truncated, or not msgpack");
}

static int expected(struct error *err, const char *what)
{
    return error_set(err, MESSAGE_E_MALFORMED, "expected %s", what);
}

static int decode_map(struct message_decoder *decoder, struct reader *reader, unsigned depth,
                      const struct field_table *table, void *base, struct error *err);

/* The head of a list: its count, checked. */
static int list_head(struct reader *reader, const char *what, uint64_t max, size_t *ret_n, struct error *err)
{
    struct item item;
    if (!reader_next(reader, &item))
        return broken(err);
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
        return broken(err);
    if (list.type != ITEM_ARRAY || list.n != 2)
        return expected(err, what);
    if (!reader_next(reader, &a) || !reader_next(reader, &b))
        return broken(err);
    if (a.type != ITEM_UNSIGNED || b.type != ITEM_UNSIGNED || b.number > UINT32_MAX)
        return expected(err, what);
    *ret_a = a.number;
    *ret_b = (uint32_t)b.number;
    return 0;
}

static int decode_token_id(struct reader *reader, int32_t *ret_id, struct error *err)
{
    struct item item;
    if (!reader_next(reader, &item))
        return broken(err);
    if (item.type != ITEM_UNSIGNED || item.number > INT32_MAX)
        return expected(err, "token ids (integers from 0 to 2147483647)");
    *ret_id = (int32_t)item.number;
    return 0;
}

static int decode_ids(struct message_decoder *decoder, struct reader *reader, size_t n,
                      struct id_list *ret_list, struct error *err)
{
    if (n == 0)
        return 0;
    int32_t *ids = arena_take(&decoder->arena, n, sizeof *ids);
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r = decode_token_id(reader, &ids[i], err);
        if (r != 0)
            return r;
    }
    *ret_list = (struct id_list){ids, n};
    return 0;
}

/* A list of texts or of byte strings. */
static int decode_strings(struct message_decoder *decoder, struct reader *reader, const struct field *field,
                          void *at, struct error *err)
{
    bool text = field->type == FIELD_NAMES;
    size_t n = 0;
    int r = list_head(reader, text ? "an array of texts" : "an array of byte strings", field->high, &n, err);
    if (r != 0 || n == 0)
        return r;
    struct bytes *items = arena_take(&decoder->arena, n, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct item item;
        if (!reader_next(reader, &item))
            return broken(err);
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

static int decode_maps(struct message_decoder *decoder, struct reader *reader, unsigned depth,
                       const struct field *field, void *at, struct error *err)
{
    size_t n = 0;
    int r = list_head(reader, "an array of maps", field->high, &n, err);
    if (r != 0 || n == 0)
        return r;
    uint8_t *items = arena_take(&decoder->arena, n, field->table->size);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        r = decode_map(decoder, reader, depth - 1, field->table, items + i * field->table->size, err);
        if (r != 0)
            return error_prefix(err, r, "item %zu", i);
    }
    struct list list = {items, n};
    memcpy(at, &list, sizeof list);
    return 0;
}

static int decode_chat(struct message_decoder *decoder, struct reader *reader, unsigned depth, size_t n,
                       struct prompt *prompt, struct error *err)
{
    int r = field_check_count(n, PROTO_MAX_MESSAGES, err);
    if (r != 0)
        return r;
    struct chat_message *items = arena_take(&decoder->arena, n, sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        r = decode_map(decoder, reader, depth, field_table_of_chat(), &items[i], err);
        if (r != 0)
            return error_prefix(err, r, "message %zu", i);
    }
    prompt->form = PROMPT_CHAT;
    prompt->chat.items = items;
    prompt->chat.n = n;
    return 0;
}

/* Text, ids or chat messages: the item's own type says which. */
static int decode_prompt(struct message_decoder *decoder, struct reader *reader, unsigned depth,
                         struct prompt *prompt, struct error *err)
{
    struct item item, first;
    if (!reader_next(reader, &item))
        return broken(err);
    if (item.type != ITEM_TEXT && item.type != ITEM_ARRAY)
        return expected(err, "a text, an array of token ids, or an array of messages");
    if (item.n == 0)
        return error_set(err, MESSAGE_E_MALFORMED, "is empty");
    if (item.type == ITEM_TEXT) {
        prompt->form = PROMPT_TEXT;
        prompt->text = (struct bytes){item.bytes, item.n};
        return field_check_text(prompt->text, PROTO_MAX_REQUEST_BYTES, false, err);
    }
    struct reader ahead = *reader;
    if (!reader_next(&ahead, &first))
        return broken(err);
    if (first.type == ITEM_MAP)
        return decode_chat(decoder, reader, depth - 1, item.n, prompt, err);
    prompt->form = PROMPT_IDS;
    int r = field_check_count(item.n, PROTO_MAX_PROMPT_IDS, err);
    return r != 0 ? r : decode_ids(decoder, reader, item.n, &prompt->ids, err);
}

static int decode_logprob(struct reader *reader, struct token_logprob *ret_entry, struct error *err)
{
    struct item pair, value;
    int32_t id = 0;
    if (!reader_next(reader, &pair))
        return broken(err);
    if (pair.type != ITEM_ARRAY || pair.n != 2)
        return expected(err, "pairs of id and logarithm");
    int r = decode_token_id(reader, &id, err);
    if (r != 0)
        return r;
    if (!reader_next(reader, &value))
        return broken(err);
    double logprob;
    if (value.type == ITEM_REAL)
        logprob = value.real;
    else if (value.type == ITEM_UNSIGNED)
        logprob = (double)value.number;
    else if (value.type == ITEM_NEGATIVE)
        logprob = (double)value.negative;
    else
        return expected(err, "pairs of id and logarithm");
    ret_entry->id = id;
    ret_entry->logprob = (float)logprob;
    return field_check_logprob(ret_entry->logprob, err);
}

static int decode_logprobs(struct message_decoder *decoder, struct reader *reader, const struct field *field,
                           struct frame_logprobs *logprobs, struct error *err)
{
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
            items = arena_take(&decoder->arena, rows * width, sizeof *items);
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
        decoder->logprob_rows = rows;
    }
    return r;
}

static int decode_real(const struct field *field, const struct item *item, double *ret_value,
                       struct error *err)
{
    double value;
    if (item->type == ITEM_REAL)
        value = item->real;
    else if (item->type == ITEM_UNSIGNED)
        value = (double)item->number;
    else if (item->type == ITEM_NEGATIVE)
        value = (double)item->negative;
    else
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

/* The types whose value is one item. */
static int decode_scalar(struct reader *reader, const struct field *field, void *at, struct error *err)
{
    struct item item;
    if (!reader_next(reader, &item))
        return broken(err);
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
            return error_set(err, MESSAGE_E_MALFORMED, "\"%.*s\" is not known here",
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

static int decode_value(struct message_decoder *decoder, struct reader *reader, unsigned depth,
                        const struct field *field, void *at, struct error *err)
{
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
        return decode_strings(decoder, reader, field, at, err);
    case FIELD_IDS:
        r = list_head(reader, "an array of token ids", field->high, &n, err);
        return r != 0 ? r : decode_ids(decoder, reader, n, at, err);
    case FIELD_PROMPT:
        return decode_prompt(decoder, reader, depth, at, err);
    case FIELD_LOGPROBS:
        return decode_logprobs(decoder, reader, field, at, err);
    case FIELD_MAP:
        return decode_map(decoder, reader, depth, field->table, at, err);
    case FIELD_MAPS:
        return decode_maps(decoder, reader, depth, field, at, err);
    default:
        return decode_scalar(reader, field, at, err);
    }
}

/* The field of a key: the one at `hint` most often, else any; -1 for an unknown key. */
static int find_field(const struct field_table *table, unsigned hint, const void *key, size_t len)
{
    for (unsigned i = 0; i < table->n; i++) {
        unsigned at = hint + i < table->n ? hint + i : hint + i - table->n;
        const struct field *field = &table->fields[at];
        if (field->key_len == len && memcmp(field->key, key, len) == 0)
            return (int)at;
    }
    return -1;
}

static int check_required(const struct field_table *table, uint64_t seen, struct error *err)
{
    for (unsigned i = 0; i < table->n; i++)
        if ((table->fields[i].flags & FIELD_REQUIRED) && !(seen >> i & 1))
            return error_set(err, MESSAGE_E_MALFORMED, "%s: missing", table->fields[i].key);
    return 0;
}

/* The n pairs of a map whose head was read. `kind_seen` is NULL inside a message; at its top it says whether
 * "k" was read already. */
static int decode_pairs(struct message_decoder *decoder, struct reader *reader, unsigned depth, size_t n,
                        const struct field_table *table, bool *kind_seen, void *base, struct error *err)
{
    uint64_t seen = 0;
    unsigned hint = 0;
    field_table_initials(table, base);
    for (size_t i = 0; i < n; i++) {
        struct item key;
        if (!reader_next(reader, &key))
            return broken(err);
        if (key.type != ITEM_TEXT)
            return error_set(err, MESSAGE_E_MALFORMED, "a key is not a text");
        int at = find_field(table, hint, key.bytes, key.n);
        if (at < 0) {
            bool kind = kind_seen && key.n == 1 && memcmp(key.bytes, "k", 1) == 0;
            if (kind && *kind_seen)
                return error_set(err, MESSAGE_E_MALFORMED, "k: comes twice");
            if (kind)
                *kind_seen = true;
            if (!reader_skip(reader, depth - 1))
                return error_set(err, MESSAGE_E_MALFORMED, "%.*s: truncated, too deep, or not msgpack",
                                 (int)(key.n < 40 ? key.n : 40), (const char *)key.bytes);
            continue;
        }
        const struct field *field = &table->fields[at];
        if (seen >> at & 1)
            return error_set(err, MESSAGE_E_MALFORMED, "%s: comes twice", field->key);
        seen |= 1ull << at;
        hint = (unsigned)at + 1;
        int r = decode_value(decoder, reader, depth - 1, field, (uint8_t *)base + field->offset, err);
        if (r != 0)
            return error_prefix(err, r, "%s", field->key);
        if (field->present)
            *((uint8_t *)base + field->present) = true;
    }
    int r = check_required(table, seen, err);
    return r == 0 && table->check ? table->check(base, err) : r;
}

static int decode_map(struct message_decoder *decoder, struct reader *reader, unsigned depth,
                      const struct field_table *table, void *base, struct error *err)
{
    struct item map;
    if (!reader_next(reader, &map))
        return broken(err);
    if (map.type != ITEM_MAP)
        return expected(err, "a map");
    if (map.n > FIELDS_MAX_KEYS)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu keys are more than %d", map.n, FIELDS_MAX_KEYS);
    return decode_pairs(decoder, reader, depth, map.n, table, NULL, base, err);
}

/* Walks the top map for a key; the reader stands before its value then. */
static bool find_key(struct reader *reader, const char *name)
{
    struct item map, key;
    if (!reader_next(reader, &map) || map.type != ITEM_MAP || map.n > FIELDS_MAX_KEYS)
        return false;
    for (size_t i = 0; i < map.n; i++) {
        if (!reader_next(reader, &key))
            return false;
        if (key.type == ITEM_TEXT && key.n == strlen(name) && memcmp(key.bytes, name, key.n) == 0)
            return true;
        if (!reader_skip(reader, FIELDS_MAX_DEPTH - 1))
            return false;
    }
    return false;
}

static int decode_kind(struct reader reader, enum message_kind *ret_kind, struct error *err)
{
    struct item kind;
    if (!find_key(&reader, "k"))
        return error_set(err, MESSAGE_E_MALFORMED, "k: missing");
    if (!reader_next(&reader, &kind) || kind.type != ITEM_TEXT)
        return error_set(err, MESSAGE_E_MALFORMED, "k: expected a text");
    *ret_kind = message_kind_find((struct bytes){kind.bytes, kind.n});
    if (*ret_kind == MESSAGE_NONE)
        return error_set(err, MESSAGE_E_UNKNOWN_KIND, "there is no kind \"%.*s\"",
                         (int)(kind.n < 40 ? kind.n : 40), (const char *)kind.bytes);
    return 0;
}

static int decode_message(struct message_decoder *decoder, struct reader reader, struct error *err)
{
    size_t len = (size_t)(reader.end - reader.at);
    struct message *message = &decoder->message;
    struct item map;
    struct reader start = reader;
    if (!reader_next(&reader, &map) || map.type != ITEM_MAP)
        return error_set(err, MESSAGE_E_MALFORMED, "not a msgpack map");
    if (map.n > FIELDS_MAX_KEYS)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu keys are more than %d", map.n, FIELDS_MAX_KEYS);
    int r = decode_kind(start, &message->kind, err);
    if (r != 0)
        return r;
    const char *name = message_kind_name(message->kind);
    if (len > message_max_bytes(message->kind))
        return error_set(err, MESSAGE_E_MALFORMED, "%s: %zu bytes are more than %zu", name, len,
                         message_max_bytes(message->kind));
    bool kind_seen = false;
    r = decode_pairs(decoder, &reader, FIELDS_MAX_DEPTH, map.n, field_table_of(message->kind), &kind_seen,
                     message, err);
    if (r == 0 && message->kind == MESSAGE_FRAME && message->frame.logprobs.width > 0 &&
        decoder->logprob_rows != message->frame.ids.n)
        r = error_set(err, MESSAGE_E_MALFORMED, "logprobs: %zu rows for %zu ids", decoder->logprob_rows,
                      message->frame.ids.n);
    if (r == 0 && reader.at != reader.end)
        r = error_set(err, MESSAGE_E_MALFORMED, "%zu bytes follow the message",
                      (size_t)(reader.end - reader.at));
    return r != 0 ? error_prefix(err, r, "%s", name) : 0;
}

int message_decode(struct message_decoder *decoder, const void *data, size_t len, struct message *ret_message,
                   struct error *err)
{
    if (len == 0)
        return error_set(err, MESSAGE_E_MALFORMED, "an empty message");
    struct reader reader = {data, (const uint8_t *)data + len};
    arena_reset(&decoder->arena);
    memset(&decoder->message, 0, sizeof decoder->message);
    decoder->logprob_rows = 0;
    decoder->has_failed_id = false;
    int r = decode_message(decoder, reader, err);
    if (r == 0) {
        *ret_message = decoder->message;
        return 0;
    }
    struct item id;
    if (find_key(&reader, "id") && reader_next(&reader, &id) && id.type == ITEM_BIN && id.n == 16) {
        memcpy(decoder->failed_id.bytes, id.bytes, 16);
        decoder->has_failed_id = true;
    }
    return r;
}
