/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_grammar: a kind, a grammar, a zero byte and the beginning of an answer. */

#include <string.h>

#include "tests/fuzz/driver.h"

#define SEED(kind, grammar, answer)                                                                          \
    {                                                                                                        \
        kind grammar "\0" answer, sizeof(kind grammar "\0" answer) - 1                                       \
    }

void fuzz_seeds(void)
{
    static const struct {
        const char *data;
        size_t len;
    } seeds[] = {
        SEED("\x04", "root ::= a | b # one\na ::= \"x\\n\" [^a-c\\x41]* .\nb ::= (\"é\" b)? | [0-9]{2,5}\n",
             "éé1"),
        SEED("\x04", "root ::= \"(\" root* \")\" | \"\\\"\" [a-z\\u00e9-\\U0001F600]+ \"\\\"\"", "((\"az"),
        SEED("\x04", "root ::= root \"a\"\n", ""),
        SEED("\x04", "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"", "aaaaaaaa"),
        SEED("\x04",
             "root ::= \"<\" a \">\" | (%json {\"enum\":[1,\"}\"]})+\na ::= "
             "%json{\"properties\":{\"b\":{\"$ref\":"
             "\"#\"}}} \"x\"?\n",
             "<{\"b\":"),
        SEED("\x05", "", "{\"a\": [1, -2.5e3, {\"b\":\"\\u00e9\""),
        SEED("\x06",
             "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":5},\"b\":{"
             "\"items\":{\"$ref\":\"#/$defs/"
             "c\"},\"minItems\":1}},\"required\":[\"b\"],\"additionalProperties\":{\"type\":\"null\"},\"$"
             "defs\":{\"c\":{\"anyOf\":["
             "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":120},{\"enum\":[\"x\",null]},{\"format\":"
             "\"date\"}]}}}",
             "{\"a\":\"é\",\"b\":[1"),
        SEED("\x06",
             "{\"allOf\":[{\"pattern\":\"^[a-z]+\\\\d$\"},{\"type\":[\"string\",\"null\"]}],\"prefixItems\":["
             "true]}",
             "\"ab"),
        SEED("\x06", "{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":1000}", "0.0"),
        SEED("\x06",
             "{\"type\":\"object\",\"properties\":{\"a\":{\"multipleOf\":0.5},\"b\":{\"type\":\"null\"},"
             "\"c\":{}},"
             "\"required\":[\"b\"],\"patternProperties\":{\"^x\":{\"not\":{\"type\":\"integer\"}}},"
             "\"maxProperties\":3,"
             "\"dependentRequired\":{\"a\":[\"c\"]}}",
             "{\"b\":null,\"xy\":1.5"),
        SEED("\x06",
             "{\"type\":\"array\",\"contains\":{\"const\":3},\"maxContains\":2,\"items\":{\"enum\":[1,3,"
             "\"a\"]},"
             "\"oneOf\":[{\"minItems\":2},{\"maxItems\":3}],\"unevaluatedItems\":false}",
             "[3,\"a\""),
        SEED("\x06",
             "{\"type\":\"array\",\"items\":{\"enum\":[true,null,{\"a\":[]}]},\"uniqueItems\":true,"
             "\"minItems\":1}",
             "[null,{\"a\":[]}"),
        SEED("\x07", "(a|b)*[^c-f]{1,3}\\d+(?:x|\\.)?", "abz1"),
        SEED("\x07", "^\\w+@[a-z]{2,}\\.(org|net)$|", "a@b"),
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i].data, seeds[i].len);
}
