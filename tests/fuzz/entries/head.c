/* SPDX-License-Identifier: MIT */
/* Any bytes as the head of a request: they are taken apart as libmicrohttpd 0.9 does it, in place, and what
 * the gateway then accepts is, by its bytes, a head that every parser ends in the same place. An input that
 * begins with a zero is instead what a browser says of the page that asks, a line for each header: a gateway
 * on loopback takes no Host but loopback's. For libFuzzer the sources are gateway and common. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/http/framing.h"
#include "gateway/http/origin.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

#define MOST_MOVED 64

/* The buffer that is read, and copies of fields that were folded. */
struct reader {
    char *bytes;
    size_t len, at;
    char *last, *value; /* the field that is not over yet */
    char *moved[MOST_MOVED];
    size_t n_moved;
};

static char *next_line(struct reader *reader, size_t *ret_len)
{
    char *line = reader->bytes + reader->at, *lf = memchr(line, '\n', reader->len - reader->at);
    if (!lf)
        return NULL;
    char *end = lf > line && lf[-1] == '\r' ? lf - 1 : lf;
    *ret_len = (size_t)(end - line);
    memset(end, 0, (size_t)(lf + 1 - end));
    reader->at += (size_t)(lf + 1 - line);
    return line;
}

static bool read_request_line(char *line, size_t len, struct framing_line *ret_line)
{
    char *target = memchr(line, ' ', len);
    if (!target || target == line)
        return false;
    *target++ = 0;
    while (target < line + len && *target == ' ')
        target++;
    char *space = line + len - 1;
    while (space > target && *space == ' ')
        space--;
    while (space > target && *space != ' ')
        space--;
    if (space <= target || line + len - space != 9 || strncmp(space + 1, "HTTP/1.", 7) != 0 ||
        space[8] < '0' || space[8] > '9')
        return false;
    *space = 0;
    *ret_line = (struct framing_line){line, target, space + 1, strlen(target)};
    return !framing_target_fault(target);
}

static bool begin_field(struct reader *reader, char *line)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return false;
    *colon++ = 0;
    reader->last = line;
    reader->value = colon + strspn(colon, " \t");
    return true;
}

/* The name goes somewhere else, with what was behind it; the place where it was is zeroed. */
static bool fold(struct reader *reader, const char *line)
{
    size_t len = strlen(reader->last), more = strlen(line);
    char *moved = reader->n_moved < MOST_MOVED ? malloc(len + more + 1) : NULL;
    if (!moved)
        return false;
    memcpy(moved, reader->last, len);
    memcpy(moved + len, line, more + 1);
    memset(reader->last, 0, len + 1);
    reader->moved[reader->n_moved++] = moved;
    reader->last = moved;
    return true;
}

static bool read_fields(struct reader *reader, struct framing *framing, struct refusal *refusal)
{
    size_t len;
    for (;;) {
        char *line = next_line(reader, &len);
        if (!line)
            return false;
        if (reader->last && (*line == ' ' || *line == '\t')) {
            if (!fold(reader, line))
                return false;
            continue;
        }
        if (reader->last && framing_field(framing, bytes_of_string(reader->last),
                                          bytes_of_string(reader->value), refusal) != 0)
            return false;
        if (*line == 0)
            return true;
        if (!begin_field(reader, line))
            return false;
    }
}

/* The fields are handed over when all were read, and how long the head is is known before the first: so it is
 * read twice. */
static bool is_accepted(const char *data, size_t len, size_t head_size, size_t *ret_begin, size_t *ret_end)
{
    struct reader reader = {.bytes = malloc(len + 1), .len = len};
    struct framing framing = {0};
    struct framing_line request_line;
    struct refusal refusal = {0};
    size_t line_len;
    char *line;
    REQUIRE(reader.bytes);
    memcpy(reader.bytes, data, len);
    do
        line = next_line(&reader, &line_len);
    while (line && *line == 0);
    bool good = line && read_request_line(line, line_len, &request_line);
    if (good)
        *ret_begin = (size_t)(line - reader.bytes);
    good = good && framing_begin(&framing, &request_line, head_size, &refusal) == 0 &&
           read_fields(&reader, &framing, &refusal);
    *ret_end = reader.at;
    good = good && framing_end(&framing, &refusal) == 0;
    if (refusal.status)
        REQUIRE(refusal.status == 400 && refusal.text[0] && !strchr(refusal.text, '\n'));
    for (size_t i = 0; i < reader.n_moved; i++)
        free(reader.moved[i]);
    free(reader.bytes);
    return good;
}

