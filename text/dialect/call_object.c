/* SPDX-License-Identifier: MIT */
/* See call_object.h.
 *
 *   before ─{─▶ key? ─"─▶ key ─"─▶ colon? ─:─▶ value? ─▶ value ─▶ comma? ─,─▶ key?
 *                                                                   └──}──▶ whole
 *
 * A value is followed only as far as its end: braces are counted outside of strings. Arguments that are an
 * object are handed on byte by byte; some models write the text of one instead, which is handed on when it
 * is whole. */

#include "text/dialect/call_object.h"

#include <jansson.h>
#include <string.h>

#include "text/dialect/blank.h"

enum { BEFORE, KEY_EXPECTED, KEY, COLON_EXPECTED, VALUE_EXPECTED, STRING, CONTAINER, SCALAR, COMMA_EXPECTED };
enum { OTHER, NAME, ARGUMENTS };

#define MOST_DEPTH      256
#define MOST_NAME_BYTES 256

static void keep(struct call_object *object, struct buffer *buffer, const void *data, size_t len)
{
    if (buffer_append(buffer, data, len) < 0)
        object->state = CALL_OBJECT_BAD;
}

static int member_of(const struct call_object *object, struct bytes key)
{
    if (bytes_equal(key, bytes_of_string(object->name_key)))
        return NAME;
    return bytes_equal(key, bytes_of_string(object->arguments_key)) ? ARGUMENTS : OTHER;
}

/* Appends the text of a JSON string, quotes included in `literal`. False: it is none. */
static bool unquote(struct call_object *object, struct bytes literal, struct buffer *to)
{
    json_t *string = json_loadb(literal.data, literal.len, JSON_DECODE_ANY, NULL);
    bool good = json_is_string(string);
    if (good)
        keep(object, to, json_string_value(string), json_string_length(string));
    json_decref(string);
    return good;
}

static void end_value(struct call_object *object)
{
    struct bytes value = {object->value.data, object->value.len};
    bool text = value.len > 0 && *(const char *)value.data == '"';
    bool good = true;
    if (object->member == NAME && !object->has_name) { /* the first one counts: it was told */
        good = text && unquote(object, value, &object->name) && object->name.len > 0 &&
               object->name.len <= MOST_NAME_BYTES;
        keep(object, &object->name, "", 1);
        object->has_name = good;
    } else if (object->member == ARGUMENTS && value.len > 0) {
        if (text)
            good = unquote(object, value, &object->arguments);
        else if (bytes_equal(value, BYTES_LITERAL("null")))
            keep(object, &object->arguments, "{}", 2);
        else
            good = false;
        object->has_arguments = true;
    }
    object->value.len = 0;
    object->place = COMMA_EXPECTED;
    if (!good)
        object->state = CALL_OBJECT_BAD;
}

/* A byte of a value: handed on, kept, or passed over. */
static void take(struct call_object *object, uint8_t byte)
{
    if (object->member == ARGUMENTS && object->place == CONTAINER) {
        object->has_arguments = true;
        keep(object, &object->arguments, &byte, 1);
    } else if (object->member != OTHER) {
        keep(object, &object->value, &byte, 1);
    }
}

/* Whether a quote, outside of an escape, ends or begins a string here; keeps track of both. */
static bool quotes(struct call_object *object, uint8_t byte)
{
    if (object->escaped) {
        object->escaped = false;
        return false;
    }
    object->escaped = object->in_string && byte == '\\';
    if (byte != '"')
        return false;
    object->in_string = !object->in_string;
    return true;
}

static void begin_value(struct call_object *object, uint8_t byte)
{
    object->depth = 0;
    object->in_string = object->escaped = false;
    object->place = byte == '"' ? STRING : byte == '{' || byte == '[' ? CONTAINER : SCALAR;
    if (object->place == CONTAINER && object->member == ARGUMENTS && byte != '{')
        object->state = CALL_OBJECT_BAD;
}

static void in_container(struct call_object *object, uint8_t byte)
{
    take(object, byte);
    if (quotes(object, byte) || object->in_string)
        return;
    if (byte == '{' || byte == '[')
        object->depth++;
    if (object->depth > MOST_DEPTH)
        object->state = CALL_OBJECT_BAD;
    if ((byte == '}' || byte == ']') && --object->depth == 0)
        end_value(object);
}

/* A byte between members. */
static void between(struct call_object *object, uint8_t byte)
{
    if (is_blank(byte))
        return;
    if (object->place == BEFORE && byte == '{')
        object->place = KEY_EXPECTED;
    else if ((object->place == KEY_EXPECTED || object->place == COMMA_EXPECTED) && byte == '}')
        object->state = CALL_OBJECT_WHOLE;
    else if (object->place == COMMA_EXPECTED && byte == ',')
        object->place = KEY_EXPECTED;
    else if (object->place == KEY_EXPECTED && byte == '"')
        object->place = KEY, object->key.len = 0, object->in_string = true, object->escaped = false;
    else if (object->place == COLON_EXPECTED && byte == ':')
        object->place = VALUE_EXPECTED;
    else
        object->state = CALL_OBJECT_BAD;
}

/* True when the byte was taken; else it is to be looked at again. */
static bool step(struct call_object *object, uint8_t byte)
{
    switch (object->place) {
    case KEY:
        if (quotes(object, byte)) {
            object->member = member_of(object, (struct bytes){object->key.data, object->key.len});
            object->place = COLON_EXPECTED;
        } else if (object->key.len < MOST_NAME_BYTES) {
            keep(object, &object->key, &byte, 1);
        }
        return true;
    case VALUE_EXPECTED:
        if (is_blank(byte))
            return true;
        begin_value(object, byte);
        return false;
    case STRING:
        take(object, byte);
        if (quotes(object, byte) && !object->in_string)
            end_value(object);
        return true;
    case CONTAINER:
        in_container(object, byte);
        return true;
    case SCALAR:
        if (byte == ',' || byte == '}' || is_blank(byte)) {
            end_value(object);
            return false;
        }
        take(object, byte);
        return true;
    default:
        between(object, byte);
        /* What does not belong is not taken: it may begin a character. */
        return object->state != CALL_OBJECT_BAD;
    }
}

size_t call_object_push(struct call_object *object, const uint8_t *data, size_t len)
{
    size_t i = 0;
    while (i < len && object->state == CALL_OBJECT_OPEN)
        i += step(object, data[i]);
    return i;
}

void call_object_deinit(struct call_object *object)
{
    buffer_deinit(&object->key);
    buffer_deinit(&object->value);
    buffer_deinit(&object->name);
    buffer_deinit(&object->arguments);
    *object = (struct call_object){0};
}
