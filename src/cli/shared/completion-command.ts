import { Argument, type Command } from 'commander';
import { type Candidate, type FindValues, complete, splitShellLine } from './complete.ts';
import { type ExitStatus, exitStatus } from './exit-status.ts';
import type { Terminal } from './terminal.ts';

/** Adds the command that prints what a shell reads, and the hidden one that the shell then calls. */
export function addCompletionCommand(
  program: Command,
  terminal: Terminal,
  done: (status: ExitStatus) => void,
  findValues: FindValues = async () => [],
): void {
  program
    .command('completion')
    .description('Print the script that makes a shell complete commands, flags and names.')
    .addArgument(new Argument('<shell>', 'the shell to print it for').choices(shells))
    .action(async (shell: Shell) => {
      await terminal.out(completionScript(shell, program.name()));
      done(exitStatus.ok);
    });
  program
    .command('complete', { hidden: true })
    .addArgument(new Argument('<shell>').choices(shells))
    .argument('<typed>', 'what has been typed, with the name of the program')
    .action(async (shell: Shell, typed: string) => {
      await terminal.out(await answer(program, shell, typed, findValues));
      done(exitStatus.ok);
    });
}

async function answer(program: Command, shell: Shell, typed: string, findValues: FindValues): Promise<string> {
  if (shell === 'bash') {
    const end = typed.lastIndexOf('\n');
    const words = splitShellLine(typed.slice(0, end));
    const found = await complete(program, words.slice(1), findValues);
    // To bash a word also begins after = and :, and what it completes is that part.
    const [word = '', part] = [words.at(-1), typed.slice(end + 1)];
    const known = word.endsWith(part) ? word.length - part.length : 0;
    return found.map(({ value }) => `${value.slice(known)}\n`).join('');
  }
  const lines = (shell === 'fish' ? typed.replace(/\n$/, '') : typed).split('\n');
  const found = await complete(program, lines.slice(1), findValues);
  return found.map(formatCandidate).join('');
}

function formatCandidate({ value, help }: Candidate): string {
  return `${value}${help ? `\t${help.replaceAll(/\s+/g, ' ')}` : ''}\n`;
}

/** The shells that have completion. */
const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/**
 * What a shell has to read to complete a program's words. The shell passes on what has been typed, and runs none of it; if
 * the program offers nothing, the shell completes file names.
 */
function completionScript(shell: Shell, program: string): string {
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
