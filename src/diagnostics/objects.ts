import { formatCount } from '../base/format-count.ts';
import { quote } from '../base/wording.ts';
import { describeFound } from './found.ts';
import type { Found } from './found.ts';
import type { DiagnosticTable } from './table.ts';

type NameProblem =
  | { readonly problem: 'name'; readonly field: string; readonly value: string; readonly rule: 'label' | 'subdomain' }
  | { readonly problem: 'host-name' | 'namespace-flag' | 'node-flag'; readonly value: string }
  | { readonly problem: 'host-name-override'; readonly field: string; readonly value: string };

function describeName(details: NameProblem): string {
  const value = quote(details.value);
  switch (details.problem) {
    case 'name': {
      const shape =
        details.rule === 'label'
          ? 'lower-case letters, digits and dashes, 63 characters at most'
          : 'lower-case letters, digits, dashes and dots, 253 characters at most';
      return `${details.field} ${value}: a name is ${shape}, with a letter or digit at both ends`;
    }
    case 'host-name':
      return `hostname ${value} is not a DNS name: the API server refuses it`;
    case 'host-name-override':
      return `${details.field} ${value}: the name of a node is letters, digits, dashes and dots`;
    case 'namespace-flag':
      return `--namespace ${value}: a namespace is lower-case letters, digits and dashes, 63 at most`;
    case 'node-flag':
      return `--node ${value}: a node's name is lower-case letters, digits, dashes and dots`;
  }
}

/** Another object of the same kind and name. */
export interface DuplicateObject {
  readonly what: 'object';
  readonly kind: string;
  /** With its namespace, if it has one. */
  readonly name: string;
  readonly first: FirstPlace;
  readonly among?: Among | undefined;
  readonly leaveOut?: LeaveOut | undefined;
}

type Duplicate =
  | DuplicateObject
  /** Another configuration, in a file of --config or among the manifests. */
  | { readonly what: 'configuration'; readonly where: 'file' | 'input' };

interface FirstPlace {
  readonly file: string;
  readonly line: number;
}

/** How many more objects of one folder another folder holds too. */
interface Among {
  readonly more: number;
  readonly folder: string;
  readonly otherFolder: string;
}

/** How to leave out one of two folders. */
interface LeaveOut {
  /** What to exclude; undefined where no pattern for it is safe in a shell. */
  readonly pattern?: string | undefined;
  /** Whether the folder holds a kustomization, which would merge the two objects. */
  readonly isUnbuilt: boolean;
}

function describeDuplicate(details: Duplicate): string {
  if (details.what === 'configuration') {
    return details.where === 'file'
      ? 'the file holds another KubeProxyConfiguration before this one: keep only one of them'
      : 'the input holds another KubeProxyConfiguration: keep one of them, or name one with --config';
  }
  const { kind, name, first, among, leaveOut } = details;
  const one = `duplicate ${kind} ${name}, first defined at ${first.file}:${first.line}`;
  const more = among ? `, and ${among.more} more of ${among.folder} that ${among.otherFolder} holds too` : '';
  return `${one}${more}${leaveOut ? describeLeaveOut(leaveOut) : ''}`;
}

function describeLeaveOut({ pattern, isUnbuilt }: LeaveOut): string {
  const example = pattern === undefined ? '' : ` ${pattern}`;
  const build = isUnbuilt ? ', or compile what "kustomize build" prints' : '';
  return `: leave one of them out, as with --exclude${example}${build}`;
}

type NoObject =
  | { readonly problem: 'no-mapping'; readonly found: Found }
  | { readonly problem: 'unrendered'; readonly field: 'apiVersion' | 'kind'; readonly value: string }
  | {
      readonly problem: 'missing';
      readonly field: 'apiVersion' | 'kind';
      /** What makes objects of such a file. */
      readonly madeBy?: 'helm' | 'kustomize' | undefined;
    };

/** The first line of what kubectl get prints without -o. */
const tableHead = /^(?:NAMESPACE +)?NAME +[A-Z]/;

function adviseOn(found: Found): string {
  if (found.type === 'list') return ': put the objects under "items" of an object of kind List';
  return found.type === 'string' && tableHead.test(found.value) ? ': print objects with kubectl get -o yaml' : '';
}

