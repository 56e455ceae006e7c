import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';

const applyCommands = ['apply', 'cleanup', 'confirm', 'doctor', 'dump', 'plan', 'rollback', 'verify', 'watch'];

/** What the other program is for, which a user may ask this one to do. */
const otherProgram: Readonly<Record<string, { readonly name: string; readonly commands: readonly string[] }>> = {
  kpc: { name: 'kpc-apply', commands: applyCommands },
  'kpc-apply': { name: 'kpc', commands: ['compile', 'describe', 'diff'] },
};

/** Words of other tools for what a command does. */
const otherWords: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  kpc: {
    build: 'kpc compile',
    check: 'kpc compile --check',
    generate: 'kpc compile',
    get: 'kpc describe',
    render: 'kpc compile',
    show: 'kpc describe',
    template: 'kpc compile',
  },
  'kpc-apply': {
    check: 'kpc-apply verify',
    delete: 'kpc-apply cleanup',
    remove: 'kpc-apply cleanup',
    save: 'kpc-apply dump',
    status: 'kpc-apply verify',
    undo: 'kpc-apply rollback',
  },
};

/** Output formats, of kpc and of kubectl, that `-o` is given by habit. */
const formats: ReadonlySet<string> = new Set([
  'text',
  'json',
  'yaml',
  'github',
  'junit',
  'markdown',
  'unified',
  'wide',
  'name',
]);

/**
 * What the command line was probably meant to be, as a line to print below the parser's error; empty where nothing is
 * near. The parser itself suggests commands and flags that differ by a few letters.
 */
export function adviseOnMistake(error: string, program: Command, argv: readonly string[]): string {
  const advice =
    adviseOnCommand(error, program, argv) ??
    adviseOnFlag(error, program, argv) ??
    adviseOnFiles(error, program) ??
    adviseOnMissing(error, program, argv);
  return advice === undefined ? '' : `${advice}\n`;
}

/** The parser's error with the flag that is meant, where the parser would suggest one that is only spelled much like it. */
export function correctSuggestion(error: string, program: Command, argv: readonly string[]): string {
  if (error.includes('unknown command') && otherWordOf(program, argv) !== undefined) return withoutSuggestion(error);
  const [, name] = /unknown option '--([a-z0-9-]+)/.exec(error) ?? [];
  const options = calledCommand(program, argv)?.options ?? [];
  const other =
    name &&
    findOtherName(
      name,
      options.flatMap(({ long }) => long?.slice(2) ?? []),
    );
  if (!other) return error;
  return `${withoutSuggestion(error)}(Did you mean --${other}?)\n`;
}

function withoutSuggestion(error: string): string {
  return `${error.replace(/\n\(Did you mean [^\n]*/, '').trimEnd()}\n`;
}

/** The command line in kpc's words for a command of other tools. */
function otherWordOf(program: Command, argv: readonly string[]): string | undefined {
  const words = otherWords[program.name()] ?? {};
  const word = commandWord(argv);
  return Object.hasOwn(words, word) ? words[word] : undefined;
}

function commandWord(argv: readonly string[]): string {
  return argv.find((each) => each === '-' || !each.startsWith('-')) ?? '';
}

function adviseOnCommand(error: string, program: Command, argv: readonly string[]): string | undefined {
  const name = program.name();
  if (!error.includes('unknown command')) return undefined;
  const meant = otherWordOf(program, argv);
  if (meant !== undefined) return `Did you mean "${meant}"?`;
  if (error.includes('Did you mean')) return undefined;
  const word = commandWord(argv);
  const other = otherProgram[name];
  if (other?.commands.includes(word)) return `Did you mean "${other.name} ${word}"?`;
  const service = name === 'kpc' ? serviceOf(word, argv) : undefined;
  if (service !== undefined) return `Did you mean "kpc describe ${service} -f FILE"?`;
  if (isPlain(word) && isUrl(word)) return pipeUrl(word);
  if (!isPlain(word) || !isPath(word)) return undefined;
  if (name !== 'kpc') return `Did you mean "kpc-apply apply ${word}"?`;
  return `Did you mean "kpc ${isMadeAlready(word) ? 'describe' : 'compile'} -f ${word}"?`;
}

