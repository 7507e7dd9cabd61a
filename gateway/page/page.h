/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_PAGE_PAGE_H
#define GATEWAY_PAGE_PAGE_H

#include <stdbool.h>

#include "gateway/http/exchange.h"

/* GET / and GET /page/FILE. */
void page_handle(struct exchange *exchange);
void page_handle_file(struct exchange *exchange);

/* Whether the value of an If-None-Match (NULL: none was sent) contains this ETag, so that the client already
 * has the file: "*", or a list of tags, including weak ones. */
bool page_matches(const char *if_none_match, const char *etag);

#endif
