# SPDX-License-Identifier: MIT
# Completion of quern for bash: verbs, each verb's own options and what they take (as its --help says them),
# then files.

# The name and the kind of value of an option of a verb: "--device D"; the kind is empty if it takes none.
_quern_option() # HELP OPTION
{
    sed -nE "/^ {2,6}(-.*, )?$2([=, ]|\$)/{s/^[^=]*(--[a-z-]+)(=([A-Z:]+))?.*/\1 \3/p;q}" <<<"$1"
}

# The words that a verb's help lists behind a text: "auto, cpu or null", "tiny null qwen2.5-0.5b".
_quern_listed() # PROGRAM VERB TEXT UP-TO
{
    "$1" "$2" --help 2>/dev/null | tr -s ' \n' '  ' | sed -nE "s/.*$3 *([^:;()]*)( $4).*/\1/p" | sed 's/,//g; s/ or / /'
}

_quern_words() # PROGRAM VERB KIND
{
    case $3 in
    --device) _quern_listed "$1" serve '--device=D' '\(default' ;;
    --kv-type) _quern_listed "$1" serve 'of keys and values:' '\(default' ;;
    SHAPE) _quern_listed "$1" synth 'SHAPE:' 'TYPE:' ;;
    TYPE) _quern_listed "$1" synth 'TYPE:' '' ;;
    --quantize | *) _quern_listed "$1" quantize 'TYPE:' '' ;;
    esac
}

# How many words before this one are neither the verb, an option nor its value.
_quern_position() # HELP
{
    local i n=0 option
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        =) ((i++)) ;;
        -?*)
            read -r _ option <<<"$(_quern_option "$1" "${COMP_WORDS[i]}")"
            [[ $option && ${COMP_WORDS[i + 1]} != "=" ]] && ((i++))
            ;;
        *) ((n++)) ;;
        esac
    done
    echo "$n"
}

_quern()
{
    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} program=${COMP_WORDS[0]} help before option='' kind='' words
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        help=$("$program" --help 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' <<<"$help") --help --version" -- "$word")
        return
    fi
    if [[ $verb == bench ]]; then
        if ((COMP_CWORD == 2)); then
            help=$("$program" bench --help 2>/dev/null)
            mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' <<<"$help") --help" -- "$word")
            return
        fi
        verb="bench ${COMP_WORDS[2]}"
    fi
    # shellcheck disable=SC2086
    help=$("$program" $verb --help 2>/dev/null)
    # "--device=c" is three words.
    before=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $word == "=" ]]; then
        word=
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $before == -?* ]]; then
        read -r option kind <<<"$(_quern_option "$help" "$before")"
    fi
    if [[ -z $kind && $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '^ {2,6}(-[A-Za-z?], )? *--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')" -- "$word")
        return
    fi
    if [[ -z $kind ]]; then
        case $verb:$(_quern_position "$help") in
        synth:0) kind=SHAPE ;;
        synth:1) kind=TYPE ;;
        quantize:1) kind=TYPE option=--quantize ;;
        *) kind=FILE ;;
        esac
    fi
    case $option:$kind in
    --device:* | --kv-type:* | --quantize:*) words=$(_quern_words "$program" "$verb" "$option") ;;
    *:SHAPE | *:TYPE) words=$(_quern_words "$program" "$verb" "$kind") ;;
    *:FILE | *:EP | *:KEY)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    *:DIR)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    *) return ;; # a number or a text
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _quern quern
