/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_ORIGIN_H
#define GATEWAY_HTTP_ORIGIN_H

/* Decides which web pages may use a gateway without keys.
 *
 * Any web page can make its visitor's browser send requests to 127.0.0.1, and any public DNS name can be made
 * to resolve to it. So two headers that a page cannot set are checked:
 *
 *   Host    has to be a name of this gateway. On a loopback address these are loopback's: localhost and names
 *           below it, 127.0.0.0/8, [::1]. On another, any IP address, this machine's name, and names that
 *           nobody can register: without a dot, below .local, .internal, .home.arpa. On either, the host of
 *           --listen and what --hosts lists.
 *   Origin  has to be that of the gateway's own page, or named by --cors. Its own has the host and port of
 *           Host, or is listed by --hosts; http and https count as equal, because a proxy in front may
 *           encrypt. Without Origin, Sec-Fetch-Site must not say that another site sent the request, unless
 *           the user followed a link.
 *
 * Programs other than browsers send the Host they connect to and none of the other headers. HTTP/1.0 without
 * a Host is accepted: no browser sends that. */

#include <stdbool.h>

#include "common/bytes.h"
#include "gateway/json/refusal.h"

/* A host and its port, as in Host: name, name:port, [address]:port. */
struct origin_authority {
    struct bytes host; /* without brackets, and without a final dot */
    int port;          /* -1: none */
    bool literal;      /* an IP address */
    bool loopback;     /* a loopback address, or a name for it */
};

/* Parses a Host. False: it is malformed. The result borrows from the text. */
bool origin_parse(struct bytes text, struct origin_authority *ret_authority);

struct origin_rules {
    const char *cors;    /* an origin, or "*" for all; NULL: none */
    const char *hosts;   /* further names of the gateway, NAME[:PORT],…, or "*" for all; NULL: none */
    const char *listen;  /* HOST:PORT of the option */
    const char *machine; /* the machine's name */
    bool loopback;       /* only this machine reaches it */
};

/* The headers of a request; NULL: absent. */
struct origin_claim {
    const char *method, *host, *origin;
    const char *fetch_site, *fetch_mode, *fetch_dest;
};

/* 0, or REFUSED: 403, or 400 if Host is malformed. The text names the header and the option that would allow
 * it. */
int origin_check(const struct origin_rules *rules, const struct origin_claim *claim, struct refusal *refusal);

/* Whether a Host is well-formed, which gateways with keys require too: 0, or REFUSED with 400. */
int origin_check_host(const char *host, struct refusal *refusal);

/* Whether the value of --hosts is valid. */
bool origin_hosts_are_valid(const char *hosts);

/* Whether the value of --cors is valid: "*", "null", or an origin as browsers send it, SCHEME://HOST[:PORT]
 * with nothing after it. No page has any other origin. */
bool origin_cors_is_valid(const char *cors);

#endif
