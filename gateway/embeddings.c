/* SPDX-License-Identifier: MIT */
/* See embeddings.h. 400 and not 501: clients try again what is a server's fault. */

#include "gateway/embeddings.h"

void embeddings_handle(struct exchange *exchange)
{
    struct refusal refusal;
    refuse(&refusal, 400, "unsupported_endpoint", NULL,
           "/v1/embeddings is not supported: this pool serves text generation only");
    exchange_refuse(exchange, &refusal);
}
