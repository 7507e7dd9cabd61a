/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_STRINGS_H
#define TEXT_GRAMMAR_JSON_SCHEMA_STRINGS_H

/* A regular expression for a whole text of this format, in the dialect of regex.h; NULL: not supported. */
const char *schema_format_pattern(const char *name);

#endif
