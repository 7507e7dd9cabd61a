/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TELEMETRY_CURL_CALLS_H
#define GATEWAY_TELEMETRY_CURL_CALLS_H

/* Loads libcurl only when spans are exported. Thirteen libraries come with it (Kerberos, LDAP, SSH, RTMP,
 * another TLS): a gateway without a collector neither spends 2 MB on them nor has to trust them. */

#include <curl/curl.h>

#include "common/error.h"

#define CURL_CALLS(CALL)                                                                                     \
    CALL(global_init)                                                                                        \
    CALL(global_cleanup)                                                                                     \
    CALL(easy_init)                                                                                          \
    CALL(easy_setopt)                                                                                        \
    CALL(easy_perform)                                                                                       \
    CALL(easy_getinfo)                                                                                       \
    CALL(easy_strerror)                                                                                      \
    CALL(easy_cleanup)                                                                                       \
    CALL(slist_append)                                                                                       \
    CALL(slist_free_all)                                                                                     \
    CALL(url)                                                                                                \
    CALL(url_set)                                                                                            \
    CALL(url_get)                                                                                            \
    CALL(url_cleanup)                                                                                        \
    CALL(free)

struct curl_calls { /* each member is curl_NAME of its header */
#define MEMBER(name) __typeof__(curl_##name) *name;
    CURL_CALLS(MEMBER)
#undef MEMBER
};

/* The loaded calls, for the life of the process; NULL, with a reason, if libcurl cannot be loaded. Only one
 * thread may call it at a time. */
const struct curl_calls *curl_calls_load(struct error *err);

#endif
