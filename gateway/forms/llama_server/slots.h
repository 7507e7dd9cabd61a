/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_LLAMA_SERVER_SLOTS_H
#define GATEWAY_FORMS_LLAMA_SERVER_SLOTS_H

#include "gateway/http/exchange.h"

/* GET /slots: the slots of all workers in one list, and the requests in them. With ?fail_on_no_slot=1, 503 if
 * all are in use. */
exchange_handler slots_handle;

#endif
