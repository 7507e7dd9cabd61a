/* SPDX-License-Identifier: MIT */
/* Template source → tokens.
 *
 * The source is text with tags in it. White space around tags is the intricate part, all of it decided here:
 * a minus inside a tag strips everything on its side; a block tag or comment that is not so marked swallows
 * the newline after it (trim_blocks) and the blanks before it on its line (lstrip_blocks), unless a plus says
 * otherwise; the newline that ends the source is dropped. Inside a tag, brackets are counted, so that }} may
 * close two dictionaries. */

#include "text/template/jinja/syntax.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

struct lexer {
    const char *source; /* newlines are \n */
    size_t len, at;
    uint32_t line;
    struct arena *arena;
    struct jinja_tokens tokens;
    struct error *err;
};

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

static bool looking_at(const struct lexer *lexer, const char *word)
{
    size_t len = strlen(word);
    return lexer->len - lexer->at >= len && memcmp(lexer->source + lexer->at, word, len) == 0;
}

/* Moves on, counting lines. */
static void skip(struct lexer *lexer, size_t n)
{
    for (size_t i = 0; i < n; i++)
        lexer->line += lexer->source[lexer->at + i] == '\n';
    lexer->at += n;
}

static void skip_white(struct lexer *lexer)
{
    while (lexer->at < lexer->len && is_white(lexer->source[lexer->at]))
        skip(lexer, 1);
}

static int add(struct lexer *lexer, enum jinja_token_kind kind, const char *text, size_t len)
{
    struct jinja_tokens *tokens = &lexer->tokens;
    if (tokens->n == tokens->cap) {
        size_t cap = tokens->cap * 2 + 64;
        struct jinja_token *moved = arena_take(lexer->arena, cap, sizeof *moved);
        if (!moved)
            return error_set(lexer->err, -ENOMEM, "not enough memory for the template");
        if (tokens->n > 0)
            memcpy(moved, tokens->items, tokens->n * sizeof *moved);
        tokens->items = moved;
        tokens->cap = cap;
    }
    tokens->items[tokens->n++] = (struct jinja_token){kind, lexer->line, {text, len}};
    return 0;
}

/* Does the raw text before a tag end in blanks only, from the start of its line? Then where they begin. */
static size_t without_indent(const struct lexer *lexer, size_t begin, size_t end)
{
    size_t at = end;
    while (at > begin && lexer->source[at - 1] != '\n' && is_white(lexer->source[at - 1]))
        at--;
    bool line_start = at == 0 || lexer->source[at - 1] == '\n';
    return line_start ? at : end;
}

/* Text from `at` to the tag that begins at `tag`; the tag's kind and its mark say what is stripped. */
static int add_text(struct lexer *lexer, size_t tag, bool is_tag)
{
    size_t begin = lexer->at, end = tag;
    if (is_tag) {
        char mark = tag + 2 < lexer->len ? lexer->source[tag + 2] : 0;
        if (mark == '-')
            while (end > begin && is_white(lexer->source[end - 1]))
                end--;
        else if (mark != '+' && lexer->source[tag + 1] != '{')
            end = without_indent(lexer, begin, end);
    }
    int r = end > begin ? add(lexer, JINJA_TEXT, lexer->source + begin, end - begin) : 0;
    skip(lexer, tag - begin);
    return r;
}

/* After the end of a tag or comment whose last mark was `mark`. */
static void strip_after(struct lexer *lexer, char mark, bool is_output)
{
    if (mark == '-')
        skip_white(lexer);
    else if (mark != '+' && !is_output && lexer->at < lexer->len && lexer->source[lexer->at] == '\n')
        skip(lexer, 1);
}

static int lex_comment(struct lexer *lexer)
{
    uint32_t line = lexer->line;
    skip(lexer, 2);
    if (lexer->at < lexer->len && (lexer->source[lexer->at] == '-' || lexer->source[lexer->at] == '+'))
        skip(lexer, 1); /* that mark is the beginning's */
    const char *end = memmem(lexer->source + lexer->at, lexer->len - lexer->at, "#}", 2);
    if (!end)
        return error_set(lexer->err, -EINVAL, "line %u: unterminated comment", line);
    char mark = end > lexer->source + lexer->at ? end[-1] : 0;
    skip(lexer, (size_t)(end + 2 - (lexer->source + lexer->at)));
    strip_after(lexer, mark, false);
    return 0;
}