/** Whether a path is rather a bundle, or what a node printed, than manifests: kpc describe takes all of them. */
function isMadeAlready(path: string): boolean {
  if (path === '-' || /\.(ya?ml|json)$/i.test(path) || !existsSync(path)) return false;
  return !statSync(path).isDirectory() || existsSync(join(path, 'manifest.json'));
}

/** The Service that "svc/web" or "svc web" stands for, as kubectl has it; '' for all. */
function serviceOf(word: string, argv: readonly string[]): string | undefined {
  const [, name] = /^(?:svc|services?)(?:\/([\w.-]+))?$/i.exec(word) ?? [];
  if (name !== undefined) return `svc/${name}`;
  const next = argv[argv.indexOf(word) + 1];
  return isServiceWord(word) && next !== undefined && /^[a-z0-9][\w./-]*$/i.test(next) ? next : undefined;
}

/** Whether a word is what kubectl calls all Services. */
export function isServiceWord(word: string): boolean {
  return /^(?:svc|services?)$/i.test(word);
}

function isUrl(word: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(word);
}

/** kpc opens no connection. */
function pipeUrl(url: string): string {
  return `kpc reads files only. Did you mean "curl -sSL ${url} | kpc compile -f -"?`;
}

function adviseOnFlag(error: string, program: Command, argv: readonly string[]): string | undefined {
  const flag = /unknown option '(-{1,2}[A-Za-z-]+)/.exec(error)?.[1];
  const command = calledCommand(program, argv);
  if (flag !== undefined && !command) {
    const known = program.commands.find(({ options }) =>
      options.some(({ short, long }) => flag === short || flag === long),
    );
    return known && `Write the command first, as in "${program.name()} ${known.name()} ${flag} ...".`;
  }
  if (flag?.startsWith('-o') === true && command?.options.some(({ long }) => long === '--output')) {
    const at = argv.findIndex((word) => word.startsWith('-o'));
    const format = argv[at] === '-o' ? (argv[at + 1] ?? '') : (argv[at] ?? '').slice(2).replace(/^=/, '');
    if (/^yaml$/i.test(format)) return 'kpc prints no YAML. Did you mean "--output json"?';
    return `Did you mean "--output${isPlain(format) ? ` ${format}` : ''}"?`;
  }
  const value = /^error: option '--output <format>' argument '(.*)' is invalid/.exec(error)?.[1];
  if (value === undefined || formats.has(value) || !isPlain(value)) return undefined;
  return command?.options.some(({ short }) => short === '-o') ? `Did you mean "-o ${value}" (a folder)?` : undefined;
}

