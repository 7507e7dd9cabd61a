/* SPDX-License-Identifier: MIT */
/* A proxy and the gateway have to agree on where a request ends, or the rest of one client's request becomes
 * the beginning of another's. So what RFC 9112 calls invalid is refused, and what it leaves to the recipient
 * (Content-Length twice with the same number, encodings other than chunked) is too.
 *
 * libmicrohttpd 1.0 refuses bare LF, folded fields and NUL itself when it is told to be strict. 0.9 takes
 * them all, and its fields do not show it. But it parses in place: in the bytes of the head it overwrites
 * with zeros the space behind the method, that before the version, the colon of each field and every CR LF,
 * hands out pointers to what is between, and says how long the head is. So the bytes are walked from field to
 * field:
 *
 *     GET 0 /path 0 HTTP/1.1 0 0 name 0 value 0 0 … 0 0
 *
 * Whatever else was in a head leaves another distance somewhere. One thing looks the same: among line ends a
 * NUL, and an LF without CR, as NUL LF for CR LF, which no proxy hands on. (0.9.77 joins folded lines with
 * spaces, as RFC 9112 allows: a length or an encoding that was folded has spaces then, and is refused.) The
 * bytes are only read, and only inside the head; should a library lay them out in another way, everything is
 * refused, nothing accepted.
 *
 * The lines around chunks are not seen at all: head.c closes the connection behind such a body. */

#include "gateway/http/framing.h"

#include <string.h>
#include <strings.h>

static const char *const singles[FRAMING_SINGLES] = {
    [FRAMING_HOST] = "Host",
    [FRAMING_LENGTH] = "Content-Length",
    [FRAMING_ENCODING] = "Transfer-Encoding",
    [FRAMING_ORIGIN] = "Origin",
    [FRAMING_FETCH_SITE] = "Sec-Fetch-Site",
    [FRAMING_AUTHORIZATION] = "Authorization",
    [FRAMING_API_KEY] = "x-api-key",
};

#define refuse_head(refusal, field, ...) refuse(refusal, 400, "malformed_request", field, __VA_ARGS__)

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* What RFC 9110 calls a token: methods, and names of fields. */
static bool is_token(struct bytes text)
{
    const char *s = text.data;
    for (size_t i = 0; i < text.len; i++)
        if (!is_alphanumeric(s[i]) && (s[i] == 0 || !strchr("!#$%&'*+-.^_`|~", s[i])))
            return false;
    return text.len > 0;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static bool has_control(struct bytes text)
{
    const char *s = text.data;
    for (size_t i = 0; i < text.len; i++)
        if (is_control(s[i]))
            return true;
    return false;
}

const char *framing_target_fault(const char *target)
{
    if (target[0] != '/' && strcmp(target, "*") != 0)
        return "is not a path";
    for (const char *c = target; *c; c++)
        if (is_control(*c) || *c == ' ' || *c == '\t')
            return "has a space or a control character";
    return strstr(target, "%00") ? "has a zero byte" : NULL;
}

int framing_begin(struct framing *framing, const struct framing_line *line, size_t head_size,
                  struct refusal *refusal)
{
    size_t method_len = strlen(line->method), version_len = strlen(line->version);
    *framing = (struct framing){.old = strcmp(line->version, "HTTP/1.0") == 0};
    if (!is_token((struct bytes){line->method, method_len}))
        return refuse_head(refusal, NULL, "the method of the request is not a word");
    if (head_size == 0)
        return 0;
    const char *end = line->method + head_size, *at = line->version + version_len;
    if (line->target != line->method + method_len + 1 ||
        line->version != line->target + line->target_len + 1 || end < at || end - at < 2 || at[0] || at[1])
        return refuse_head(refusal, NULL, "the request line is not METHOD PATH VERSION and CR LF");
    framing->at = at + 2;
    framing->end = end;
    return 0;
}

/* Whether the field is where the one before has ended, and ends with CR LF. */
static bool follows(struct framing *framing, struct bytes name, struct bytes value)
{
    const char *at = framing->at, *end = framing->end, *text = value.data;
    if (!at)
        return true;
    if (name.data != at || (size_t)(end - at) <= name.len || at[name.len])
        return false;
    at += name.len + 1;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (text != at || (size_t)(end - at) < value.len + 2 || at[value.len] || at[value.len + 1])
        return false;
    framing->at = at + value.len + 2;
    return true;
}

static int take_single(struct framing *framing, enum framing_single which, struct bytes value,
                       struct refusal *refusal)
{
    const char *name = singles[which], *text = value.data;
    if (framing->seen[which])
        return refuse_head(refusal, name, "the request has more than one %s header", name);
    framing->seen[which] = true;
    if (framing->seen[FRAMING_LENGTH] && framing->seen[FRAMING_ENCODING])
        return refuse_head(refusal, name, "the request has both Content-Length and Transfer-Encoding");
    if (which == FRAMING_LENGTH) {
        for (size_t i = 0; i < value.len; i++)
            if (text[i] < '0' || text[i] > '9')
                return refuse_head(refusal, name, "Content-Length is not a number");
        if (value.len == 0)
            return refuse_head(refusal, name, "Content-Length is empty");
    }
    if (which != FRAMING_ENCODING)
        return 0;
    if (framing->old)
        return refuse_head(refusal, name, "HTTP/1.0 does not support Transfer-Encoding");
    if (value.len != strlen("chunked") || strncasecmp(text, "chunked", value.len) != 0)
        return refuse_head(refusal, name, "the only supported Transfer-Encoding is chunked");
    return 0;
}

int framing_field(struct framing *framing, struct bytes name, struct bytes value, struct refusal *refusal)
{
    char shown[64] = "";
    if (!is_token(name))
        return refuse_head(refusal, NULL, "a header name is empty or has a space or a control character");
    memcpy(shown, name.data, name.len < sizeof shown ? name.len : sizeof shown - 1);
    if (has_control(value))
        return refuse_head(refusal, shown, "the header %s has a control character", shown);
    if (!follows(framing, name, value))
        return refuse_head(refusal, shown,
                           "the header %s, or the one before it, is not a single line ending in CR LF",
                           shown);
    for (int i = 0; i < FRAMING_SINGLES; i++)
        if (strlen(singles[i]) == name.len && strncasecmp(singles[i], name.data, name.len) == 0)
            return take_single(framing, i, value, refusal);
    return 0;
}

int framing_end(const struct framing *framing, struct refusal *refusal)
{
    const char *at = framing->at;
    if (at && (framing->end - at != 2 || at[0] || at[1]))
        return refuse_head(refusal, NULL, "the headers do not end with an empty line of CR LF");
    if (!framing->seen[FRAMING_HOST] && !framing->old)
        return refuse_head(refusal, "Host", "the request has no Host header");
    return 0;
}
