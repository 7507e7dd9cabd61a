/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TELEMETRY_ENDPOINT_H
#define GATEWAY_TELEMETRY_ENDPOINT_H

/* Where and with which headers spans are posted. */

#include "common/error.h"
#include "gateway/telemetry/curl_calls.h"

struct endpoint { /* zeroed: none */
    const struct curl_calls *curl;
    char *url;                  /* allocated by libcurl */
    struct curl_slist *headers; /* including those of every POST */
};

/* Reads an http or https URL without credentials (these belong in the file), and the file of headers, or
 * NULL: lines "Name: value", empty lines, and comments after "#"; the file must not be readable by others.
 * /v1/traces is appended to the path if it is missing. 0 or -errno with a reason; -ENOTSUP: there is no
 * libcurl. */
int endpoint_read(const char *url, const char *headers, struct endpoint *ret_endpoint, struct error *err);

void endpoint_deinit(struct endpoint *endpoint);

#endif
