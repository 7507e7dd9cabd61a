# SPDX-License-Identifier: MIT
# Completion of quern for fish: verbs, each verb's own options and what they take (as its --help says them),
# then files.

function __quern_names
    quern $argv --help 2>/dev/null | string replace -rf '^  ([a-z]+)  +(.*)$' '$1\t$2'
end

function __quern_verb
    set -l words (commandline -opc)[2..]
    echo $words[1]
    test "$words[1]" = bench; and echo $words[2]
end

function __quern_options
    quern (__quern_verb) --help 2>/dev/null | string replace -rf '^ {2,6}(?:-[A-Za-z?], )? *(--[a-z-]+)\S* *(.*)$' '$1\t$2'
end

# The name of an option of the verb, and the kind of its value in a second line; nothing if it takes none.
function __quern_option
    quern (__quern_verb) --help 2>/dev/null | string replace -rf '^ {2,6}(?=\S)(?:-.*, )?'$argv[1]'(?:[=, ].*|)$' '$0' |
        string replace -rf '^[^=]*?(--[a-z-]+)=([A-Z:]+).*$' '$1\n$2' | string split \n
end

# The words that a verb's help lists behind a text.
function __quern_listed -a verb text up_to
    quern $verb --help 2>/dev/null | string join ' ' | string replace -ra ' +' ' ' |
        string replace -rf ".*$text *([^:;()]*)$up_to.*" '$1' | string replace -ra ',|\. |\.$| or ' ' ' | string split -n ' '
end

# What the word at the cursor is: "words" and the words, "none", "options" or "files".
function __quern_expected
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -l option (string replace -rf '^(--[a-z-]+)=.*$' '$1' -- $token)
    set -l before ''
    if test -n "$option"
        set before "$option="
    else if string match -q -- '-?*' $words[-1]
        set option $words[-1]
    end
    set -l kind
    test -n "$option"; and set kind (__quern_option $option)
    if test (count $kind) -eq 0
        string match -q -- '-*' $token; and echo options; and return
        set words (string join ' ' $words | string replace -ra ' --?(l|layers|s|seed|t|threads) [0-9]+' '' | string split ' ')
        switch "$words[2] "(count (string match -v -- '-*' $words))
            case 'synth 2'
                set kind - SHAPE
            case 'synth 3'
                set kind - TYPE
            case 'quantize 3'
                set kind --quantize TYPE
            case '*'
                echo files
                return
        end
    end
    set -l found
    switch "$kind"
        case '--device *'
            set found (__quern_listed serve '--device=D' ' \(default')
        case '--kv-type *'
            set found (__quern_listed serve 'of keys and values:' ' \(default')
        case '--quantize *'
            set found (__quern_listed quantize 'TYPE:' '')
        case '* SHAPE'
            set found (__quern_listed synth 'SHAPE:' ' TYPE:')
        case '* TYPE'
            set found (__quern_listed synth 'TYPE:' '')
        case '* FILE' '* DIR' '* EP' '* KEY'
            echo files
            return
        case '*'
            echo none
            return
    end
    printf '%s\n' words $before$found
end

complete -c quern -n __fish_use_subcommand -f -a '(__quern_names) --help --version'
complete -c quern -n '__fish_seen_subcommand_from bench; and test (count (commandline -opc)) -eq 2' -f -a '(__quern_names bench)'
complete -c quern -n 'not __fish_use_subcommand; and test (__quern_expected)[1] = options' -f -a '(__quern_options)'
complete -c quern -n 'not __fish_use_subcommand; and test (__quern_expected)[1] = words' -f -k -a '(__quern_expected)[2..]'
complete -c quern -n 'not __fish_use_subcommand; and test (__quern_expected)[1] = none' -f
