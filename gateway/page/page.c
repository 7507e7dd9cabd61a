/* SPDX-License-Identifier: MIT */
/* /: a page to chat on, and to watch the pool with.
 *
 * Its files lie in this program. A browser keeps them, and asks each time whether they are still the same:
 * the ETag is of their bytes, so another version of the gateway is noticed at once and nothing is sent twice.
 * The page needs no key to be read, for it knows nothing; what it asks for does.
 *
 * It shows text that a model made, which may be anything. So the browser is told to run no script but the
 * page's own files, to make no markup of strings, and to speak to nobody but this gateway. */

#include "gateway/page/page.h"

#include <string.h>

#include "gateway/core/gateway.h"
#include "gateway/page/page_files.h"

static const struct exchange_header always[] = {
    {"Cache-Control", "no-cache"}, /* kept, but asked for each time */
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

#define N_ALWAYS (sizeof always / sizeof *always)

bool page_matches(const char *if_none_match, const char *etag)
{
    static const char between[] = ", \t";
    size_t len = strlen(etag);
    for (const char *at = if_none_match; at && *at;) {
        at += strspn(at, between);
        if (*at == '*')
            return true;
        if (strncmp(at, "W/", 2) == 0)
            at += 2;
        if (strncmp(at, etag, len) == 0 && (at[len] == 0 || strchr(between, at[len])))
            return true;
        at += strcspn(at, between);
    }
    return false;
}

static void serve(struct exchange *exchange, const char *name)
{
    struct exchange_header headers[N_ALWAYS + 1];
    struct refusal refusal;
    memcpy(headers, always, sizeof always);
    for (size_t i = 0; i < n_page_files; i++) {
        const struct page_file *file = &page_files[i];
        if (strcmp(file->name, name) != 0)
            continue;
        headers[N_ALWAYS] = (struct exchange_header){"ETag", file->etag};
        if (page_matches(exchange_request_header(exchange, "If-None-Match"), file->etag))
            exchange_reply_lasting(exchange, 304, file->type, (struct bytes){0}, headers, N_ALWAYS + 1);
        else
            exchange_reply_lasting(exchange, 200, file->type, file->data, headers, N_ALWAYS + 1);
        return;
    }
    refuse(&refusal, 404, "not_found", NULL, "the page has no file %.64s", name);
    exchange_refuse(exchange, &refusal);
}

void page_handle(struct exchange *exchange)
{
    serve(exchange, "index.html");
}

void page_handle_file(struct exchange *exchange)
{
    serve(exchange, exchange->rest);
}
