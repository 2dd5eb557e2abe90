#compdef cdcpub
# zsh completion for cdcpub
_cdcpub() {
    local line
    local -a found
    for line in "${(@f)$("${words[1]}" complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            '') ;;
            :files) _files ;;
            *$'\t') found+=("${${line%$'\t'}//:/\\:}") ;;
            *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    if (( $#found )); then
        _describe cdcpub found
    fi
}
# As an autoloaded file this is the function's body; sourced, it registers it.
if [[ $funcstack[1] == _cdcpub ]]; then
    _cdcpub "$@"
else
    compdef _cdcpub cdcpub
fi
