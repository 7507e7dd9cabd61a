/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_ORIGIN_H
#define GATEWAY_HTTP_ORIGIN_H

/* Which pages, in whose browser, may use a gateway that has no keys.
 *
 * Any web page can have its visitor's browser send requests to 127.0.0.1, and any name of the public DNS can
 * be made to resolve to it. So two headers that a page cannot choose are held against rules:
 *
 *   Host    has to be a name of this gateway. On a loopback address these are loopback's: localhost and names
 *           below it, 127.0.0.0/8, [::1]. On another, any IP address, this machine's name, and names that
 *           nobody can register: without a dot, below .local, .internal, .home.arpa. On either, the host of
 *           --listen and what --hosts lists.
 *   Origin  has to be that of the gateway's own page, or what --cors names. Its own has the host and port of
 *           Host, or is listed by --hosts; http and https are not told apart, since a proxy in front may
 *           encrypt. Without Origin, Sec-Fetch-Site may not say that another page asks, unless a person
 *           follows a link there.
 *
 * Programs that are no browsers send the Host they connect to and nothing else of this. HTTP/1.0 without a
 * Host is let in: no browser sends that. */

#include <stdbool.h>

#include "common/bytes.h"
#include "gateway/json/refusal.h"

/* A host and its port, as in Host: name, name:port, [address]:port. */
struct origin_authority {
    struct bytes host; /* without brackets, and without a dot at its end */
    int port;          /* -1: not said */
    bool literal;      /* it is an IP address … */
    bool loopback;     /* … of loopback, or a name that means that */
};

/* False: it is none. What is returned borrows from the text. */
bool origin_parse(struct bytes text, struct origin_authority *ret_authority);

struct origin_rules {
    const char *cors;    /* an origin, or "*" for all; NULL: none */
    const char *hosts;   /* further names of the gateway, NAME[:PORT],…, or "*" for all; NULL: none */
    const char *listen;  /* HOST:PORT as it was asked for */
    const char *machine; /* the machine's name */
    bool loopback;       /* only this machine reaches it */
};

/* What a request says; NULL: nothing. */
struct origin_claim {
    const char *method, *host, *origin;
    const char *fetch_site, *fetch_mode, *fetch_dest;
};

/* 0, or REFUSED: 403, or 400 where Host is malformed. The text names the header and the option that helps. */
int origin_check(const struct origin_rules *rules, const struct origin_claim *claim, struct refusal *refusal);

/* Whether a Host is well-formed at all, which holds for gateways with keys too: 0, or REFUSED with 400. */
int origin_check_host(const char *host, struct refusal *refusal);

/* Whether --hosts is what it should be. */
bool origin_hosts_are_valid(const char *hosts);

#endif