/** Every command that reads manifests names them by a flag, which is easy to forget. */
function adviseOnFiles(error: string, program: Command): string | undefined {
  const name = /too many arguments for '(compile|describe)'/.exec(error)?.[1];
  const command = program.commands.find((each) => each.name() === name);
  if (!command) return undefined;
  const most = command.registeredArguments.length;
  const [first = '', second = ''] = command.args;
  if (name === 'describe' && !isPath(second)) {
    return /^(svc|services?)$/i.test(first) && isPlain(second)
      ? `Did you mean "kpc describe ${second}"?`
      : 'Name one Service, address, chain or set, and each file or folder with -f.';
  }
  const words = [...command.args.slice(0, most), ...command.args.slice(most).map((path) => `-f ${path}`)];
  const url = command.args.find((each) => isUrl(each) && isPlain(each));
  if (url !== undefined) return pipeUrl(url);
  if (command.args.some((each) => /[*?[]/.test(each) && !existsSync(each))) {
    return 'No file matches that pattern, and kpc expands none itself. Name the folder with -f, or each file with an -f of its own.';
  }
  if (words.length > 4 || !command.args.every(isPlain)) {
    return 'Name each file with an -f of its own, or the folder that holds them.';
  }
  return `Name each file or folder with -f. Did you mean "kpc ${name} ${words.join(' ')}"?`;
}

/** How a command is called that lacks an argument. */
function adviseOnMissing(error: string, program: Command, argv: readonly string[]): string | undefined {
  const command = error.includes('missing required argument') ? calledCommand(program, argv) : undefined;
  const words = command?.registeredArguments.map((argument) => argument.name().toUpperCase()) ?? [];
  return command && `Write "${[program.name(), command.name(), ...words].join(' ')}".`;
}

function calledCommand(program: Command, argv: readonly string[]): Command | undefined {
  const [first] = argv;
  return program.commands.find((command) => command.name() === first);
}

/** Whether a word is manifests rather than a name: by its form, or since there is such a file or folder. */
export function isPath(word: string): boolean {
  return isFileName(word) || (word !== '' && existsSync(word));
}

/** Whether a word can only be a file's or folder's: by its form, or as a file that is there. */
export function isFileName(word: string): boolean {
  if (word === '-' || /\.(ya?ml|json)$/i.test(word)) return true;
  if (word === '' || !existsSync(word)) return false;
  return /^[./~]/.test(word) || !statSync(word).isDirectory();
}

/** Whether a shell takes the word as it is, so that it can stand in a command to copy. */
function isPlain(word: string): boolean {
  return /^[\w./:@%+,-]{1,200}$/.test(word);
}

/**
 * The folder of `-o`. kubectl's `-o yaml` is refused: it would write a folder called "yaml". `hasOutput` tells whether
 * the command has an `--output`.
 */
export function parseOutFolder(hasOutput: boolean): (folder: string) => string {
  return (folder) => {
    if (folder.trim() === '') throw new InvalidArgumentError('It needs the name of a folder.');
    const format = folder.toLowerCase();
    if (!formats.has(format) && !/^(?:jsonpath|jsonpath-as-json|go-template|custom-columns)(?:-file)?=/.test(format))
      return folder;
    const path = `for a folder of this name, write -o ./${folder}`;
    throw new InvalidArgumentError(
      hasOutput && ownFormats.has(format)
        ? `-o names a folder; for the format, write --output ${format}; ${path}.`
        : `-o names a folder, not a format; ${path}.${hasOutput ? describeFormats(format) : ''}`,
    );
  };
}

/** The flags that print what is nearest to the format. */
function describeFormats(format: string): string {
  const none = format === 'yaml' ? 'kpc prints no YAML, but ' : '';
  return ` ${none}--output json prints all, and --print FILE one of the files.`;
}

/** Those that --output of kpc compile takes. */
const ownFormats: ReadonlySet<string> = new Set(['text', 'json', 'github', 'junit']);

/** What other programs of Kubernetes, or people, call the flags of kpc: without dashes. */
const otherNames: Readonly<Record<string, string>> = {
  'kube-version': 'kubernetes-version',
  'k8s-version': 'kubernetes-version',
  mode: 'proxy-mode',
  'node-port-range': 'service-node-port-range',
  'nodeport-range': 'service-node-port-range',
  'pod-cidr': 'cluster-cidr',
  'pod-network-cidr': 'cluster-cidr',
  'service-cidr': 'service-cluster-ip-range',
  'service-cidrs': 'service-cluster-ip-range',
  'service-ip-range': 'service-cluster-ip-range',
};

/** The flag among these that a name stands for elsewhere: what is spelled like it may be quite another one. */
export function findOtherName(name: string, flags: readonly string[]): string | undefined {
  const other = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined;
  return other !== undefined && flags.includes(other) ? other : undefined;
}
