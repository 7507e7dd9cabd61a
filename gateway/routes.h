/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

/* The handler for each path and method. */

#include "gateway/http/exchange.h"

struct route {
    const char *method; /* "GET" also answers HEAD */
    const char *path;   /* with `prefix`: ends with a slash and matches everything below it */
    exchange_handler *handler;
    enum family family;
    bool prefix;
    bool free; /* needs no key */
};

/* 0 and the route; or REFUSED: 404, or 405 with the path's methods in ret_allowed (else ""). The family,
 * which determines the form of errors, is always set. *ret_rest: the part after a prefix. */
int routes_find(const char *method, const char *path, const struct route **ret_route, const char **ret_rest,
                enum family *ret_family, char ret_allowed[32], struct refusal *refusal);

#endif
