import { Argument, type Command, type Option } from 'commander';
import { exitStatus, type Done } from './exit-status.ts';
import type { Terminal } from './terminal.ts';

/** A word that may come next, and what it means. */
export interface Candidate {
  readonly value: string;
  readonly help?: string | undefined;
}

/**
 * The values of a flag, by its attribute's name, or of an argument, as "explain code"; for those whose declaration does not
 * list them. Without any, the shell completes file names.
 */
export type FindValues = (of: string) => Promise<readonly Candidate[]>;

/** The shells that have completion. */
const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** Adds the command that prints what a shell reads, and the hidden one that the shell then calls. */
export function addCompletionCommand(
  program: Command,
  terminal: Terminal,
  done: Done,
  findValues: FindValues = async () => [],
): void {
  program
    .command('completion')
    .description('Print the script that makes a shell complete commands, flags and values.')
    .addArgument(new Argument('<shell>', 'the shell to print it for').choices(shells))
    .action(async (shell: Shell) => {
      await terminal.out(completionScript(shell, program.name()));
      done(exitStatus.ok);
    });
  program
    .command('complete', { hidden: true })
    .addArgument(new Argument('<shell>').choices(shells))
    .argument('<typed>', 'the words that have been typed, the name of the program first, in a line each')
    .action(async (shell: Shell, typed: string) => {
      const lines = (shell === 'fish' ? typed.replace(/\n$/, '') : typed).split('\n');
      // To bash, the = between a flag and its value is a word.
      const words = shell === 'bash' ? lines.filter((word) => word !== '=') : lines;
      const found = await complete(program, words.slice(1), findValues);
      await terminal.out(found.map((each) => formatCandidate(each, shell)).join(''));
      done(exitStatus.ok);
    });
}

function formatCandidate({ value, help }: Candidate, shell: Shell): string {
  return shell === 'bash' || !help ? `${value}\n` : `${value}\t${help.replaceAll(/\s+/g, ' ')}\n`;
}

/** No shell gives any of these characters a meaning within a word: what has others is not offered. */
const plain = /^[\w.,:/@%+=-]+$/;

/** The words that may stand in the place of the last of these, which follow the name of the program. */
export async function complete(
  program: Command,
  words: readonly string[],
  findValues: FindValues,
): Promise<readonly Candidate[]> {
  const typed = words.at(-1) ?? '';
  const found = await findCandidates(program, words.slice(0, -1), typed, findValues);
  return found.filter(({ value }) => value.startsWith(typed) && plain.test(value));
}

async function findCandidates(
  program: Command,
  [first, ...before]: readonly string[],
  typed: string,
  findValues: FindValues,
): Promise<readonly Candidate[]> {
  if (first === undefined || first === 'help') return typed.startsWith('-') ? flagsOf(program) : commandsOf(program);
  const called = program.commands.find((command) => command.name() === first);
  if (!called) return [];
  const { flag, operands, isOver } = readWords(called, before);
  const [, name = ''] = isOver ? [] : (/^(--[\w-]+)=/.exec(typed) ?? []);
  const option = flag ?? findOption(called, name);
  if (option) {
    const values: readonly Candidate[] =
      option.argChoices?.map((value) => ({ value })) ?? (await findValues(option.attributeName()));
    return flag ? values : values.map(({ value, help }) => ({ value: `${name}=${value}`, help }));
  }
  if (typed.startsWith('-') && !isOver) return flagsOf(called);
  const last = called.registeredArguments.at(-1);
  const argument = called.registeredArguments[operands] ?? (last?.variadic ? last : undefined);
  if (!argument) return [];
  return argument.argChoices?.map((value) => ({ value })) ?? findValues(`${called.name()} ${argument.name()}`);
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
  COMPREPLY=($(command ${program} complete bash "\${COMP_WORDS[*]:0:COMP_CWORD}"$'\\n'"$2" 2>/dev/null))
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
