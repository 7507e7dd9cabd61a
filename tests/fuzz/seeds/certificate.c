/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_certificate: the shapes that certificates come in. */

#include <string.h>

#include "tests/fuzz/driver.h"

#define KEY   "#{}.-:+=^!/*?&<>()[]@%$abcdefghijk012345"
#define OTHER "zuA0t=ptrw0C(CjAPZd)wm/0@EIsyN}-G3w=zHim"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        KEY,
        "#   a comment\n\nmetadata\n    name = \"a pool\"\ncurve\n    public-key = \"" KEY
        "\"\n    secret-key = \"" OTHER "\"\n",
        "curve\r\n\tpublic-key = '" KEY "'\r\n",
        "public-key=" OTHER "\nsecret-key=" KEY " # bare\n",
        "\xef\xbb\xbfmetadata\n    public-key = \"no\"\ncurve\n    public-key = \"" KEY "\"\n",
        "curve\n    public-key = \"" KEY "\"\n    public-key = \"" KEY "\"\n",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
