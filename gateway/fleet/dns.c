/* SPDX-License-Identifier: MIT */
/* See dns.h. */

#include "gateway/fleet/dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

#define PREFIX "dns:"

bool dns_is_place(const char *text)
{
    return strncmp(text, PREFIX, sizeof PREFIX - 1) == 0;
}

static int take_key(struct dns *dns, const char *key, struct error *err)
{
    struct certificate certificate = {0};
    if (!key)
        return error_set(err, -EINVAL, "--fleet dns:… requires --server-key, the key that all pools share");
    int r = certificate_is_key(key) ? certificate_parse(key, strlen(key), "--server-key", &certificate, err)
                                    : certificate_read(key, &certificate, err);
    memcpy(dns->server_key, certificate.public_key, sizeof dns->server_key);
    explicit_bzero(&certificate, sizeof certificate);
    return r;
}

int dns_init(struct dns *dns, const char *place, const char *server_key, struct error *err)
{
    const char *name = place + sizeof PREFIX - 1, *colon = strrchr(name, ':');
    char *end = NULL;
    const unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    *dns = (struct dns){0};
    /* The streams are on the next port. */
    if (!colon || colon == name || colon[1] < '0' || colon[1] > '9' || *end || port < 1 || port > 65534 ||
        (size_t)(colon - name) >= sizeof dns->name)
        return error_set(err, -EINVAL, "--fleet: \"%s\" is not dns:NAME:PORT", place);
    snprintf(dns->name, sizeof dns->name, "%.*s", (int)(colon - name), name);
    snprintf(dns->port, sizeof dns->port, "%lu", port);
    return take_key(dns, server_key, err);
}

void dns_deinit(struct dns *dns)
{
    free(dns->heard);
    free(dns->members);
    *dns = (struct dns){0};
}

/* ---- answers ---- */

/* False for what is no address of a host. */
static bool fill(const struct dns *dns, const struct sockaddr *address, struct member *member)
{
    char text[INET6_ADDRSTRLEN];
    const bool is_v6 = address->sa_family == AF_INET6;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    if ((!is_v6 && address->sa_family != AF_INET) || (is_v6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)))
        return false;
    inet_ntop(address->sa_family, is_v6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, text,
              sizeof text);
    *member = (struct member){0};
    snprintf(member->name, sizeof member->name, "%s", text);
    for (char *c = member->name; (c = strchr(c, ':'));) /* no character of a member's name */
        *c = '-';
    snprintf(member->file.connect, sizeof member->file.connect, is_v6 ? "tcp://[%s]:%s" : "tcp://%s:%s", text,
             dns->port);
    memcpy(member->file.server_key, dns->server_key, sizeof member->file.server_key);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

/* Sorted, each once. NULL: out of memory. */
static struct member *members_of(const struct dns *dns, const struct addrinfo *answer, size_t *ret_n)
{
    size_t n = 0, kept = 0;
    struct member *members = calloc(FLEET_MEMBERS, sizeof *members);
    for (; members && answer && n < FLEET_MEMBERS; answer = answer->ai_next)
        n += fill(dns, answer->ai_addr, &members[n]);
    if (n > 0)
        qsort(members, n, sizeof *members, by_name);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || by_name(&members[kept - 1], &members[i]) != 0)
            members[kept++] = members[i];
    *ret_n = kept;
    return members;
}

static bool none(struct dns *dns, const char *reason)
{
    if (!dns->troubled)
        log_warn("fleet: %s: %s; keeping the current members", dns->name, reason);
    dns->troubled = true;
    return false;
}

static bool is_same(const struct member *a, size_t n_a, const struct member *b, size_t n_b)
{
    return a && b && n_a == n_b && memcmp(a, b, n_a * sizeof *a) == 0;
}

/* The list that was heard counts. */
static bool adopt(struct dns *dns)
{
    struct member *copy = calloc(dns->n_heard, sizeof *copy);
    if (!copy)
        return false; /* the next answer may find memory */
    memcpy(copy, dns->heard, dns->n_heard * sizeof *copy);
    free(dns->members);
    dns->members = copy;
    dns->n_members = dns->n_heard;
    return true;
}

bool dns_take(struct dns *dns, const struct addrinfo *answer, const char *reason)
{
    size_t n;
    if (!answer)
        return none(dns, reason);
    struct member *members = members_of(dns, answer, &n);
    if (!members || n == 0) {
        free(members);
        return none(dns, members ? "it has no address" : "out of memory");
    }
    if (dns->troubled)
        log_info("fleet: %s has addresses again", dns->name);
    dns->troubled = false;
    const bool twice = is_same(members, n, dns->heard, dns->n_heard);
    free(dns->heard);
    dns->heard = members;
    dns->n_heard = n;
    return !dns->members || twice ? adopt(dns) : true;
}

bool dns_look(struct dns *dns)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *answer = NULL;
    const int r = getaddrinfo(dns->name, dns->port, &hints, &answer);
    const bool known =
        dns_take(dns, r == 0 ? answer : NULL, r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
    if (r == 0)
        freeaddrinfo(answer);
    return known;
}

int dns_members(const struct dns *dns, struct member **ret_members, size_t *ret_n)
{
    struct member *copy = calloc(dns->n_members + 1, sizeof *copy);
    if (!copy)
        return -ENOMEM;
    if (dns->n_members > 0)
        memcpy(copy, dns->members, dns->n_members * sizeof *copy);
    *ret_members = copy;
    *ret_n = dns->n_members;
    return 0;
}
