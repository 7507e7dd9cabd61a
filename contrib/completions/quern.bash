# SPDX-License-Identifier: MIT
# Completion of quern for bash: verbs, each verb's own options (as its --help says them), then files.

_quern()
{
    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} program=${COMP_WORDS[0]} help
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
    if [[ $word == -* ]]; then
        # shellcheck disable=SC2086
        help=$("$program" $verb --help 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '^ {2,6}(-[A-Za-z?], )? *--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')" -- "$word")
        return
    fi
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -F _quern quern
