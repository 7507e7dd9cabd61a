/* SPDX-License-Identifier: MIT */
/* A shared object that is no plugin. */

extern const int nothing;
const int nothing = 1;
