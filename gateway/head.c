/* SPDX-License-Identifier: MIT */
/* See head.h.
 *
 * libmicrohttpd 1.0 takes apart heads and chunks strictly when it is told to. 0.9 does not, whatever it is
 * told: there the bytes of the head are looked at (framing.c), and since those around chunks cannot be, such
 * a body is the last thing that is read from its connection: wherever its end is, nothing behind it becomes a
 * request. Which of them it is, is known when it runs, as both have the same soname. */

#include "gateway/head.h"

#include <string.h>

#include "gateway/http/framing.h"

static bool library_is_lenient(void)
{
    return strncmp(MHD_get_version(), "0.", 2) == 0;
}

/* That of 0.9 closes the connection over a space in the target without an answer, and demands a Host, which
 * framing.c does too. */
int head_strictness(void)
{
    return library_is_lenient() ? 0 : 1;
}

void *head_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *known = info ? info->socket_context : NULL;
    if (known) {
        known->target_fault = target ? framing_target_fault(target) : "is missing";
        known->target_len = target ? strlen(target) : 0;
    }
    return NULL;
}

/* One walk over the fields. */
struct walk {
    struct framing framing;
    struct refusal *refusal;
    bool refused;
};

static enum MHD_Result walk_field(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                  const char *value, size_t value_len)
{
    struct walk *walk = cls;
    walk->refused = framing_field(&walk->framing, (struct bytes){name, name_len},
                                  (struct bytes){value ? value : "", value_len}, walk->refusal) != 0;
    return walk->refused ? MHD_NO : MHD_YES;
}

static int check_framing(struct exchange *exchange, const struct connection *connection,
                         struct refusal *refusal)
{
    struct walk walk = {.refusal = refusal};
    const struct framing_line line = {exchange->method, exchange->path, exchange->version,
                                      connection->target_len};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t size = !library_is_lenient() ? 0 : info ? info->header_size : strlen(exchange->method);
    if (connection->target_fault)
        return refuse(refusal, 400, "malformed_request", NULL, "the request target %s",
                      connection->target_fault);
    if (framing_begin(&walk.framing, &line, size, refusal) != 0)
        return REFUSED;
    MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, walk_field, &walk);
    if (walk.refused || framing_end(&walk.framing, refusal) != 0)
        return REFUSED;
    if (walk.framing.seen[FRAMING_ENCODING])
        exchange->last = library_is_lenient();
    return 0;
}

int head_judge(struct exchange *exchange, const struct connection *connection,
               const struct origin_rules *rules, struct refusal *refusal)
{
    const struct origin_claim claim = {
        .method = exchange->method,
        .host = exchange_request_header(exchange, MHD_HTTP_HEADER_HOST),
        .origin = exchange_request_header(exchange, MHD_HTTP_HEADER_ORIGIN),
        .fetch_site = exchange_request_header(exchange, "Sec-Fetch-Site"),
        .fetch_mode = exchange_request_header(exchange, "Sec-Fetch-Mode"),
        .fetch_dest = exchange_request_header(exchange, "Sec-Fetch-Dest"),
    };
    if (check_framing(exchange, connection, refusal) != 0 ||
        (claim.host && origin_check_host(claim.host, refusal) != 0)) {
        exchange->last = true;
        return REFUSED;
    }
    return exchange->gateway->keys.n > 0 ? 0 : origin_check(rules, &claim, refusal);
}