function describeNoObject(details: NoObject): string {
  if (details.problem === 'no-mapping') {
    return `a Kubernetes object is a mapping with apiVersion and kind, not ${describeFound(details.found)}${adviseOn(details.found)}`;
  }
  if (details.problem === 'unrendered')
    return `${details.field} ${quote(details.value)} is a placeholder that is not filled in`;
  const text = `this is not a Kubernetes object: it has no ${details.field}`;
  switch (details.madeBy) {
    case 'kustomize':
      return `${text}: kpc reads what "kustomize build" prints of it`;
    case 'helm':
      return `${text}: kpc reads what "helm template" prints of the chart`;
    case undefined:
      return text;
  }
}

/** "Deployments", "NetworkPolicies", "Ingresses", "Services of v2". */
function pluralOf(name: string): string {
  const [kind = '', version] = name.split(' of ', 2);
  return version === undefined ? pluralOfKind(kind) : `${pluralOfKind(kind)} of ${version}`;
}

function pluralOfKind(kind: string): string {
  if (/[^aeiou]y$/.test(kind)) return `${kind.slice(0, -1)}ies`;
  if (/(ss|x|ch|sh)$/.test(kind)) return `${kind}es`;
  return kind.endsWith('s') ? kind : `${kind}s`;
}

/** How many kinds are named, and how much of a name is shown. */
const mostKinds = 5;
const longestKind = 100;

interface SkippedKinds {
  /** The most frequent first; a kind of a version that kpc does not read is "Service of v2". */
  readonly kinds: readonly { readonly kind: string; readonly count: number }[];
  /** Whether Pods are assumed of workloads, but none of the CronJobs among the kinds. */
  readonly leavesOutCronJobs: boolean;
}

function describeSkipped({ kinds, leavesOutCronJobs }: SkippedKinds): string {
  const list = kinds.map(({ kind: written, count }) => {
    // No kind of Kubernetes is longer.
    const kind = written.length > longestKind ? `${written.slice(0, longestKind)}...` : written;
    return `${formatCount(count)} ${count === 1 ? kind : pluralOf(kind)}`;
  });
  if (list.length > mostKinds) {
    const rest = kinds.slice(mostKinds);
    const objects = formatCount(rest.reduce((sum, { count }) => sum + count, 0));
    list.length = mostKinds;
    list.push(`and ${objects} of ${rest.length === 1 ? 'another kind' : `${formatCount(rest.length)} other kinds`}`);
  }
  const cronJobs = leavesOutCronJobs ? '; the Pods of CronJobs come and go, and none is assumed' : '';
  return `ignored (kube-proxy does not read them): ${list.join(', ')}${cronJobs}`;
}

/** What is wrong with whole objects and their names, and with documents that are not objects. */
export const objectDiagnostics = {
  'bad-name': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: NameProblem) => (problem === 'host-name' ? 'warning' : 'error'),
    },
    meaning: 'a name is not valid in Kubernetes',
    words: describeName,
  },
  'duplicate-object': {
    severity: 'error',
    meaning: 'the input holds two objects of the same kind, namespace and name',
    words: describeDuplicate,
  },
  'missing-name': {
    severity: 'error',
    meaning: 'an object has no name',
    words: ({ isGenerated }: { readonly isGenerated: boolean }) =>
      `the object has no metadata.name${isGenerated ? ': the name that the cluster made of generateName is not in this file' : ''}`,
  },
  'not-an-object': {
    severity: 'error',
    meaning: 'a document is not a Kubernetes object',
    words: describeNoObject,
  },
  'skipped-kinds': {
    severity: 'note',
    meaning: 'the input holds objects of kinds that kube-proxy does not read',
    words: describeSkipped,
  },
  'unknown-kind': {
    severity: 'warning',
    meaning: 'kind or apiVersion looks misspelled, and the object is ignored',
    words: ({
      field,
      value,
      meant,
    }: {
      readonly field: 'apiVersion' | 'kind';
      readonly value: string;
      readonly meant: string;
    }) => `${field} is ${quote(value)}, and kpc ignores this object: did you mean ${meant}?`,
  },
} satisfies DiagnosticTable;
