import { Option, Argument, type Command } from 'commander';
import { kubeProxyVersions, newestRelease, releaseRange, releases } from '../../kube-proxy/releases.ts';
import { formatJson } from '../../say/formats/json.ts';
import type { version as versionSchema } from '../../say/outputs/envelope.ts';
import { countBeforeEnd } from './path-words.ts';
import { exitStatus, type Done, type Terminal } from './terminal.ts';
import { version } from '../../base/version.ts';

/** Adds the command that prints everything that a bug report should contain. kpc and kpc-apply are always released together. */
export function addVersionCommand(program: Command, terminal: Terminal, done: Done): void {
  program
    .command('version')
    .description(
      'Print the version, the kube-proxy and releases of Kubernetes that it follows, and the Node.js that runs it.',
    )
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .action(async ({ output }: { readonly output: 'text' | 'json' }) => {
      const nodeVersion = process.version;
      const kubeProxyVersion = kubeProxyVersions[newestRelease];
      await terminal.out(
        output === 'json'
          ? formatJson<typeof versionSchema>({
              command: `${program.name()} version`,
              result: { kubeProxyVersion, releases, nodeVersion },
            })
          : `${program.name()} ${version}\nkube-proxy ${kubeProxyVersion} (Kubernetes ${releaseRange})\nNode ${nodeVersion}\n`,
      );
      done(exitStatus.ok);
    });
}

/** Adds the command that prints a completion script for a shell, and the hidden command that this script calls. */
export function addCompletionCommand(
  program: Command,
  terminal: Terminal,
  done: Done,
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
    const found = await completeWords(program, words.slice(1), findValues);
    // In bash, a word also begins after = and :, so only the part after them is completed.
    const [word = '', part] = [words.at(-1), typed.slice(end + 1)];
    const known = word.endsWith(part) ? word.length - part.length : 0;
    return found.map(({ value }) => `${value.slice(known)}\n`).join('');
  }
  const lines = (shell === 'fish' ? typed.replace(/\n$/, '') : typed).split('\n');
  const found = await completeWords(program, lines.slice(1), findValues);
  return found.map(({ value, help }) => `${value}${help ? `\t${help.replaceAll(/\s+/g, ' ')}` : ''}\n`).join('');
}

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/**
 * Returns a shell's completion script. The script passes the typed words to the program without expanding them. If the program offers no
 * candidates, the script completes file names.
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

export interface Completion {
  readonly value: string;
  readonly help?: string | undefined;
}

/** Finds candidates for a value. If there are none, the shell completes file names. */
export type FindValues = (request: ValueRequest) => Promise<readonly Completion[]>;

export interface ValueRequest {
  readonly program: Command;
  readonly called: Command;
  readonly before: readonly string[];
  /** The key of a flag, or a command and its argument as "command argument". */
  readonly of: string;
  readonly typed: string;
}

/** Matches texts whose characters have no meaning in any shell. Candidates with other characters are not offered. */
const plain = /^[\w.,:/@%+=-]+$/;

/** Returns candidates for the last word. `words`: the words after the program's name. */
export async function completeWords(
  program: Command,
  words: readonly string[],
  findValues: FindValues,
): Promise<readonly Completion[]> {
  const typed = words.at(-1) ?? '';
  const found = await findCompletions(program, words.slice(0, -1), typed, findValues);
  return found.filter(({ value }) => value.startsWith(typed) && plain.test(value));
}

async function findCompletions(
  program: Command,
  [first, ...before]: readonly string[],
  typed: string,
  findValues: FindValues,
): Promise<readonly Completion[]> {
  if (first === undefined || first === 'help')
    return typed.startsWith('-') ? flagCompletions(program) : commandsOf(program);
  const called = program.commands.find((command) => command.name() === first);
  if (!called) return [];
  const valuesOf = async (
    of: Option | Argument,
    request: Pick<ValueRequest, 'before' | 'of' | 'typed'>,
  ): Promise<readonly Completion[]> =>
    of.argChoices?.map((value) => ({ value })) ?? findValues({ program, called, ...request });
  const flag = findOption(called, before.at(-1));
  const isOver = before.includes('--');
  if (flag?.required && !isOver)
    return valuesOf(flag, { before: before.slice(0, -1), of: flag.attributeName(), typed });
  const [, name = '', start = ''] = /^(--[\w-]+=)(.*)$/s.exec(typed) ?? [];
  const option = isOver ? undefined : findOption(called, name.slice(0, -1));
  if (option) {
    const values = await valuesOf(option, { before, of: option.attributeName(), typed: start });
    return values.map(({ value, help }) => ({ value: `${name}${value}`, help }));
  }
  if (typed.startsWith('-') && !isOver) return flagCompletions(called);
  const { registeredArguments } = called;
  const last = registeredArguments.at(-1);
  const argument = registeredArguments[countOperands(called, before)] ?? (last?.variadic ? last : undefined);
  return argument ? valuesOf(argument, { before, of: `${called.name()} ${argument.name()}`, typed }) : [];
}

function commandsOf(program: Command): readonly Completion[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .map((command) => ({ value: command.name(), help: command.summary() || command.description() }));
}

function flagCompletions(command: Command): readonly Completion[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', help: description }));
}

function findOption(command: Command, flag: string | undefined): Option | undefined {
  return command.options.find(({ long, short }) => flag && (long === flag || short === flag));
}

function countOperands(command: Command, words: readonly string[]): number {
  const own = words.slice(0, countBeforeEnd(words));
  const operands = own.filter(
    (word, i) => (word === '-' || !word.startsWith('-')) && !findOption(command, own[i - 1])?.required,
  );
  return operands.length + Math.max(0, words.length - own.length - 1);
}

/** Splits a line into words as a shell does, but without expansion. The last word may be empty. */
export function splitShellLine(line: string): readonly string[] {
  const words = line.match(/(?:\\.|'[^']*'?|"(?:\\.|[^"\\])*"?|[^\s\\'"])+|\s$/gs) ?? [''];
  return words.map((word) =>
    word
      .trimStart()
      .replaceAll(/'([^']*)'?|\\(.)|"/gs, (_, quoted: string = '', escaped: string = '') => quoted + escaped),
  );
}
