/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_modelfiles: one file; parts, of which one is missing; names that speak of no part after all;
 * a folder. */

#include "tests/fuzz/driver.h"

#include <string.h>

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "2model.gguf\nother.gguf",
        "0model.gguf",
        "2m-00001-of-00003.gguf\nm-00003-of-00003.gguf\nm-00002-of-00003.gguf\nm-00004-of-00003.gguf\n",
        "2m-00001-of-00003.gguf\nn-00002-of-00003.gguf\nm-00002-of-00004.gguf\nm-2-of-3.gguf\n",
        "2-00001-of-00002.gguf\n-00002-of-00002.gguf\n",
        "2m-00001-of-01024.gguf\nm-01024-of-01024.gguf\nm-00513-of-01024.gguf\n",
        "2m-00001-of-01025.gguf\nm-00002-of-01025.gguf\n",
        "2m-00001-of-00000.gguf\nm-00001-of-99999.gguf\nm-00001-of-00001.gguf\n",
        "0m-00001-of-00002.gguf\nm-00002-of-00002.gguf",
        "2m-00002-of-00002.gguf\nm-00001-of-00002.gguf\n",
        "2m-00001-of- 0002.gguf\nm-00002-of-00002.gguf\nm-00002-of- 0002.gguf\n",
        "1model\nconfig.json\n.git\nmodel-00001-of-00002.safetensors\nmodel-00002-of-00002.safetensors\n"
        "tokenizer.json\n.safetensors\n",
        "1model",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
