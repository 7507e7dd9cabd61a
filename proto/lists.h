/* SPDX-License-Identifier: MIT */
#ifndef PROTO_LISTS_H
#define PROTO_LISTS_H

/* Lists in messages. They borrow: see message.h. */

#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

struct text_list {
    const struct bytes *items;
    size_t n;
};

struct id_list { /* token ids */
    const int32_t *items;
    size_t n;
};

#endif
