/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_PARAMETERS_H
#define CLIENT_LIB_REQUESTS_PARAMETERS_H

/* Private to libquern: numeric parameters, from quern.h's struct to the protocol's. */

#include <quern.h>

#include "proto/message.h"

/* Copy all of them, and nothing else. */
void parameters_to_generation(const struct quern_request *request, struct generation *generation);
void parameters_from_generation(const struct generation *generation, struct quern_request *request);

#endif
