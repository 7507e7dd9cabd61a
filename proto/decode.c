/* SPDX-License-Identifier: MIT */
/* Bytes → message: kinds, keys, and what holds for a message as a whole. decode_value.c reads the values.
 *
 * One walk over the input, driven by the tables of fields.c: each key is looked up in its table (the next
 * field in order is tried first, so that our own encoding is matched without a search), each value goes
 * straight into the struct. A message of n bytes costs O(n) time and memory whatever it says. The kind may
 * stand anywhere in the map: if "k" is not the first key, a first walk looks for it.
 *
 * Everything is decoded into the decoder's own message and copied out at the end: the caller's is untouched
 * on failure. */

#include "proto/decode.h"

#include <errno.h>
#include <stdlib.h>

struct message_decoder {
    struct message message;
    struct arena arena;
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

enum message_kind message_decoder_failed_kind(const struct message_decoder *decoder)
{
    return decoder->message.kind;
}

/* Keys are a few bytes: a loop beats a call of memcmp. */
static inline bool key_is(const struct field *field, const uint8_t *key, size_t len)
{
    if (field->key_len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)field->key[i] != key[i])
            return false;
    return true;
}

/* The field of a key: the one at `hint` most often, else any; -1 for an unknown key. */
static int find_field(const struct field_table *table, unsigned hint, const void *key, size_t len)
{
    for (unsigned i = 0; i < table->n; i++) {
        unsigned at = hint + i < table->n ? hint + i : hint + i - table->n;
        if (key_is(&table->fields[at], key, len))
            return (int)at;
    }
    return -1;
}

static int check_required(const struct field_table *table, field_set seen, struct error *err)
{
    for (unsigned i = 0; i < table->n; i++)
        if ((table->fields[i].flags & FIELD_REQUIRED) && !(seen >> i & 1))
            return error_set(err, MESSAGE_E_MALFORMED, "%s: missing", table->fields[i].key);
    return 0;
}

/* The n pairs of a map whose head was read. `kind_seen` is NULL inside a message; at its top it says whether
 * "k" was read already. */
static int decode_pairs(struct decoding *decoding, unsigned depth, size_t n, const struct field_table *table,
                        bool *kind_seen, void *base, struct error *err)
{
    struct reader *reader = &decoding->reader;
    field_set seen = 0;
    unsigned hint = 0;
    field_table_initials(table, base);
    for (size_t i = 0; i < n; i++) {
        struct item key;
        if (!reader_next(reader, &key))
            return decode_broken(err);
        if (key.type != ITEM_TEXT)
            return error_set(err, MESSAGE_E_MALFORMED, "a key is not a string");
        int at = find_field(table, hint, key.bytes, key.n);
        if (at < 0) {
            bool kind = kind_seen && key.n == 1 && memcmp(key.bytes, "k", 1) == 0;
            if (kind && *kind_seen)
                return error_set(err, MESSAGE_E_MALFORMED, "k: duplicate key");
            if (kind)
                *kind_seen = true;
            if (!reader_skip(reader, depth - 1))
                return error_set(err, MESSAGE_E_MALFORMED, "%.*s: truncated, too deep, or not msgpack",
                                 (int)(key.n < 40 ? key.n : 40), (const char *)key.bytes);
            continue;
        }
        const struct field *field = &table->fields[at];
        if (seen >> at & 1)
            return error_set(err, MESSAGE_E_MALFORMED, "%s: duplicate key", field->key);
        seen |= (field_set)1 << at;
        hint = (unsigned)at + 1;
        int r = decode_value(decoding, depth - 1, field, (uint8_t *)base + field->offset, err);
        if (r != 0)
            return error_prefix(err, r, "%s", field->key);
        if (field->present)
            *((uint8_t *)base + field->present) = true;
    }
    int r = check_required(table, seen, err);
    return r == 0 && table->check ? table->check(base, err) : r;
}

