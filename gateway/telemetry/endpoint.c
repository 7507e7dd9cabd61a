/* SPDX-License-Identifier: MIT */
/* See endpoint.h. */

#include "gateway/telemetry/endpoint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/files/secret_file.h"

#define PATH_END      "/v1/traces"
#define HEADERS_BYTES (16u << 10) /* of the file */
#define MOST_PATH     1024

/* ---- the URL ---- */

/* The value of a part, or NULL; the library frees it. */
static char *part_of(const struct curl_calls *curl, CURLU *parsed, CURLUPart part)
{
    char *value = NULL;
    return curl->url_get(parsed, part, &value, 0) == CURLUE_OK ? value : NULL;
}

static bool has_part(const struct curl_calls *curl, CURLU *parsed, CURLUPart part)
{
    char *value = part_of(curl, parsed, part);
    curl->free(value);
    return value;
}

static bool is_http(const struct curl_calls *curl, CURLU *parsed)
{
    char *scheme = part_of(curl, parsed, CURLUPART_SCHEME);
    bool yes = scheme && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl->free(scheme);
    return yes;
}

static bool complete_path(const struct curl_calls *curl, CURLU *parsed)
{
    char path[MOST_PATH + sizeof PATH_END];
    char *said = part_of(curl, parsed, CURLUPART_PATH);
    size_t len = said ? strlen(said) : 0;
    bool good = len < MOST_PATH;
    while (good && len > 0 && said[len - 1] == '/')
        len--;
    const size_t end = strlen(PATH_END);
    if (good && (len < end || strncmp(said + len - end, PATH_END, end) != 0)) {
        snprintf(path, sizeof path, "%.*s" PATH_END, (int)len, said ? said : "");
        good = curl->url_set(parsed, CURLUPART_PATH, path, 0) == CURLUE_OK;
    }
    curl->free(said);
    return good;
}

static int read_parsed(const struct curl_calls *curl, CURLU *parsed, const char *url, char **ret_url,
                       struct error *err)
{
    if (strchr(url, '@')) /* not quoted */
        return error_set(err, -EINVAL, "the URL contains \"@\": credentials belong in the file of headers");
    if (curl->url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
        !is_http(curl, parsed))
        return error_set(err, -EINVAL, "%s: not a URL like http://HOST:4318", url);
    if (has_part(curl, parsed, CURLUPART_FRAGMENT))
        return error_set(err, -EINVAL, "%s: the URL must not contain #", url);
    if (!complete_path(curl, parsed))
        return error_set(err, -EINVAL, "%s: the path is too long", url);
    return curl->url_get(parsed, CURLUPART_URL, ret_url, 0) == CURLUE_OK
               ? 0
               : error_set(err, -ENOMEM, "out of memory");
}

static int read_url(const struct curl_calls *curl, const char *url, char **ret_url, struct error *err)
{
    CURLU *parsed = curl->url();
    if (!parsed)
        return error_set(err, -ENOMEM, "out of memory");
    int r = read_parsed(curl, parsed, url, ret_url, err);
    curl->url_cleanup(parsed);
    return r;
}

/* ---- headers ---- */

static int add_header(struct endpoint *endpoint, const char *line, struct error *err)
{
    struct curl_slist *more = endpoint->curl->slist_append(endpoint->headers, line);
    if (!more)
        return error_set(err, -ENOMEM, "out of memory");
    endpoint->headers = more;
    return 0;
}

/* A name of RFC 9110, a colon, and a value of printable ASCII; libcurl would leave one without a value out.
 */
static bool is_header(const char *line)
{
    const size_t name =
        strspn(line, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (name == 0 || line[name] != ':' || !line[name + 1 + strspn(line + name + 1, " \t")])
        return false;
    for (const char *c = line + name; *c; c++)
        if ((*c < ' ' && *c != '\t') || *c > '~')
            return false;
    return true;
}

/* What it says of the body is ours to say. */
static bool is_ours(const char *line)
{
    return strncasecmp(line, "content-", 8) == 0 || strncasecmp(line, "transfer-encoding:", 18) == 0;
}

/* The line is not quoted: it may be a secret. */
static int take_line(struct endpoint *endpoint, const char *path, unsigned number, char *line,
                     struct error *err)
{
    line += strspn(line, " \t");
    size_t len = strcspn(line, "\r");
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    line[len] = 0;
    if (len == 0 || line[0] == '#')
        return 0;
    if (!is_header(line))
        return error_set(err, -EINVAL, "%s:%u: not \"Name: value\"", path, number);
    if (is_ours(line))
        return error_set(err, -EINVAL, "%s:%u: this header describes the body and is already set", path,
                         number);
    return add_header(endpoint, line, err);
}

static int read_headers(struct endpoint *endpoint, const char *path, struct error *err)
{
    struct secret_file file = {0};
    int r = secret_file_read(path, HEADERS_BYTES, &file, err);
    if (r < 0)
        return r;
    r = secret_file_check_private(&file.status, path, "headers, which may be secret", err);
    unsigned number = 1;
    for (char *line = file.text, *next; r == 0 && line; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        r = take_line(endpoint, path, number, line, err);
    }
    secret_file_deinit(&file);
    return r;
}

int endpoint_read(const char *url, const char *headers, struct endpoint *ret_endpoint, struct error *err)
{
    struct endpoint endpoint = {.curl = curl_calls_load(err)};
    if (!endpoint.curl)
        return -ENOTSUP;
    int r = read_url(endpoint.curl, url, &endpoint.url, err);
    if (r == 0)
        r = add_header(&endpoint, "Content-Type: application/json", err);
    if (r == 0)
        r = add_header(&endpoint, "Expect:", err); /* the body goes at once */
    if (r == 0 && headers)
        r = read_headers(&endpoint, headers, err);
    if (r < 0)
        endpoint_deinit(&endpoint);
    else
        *ret_endpoint = endpoint;
    return r;
}

void endpoint_deinit(struct endpoint *endpoint)
{
    if (endpoint->curl) {
        endpoint->curl->free(endpoint->url);
        endpoint->curl->slist_free_all(endpoint->headers);
    }
    *endpoint = (struct endpoint){0};
}
