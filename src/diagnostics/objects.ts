import { count } from '../base/format-count.ts';
import { quote } from '../base/printable.ts';
import { describeFound, type Found } from './fields.ts';
import {
  row,
  type DiagnosticTable,
  type Lists,
  type Texts,
  type Words,
  wordsBy,
  warningIf,
  type Numbers,
} from './diagnostic-rows.ts';
import { nameSome } from '../base/join-words.ts';

/** Another object of the same kind and name, which has its namespace, if it has one. */
export interface DuplicateObject extends Texts<'kind' | 'name'> {
  readonly first: Texts<'file'> & Numbers<'line'>;
  /** How many files define it, if more than two do. */
  readonly files?: number | undefined;
  /** How many more objects of one folder another folder holds too. */
  readonly among?: (Numbers<'more'> & Texts<'folder' | 'otherFolder'>) | undefined;
  /**
   * How to leave out one of two folders: what to exclude, undefined if no pattern for it is safe in a shell, and what merges
   * the two objects, if the folder holds a kustomization.
   */
  readonly leaveOut?: { readonly pattern?: string | undefined; readonly build?: string | undefined } | undefined;
  /** kpc goes on without it, though nothing asks for that. */
  readonly isUnread?: true;
}

function describeDuplicate({ kind, name, first, files, among, leaveOut, isUnread }: DuplicateObject): Words {
  const where = files === undefined ? '' : ` in ${count(files, 'file')}`;
  const one = `duplicate ${kind} ${name}${where}, first defined at ${first.file}:${first.line}`;
  const more = among ? `, and ${among.more} more of ${among.folder} that ${among.otherFolder} holds too` : '';
  return [
    `${one}${more}${isUnread ? ': kpc reads that one' : ''}`,
    leaveOut ? adviseOnDuplicate(leaveOut) : 'keep one of them',
  ];
}

function adviseOnDuplicate({ pattern, build }: NonNullable<DuplicateObject['leaveOut']>): string {
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

/** "Deployments", "NetworkPolicies", "Ingresses", "Services of v2". */
function pluralOf(name: string): string {
  const [kind = '', ...version] = name.split(/(?= of )/);
  const plural = kind.replace(/([^aeiou])y$/, '$1ie').replace(/(ss|x|ch|sh)$/, '$1e');
  return [plural.replace(/s?$/, 's'), ...version].join('');
}

const mostKinds = 5;

interface SkippedKinds {
  /** The most frequent first; a kind of a version that kpc does not read is "Service of v2". */
  readonly kinds: readonly { readonly kind: string; readonly count: number }[];
  /** Whether Pods are assumed of workloads, but none of the CronJobs among the kinds. */
  readonly leavesOutCronJobs: boolean;
}

function describeSkipped({ kinds, leavesOutCronJobs }: SkippedKinds): string {
  const list = kinds.slice(0, mostKinds).map((each) => count(each.count, each.kind, pluralOf(each.kind)));
  const rest = kinds.slice(mostKinds);
  if (rest.length > 0) {
    const objects = rest.reduce((sum, each) => sum + each.count, 0);
    list.push(`and ${count(objects, 'object')} of ${count(rest.length, 'other kind')}`);
  }
  const cronJobs = leavesOutCronJobs ? '; CronJob Pods are temporary and not assumed' : '';
  return `ignored (kube-proxy does not read them): ${list.join(', ')}${cronJobs}`;
}

/** `services` counts all Services. `lacking` names those that get a cluster IP only in the cluster. */
interface NothingProgrammed extends Numbers<'services'>, Lists<'lacking'> {
  readonly isRefused: boolean;
}

/** How to write an empty result after all. */
const allowing = 'if this is intended, add --allow-empty';

const removesAll = 'the result would remove all Services from a node';

function describeNothingProgrammed({ services, lacking, isRefused }: NothingProgrammed): Words {
  if (services === 0) {
    return isRefused ? [`the input holds no Services: ${removesAll}`, allowing] : 'the input holds no Services';
  }
  const which = services === 1 ? 'the one Service' : `any of the ${services} Services`;
  const wrong = `nothing would be programmed for ${which}, and ${removesAll}`;
  if (lacking.length === 0) return [wrong, isRefused ? allowing : undefined];
  const assume =
    'let kpc assume what manifests from git lack with --assume; or give the objects as the cluster has them';
  return [`${wrong}: ${lacking.length} without a cluster IP: ${nameSome(lacking)}`, `${assume}; ${allowing}`];
}

/** What is wrong with whole objects and their names, with documents that are not objects, and with inputs that program nothing. */
export const objectDiagnostics = {
  'duplicate-object': row(
    warningIf(({ isUnread }: DuplicateObject) => isUnread === true),
    describeDuplicate,
  ),
  'duplicate-configuration': row('error', ({ isOfArguments }: { readonly isOfArguments?: true }) => [
    isOfArguments
      ? 'the arguments of this kube-proxy differ from those of another kube-proxy in the input'
      : 'there is another KubeProxyConfiguration before this one',
    'keep one of them, or name one with --config',
  ]),
  'not-an-object': row(
    'error',
    wordsBy('problem', {
      'no-mapping': ({ found }: { readonly found: Found }) => [
        `a Kubernetes object is a mapping with apiVersion and kind, not ${describeFound(found)}`,
        adviseOn(found),
      ],
      missing: ({
        field,
        madeBy,
      }: {
        readonly field: 'apiVersion' | 'kind';
        readonly madeBy?: keyof typeof makers | undefined;
      }) => [`this is not a Kubernetes object: it has no ${field}`, madeBy && makers[madeBy]],
      unrendered: ({ field, value }: Texts<'field' | 'value'>) => [
        `${field} ${quote(value)} is a placeholder that is not filled in`,
        'give kpc what the template makes, as with helm template, kubectl kustomize or envsubst',
      ],
    }),
  ),
  'skipped-kinds': row('note', describeSkipped),
  'unknown-kind': row('warning', (details: Texts<'value' | 'meant'> & { readonly field: 'apiVersion' | 'kind' }) => [
    `${details.field} is ${quote(details.value)}, and kpc ignores this object`,
    `did you mean ${details.meant}?`,
  ]),
  'no-input': row(
    'error',
    wordsBy('problem', {
      'nothing-named': [
        'nothing to compile',
        'name manifests with -f, such as -f services.yaml, -f a-folder/ or -f - for stdin',
      ],
      'no-objects': [
        'nothing to compile: the input holds no objects at all',
        'give what "kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml" prints; describe, diff and trace also read what "nft list ruleset" or "iptables-save" prints',
      ],
      /** `kinds`: each with its number. */
      'nothing-read': ({ kinds }: Lists<'kinds'>) => [
        `nothing to check: the input holds ${nameSome(kinds)}, and nothing that kpc reads`,
        'name files with Services, EndpointSlices, Nodes, workloads, routes or NetworkPolicies',
      ],
      /** `build` is the command that makes objects of it. */
      kustomization: ({ build }: Texts<'build'>) => [
        'nothing to compile: the input is a Kustomization, which names only where the objects are',
        `run "${build}"`,
      ],
    }),
  ),
  'nothing-programmed': row(
    warningIf(({ isRefused, lacking }: NothingProgrammed) => !isRefused && lacking.length === 0),
    describeNothingProgrammed,
  ),
} satisfies DiagnosticTable;
