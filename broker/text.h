/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TEXT_H
#define BROKER_TEXT_H

/* Makes a zero-terminated text fit for a message: bytes that are not UTF-8 (a character cut in half, whatever
 * a dying process wrote) and control characters become "?". Returns it. */
char *text_clean(char *text);

#endif
