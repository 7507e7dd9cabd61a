/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_PARAMETERS_H
#define CLIENT_LIB_REQUESTS_PARAMETERS_H

/* Private to libquern: copies numeric parameters between quern.h's struct and the protocol's. */

#include <quern.h>

#include "proto/message.h"

/* Copy these parameters, and nothing else. */
void parameters_to_generation(const struct quern_request *request, struct generation *generation);
void parameters_from_generation(const struct generation *generation, struct quern_request *request);

#endif
