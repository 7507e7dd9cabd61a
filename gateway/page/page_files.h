/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_PAGE_PAGE_FILES_H
#define GATEWAY_PAGE_PAGE_FILES_H

/* The files of the page, embedded at build time: gateway/page/embed writes the array. */

#include "common/bytes.h"

struct page_file {
    const char *name; /* "page.css"; the page itself is "index.html" */
    const char *type; /* its Content-Type */
    const char *etag; /* of its bytes, with the quotes */
    struct bytes data;
};

extern const struct page_file page_files[];
extern const size_t n_page_files;

#endif
