/* SPDX-License-Identifier: MIT */
/* See origin.h. An IP address as Host cannot come from DNS: a page whose address has it was served by it. On
 * loopback others are refused all the same, as 0.0.0.0 leads there in some browsers, and nobody needs them.
 */

#include "gateway/http/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define refuse_origin(refusal, field, ...) refuse(refusal, 403, "origin_not_allowed", field, __VA_ARGS__)

static struct bytes trimmed(const char *text)
{
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    return (struct bytes){text, len};
}

static bool same_name(struct bytes a, struct bytes b)
{
    return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static bool is_name(struct bytes name, const char *literal)
{
    return same_name(name, bytes_of_string(literal));
}

/* Whether the name lies below a domain (".local"), or is it. */
static bool is_below(struct bytes name, const char *domain)
{
    size_t len = strlen(domain);
    return is_name(name, domain + 1) ||
           (name.len > len && same_name((struct bytes){(const char *)name.data + name.len - len, len},
                                        bytes_of_string(domain)));
}

/* An address: whether it is one, and one of loopback. */
static void classify(struct origin_authority *authority, bool bracketed)
{
    char text[INET6_ADDRSTRLEN] = "";
    struct in_addr v4;
    struct in6_addr v6;
    if (authority->host.len < sizeof text)
        memcpy(text, authority->host.data, authority->host.len);
    if (bracketed && inet_pton(AF_INET6, text, &v6) == 1) {
        authority->literal = true;
        authority->loopback =
            IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
    } else if (!bracketed && inet_pton(AF_INET, text, &v4) == 1) {
        authority->literal = true;
        authority->loopback = ntohl(v4.s_addr) >> 24 == 127;
    } else if (!bracketed) {
        authority->loopback = is_below(authority->host, ".localhost");
    }
}

static bool parse_port(const char *at, const char *end, int *ret_port)
{
    int port = 0;
    *ret_port = -1;
    if (at == end)
        return true; /* "name:" is the default one */
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || port > 65535)
            return false;
        port = port * 10 + (*at - '0');
    }
    *ret_port = port;
    return port <= 65535;
}

static bool is_host_byte(char c, bool bracketed)
{
    if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))
        return true;
    if (bracketed)
        return c == ':' || c == '.';
    return ((c | 0x20) >= 'g' && (c | 0x20) <= 'z') || c == '-' || c == '.' || c == '_';
}

bool origin_parse(struct bytes text, struct origin_authority *ret_authority)
{
    const char *at = text.data, *end = at + text.len;
    struct origin_authority authority = {.port = -1};
    bool bracketed = at < end && *at == '[';
    const char *host = at += bracketed;
    while (at < end && is_host_byte(*at, bracketed))
        at++;
    authority.host = (struct bytes){host, (size_t)(at - host)};
    if (bracketed && (at == end || *at++ != ']'))
        return false;
    if (authority.host.len == 0 || (at < end && (*at != ':' || !parse_port(at + 1, end, &authority.port))))
        return false;
    if (!bracketed && authority.host.len > 1 && host[authority.host.len - 1] == '.')
        authority.host.len--;
    classify(&authority, bracketed);
    if (bracketed && !authority.literal)
        return false;
    *ret_authority = authority;
    return true;
}

/* The next of a list with commas; false: there is none left. */
static bool next_of(const char **list, struct bytes *ret_item)
{
    if (!*list || !**list)
        return false;
    size_t len = strcspn(*list, ",");
    *ret_item = (struct bytes){*list, len};
    *list += len + ((*list)[len] == ',');
    return true;
}

bool origin_hosts_are_valid(const char *hosts)
{
    struct bytes item;
    struct origin_authority authority;
    size_t len = strlen(hosts);
    if (strcmp(hosts, "*") == 0)
        return true;
    if (len == 0 || hosts[len - 1] == ',')
        return false;
    while (next_of(&hosts, &item))
        if (!origin_parse(item, &authority))
            return false;
    return true;
}

bool origin_cors_is_valid(const char *cors)
{
    const char *colon = strstr(cors, "://");
    struct origin_authority authority;
    return strcmp(cors, "*") == 0 || strcmp(cors, "null") == 0 ||
           (colon && colon > cors && origin_parse(bytes_of_string(colon + 3), &authority));
}

static bool all_hosts(const struct origin_rules *rules)
{
    return rules->hosts && strcmp(rules->hosts, "*") == 0;
}

/* Whether --hosts lists it. An entry without a port is of any, or, of an origin, of its scheme's default. */
static bool is_listed(const struct origin_rules *rules, const struct origin_authority *authority,
                      int default_port)
{
    const char *list = rules->hosts;
    struct bytes item;
    struct origin_authority entry;
    int port = authority->port < 0 ? default_port : authority->port;
    while (next_of(&list, &item)) {
        if (!origin_parse(item, &entry) || !same_name(entry.host, authority->host))
            continue;
        if (default_port < 0 || port == (entry.port < 0 ? default_port : entry.port))
            return true;
    }
    return false;
}

