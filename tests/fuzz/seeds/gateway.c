/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_gateway: a body with every parameter, and some that are refused. */

#include <string.h>

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "{\"model\": \"m\", \"messages\": [{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"user\", "
        "\"content\": [{\"type\": \"text\", \"text\": \"b\\u00e9\\ud83d\\ude00\"}], \"name\": \"n\"}, "
        "{\"role\": "
        "\"assistant\", \"content\": \"\"}], \"max_completion_tokens\": 7, \"temperature\": 0.5, \"top_p\": "
        "1, "
        "\"top_k\": 3, \"min_p\": 5e-1, \"seed\": -1, \"stop\": [\"x\", \"y\"], \"n\": 2, \"logit_bias\": "
        "{\"5\": "
        "-100, \"6\": 1.5}, \"stream\": true, \"stream_options\": {\"include_usage\": true}, \"tools\": []}",
        "{\"prompt\": [1, 2, 3], \"max_tokens\": 5, \"presence_penalty\": -2, \"frequency_penalty\": 2, "
        "\"repetition_penalty\": 1.5, \"echo\": false, \"best_of\": 1}",
        "{\"prompt\": \"a\", \"repeat_last_n\": 9, \"penalize_nl\": false, \"mirostat\": 0, \"typical_p\": "
        "1.0, "
        "\"top_k\": -1, \"max_tokens\": -1, \"stop_token_ids\": [], \"repeat_penalty\": 1.1}",
        "{\"messages\": [{\"role\": \"user\", \"content\": []}], \"modalities\": [\"text\"], "
        "\"reasoning_effort\": \"none\", \"chat_template_kwargs\": {}}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"think\": false, \"truncate\": true, "
        "\"options\": {\"tfs_z\": 1, \"repeat_last_n\": 64, \"penalize_newline\": true}}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"thinking\": {\"type\": \"disabled\"}}",
        "{\"prompt\": \"a\", \"stop\": \"b\", \"user\": \"c\", \"stream\": false}",
        "{\"model\": \"m:latest\", \"prompt\": \"a\", \"system\": \"b\", \"raw\": true, \"stream\": false, "
        "\"keep_alive\": "
        "\"5m\", \"options\": {\"num_predict\": -1, \"seed\": 1, \"num_ctx\": 2048, \"stop\": [\"c\"]}}",
        "{\"max_tokens\": 5, \"system\": [{\"type\": \"text\", \"text\": \"a\"}], \"stop_sequences\": "
        "[\"b\"], "
        "\"messages\": [{\"role\": \"user\", \"content\": \"c\"}], \"metadata\": {}}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": \"required\", "
        "\"parallel_tool_calls\": false, \"tools\": [{\"type\": \"function\", \"function\": {\"name\": "
        "\"a.b\", "
        "\"strict\": true, \"parameters\": {\"type\": \"object\", \"properties\": {\"c\": {\"enum\": "
        "[1]}}}}}, "
        "{\"function\": {\"name\": \"d\"}}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": {\"type\": "
        "\"allowed_tools\", "
        "\"allowed_tools\": {\"mode\": \"auto\", \"tools\": [{\"type\": \"function\", \"function\": "
        "{\"name\": "
        "\"a\"}}]}}, \"response_format\": {\"type\": \"json_object\"}, \"tools\": [{\"function\": {\"name\": "
        "\"a\"}}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 5, \"tool_choice\": "
        "{\"type\": "
        "\"tool\", \"name\": \"a\", \"disable_parallel_tool_use\": true}, \"tools\": [{\"name\": \"a\", "
        "\"input_schema\": {\"$ref\": \"#/b\", \"b\": {\"anyOf\": [{}]}}}]}",
        "{\"input\": [\"a\", [1, 2], \"b\"], \"model\": \"m\", \"encoding_format\": \"base64\", "
        "\"dimensions\": 64, \"user\": \"c\"}",
        "{\"query\": \"q\", \"documents\": [\"a\", {\"text\": \"b\"}], \"top_n\": 1, \"return_documents\": "
        "true}",
        "{\"text_1\": [\"a\", \"b\"], \"text_2\": [\"c\", \"d\"], \"priority\": -1}",
        "{\"input\": [1, 2, 3], \"truncate\": false, \"options\": {\"num_ctx\": 5}}",
        "{\"n\": 1, \"n\": 2}",
        "{\"prompt\": \"a\\u0000\"}",
        "{\"prompt\": NaN, \"a\": 1e999, \"b\": 99999999999999999999}",
        "[[[[[[[[[[[[[[[[{\"a\": [{}]}]]]]]]]]]]]]]]]]",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
