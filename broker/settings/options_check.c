/* SPDX-License-Identifier: MIT */
/* Each value is in its range by now; these are the pairs. Whoever gives a key expects a pool on the network,
 * and an encrypted one, so a setting that would have no effect is an error. */

#include "broker/settings/options_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "common/number.h"
#include "common/system/listen.h"

int options_split_tcp(const char *tcp, char ret_host[OPTIONS_TEXT_MAX + 1], uint16_t *ret_port,
                      bool *ret_loopback, struct error *err)
{
    const char *colon = strrchr(tcp, ':');
    uint32_t port;
    /* Streams are on the port after it. */
    if (!colon || colon == tcp || colon - tcp > OPTIONS_TEXT_MAX ||
        number_read_u32(colon + 1, 1, 65534, &port, NULL) < 0)
        return error_set(err, -EINVAL, "tcp: \"%.80s\" is not HOST:PORT with a port from 1 to 65534", tcp);
    size_t len = (size_t)(colon - tcp);
    memcpy(ret_host, tcp, len);
    ret_host[len] = 0;
    *ret_port = (uint16_t)port;
    /* A name may resolve to anything, so only localhost and addresses count. */
    struct in_addr address;
    *ret_loopback = strcmp(ret_host, "localhost") == 0 || strcmp(ret_host, "[::1]") == 0 ||
                    (inet_pton(AF_INET, ret_host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
    return 0;
}

int options_check_guarded(const struct options *options, struct error *err)
{
    if (options->curve_key[0] == 0)
        return error_set(err, -EPERM, "tcp: %s is not a loopback address: give --curve-key or use 127.0.0.1",
                         options->tcp);
    if (options->client_keys[0] == 0 && !options->any_client)
        return error_set(err, -EPERM,
                         "tcp: %s is not a loopback address: give --client-keys, a folder of accepted keys, "
                         "or accept any client that knows the server's key (--any-client)",
                         options->tcp);
    return 0;
}

static int check_tcp(const struct options *options, struct error *err)
{
    char host[OPTIONS_TEXT_MAX + 1];
    uint16_t port;
    bool loopback;
    int r = options_split_tcp(options->tcp, host, &port, &loopback, err);
    return r < 0 || loopback ? r : options_check_guarded(options, err);
}

/* What bears on HTTP takes HTTP. */
static int check_http(const struct options *options, struct error *err)
{
    const struct {
        const char *name, *value;
    } parts[] = {{"http-keys", options->http_keys},
                 {"http-hosts", options->http_hosts},
                 {"http-tls-cert", options->http_tls_cert},
                 {"http-tls-key", options->http_tls_key},
                 {"http-log", options->http_log},
                 {"http-otlp", options->http_otlp},
                 {"http-otlp-headers", options->http_otlp_headers},
                 {"http-cors", options->http_cors},
                 {"http-open", options->http_open ? "1" : ""},
                 {"http-max-tokens", options->http_max_tokens ? "1" : ""},
                 {"http-body-kb", options->http_body_kb ? "1" : ""},
                 {"http-sse-ping", options->has_http_sse_ping ? "1" : ""},
                 {"http-thinking-budget", options->has_http_thinking_budget ? "1" : ""}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !options->http[0]; i++)
        if (parts[i].value[0])
            return error_set(err, -EINVAL, "%s: requires http", parts[i].name);
    if (!options->http_tls_cert[0] != !options->http_tls_key[0])
        return error_set(err, -EINVAL, "http-tls-cert and http-tls-key must be given together");
    if (options->http_otlp_headers[0] && !options->http_otlp[0])
        return error_set(err, -EINVAL, "http-otlp-headers: requires http-otlp");
    bool named = options->http[0] && strcmp(options->http, OPTIONS_HTTP_AUTO) != 0;
    int r = named ? listen_check(options->http, err) : 0;
    return r < 0 ? error_prefix(err, r, "http") : 0;
}

/* What stands in an endpoint before the port. */
static int check_public_host(const char *host, struct error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t len = strlen(host);
    if (host[0] != '[' && host[strspn(host, letters)] == 0)
        return 0;
    struct in6_addr address;
    char inner[OPTIONS_TEXT_MAX + 1] = "";
    if (host[0] == '[' && host[len - 1] == ']')
        memcpy(inner, host + 1, len - 2);
    if (inet_pton(AF_INET6, inner, &address) == 1)
        return 0;
    return error_set(err, -EINVAL,
                     "public-host: \"%.80s\" is neither a name nor an address (IPv6 in brackets)", host);
}

/* Gateways have to reach it, and to know it by its key. */
static int check_member(const struct options *options, struct error *err)
{
    if (!options->member[0])
        return 0;
    if (!options->tcp[0] || !options->curve_key[0])
        return error_set(err, -EINVAL, "member: requires tcp and curve-key");
    const char *colon = strrchr(options->tcp, ':');
    const struct bytes host = {options->tcp, colon ? (size_t)(colon - options->tcp) : 0};
    if (!options->public_host[0] && listen_is_wildcard(host))
        return error_set(err, -EINVAL, "member: tcp is %s, so public-host must say how to reach this host",
                         options->tcp);
    return 0;
}

static int check_network(const struct options *options, struct error *err)
{
    int r = options->tcp[0] ? check_tcp(options, err) : 0;
    if (r == 0 && options->public_host[0])
        r = check_public_host(options->public_host, err);
    if (r < 0)
        return r;
    if (options->public_host[0] && !options->tcp[0])
        return error_set(err, -EINVAL, "public-host: requires tcp");
    if (options->curve_key[0] && !options->tcp[0])
        return error_set(err, -EINVAL, "curve-key: requires tcp");
    if (options->any_client && options->client_keys[0])
        return error_set(err, -EINVAL, "any-client and client-keys exclude each other");
    if (options->client_keys[0] && !options->curve_key[0])
        return error_set(err, -EINVAL, "client-keys: requires curve-key");
    return check_member(options, err);
}

int options_check(const struct options *options, struct error *err)
{
    int r = check_network(options, err);
    if (r == 0 && options->invariant && options->cublas[0] && strcmp(options->cublas, "off") != 0)
        r = error_set(err, -EINVAL,
                      "cublas and invariant exclude each other: cuBLASLt's results depend on the number of "
                      "rows in a step");
    return r < 0 ? r : check_http(options, err);
}
