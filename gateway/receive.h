/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_RECEIVE_H
#define GATEWAY_RECEIVE_H

/* libmicrohttpd's callbacks while a request arrives and after its answer was sent. */

#include <microhttpd.h>

#include "gateway/core/connection.h"
#include "gateway/core/gateway.h"
#include "gateway/http/origin.h"

struct receiver {
    struct gateway *gateway;
    struct connections connections;
    struct origin_rules origins;
    bool closing; /* no more requests are begun: libmicrohttpd aborts if it stops with suspended connections
                   */
};

/* MHD_AcceptPolicyCallback, MHD_AccessHandlerCallback, MHD_RequestCompletedCallback and
 * MHD_NotifyConnectionCallback; cls is the receiver. */
enum MHD_Result receive_accept(void *cls, const struct sockaddr *from, socklen_t len);
enum MHD_Result receive_access(void *cls, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data, size_t *len,
                               void **exchange);
void receive_completed(void *cls, struct MHD_Connection *connection, void **exchange,
                       enum MHD_RequestTerminationCode how);
void receive_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode what);

#endif
