/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_chat: templates that use each part of the language. */

#include "tests/fuzz/driver.h"

#include <string.h>

static const char *const templates[] = {
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% "
    "endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}\n=====\nHello, who are you?",
    "{%- if messages[0]['role'] == 'system' -%}{%- set system = messages[0]['content'] | trim -%}\n"
    "{%- set messages = messages[1:] %}\n{% else %}{% set system = '' %}{% endif -%}\n"
    "{% for message in messages %}{% if loop.first and system is defined %}[INST] {{ system + '\\n\\n' }}"
    "{{ message['content'] or 'none' }} [/INST]{% elif message.role not in ['user', 'assistant'] %}"
    "{{ raise_exception('no role ' ~ message.role) }}{% else %}{{ message.content ~ eos_token }}{% endif "
    "%}{% endfor %}",
    "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x | items %}{{ k }}: {{ show(v, depth + "
    "1) }}"
    "{% endfor %}{% elif x is string %}{{ x | upper }}{% else %}{{ x | tojson(indent=2) }}{% endif %}{% "
    "endmacro %}"
    "{% set ns = namespace(n=0, seen=[]) %}{% for m in messages if m.role != 'system' %}{% set ns.n = ns.n + "
    "1 %}"
    "{% set ns.seen = ns.seen + [m.role] %}{{ show(m) }}{% if ns.n > 1 %}{% break %}{% endif %}{% endfor %}"
    "{{ ns.seen | join(', ') }}{{ ns.n ** 2 // 3 % 5 / 2 - 1.5 }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | last }}"
    "{{ messages | map('length') | sum }}{{ messages | length is odd }}{{ (messages | first).role.split('s') "
    "}}"
    "{{ strftime_now('%d %b %Y') }}{% set t | replace('a', 'b') | title %} a b {% endset %}{{ t[::-1] }}{{ "
    "t[1:-1] }}"
    "{{ messages[1].content | default('x', true) | indent(3, true) | e }}{{ [3, 1, 2] | sort | reverse | "
    "list }}",
    "{% filter lower %}A{{ messages[1].content }}{% endfilter %}{# note -#}  {% raw %}{{ x }}{% endraw %}"
    "{{ {'b': [1, none, true], 'a': 'x'} | dictsort }}{{ 'a' if 1 < 2 <= 3 else 'b' }}{{ range(3, 0, -1) | "
    "unique }}"
    "{{ messages[2].tool_calls[0].arguments | tojson }}{{ not -1 | abs is even and none is none }}",
    "{% macro each(l) %}{% for x in l %}{{ caller(x, loop.cycle('a', 'b')) }}{% endfor %}{% endmacro %}"
    "{% call(m, c='z') each(messages) %}{{ c }}{{ m.role.center(9, '*') }}{% endcall %}{% with a = 1, b = "
    "(2, "
    "'x') %}"
    "{{ '{0:>4}{1!r:*^9}{2[1]:.3f}'.format(a, b, [1, 2]) }}{{ '%s-%05.1f|%(x)s' % (a, 2.5) }}{% endwith %}",
    "{{ 'a <b>' | safe + messages[1].content }}{{ messages[1].content.partition(' ') }}{{ 'a,b'.rsplit(',', "
    "1) "
    "}}"
    "{% block x %}{{ 'ab'.replace('', '-') }}{{ none | selectattr('a') | list }}{{ [1, 2, 3] | batch(2, 0) }}"
    "{% endblock %}{{ 'abc'.rfind('c', 1) }}{{ 'x'.zfill(5) }}{{ '%d%%' | format(3) }}{{ [1, 'a'] | "
    "tojson(separators=(',', ':')) }}{{ messages | groupby('role') | list | length }}{{ "
    "'a\\nb'.splitlines(true) "
    "}}",
};

void fuzz_seeds(void)
{
    for (size_t i = 0; i < sizeof templates / sizeof templates[0]; i++)
        fuzz_add_seed(templates[i], strlen(templates[i]));
}
