/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_dialect: a byte that picks the dialect, one that cuts, then an answer. */

#include <string.h>

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "\x05\x09<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"a\": "
        "[1, "
        "\"}\\\"\"]}}\n</tool_call>\n",
        "\x05\x05<tool_call>{\"arguments\": \"{\\\"a\\\": 1}\", \"name\": "
        "\"time\"}</tool_call><tool_call>x</tool_call>",
        "\x06\x11So <tool_call><function=rain>\n<parameter=town>\nUlm "
        "<b>\n</parameter>\n<parameter=days>\n[1, 'a']\n"
        "</parameter></function></tool_call> more",
        "\x06\x04<tool_call><function=<parameter=>\n",
        "\x07\x03<|c|>[rain(town='it\\'s', deep={'a': (1, None)}), time()]<|e|>",
        "\x07\x08 text <|c|>[rain(town='",
        "\x08\x02<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.rain "
        "<|constrain|>json<|message|>{\"town\": \"Ulm\"}",
        "\x08\x09 to=functions.time<|channel|>json<|message|>{}",
        "\x08\x09<|channel|>analysis to=functions.rain<|message|>so "
        "to=functions.time<|channel|>json<|message|>{}",
        "\x09\x03rain\n{\"a\": 1}>>>time\n{}",
        "\x09\x06all\nHello >>>rain\n{\"b\": \"}\"}",
        "\x85\x02{\"calls\":{\"head\":\"<call>{\\\"name\\\": \\\"\",\"middle\":\"\\\", "
        "\\\"arguments\\\": "
        "\",\"tail\":\"}</call>\",\"between\":\"\\n\",\"name_key\":\"name\",\"arguments_key\":"
        "\"arguments\"},\"thoughts\":{\"open\":\"<t>\",\"close\":\"</"
        "t>\",\"usual\":\"thought\",\"switch_on\":{\"a\":1}}}\x06"
        "<t>Hm.</t>So<call>{\"name\": \"rain\", \"arguments\": {\"a\": 1}}</call>",
        "\x86\x02{\"calls\":{\"arguments\":\"members\",\"open\":\"<c>\",\"head\":\"<f=\",\"middle\":\">"
        "\\u0003\","
        "\"tail\":\"</f>\",\"close\":\"</c>\",\"between\":\",\",\"before_key\":\"<p=\",\"to_text\":\" s>\","
        "\"behind_text\":\"</\\u0004>\",\"to_other\":\" "
        "\\u0005>\",\"behind_other\":\"</p>\",\"separator\":\";\","
        "\"quoted\":true,\"python\":true,\"cdata\":true},\"content\":{\"open\":\"<a>\",\"close\":\"</"
        "a>\"}}\x06"
        "<a>So</a><c><f=rain>1<p=town s>Ulm</town>;<p=days integer>2</p></f>,<f=time>2</f></c>",
        "\x87\x02{\"calls\":{\"unknown\":\"it knows none\"},\"thoughts\":{\"unknown\":\"neither\"}}\x06text",
        "\x05\x02 plain < text <think [TOOL { ",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
