import { escapeText, quote } from '../base/wording.ts';
import { describeFound } from './found.ts';
import type { Found } from './found.ts';
import type { DiagnosticTable, Severity } from './table.ts';

/** One of kpc's own flags that take ranges, and its value. */
export interface RangeFlag {
  readonly flag:
    '--assume-endpoints' | '--load-balancer-ip-range' | '--service-cluster-ip-range' | '--service-node-port-range';
  readonly value: string;
}

/** What to write after the flags. */
const rangeHints: { readonly [F in RangeFlag['flag']]: string } = {
  '--assume-endpoints': 'write one network or one of each family, such as 10.244.0.0/16,fd00:10:244::/56',
  '--load-balancer-ip-range': 'write networks such as 203.0.113.0/24 or 2001:db8::/120',
  '--service-cluster-ip-range': 'write one network or one of each family, such as 10.96.0.0/16,fd00:10:96::/112',
  '--service-node-port-range': 'write the first and the last port, such as 30000-32767',
};

type KpcYamlProblem =
  | { readonly problem: 'link-outside' | 'several-documents' }
  | { readonly problem: 'no-mapping'; readonly found: Found }
  | { readonly problem: 'no-section'; readonly command: string; readonly found: Found }
  | {
      readonly problem: 'unknown-flag';
      readonly name: string;
      /** Whose flags they are; undefined for those of any command. */
      readonly command?: string | undefined;
      readonly meant?: string | undefined;
    }
  | {
      readonly problem: 'value';
      readonly flag: string;
      readonly found: Found;
      readonly expected: 'boolean' | 'list' | 'one';
    }
  | { readonly problem: 'rivals'; readonly flag: string; readonly other: string }
  | { readonly problem: 'null-byte' | 'replaces-outside' | 'reads-outside'; readonly flag: string }
  /** As the parser of the flag says it. */
  | { readonly problem: 'refused'; readonly flag: string; readonly reason: string };

const expectedValues = {
  boolean: 'write true or false',
  list: 'write one value or a list',
  one: 'write one value',
} as const;

function describeKpcYaml(details: KpcYamlProblem): string {
  switch (details.problem) {
    case 'link-outside':
      return 'a link to something outside the repository: name that file with --kpc-yaml, or leave it out with --kpc-yaml none';
    case 'several-documents':
      return 'a kpc.yaml holds one document';
    case 'no-mapping':
      return `kpc.yaml is ${describeFound(details.found)}: write flags and their values, such as node: worker-1`;
    case 'no-section':
      return `${details.command} is ${describeFound(details.found)}: it must hold flags of kpc ${details.command}`;
    case 'unknown-flag': {
      const { name, command, meant } = details;
      const hint = meant === undefined ? '' : `: did you mean ${meant}?`;
      return `${command === undefined ? 'kpc' : `kpc ${command}`} has no flag --${escapeText(name)}${hint}`;
    }
    case 'value':
      return `${details.flag} is ${describeFound(details.found)}: ${expectedValues[details.expected]}`;
    case 'rivals':
      return `${details.flag} cannot be used with ${details.other}: keep one of them`;
    case 'null-byte':
      return `${details.flag} holds a null byte: no file has one in its name`;
    case 'replaces-outside':
      return `${details.flag} leads out of the folder of kpc.yaml, and what is there would be replaced: name that folder on the command line`;
    case 'reads-outside':
      return `${details.flag} leads out of the repository of kpc.yaml: name that file or folder on the command line`;
    case 'refused':
      return `${details.flag}: ${details.reason}`;
  }
}

type ExpectationProblem =
  | { readonly problem: 'nothing' }
  | { readonly problem: 'missing'; readonly field: 'from' | 'to' | 'expect' | 'inputs' }
  | { readonly problem: 'rivals' }
  /** As its reader says it. */
  | { readonly problem: 'refused'; readonly field: string; readonly reason: string };

function describeExpectation(details: ExpectationProblem): string {
  switch (details.problem) {
    case 'nothing':
      return 'no tests here: write them as a list under "tests:", each with from, to and expect';
    case 'missing':
      return details.field === 'inputs'
        ? 'which cluster? Name manifests, a bundle or a dump under "inputs:", or with -f'
        : `a test needs ${details.field}`;
    case 'rivals':
      return 'node and nodes mean the same: keep one of them';
    case 'refused':
      return `${details.field}: ${details.reason}`;
  }
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
    words: describeExpectation,
  },
  'bad-kpc-yaml': {
    severity: 'error',
    meaning: 'a kpc.yaml holds something other than flags and their values',
    words: describeKpcYaml,
  },
  'bad-range': {
    severity: 'error',
    meaning: 'a flag that takes ranges of addresses or ports has another value',
    words: ({ flag, value }: RangeFlag) => `${flag} is ${quote(value)}: ${rangeHints[flag]}`,
  },
  'not-shown': {
    severity: {
      among: ['error', 'warning', 'note'],
      weigh: ({ severity }: NotShown) => severity,
    },
    meaning: 'there are more messages than are printed',
    words: ({ severity, count }: NotShown) => `and ${count} more ${count === 1 ? severity : `${severity}s`}, not shown`,
  },
} satisfies DiagnosticTable;