/* Appends the character of an escape sequence; *at is behind the backslash. */
static size_t unescape(const char *source, size_t *at, size_t end, char *out)
{
    static const char from[] = "ntrbfva", to[] = "\n\t\r\b\f\v\a";
    char c = source[(*at)++];
    const char *simple = strchr(from, c);
    if (simple && c) {
        out[0] = to[simple - from];
        return 1;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    utf8proc_int32_t point = 0;
    size_t i = 0;
    for (; i < digits && *at + i < end; i++) {
        char d = source[*at + i];
        int value = is_digit(d) ? d - '0' : (d | 32) >= 'a' && (d | 32) <= 'f' ? (d | 32) - 'a' + 10 : -1;
        if (value < 0 || point > 0x10ffff)
            break;
        point = point * 16 + value;
    }
    if (digits > 0 && i == digits && utf8proc_codepoint_valid(point)) {
        *at += digits;
        return (size_t)utf8proc_encode_char(point, (uint8_t *)out);
    }
    if (c == '\n')
        return 0; /* a line that goes on */
    if (c == '\\' || c == '\'' || c == '"') {
        out[0] = c;
        return 1;
    }
    out[0] = '\\'; /* an unknown escape stays as it is */
    out[1] = c;
    return 2;
}

static int lex_string(struct lexer *lexer)
{
    char quote = lexer->source[lexer->at];
    size_t end = lexer->at + 1;
    while (end < lexer->len && lexer->source[end] != quote)
        end += lexer->source[end] == '\\' ? 2 : 1;
    if (end >= lexer->len)
        return error_set(lexer->err, -EINVAL, "line %u: unterminated string", lexer->line);
    char *text = arena_take(lexer->arena, 1, end - lexer->at + 1);
    if (!text)
        return error_set(lexer->err, -ENOMEM, "not enough memory for the template");
    size_t n = 0;
    for (size_t at = lexer->at + 1; at < end;) {
        if (lexer->source[at] == '\\') {
            at++;
            n += unescape(lexer->source, &at, end, text + n);
        } else {
            text[n++] = lexer->source[at++];
        }
    }
    int r = add(lexer, JINJA_STRING, text, n);
    skip(lexer, end + 1 - lexer->at);
    return r;
}

static int lex_number(struct lexer *lexer)
{
    size_t end = lexer->at;
    bool real = false;
    while (end < lexer->len && (is_digit(lexer->source[end]) || lexer->source[end] == '_'))
        end++;
    if (end + 1 < lexer->len && lexer->source[end] == '.' && is_digit(lexer->source[end + 1])) {
        real = true;
        for (end++; end < lexer->len && is_digit(lexer->source[end]);)
            end++;
    }
    if (end < lexer->len && (lexer->source[end] | 32) == 'e') {
        size_t exponent = end + 1;
        if (exponent < lexer->len && (lexer->source[exponent] == '+' || lexer->source[exponent] == '-'))
            exponent++;
        if (exponent < lexer->len && is_digit(lexer->source[exponent])) {
            real = true;
            for (end = exponent; end < lexer->len && is_digit(lexer->source[end]);)
                end++;
        }
    }
    int r = add(lexer, real ? JINJA_REAL : JINJA_INTEGER, lexer->source + lexer->at, end - lexer->at);
    skip(lexer, end - lexer->at);
    return r;
}

static int lex_operator(struct lexer *lexer)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t len = 1;
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (looking_at(lexer, two[i]))
            len = 2;
    char c = lexer->source[lexer->at];
    if (c == 0 || (len == 1 && !strchr("+-/*%~[](){}<>=.:|,", c)))
        return error_set(lexer->err, -EINVAL, "line %u: unexpected character '%c'", lexer->line,
                         c >= ' ' && c <= '~' ? c : '?');
    int r = add(lexer, JINJA_OPERATOR, lexer->source + lexer->at, len);
    skip(lexer, len);
    return r;
}

enum { MAX_BRACKETS = 200 };

struct brackets {
    char expected[MAX_BRACKETS]; /* what closes each open one */
    size_t n;
};

/* Counts the bracket `c`, if it is one. */
static int count_bracket(struct lexer *lexer, struct brackets *brackets, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *opens = memchr(opening, c, 3);
    if (opens) {
        if (brackets->n == MAX_BRACKETS)
            return error_set(lexer->err, -EINVAL, "line %u: brackets more than %d deep", lexer->line,
                             MAX_BRACKETS);
        brackets->expected[brackets->n++] = closing[opens - opening];
    } else if (memchr(closing, c, 3)) {
        if (brackets->n == 0)
            return error_set(lexer->err, -EINVAL, "line %u: unmatched '%c'", lexer->line, c);
        char expected = brackets->expected[--brackets->n];
        if (expected != c)
            return error_set(lexer->err, -EINVAL, "line %u: '%c' where '%c' was expected", lexer->line, c,
                             expected);
    }
    return 0;
}

