# SPDX-License-Identifier: MIT
# Completion of quern for fish: verbs, each verb's own options (as its --help says them), then files.

function __quern_names
    quern $argv --help 2>/dev/null | string replace -rf '^  ([a-z]+)  +(.*)$' '$1\t$2'
end

function __quern_options
    set -l words (commandline -opc)[2..]
    set -l verb $words[1]
    test "$verb" = bench; and set verb bench $words[2]
    quern $verb --help 2>/dev/null | string replace -rf '^ {2,6}(?:-[A-Za-z?], )? *(--[a-z-]+)\S* *(.*)$' '$1\t$2'
end

complete -c quern -n __fish_use_subcommand -f -a '(__quern_names) --help --version'
complete -c quern -n '__fish_seen_subcommand_from bench; and test (count (commandline -opc)) -eq 2' -f -a '(__quern_names bench)'
complete -c quern -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -f -a '(__quern_options)'
