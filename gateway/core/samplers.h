/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_SAMPLERS_H
#define GATEWAY_CORE_SAMPLERS_H

/* llama-server's `samplers`: names of the samplers to use. Their order has no effect here. */

#include "gateway/core/parameters.h"

/* An array of names; unknown names are rejected. parameters_finish turns off samplers that are not listed. */
json_row_take samplers_take;

#endif
