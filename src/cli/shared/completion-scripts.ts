/** The shells that have completion. */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/**
 * What a shell has to read to complete a program's words. The shell passes on what has been typed, and runs none of it; if
 * the program offers nothing, the shell completes file names.
 */
export function completionScript(shell: Shell, program: string): string {
  const name = `_${program.replaceAll('-', '_')}`;
  switch (shell) {
    case 'bash':
      return `# Completion of ${program} in bash: source <(${program} completion bash)
${name}() {
  local IFS=$'\\n'
  COMPREPLY=($(command ${program} complete bash "\${COMP_LINE:0:COMP_POINT}"$'\\n'"$2" 2>/dev/null))
}
complete -o default -F ${name} ${program}
`;
    case 'zsh':
      return `#compdef ${program}
# Completion of ${program} in zsh: source <(${program} completion zsh)
${name}() {
  local -a found values shown
  found=("\${(@f)$(command ${program} complete zsh "\${(F)\${(@Q)words[1,CURRENT-1]}}"$'\\n'"$PREFIX" 2>/dev/null)}")
  if [[ -z $found[1] ]]; then
    _files
    return
  fi
  values=("\${(@)found%%$'\\t'*}")
  shown=("\${(@)found/$'\\t'/  -- }")
  compadd -l -d shown -a values
}
if [[ $funcstack[1] == ${name} ]]; then
  ${name} "$@"
else
  compdef ${name} ${program}
fi
`;
    case 'fish':
      return `# Completion of ${program} in fish: ${program} completion fish | source
function _${name}
    set -l typed (begin; commandline -opc; commandline -ct; end | string collect --no-trim-newlines)
    set -l found (command ${program} complete fish $typed 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c ${program} -f -a '(_${name})'
`;
    default:
      return shell satisfies never;
  }
}
