/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_SAMPLERS_H
#define GATEWAY_CORE_SAMPLERS_H

/* llama-server's `samplers`: the names of those that take part. Their order has no effect here. */

#include "gateway/core/parameters.h"

/* An array of names; one that is not known is refused. parameters_finish turns off those that it lacks. */
json_row_take samplers_take;

#endif