/* The inside of a tag, up to and with its end. */
static int lex_tag(struct lexer *lexer, bool is_output)
{
    const char *end = is_output ? "}}" : "%}";
    uint32_t begin_line = lexer->line;
    int r = add(lexer, is_output ? JINJA_OUTPUT_BEGIN : JINJA_TAG_BEGIN, lexer->source + lexer->at, 2);
    skip(lexer, 2);
    if (lexer->at < lexer->len && (lexer->source[lexer->at] == '-' || lexer->source[lexer->at] == '+'))
        skip(lexer, 1);
    struct brackets brackets = {.n = 0};
    while (r == 0) {
        skip_white(lexer);
        if (lexer->at >= lexer->len)
            return error_set(lexer->err, -EINVAL, "line %u: unterminated tag", begin_line);
        char c = lexer->source[lexer->at];
        char mark = c == '-' || c == '+' ? c : 0;
        size_t behind = lexer->at + (mark != 0);
        if (brackets.n == 0 && lexer->len - behind >= 2 && memcmp(lexer->source + behind, end, 2) == 0) {
            r = add(lexer, is_output ? JINJA_OUTPUT_END : JINJA_TAG_END, end, 2);
            skip(lexer, behind + 2 - lexer->at);
            strip_after(lexer, mark, is_output);
            return r;
        }
        r = count_bracket(lexer, &brackets, c);
        if (r < 0)
            break;
        if (c == '\'' || c == '"') {
            r = lex_string(lexer);
        } else if (is_digit(c)) {
            r = lex_number(lexer);
        } else if (is_name(c)) {
            size_t len = 1;
            while (lexer->at + len < lexer->len && is_name(lexer->source[lexer->at + len]))
                len++;
            r = add(lexer, JINJA_NAME, lexer->source + lexer->at, len);
            skip(lexer, len);
        } else {
            r = lex_operator(lexer);
        }
    }
    return r;
}

/* Is there, at `at`, a tag of this one word? Then the offset behind it, else 0; *ret_mark is its last mark.
 */
static size_t find_word_tag(const struct lexer *lexer, size_t at, const char *word, char *ret_mark)
{
    const char *s = lexer->source;
    size_t len = strlen(word);
    at += 2;
    if (at < lexer->len && (s[at] == '-' || s[at] == '+'))
        at++;
    while (at < lexer->len && is_white(s[at]))
        at++;
    if (lexer->len - at < len || memcmp(s + at, word, len) != 0)
        return 0;
    at += len;
    while (at < lexer->len && is_white(s[at]))
        at++;
    *ret_mark = at < lexer->len && (s[at] == '-' || s[at] == '+') ? s[at] : 0;
    at += *ret_mark != 0;
    return lexer->len - at >= 2 && memcmp(s + at, "%}", 2) == 0 ? at + 2 : 0;
}

/* {% raw %} … {% endraw %}; `behind` is the end of the first. */
static int lex_raw(struct lexer *lexer, size_t behind, char mark)
{
    uint32_t line = lexer->line;
    skip(lexer, behind - lexer->at);
    if (mark == '-') /* the newline after this tag is part of the text */
        skip_white(lexer);
    for (size_t at = lexer->at; at + 2 <= lexer->len; at++) {
        if (memcmp(lexer->source + at, "{%", 2) != 0)
            continue;
        behind = find_word_tag(lexer, at, "endraw", &mark);
        if (behind == 0)
            continue;
        int r = add_text(lexer, at, true);
        skip(lexer, behind - at);
        strip_after(lexer, mark, false);
        return r;
    }
    return error_set(lexer->err, -EINVAL, "line %u: unterminated raw block", line);
}

/* Where the next tag begins, or the end. */
static size_t find_tag(const struct lexer *lexer)
{
    for (size_t at = lexer->at; at + 1 < lexer->len; at++)
        if (lexer->source[at] == '{' && memchr("{%#", lexer->source[at + 1], 3))
            return at;
    return lexer->len;
}

/* A copy with \n for \r\n and \r, and without one newline at the end. */
static int normalize(struct lexer *lexer, struct bytes source)
{
    char *copy = arena_take(lexer->arena, 1, source.len + 1);
    if (!copy)
        return error_set(lexer->err, -ENOMEM, "not enough memory for the template");
    const char *from = source.data;
    for (size_t i = 0; i < source.len; i++) {
        if (from[i] == '\r') {
            copy[lexer->len++] = '\n';
            i += i + 1 < source.len && from[i + 1] == '\n';
        } else {
            copy[lexer->len++] = from[i];
        }
    }
    lexer->len -= lexer->len > 0 && copy[lexer->len - 1] == '\n';
    lexer->source = copy;
    return 0;
}

int jinja_lex(struct bytes source, struct arena *arena, struct jinja_tokens *ret_tokens, struct error *err)
{
    struct lexer lexer = {.line = 1, .arena = arena, .err = err};
    int r = normalize(&lexer, source);
    while (r == 0 && lexer.at < lexer.len) {
        size_t tag = find_tag(&lexer);
        r = add_text(&lexer, tag, tag < lexer.len);
        if (r < 0 || lexer.at == lexer.len)
            break;
        char kind = lexer.source[tag + 1], mark = 0;
        size_t behind_raw = kind == '%' ? find_word_tag(&lexer, tag, "raw", &mark) : 0;
        if (kind == '#')
            r = lex_comment(&lexer);
        else if (behind_raw > 0)
            r = lex_raw(&lexer, behind_raw, mark);
        else
            r = lex_tag(&lexer, kind == '{');
    }
    if (r == 0)
        r = add(&lexer, JINJA_END, "", 0);
    if (r == 0)
        *ret_tokens = lexer.tokens;
    return r;
}