/* One line of a head without its CR LF, as a strict parser wants it; counts what says where the body ends. */
static void require_field(const char *line, size_t len, unsigned *ends)
{
    static const char token[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char text[4096];
    REQUIRE(len < sizeof text);
    memcpy(text, line, len);
    text[len] = 0;
    size_t name = strspn(text, token);
    REQUIRE(name > 0 && text[name] == ':');
    const char *value = text + name + 1 + strspn(text + name + 1, " \t");
    text[name] = 0;
    if (strcasecmp(text, "Content-Length") == 0) {
        ++*ends;
        REQUIRE(value[0] && value[strspn(value, "0123456789")] == 0);
    } else if (strcasecmp(text, "Transfer-Encoding") == 0) {
        ++*ends;
        REQUIRE(strcasecmp(value, "chunked") == 0);
    }
}

/* The one thing that cannot be seen: among line ends a zero, and an LF without CR. */
static bool has_zero_for_cr(const char *head, size_t len)
{
    bool zero = false, lf = false;
    for (size_t i = 0; i < len; i++) {
        if (head[i] != 0 && head[i] != '\r' && head[i] != '\n')
            zero = lf = false;
        zero = zero || head[i] == 0;
        lf = lf || (head[i] == '\n' && (i == 0 || head[i - 1] != '\r'));
        if (zero && lf)
            return true;
    }
    return false;
}

static void require_strict(const char *head, size_t len)
{
    unsigned ends = 0;
    size_t from = 0;
    if (has_zero_for_cr(head, len))
        return;
    for (size_t i = 0; i < len; i++) {
        REQUIRE(head[i] != 0);
        REQUIRE((head[i] == '\n') == (i > 0 && head[i - 1] == '\r'));
        if (head[i] != '\n')
            continue;
        if (from > 0 && i - 1 > from)
            require_field(head + from, i - 1 - from, &ends);
        else
            REQUIRE(from == 0 || i + 1 == len);
        from = i + 1;
    }
    REQUIRE(ends <= 1);
}

static void try_head(const char *data, size_t len)
{
    size_t begin = 0, end = 0, same_begin, same_end;
    is_accepted(data, len, 0, &begin, &end); /* for its size */
    if (begin < end && is_accepted(data, len, end - begin, &same_begin, &same_end)) {
        char *head = malloc(end - begin);
        REQUIRE(head && same_begin == begin && same_end == end);
        memcpy(head, data + begin, end - begin);
        require_strict(head, end - begin);
        free(head);
    }
}

static void try_claim(char *text)
{
    char *lines[6] = {NULL}, *rest = text;
    for (size_t i = 0; i < sizeof lines / sizeof *lines && rest; i++)
        lines[i] = strsep(&rest, "\n");
    const struct origin_rules rules = {
        .cors = lines[4], .listen = "127.0.0.1:8080", .machine = "box", .loopback = true};
    const struct origin_claim claim = {.method = "GET",
                                       .host = lines[0],
                                       .origin = lines[1] && *lines[1] ? lines[1] : NULL,
                                       .fetch_site = lines[2],
                                       .fetch_mode = lines[3],
                                       .fetch_dest = lines[3]};
    struct refusal refusal = {0};
    if (origin_check(&rules, &claim, &refusal) != 0) {
        REQUIRE((refusal.status == 403 || refusal.status == 400) && refusal.text[0] && refusal.param[0]);
        return;
    }
    REQUIRE(strcasestr(claim.host, "localhost") || strstr(claim.host, "127.") || claim.host[0] == '[');
    if (claim.origin && !(rules.cors && *rules.cors))
        REQUIRE(strncasecmp(claim.origin, "http", 4) == 0 && strcasestr(claim.origin, "://"));
    if (rules.cors)
        origin_hosts_are_valid(rules.cors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len > 0 && data[0] == 0) {
        char *text = strndup((const char *)data + 1, len - 1);
        REQUIRE(text);
        try_claim(text);
        free(text);
    } else if (len < 4000) {
        try_head((const char *)data, len);
    }
    return 0;
}
