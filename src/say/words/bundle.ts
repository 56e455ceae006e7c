import type { BundleFault } from '../../base/findings/bundle.ts';
import { boundWords, lineFaultWords, unreadWords } from './unread.ts';
import type { FolderProblem } from '../../base/findings/calls.ts';
import { printable, quotePrintable } from '../../base/printable.ts';
import { specialUses } from './fields.ts';

export const mergeConflict = [
  'Git left a merge conflict here',
  'resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>',
] as const;

const words: {
  readonly [Problem in BundleFault['problem']]:
    string | ((fault: Extract<BundleFault, { readonly problem: Problem }>) => string);
} = {
  wrong: ({ at, expected }) => `${at || 'it'} must be ${expected}`,
  missing: ({ at }) => `${at} is missing`,
  unknown: ({ at, name }) => `${at || 'it'} has an unknown field ${quotePrintable(name)}`,
  'repeated-key': 'this key is in the same object twice',
  'no-json': 'it is not JSON',
  'too-long': (bound) => `it is ${boundWords(bound)}`,
  golden:
    'it is a golden (for git), not a bundle, and cannot be applied: compile a bundle from the same manifests with "kpc compile -o"',
  misnamed: 'it must hold one Service, the one in its file name',
  version: ({ found = 'missing', reads }) =>
    `its format version is ${found}, but this program reads ${reads}: use the same version of kpc and kpc-apply, or write the file again`,
  'merge-conflict': `${mergeConflict.join(': ')}, or write the file again`,
  'no-file': ({ name }) =>
    `${name} is missing${name === 'manifest.json' ? ': this is not a bundle that kpc compile wrote' : ''}`,
  'stray-file': ({ name }) => `${quotePrintable(name)} is not a file of this bundle`,
  changed: ({ name, found, expected }) =>
    `${name} has changed since it was compiled: its SHA-256 is ${found}, but manifest.json says ${expected}`,
  'bad-line': ({ reason }) => lineFaultWords(reason, 'what kpc writes'),
  unread: ({ reason }) => unreadWords(reason),
  value: ({ name, must }) => `${name} ${must === undefined ? 'is not what kpc writes' : `must ${must}`}`,
  'no-service': ({ name }) => `${quotePrintable(name)} has ports or health checks, but is not in the list of Services`,
  address: ({ of, what, text, is }) => `${quotePrintable(of)}: ${what} ${text} is ${uses[is]}`,
  line: ({ text, expected }) => `not what kpc writes: ${quoteLine(text)}; expected ${quoteLine(expected)}`,
  more: ({ more }) => `and ${more} more`,
};

const uses = {
  ...specialUses,
  'of-node': 'an address of the node itself',
  'of-other-family': 'of another family',
} as const;

function quoteLine(line: string | undefined): string {
  return line === undefined ? 'nothing' : quotePrintable(line);
}

export function bundleFaultWords(fault: BundleFault): string {
  const { [fault.problem]: wording } = words;
  const place = [fault.file, fault.line, fault.column, ''].filter((part) => part !== undefined).join(':');
  return `${place}${place && ' '}${typeof wording === 'function' ? wording(fault as never) : wording}`;
}

/** Says why a folder was not replaced, and what to do. */
export function describeFolderProblem(problem: FolderProblem): readonly [wrong: string, help?: string] {
  switch (problem.kind) {
    case 'io':
      return [`cannot write ${problem.folder}: ${unreadWords(problem.reason)}`];
    case 'is-a-bundle':
      return [`${problem.folder} is the bundle of one node`, 'name another folder for the bundles of several nodes'];
    case 'is-a-golden':
      return [
        `${problem.folder} already holds a golden (for git), not a bundle`,
        'write it with --golden, or name another folder with -o',
      ];
    case 'is-no-golden':
      return [
        `${problem.folder} already holds a bundle (for a node), not a golden`,
        'write it with -o, or name another folder with --golden',
      ];
    case 'is-a-file':
      return [`${problem.folder} is a file`, 'name a folder'];
    case 'is-no-pack':
      return [`${problem.folder} exists, and is no pack`, 'name another file, or remove this one'];
    case 'is-in-bundle':
      return [`${problem.folder} is inside the bundle`, 'name a file outside of it'];
    case 'not-a-bundle': {
      const names = problem.strangers.slice(0, 3).map(printable).join(', ');
      return [
        `${problem.folder} holds files that don't belong to a bundle (${names}) and would be deleted`,
        'name another folder',
      ];
    }
  }
}
