/* SPDX-License-Identifier: MIT */
/* Formats, each a regular expression for texts that every reader of that format takes. */

#include <string.h>

#include "text/grammar/json_schema/strings.h"

#define YEAR "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][48]|[2468]0|[13579][26])00)"
#define DATE                                                                                                 \
    "(" YEAR                                                                                                 \
    "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-"   \
    "8]))|" LEAP "-02-29)"
#define TIME                                                                                                 \
    "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])|"        \
    "23:59:60Z)"
#define LABEL    "[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?"
#define HOST     LABEL "(\\." LABEL "){0,5}"
#define OCTET    "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4     OCTET "\\." OCTET "\\." OCTET "\\." OCTET
#define H        "[0-9a-fA-F]{1,4}"
#define LAST_TWO "(" H ":" H "|" IPV4 ")"
#define IPV6                                                                                                 \
    "((" H ":){6}" LAST_TWO "|::(" H ":){5}" LAST_TWO "|(" H ")?::(" H ":){4}" LAST_TWO "|((" H ":){0,1}" H  \
    ")?::(" H ":){3}" LAST_TWO "|((" H ":){0,2}" H ")?::(" H ":){2}" LAST_TWO "|((" H ":){0,3}" H ")?::" H   \
    ":" LAST_TWO "|((" H ":){0,4}" H ")?::" LAST_TWO "|((" H ":){0,5}" H ")?::" H "|((" H ":){0,6}" H        \
    ")?::)"
#define LOCAL "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*"

/* Of URIs; WIDE is what IRIs have beside ASCII. */
#define WIDE         "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef"
#define PLAIN        "a-zA-Z0-9._~!$&'()*+,;=\\-"
#define CODED        "%[0-9A-Fa-f]{2}"
#define P(w)         "([:@" PLAIN w "]|" CODED ")"
#define SEGMENTS(w)  "(/" P(w) "*)*"
#define REST(w)      "(\\?([/?:@" PLAIN w "]|" CODED ")*)?(#([/?:@" PLAIN w "]|" CODED ")*)?"
#define AUTHORITY(w) "(([:" PLAIN w "]|" CODED ")*@)?(\\[" IPV6 "\\]|([" PLAIN w "]|" CODED ")+)(:[0-9]*)?"
#define SCHEME       "[a-zA-Z][a-zA-Z0-9+.-]*:"
#define URI(w)       SCHEME "(//" AUTHORITY(w) SEGMENTS(w) "|/?(" P(w) "+" SEGMENTS(w) ")?)" REST(w)
#define FIRST(w)     "(([@" PLAIN w "]|" CODED ")+" SEGMENTS(w) ")"
#define REFERENCE(w)                                                                                         \
    "(" URI(w) "|//" AUTHORITY(w) SEGMENTS(w)                                                                \
        REST(w) "|(/(" P(w) "+" SEGMENTS(w) ")?|" FIRST(w) ")?" REST(w) ")"

#define POINTER  "(/([^~/]|~[01])*)*"
#define VARIABLE "([a-zA-Z0-9_]|" CODED ")(\\.?([a-zA-Z0-9_]|" CODED "))*(:[1-9][0-9]{0,3}|\\*)?"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration",
     "P([0-9]{1,9}W|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}D|"
     "([0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}D)?"
     "T([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"email", LOCAL "@" HOST "\\.[a-zA-Z]{2,8}"},
    {"idn-email",
     "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.\\u0080-\\uffff-]+@[a-zA-Z0-9\\u0080-\\uffff]([a-zA-Z0-9.\\u0080-"
     "\\uffff-]*[a-zA-Z0-9\\u0080-\\uffff])?"},
    {"hostname", HOST},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uri", URI("")},
    {"uri-reference", REFERENCE("")},
    {"iri", URI(WIDE)},
    {"iri-reference", REFERENCE(WIDE)},
    {"uri-template",
     "([a-zA-Z0-9._~!$&()*+,;=:/?#@\\[\\]-]|" CODED "|\\{[+#./;?&]?" VARIABLE "(," VARIABLE ")*\\})*"},
    {"json-pointer", POINTER},
    {"relative-json-pointer", "(0|[1-9][0-9]*)(#|" POINTER ")"},
};

const char *schema_format_pattern(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].pattern;
    return NULL;
}
