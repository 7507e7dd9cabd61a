/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_tokenizer: a byte that picks the flags and the vocabulary, then text. */

#include "tests/fuzz/driver.h"

#include <string.h>

static const char *const texts[] = {
    "aHello, world! I've paid $1,234.56 (\xe2\x89\x88 \xe2\x82\xac"
    "1.130,00)!\n\n\tabab  aba",
    "b<s>ab<s>a</s> <|im_end|> ab<s ababab",
    "c\xf0\x9f\x9a\x80 (normal) \xf0\x9f\x98\xb6\xe2\x80\x8d\xf0\x9f\x8c\xab\xef\xb8\x8f "
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x80\x82 e\xcc\x81",
    "d  \r\n \n\n  aaaaaaaaaaaaaaaaaaaa 1212121 333 \xd9\xa3\xd9\xa4\xd9\xa5 \xc2\xa0\xe3\x80\x80 x",
    "e\xc3\x80\xc3\x89 \xce\x91\xce\xb1 \xd0\x96\xd0\xb7 \xef\xac\x81 \xe2\x84\xa6 \x01\x7f it's WE'LL",
    "\x7f\xe2\x96\x81 a\xe2\x96\x81",
};

void fuzz_seeds(void)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        fuzz_add_seed(texts[i], strlen(texts[i]));
}
