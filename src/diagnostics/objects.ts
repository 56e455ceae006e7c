import { manifests, web } from './examples.ts';
import { formatCount } from '../base/format-count.ts';
import { quote } from '../base/printable.ts';
import { describeFound, type Found } from './value-in-words.ts';
import { wordsBy, type DiagnosticTable, type Words } from './diagnostic-rows.ts';

interface Value {
  readonly value: string;
}

type FieldValue = Value & { readonly field: string };

type WrongName = FieldValue & {
  readonly rule: 'label' | 'subdomain';
  /** No rule depends on it: the API server refuses it, but kube-proxy does not. */
  readonly isUnused?: true;
};

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
  /** What merges the two objects, if the folder holds a kustomization. */
  readonly build?: string | undefined;
}

function describeDuplicate({ kind, name, first, among, leaveOut }: Omit<DuplicateObject, 'what'>): Words {
  const one = `duplicate ${kind} ${name}, first defined at ${first.file}:${first.line}`;
  const more = among ? `, and ${among.more} more of ${among.folder} that ${among.otherFolder} holds too` : '';
  return [`${one}${more}`, leaveOut ? adviseOnDuplicate(leaveOut) : 'keep one of them'];
}

function adviseOnDuplicate({ pattern, build }: LeaveOut): string {
  const exclude = pattern === undefined ? ' with --exclude PATTERN' : `, as with --exclude ${pattern}`;
  const other = build === undefined ? '' : `, or run "${build}"`;
  return `leave one of them out${exclude}${other}`;
}

/** The first line of what kubectl get prints without -o. */
const tableHead = /^(?:NAMESPACE +)?NAME +[A-Z]/;

function adviseOn(found: Found): string | undefined {
  if (found.type === 'list') return 'put the objects under "items" of an object of kind List';
  return found.type === 'string' && tableHead.test(found.value) ? 'print objects with kubectl get -o yaml' : undefined;
}

/** What makes objects of a file that holds none. */
const makers = {
  kustomize: 'compile what "kubectl kustomize" prints of it',
  helm: 'compile what "helm template" prints of the chart',
} as const;

interface MissingField {
  readonly field: 'apiVersion' | 'kind';
  readonly madeBy?: keyof typeof makers | undefined;
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
    const count = rest.reduce((sum, each) => sum + each.count, 0);
    const objects = `${formatCount(count)} ${count === 1 ? 'object' : 'objects'}`;
    list.length = mostKinds;
    list.push(`and ${objects} of ${rest.length === 1 ? 'another kind' : `${formatCount(rest.length)} other kinds`}`);
  }
  const cronJobs = leavesOutCronJobs ? '; CronJob Pods are temporary and not assumed' : '';
  return `ignored (kube-proxy does not read them): ${list.join(', ')}${cronJobs}`;
}

/** What is wrong with whole objects and their names, and with documents that are not objects. */
export const objectDiagnostics = {
  'bad-name': {
    severity: { among: ['error', 'warning'], weigh: ({ isUnused }: WrongName) => (isUnused ? 'warning' : 'error') },
    meaning: 'a name is not valid in Kubernetes',
    example: () => manifests(web.replace('web', 'Web')),
    words: ({ field, value, rule }: WrongName) => {
      const [signs, most] = rule === 'label' ? ['digits and dashes', 63] : ['digits, dashes and dots', 253];
      return [
        `${field} cannot be ${quote(value)}`,
        `write lower-case letters, ${signs}, ${most} characters at most, with a letter or digit at both ends`,
      ];
    },
  },
  'duplicate-object': {
    severity: 'error',
    meaning: 'the input holds two objects of the same kind, namespace and name',
    example: () => manifests(web + web),
    words: wordsBy('what', {
      object: describeDuplicate,
      /** Another configuration, in a file of --config or among the manifests. */
      configuration: ({ where }: { readonly where: 'file' | 'input' }) =>
        where === 'file'
          ? ['the file holds another KubeProxyConfiguration before this one', 'keep only one of them']
          : ['the input holds another KubeProxyConfiguration', 'keep one of them, or name one with --config'],
    }),
  },
  'missing-name': {
    severity: 'error',
    meaning: 'an object has no name',
    example: () => manifests(web.replace('name: web', '')),
    words: ({ isGenerated }: { readonly isGenerated: boolean }) => [
      `the object has no metadata.name${isGenerated ? ': the name that the cluster made of generateName is not in this file' : ''}`,
      isGenerated ? 'give the object as the cluster has it, or write a name' : 'write one',
    ],
  },
  'not-an-object': {
    severity: 'error',
    meaning: 'a document is not a Kubernetes object',
    example: () => manifests('- one\n- two\n'),
    words: wordsBy('problem', {
      'no-mapping': ({ found }: { readonly found: Found }) => [
        `a Kubernetes object is a mapping with apiVersion and kind, not ${describeFound(found)}`,
        adviseOn(found),
      ],
      missing: ({ field, madeBy }: MissingField) => [
        `this is not a Kubernetes object: it has no ${field}`,
        madeBy && makers[madeBy],
      ],
      unrendered: ({ field, value }: FieldValue) => [
        `${field} ${quote(value)} is a placeholder that is not filled in`,
        'give kpc what the template makes, as with helm template, kubectl kustomize or envsubst',
      ],
    }),
  },
  'skipped-kinds': {
    severity: 'note',
    meaning: 'the input holds objects of kinds that kube-proxy does not read',
    example: () => manifests(web + 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: web }\n'),
    words: describeSkipped,
  },
  'unknown-kind': {
    severity: 'warning',
    meaning: 'kind or apiVersion looks misspelled, and the object is ignored',
    example: () => manifests(web.replace('kind: Service', 'kind: Servcie')),
    words: (details: { readonly field: 'apiVersion' | 'kind'; readonly value: string; readonly meant: string }) => [
      `${details.field} is ${quote(details.value)}, and kpc ignores this object`,
      `did you mean ${details.meant}?`,
    ],
  },
} satisfies DiagnosticTable;
