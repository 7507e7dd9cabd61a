/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_tools: a byte that picks the form, one that cuts, then an answer. */

#include <string.h>

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "\x04\x09I look.\n<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"a\": [1, "
        "\"}\\\"\"]}}\n</tool_call>\n",
        "\x04\x05<tool_call>{\"arguments\": \"{\\\"a\\\": 1}\", \"name\": "
        "\"time\"}</tool_call><tool_call>x</tool_call>",
        "\x05\x11[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {}}, {\"name\": \"time\", \"arguments\": "
        "null}]",
        "\x06\x21Plan.<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"rain\", \"parameters\": "
        "{}}\n]"
        "<|END_ACTION|>",
        "\x07\x03{\"name\": \"rain\", \"parameters\": {\"a\": 1}}; {\"name\": \"time\", \"parameters\": {}}",
        "\x07\x08<|python_tag|>{\"type\": \"function\", \"name\": \"Ulm\", \"parameters\": {}} and more",
        "\x05\x20[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {}}] [TOOL_CALLS][] and [TOOL_CALLS] more",
        "\x07\x04{\u201cname\u201d: \u201crain\u201d}",
        "\x04\x02 plain < text [TOOL { ",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
