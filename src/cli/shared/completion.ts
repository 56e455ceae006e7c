import { Argument, type Command, type Option } from 'commander';
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

/** A word that may come next, and what it means. */
export interface Candidate {
  readonly value: string;
  readonly help?: string | undefined;
}

/** What completes a value: of the flag or argument of that name. Without any, the shell completes file names. */
export type FindValues = (request: ValueRequest) => Promise<readonly Candidate[]>;

/** What is known when a value of a flag or an argument is completed. */
export interface ValueRequest {
  readonly program: Command;
  readonly called: Command;
  /** The words between the command and the word to complete. */
  readonly before: readonly string[];
  readonly flag: string | undefined;
  readonly argument: string | undefined;
  /** What has been typed of the value. */
  readonly typed: string;
}

/** No shell gives any of these characters a meaning within a word: what has others is not offered. */
const plain = /^[\w.,:/@%+=-]+$/;

/** The words that may replace the last of these, which follow the name of the program. */
export async function complete(
  program: Command,
  words: readonly string[],
  findValues: FindValues,
): Promise<readonly Candidate[]> {
  const typed = words.at(-1) ?? '';
  const [first, ...before] = words.slice(0, -1);
  const found = await findCandidates();
  return found.filter(({ value }) => value.startsWith(typed) && plain.test(value));

  async function findCandidates(): Promise<readonly Candidate[]> {
    if (first === undefined || first === 'help') {
      return typed.startsWith('-') ? flagsOf(program) : commandsOf(program);
    }
    const called = program.commands.find((command) => command.name() === first);
    if (!called) return [];
    const { flag, operands, isOver } = readWords(called, before);
    const [, name = '', start = ''] = /^(--[\w-]+=)(.*)$/s.exec(typed) ?? [];
    const option = flag ?? (isOver ? undefined : findOption(called, name.slice(0, -1)));
    const request = { program, called, before: flag ? before.slice(0, -1) : before };
    if (option) {
      const values: readonly Candidate[] =
        option.argChoices?.map((value) => ({ value })) ??
        (await findValues({ ...request, flag: option.attributeName(), argument: undefined, typed: start || typed }));
      return values.map(({ value, help }) => ({ value: `${flag ? '' : name}${value}`, help }));
    }
    if (typed.startsWith('-') && !isOver) return flagsOf(called);
    const argument = argumentAt(called, operands);
    if (!argument) return [];
    if (argument.argChoices) return argument.argChoices.map((value) => ({ value }));
    return findValues({ ...request, flag: undefined, argument: argument.name(), typed });
  }
}

function commandsOf(program: Command): readonly Candidate[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .map((command) => ({ value: command.name(), help: command.summary() || command.description() }));
}

function flagsOf(command: Command): readonly Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', help: description }));
}

function findOption(command: Command, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => flag !== '' && (long === flag || short === flag));
}

interface ReadWords {
  /** The flag that has no value yet. */
  readonly flag: Option | undefined;
  /** How many arguments there are. */
  readonly operands: number;
  /** Whether a `--` has ended the flags. */
  readonly isOver: boolean;
}

function readWords(command: Command, words: readonly string[]): ReadWords {
  let operands = 0;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '--') return { flag: undefined, operands: operands + words.length - i - 1, isOver: true };
    const option = findOption(command, word);
    if (option?.required) {
      i++;
      if (i === words.length) return { flag: option, operands, isOver: false };
    } else if (!word.startsWith('-') || word === '-') operands++;
  }
  return { flag: undefined, operands, isOver: false };
}

function argumentAt({ registeredArguments }: Command, place: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[place] ?? (last?.variadic ? last : undefined);
}

/** The words of a line as a shell splits it: quotes are taken off, and nothing is expanded. The last may be empty. */
export function splitShellLine(line: string): readonly string[] {
  const words = [''];
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const character = line.charAt(i);
    const add = (text: string): void => void (words[words.length - 1] += text);
    if (character === '\\' && quote !== "'") add(line.charAt(++i));
    else if (character === quote) quote = '';
    else if (quote === '' && (character === '"' || character === "'")) quote = character;
    else if (quote === '' && /\s/.test(character)) {
      if (words.at(-1) !== '') words.push('');
    } else add(character);
  }
  return words;
}
