/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_JINJA_FILTERS_H
#define WORKER_MODEL_JINJA_FILTERS_H

/* Filters of lists and mappings (filters_list.c); jinja_find_filter asks them last. */

#include "worker/model/jinja/value.h"

jinja_function *jinja_find_list_filter(struct bytes name);

#endif
