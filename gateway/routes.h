/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

/* Which handler answers which path and method. */

#include "gateway/http/exchange.h"

struct route {
    const char *method; /* "GET" also answers HEAD */
    const char *path;   /* one that ends with a slash and stands for all below it has `prefix` */
    exchange_handler *handler;
    enum family family;
    bool prefix;
    bool free; /* needs no key */
};

/* 0 and the route; or REFUSED: 404, or 405 with the methods that the path knows in ret_allowed (else ""). The
 * family is set in any case: in its form the refusal is told. *ret_rest: what follows a prefix. */
int routes_find(const char *method, const char *path, const struct route **ret_route, const char **ret_rest,
                enum family *ret_family, char ret_allowed[32], struct refusal *refusal);

#endif