static bool is_listened(const struct origin_rules *rules, const struct origin_authority *host)
{
    struct origin_authority listened;
    return rules->listen && origin_parse(bytes_of_string(rules->listen), &listened) &&
           same_name(listened.host, host->host);
}

/* Whether nobody can register the name in the public DNS. */
static bool is_private(const struct origin_rules *rules, struct bytes name)
{
    return !memchr(name.data, '.', name.len) || is_below(name, ".local") || is_below(name, ".internal") ||
           is_below(name, ".home.arpa") || (rules->machine && is_name(name, rules->machine));
}

static bool is_own_host(const struct origin_rules *rules, const struct origin_authority *host)
{
    if (host->loopback || is_listened(rules, host) || is_listed(rules, host, -1) || all_hosts(rules))
        return true;
    return !rules->loopback && (host->literal || is_private(rules, host->host));
}

/* The default port of an origin's scheme, and what follows the scheme; 0: it is no origin of the web. */
static int split_origin(struct bytes origin, struct bytes *ret_rest)
{
    static const struct {
        const char *scheme;
        int port;
    } schemes[] = {{"http://", 80}, {"https://", 443}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i].scheme);
        if (origin.len <= len || strncasecmp(origin.data, schemes[i].scheme, len) != 0)
            continue;
        *ret_rest = (struct bytes){(const char *)origin.data + len, origin.len - len};
        return schemes[i].port;
    }
    return 0;
}

static bool is_own_origin(const struct origin_rules *rules, const struct origin_authority *host,
                          struct bytes origin)
{
    struct bytes rest;
    struct origin_authority page;
    int default_port = split_origin(origin, &rest);
    if (default_port == 0 || !origin_parse(rest, &page))
        return false;
    if (is_listed(rules, &page, default_port))
        return true;
    int page_port = page.port < 0 ? default_port : page.port;
    return host && same_name(host->host, page.host) &&
           (host->port < 0 ? default_port : host->port) == page_port;
}

static bool every_page(const struct origin_rules *rules)
{
    return rules->cors && strcmp(rules->cors, "*") == 0;
}

static int check_page(const struct origin_rules *rules, const struct origin_claim *claim,
                      const struct origin_authority *host, struct refusal *refusal)
{
    struct bytes origin = trimmed(claim->origin);
    if (every_page(rules) ||
        (rules->cors && origin.len > 0 && bytes_equal(origin, bytes_of_string(rules->cors))) ||
        is_own_origin(rules, host, origin))
        return 0;
    if (is_name(origin, "null"))
        return refuse_origin(
            refusal, "Origin",
            "Origin: null: pages without an origin may not use this gateway, which has no keys "
            "(--cors '*' accepts every page)");
    return refuse_origin(
        refusal, "Origin",
        "Origin: pages of %.*s may not use this gateway, which has no keys (--cors accepts an "
        "origin; --hosts names the gateway behind a proxy)",
        (int)(origin.len < 200 ? origin.len : 200), (const char *)origin.data);
}

/* Whether a person follows a link: the answer is shown to her, and the page that has the link does not see
 * it. */
static bool is_visit(const struct origin_claim *claim)
{
    return (strcmp(claim->method, "GET") == 0 || strcmp(claim->method, "HEAD") == 0) && claim->fetch_mode &&
           is_name(trimmed(claim->fetch_mode), "navigate") && claim->fetch_dest &&
           is_name(trimmed(claim->fetch_dest), "document");
}

static int check_fetch(const struct origin_rules *rules, const struct origin_claim *claim,
                       struct refusal *refusal)
{
    struct bytes site = trimmed(claim->fetch_site);
    if (every_page(rules) || is_visit(claim) || (!is_name(site, "cross-site") && !is_name(site, "same-site")))
        return 0;
    return refuse_origin(refusal, "Sec-Fetch-Site",
                         "Sec-Fetch-Site: pages of other origins may not use this gateway, which has no keys "
                         "(--cors names an origin that may)");
}

int origin_check_host(const char *host, struct refusal *refusal)
{
    struct origin_authority authority;
    return origin_parse(trimmed(host), &authority) ? 0
                                                   : refuse(refusal, 400, "malformed_request", "Host",
                                                            "the Host header is not a host with a port");
}

int origin_check(const struct origin_rules *rules, const struct origin_claim *claim, struct refusal *refusal)
{
    struct origin_authority authority, *host = NULL;
    if (claim->host) {
        if (origin_check_host(claim->host, refusal) != 0)
            return REFUSED;
        origin_parse(trimmed(claim->host), &authority);
        host = &authority;
        if (!is_own_host(rules, host))
            return refuse_origin(refusal, "Host",
                                 "Host: %.*s is not a name of this gateway, which has no keys (--hosts, or "
                                 "--http-hosts of quern serve, lists further names)",
                                 (int)(host->host.len < 200 ? host->host.len : 200),
                                 (const char *)host->host.data);
    }
    if (claim->origin)
        return check_page(rules, claim, host, refusal);
    return claim->fetch_site ? check_fetch(rules, claim, refusal) : 0;
}