int decode_map(struct decoding *decoding, unsigned depth, const struct field_table *table, void *base,
               struct error *err)
{
    struct item map;
    if (!reader_next(&decoding->reader, &map))
        return decode_broken(err);
    if (map.type != ITEM_MAP)
        return error_set(err, MESSAGE_E_MALFORMED, "expected a map");
    if (map.n > FIELDS_MAX_KEYS)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu keys; at most %d are allowed", map.n,
                         FIELDS_MAX_KEYS);
    return decode_pairs(decoding, depth, map.n, table, NULL, base, err);
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
        return error_set(err, MESSAGE_E_UNKNOWN_KIND, "unknown kind \"%.*s\"",
                         (int)(kind.n < 40 ? kind.n : 40), (const char *)kind.bytes);
    return 0;
}

/* A piece for each log probability, or none. */
static int check_pieces(const struct frame *frame, struct error *err)
{
    size_t expected = frame->ids.n * frame->logprobs.width;
    if (frame->pieces.n == 0 || frame->pieces.n == expected)
        return 0;
    return error_set(err, MESSAGE_E_MALFORMED, "pieces: %zu for %zu log probabilities", frame->pieces.n,
                     expected);
}

static int decode_message(struct message_decoder *decoder, struct reader start, struct error *err)
{
    size_t len = (size_t)(start.end - start.at);
    struct message *message = &decoder->message;
    struct decoding decoding = {.reader = start, .arena = &decoder->arena};
    struct item map;
    if (!reader_next(&decoding.reader, &map) || map.type != ITEM_MAP)
        return error_set(err, MESSAGE_E_MALFORMED, "not a msgpack map");
    if (map.n > FIELDS_MAX_KEYS)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu keys; at most %d are allowed", map.n,
                         FIELDS_MAX_KEYS);
    int r = decode_kind(start, &message->kind, err);
    if (r != 0)
        return r;
    const char *name = message_kind_name(message->kind);
    if (len > message_max_bytes(message->kind))
        return error_set(err, MESSAGE_E_MALFORMED, "%s: %zu bytes; at most %zu are allowed", name, len,
                         message_max_bytes(message->kind));
    bool kind_seen = false;
    r = decode_pairs(&decoding, FIELDS_MAX_DEPTH, map.n, field_table_of(message->kind), &kind_seen, message,
                     err);
    if (r == 0 && message->kind == MESSAGE_FRAME && message->frame.logprobs.width > 0 &&
        decoding.logprob_rows != message->frame.ids.n)
        r = error_set(err, MESSAGE_E_MALFORMED, "logprobs: %zu rows for %zu ids", decoding.logprob_rows,
                      message->frame.ids.n);
    if (r == 0 && message->kind == MESSAGE_FRAME)
        r = check_pieces(&message->frame, err);
    const struct reader *left = &decoding.reader;
    if (r == 0 && left->at != left->end)
        r = error_set(err, MESSAGE_E_MALFORMED, "%zu bytes follow the message",
                      (size_t)(left->end - left->at));
    return r != 0 ? error_prefix(err, r, "%s", name) : 0;
}

int message_decode(struct message_decoder *decoder, const void *data, size_t len, struct message *ret_message,
                   struct error *err)
{
    arena_reset(&decoder->arena);
    memset(&decoder->message, 0, sizeof decoder->message);
    decoder->has_failed_id = false;
    if (len == 0)
        return error_set(err, MESSAGE_E_MALFORMED, "an empty message");
    struct reader reader = {data, (const uint8_t *)data + len};
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

size_t message_find(struct bytes encoded, const char *const keys[], size_t n, struct bytes ret_values[])
{
    struct reader reader = {encoded.data, (const uint8_t *)encoded.data + encoded.len};
    struct item map, key;
    size_t found = 0;
    memset(ret_values, 0, n * sizeof *ret_values);
    if (!reader_next(&reader, &map) || map.type != ITEM_MAP)
        return 0;
    for (size_t i = 0; i < map.n && found < n && reader_next(&reader, &key); i++) {
        const uint8_t *value = reader.at;
        if (!reader_skip(&reader, FIELDS_MAX_DEPTH - 1))
            break;
        for (size_t k = 0; k < n; k++)
            if (!ret_values[k].data && key.type == ITEM_TEXT &&
                bytes_equal((struct bytes){key.bytes, key.n}, bytes_of_string(keys[k]))) {
                ret_values[k] = (struct bytes){value, (size_t)(reader.at - value)};
                found++;
            }
    }
    return found;
}
