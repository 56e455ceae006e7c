import { nameSome } from '../base/join-words.ts';
import { anIP, manifests, aService, web } from './examples.ts';
import { escapeText, quote } from '../base/printable.ts';
import { describeFound, type Found } from './value-in-words.ts';
import { wordsBy, type DiagnosticTable, type Severity } from './diagnostic-rows.ts';

/** One of kpc's own flags that take ranges, and its value. */
export interface RangeFlag {
  readonly flag: keyof typeof rangeHints;
  readonly value: string;
}

/** What to write after the flags. */
const rangeHints = {
  '--assume-endpoints': 'write one network or one of each family, such as 10.244.0.0/16,fd00:10:244::/56',
  '--load-balancer-ip-range': 'write networks such as 203.0.113.0/24 or 2001:db8::/120',
  '--service-cluster-ip-range': 'write one network or one of each family, such as 10.96.0.0/16,fd00:10:96::/112',
  '--service-node-port-range': 'write the first and the last port, such as 30000-32767',
} as const;

const expectedValues = {
  boolean: 'write true or false',
  list: 'write one value or a list',
  one: 'write one value',
} as const;

interface Flag {
  readonly flag: string;
}

/** `command`: whose flags they are; undefined for those of any command. */
interface UnknownFlag {
  readonly name: string;
  readonly command?: string | undefined;
  readonly meant?: string | undefined;
}

interface NotShown {
  /** How severe the messages are that are left out. */
  readonly severity: Severity;
  readonly count: number;
}

/** What is wrong with kpc's own flags, with kpc.yaml, which holds some, and with files of kpc test. */
export const commandLineDiagnostics = {
  'bad-expectation': {
    severity: 'error',
    meaning: 'a file of kpc test has a test that cannot be run',
    example: () => ({
      words: ['test', 'test.yaml', '-f', 'in.yaml'],
      files: { 'in.yaml': web, 'test.yaml': 'tests: [{ from: pod, to: svc/web }]\n' },
    }),
    words: wordsBy('problem', {
      nothing: ['no tests here', 'write them as a list under "tests:", each with from, to and expect'],
      missing: ({ field }: { readonly field: 'from' | 'to' | 'expect' | 'inputs' }) =>
        field === 'inputs'
          ? ['the tests name no cluster', 'name manifests, a bundle or a dump under "inputs:", or with -f']
          : [`a test has no ${field}`, `write ${field}: it needs from, to and expect`],
      rivals: ['node and nodes mean the same', 'keep one of them'],
      /** As its reader says it. */
      refused: ({
        field,
        reason,
        help,
      }: {
        readonly field: string;
        readonly reason: string;
        readonly help?: string | undefined;
      }) => [`${field}: ${reason}`, help],
      'not-tests': ({ fields }: { readonly fields: readonly string[] }) => [
        `no file of kpc test: it has no tests, but ${nameSome(fields.map((field) => escapeText(field)))}`,
        'write them as a list under "tests:", each with from, to and expect; name manifests with -f',
      ],
    }),
  },
  'bad-kpc-yaml': {
    severity: 'error',
    meaning: 'a kpc.yaml holds something other than flags and their values',
    example: () => ({ words: ['compile'], files: { 'in.yaml': web, 'kpc.yaml': 'file: in.yaml\nproxy-mod: ipvs\n' } }),
    words: wordsBy('problem', {
      'link-outside': [
        'a link to something outside the repository',
        'name that file with --kpc-yaml, or leave it out with --kpc-yaml none',
      ],
      'several-documents': ['kpc.yaml holds several documents', 'keep one of them'],
      'no-mapping': ({ found }: { readonly found: Found }) => [
        `kpc.yaml cannot be ${describeFound(found)}`,
        'write flags and their values, such as node: worker-1',
      ],
      'no-section': ({ command, found }: { readonly command: string; readonly found: Found }) => [
        `${command} cannot be ${describeFound(found)}`,
        `write flags of kpc ${command} and their values`,
      ],
      'unknown-flag': ({ name, command, meant }: UnknownFlag) => [
        `${command === undefined ? 'kpc' : `kpc ${command}`} has no flag --${escapeText(name)}`,
        meant === undefined ? undefined : `did you mean ${meant}?`,
      ],
      value: (details: Flag & { readonly found: Found; readonly expected: keyof typeof expectedValues }) => [
        `${details.flag} cannot be ${describeFound(details.found)}`,
        expectedValues[details.expected],
      ],
      rivals: ({ flag, other }: Flag & { readonly other: string }) => [
        `${flag} cannot be used with ${other}`,
        'keep one of them',
      ],
      'null-byte': ({ flag }: Flag) => `${flag} holds a null byte: no file has one in its name`,
      'replaces-outside': ({ flag }: Flag) => [
        `${flag} leads out of the folder of kpc.yaml, and what is there would be replaced`,
        'name that folder on the command line',
      ],
      'replaces-git': ({ flag }: Flag) => [
        `${flag} leads into .git, which belongs to git`,
        'name a folder outside of .git',
      ],
      'reads-outside': ({ flag }: Flag) => [
        `${flag} leads out of the repository of kpc.yaml`,
        'name that file or folder on the command line',
      ],
      /** As the parser of the flag says it. */
      refused: ({ flag, reason }: Flag & { readonly reason: string }) => `${flag}: ${reason}`,
    }),
  },
  'bad-range': {
    severity: 'error',
    meaning: 'a flag that takes ranges of addresses or ports has another value',
    example: () => manifests(web, '--service-node-port-range', '32767-30000'),
    words: ({ flag, value }: RangeFlag) => [`${flag} cannot be ${quote(value)}`, rangeHints[flag]],
  },
  'not-shown': {
    severity: { among: ['error', 'warning', 'note'], weigh: ({ severity }: NotShown) => severity },
    meaning: 'there are more messages than are printed',
    example: () =>
      manifests(aService(`${anIP}, ports: [${Array.from({ length: 201 }, () => '{ port: 0 }').join(', ')}]`)),
    words: ({ severity, count }: NotShown) => `and ${count} more ${count === 1 ? severity : `${severity}s`}, not shown`,
  },
} satisfies DiagnosticTable;
