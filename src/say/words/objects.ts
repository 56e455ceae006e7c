import { buildWays } from './files.ts';
import { count, printable, quote } from '../../base/printable.ts';
import type { FoundValue } from '../../base/findings/fields.ts';
import { foundWords } from './fields.ts';
import { byCase, didYouMean, type Words, type WordsOf, nameSome } from './rows.ts';
import type { DuplicateObject, SkippedKinds, NothingProgrammed, objectFindings } from '../../base/findings/objects.ts';

function describeDuplicate({ kind, name, first, files, among, leaveOut, isUnread }: DuplicateObject): Words {
  const where = files === undefined ? '' : ` in ${count(files, 'file')}`;
  const one = `duplicate ${kind} ${name}${where}, first defined at ${first.file}:${first.line}`;
  const more = among
    ? `; ${among.more} more ${among.more === 1 ? 'object is' : 'objects are'} in both ${among.folder} and ${among.otherFolder}`
    : '';
  return [
    `${one}${more}${isUnread ? '; kpc reads the first one' : ''}`,
    ...(leaveOut ? waysToLeaveOut(leaveOut) : ['keep one of them']),
  ];
}

function waysToLeaveOut({ pattern, build }: NonNullable<DuplicateObject['leaveOut']>) {
  const exclude = pattern === undefined ? ' with --exclude PATTERN' : `, as with --exclude ${pattern}`;
  return [`leave one of them out${exclude}`, ...(build ? buildWays(build) : [])];
}

const printObjects = 'print objects with kubectl get -o yaml';

/** Matches the first line that kubectl get prints without -o. */
const tableHead = /^(?:NAMESPACE +)?NAME +[A-Z]/;

function adviseOnFound(found: FoundValue): string | undefined {
  if (found.type === 'list') return 'put the objects under "items" of an object of kind List';
  return found.type === 'string' && tableHead.test(found.value) ? printObjects : undefined;
}

/** Programs that make objects from a file that contains none. */
const makers = {
  kustomize: 'compile the output of "kubectl kustomize" instead',
  helm: 'compile the output of "helm template" instead',
  kubectl: printObjects,
} as const;

const mostKinds = 5;

function skippedKindsWords({ kinds, leavesOutCronJobs }: SkippedKinds): string {
  const list = kinds.slice(0, mostKinds).map((each) => count(each.count, each.kind));
  const rest = kinds.slice(mostKinds);
  if (rest.length > 0) {
    const objects = rest.reduce((sum, each) => sum + each.count, 0);
    list.push(`and ${count(objects, 'object')} of ${count(rest.length, 'other kind')}`);
  }
  const cronJobs = leavesOutCronJobs ? '; CronJob Pods are temporary and not assumed' : '';
  return `ignored (kube-proxy does not read them): ${list.join(', ')}${cronJobs}`;
}

const needsServices = 'name manifests with Services that have a cluster IP';

const allowing = 'add --allow-empty if this is intended';

const removesAll = 'the result would remove all Services from a node';

function describeNothingProgrammed({ services, lacking, isRefused, isUseless }: NothingProgrammed): Words {
  if (services === 0) {
    if (isUseless) return ['the input holds no Services', needsServices];
    return isRefused ? [`the input holds no Services: ${removesAll}`, allowing] : 'the input holds no Services';
  }
  const which = services === 1 ? 'the one Service' : `any of the ${services} Services`;
  const why =
    lacking.length === 0 ? '' : ` (${nameSome(lacking)} ${lacking.length === 1 ? 'has' : 'have'} no cluster IP)`;
  if (isUseless) return [`nothing is programmed for ${which}${why}`, needsServices];
  const wrong = `nothing is programmed for ${which}${why}: ${removesAll}`;
  if (lacking.length === 0) return [wrong, isRefused ? allowing : undefined];
  return [
    wrong,
    'add --assume, so that kpc chooses what manifests from git lack',
    'give the objects as the cluster has them',
    allowing,
  ];
}

/** Words for problems with whole objects and their names, documents that are not objects, and input that programs nothing. */
export const objectWords: WordsOf<typeof objectFindings> = {
  'duplicate-object': describeDuplicate,
  'duplicate-configuration': ({ isOfArguments }) => [
    isOfArguments
      ? 'the arguments of this kube-proxy differ from those of another kube-proxy in the input'
      : 'there is another KubeProxyConfiguration before this one',
    'keep one of them',
    'name one with --config',
  ],
  'not-an-object': byCase('problem', {
    'no-mapping': ({ found }) => [
      `a Kubernetes object is a mapping with apiVersion and kind, not ${foundWords(found)}`,
      adviseOnFound(found),
    ],
    missing: ({ field, near, madeBy }) => [
      `this is not a Kubernetes object: it has no ${field}`,
      near === undefined ? madeBy && makers[madeBy] : `write ${field}, not ${near}`,
    ],
    unrendered: ({ field, value }) => [
      `${field} ${quote(value)} is an unfilled placeholder`,
      'render the template first, as with helm template, kubectl kustomize or envsubst',
    ],
  }),
  'unmatched-selector': ({ kind, selector }) => [
    `the API server refuses this ${kind}: its selector (${printable(selector)}) does not match the labels of its template`,
    'give spec.template.metadata.labels the labels of spec.selector',
  ],
  'skipped-kinds': skippedKindsWords,
  'unknown-kind': (details) => [
    `${details.field} is ${quote(details.value)}, so kpc ignores this object`,
    didYouMean(details.meant),
  ],
  'no-input': byCase('problem', {
    'nothing-named': [
      'nothing to compile',
      'name manifests with -f, such as -f services.yaml, -f a-folder/ or -f - for stdin',
    ],
    'no-objects': [
      'nothing to compile: the input holds no objects at all',
      'give the output of "kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml"',
      'to describe, diff or trace, give the output of "nft list ruleset" or "iptables-save"',
    ],

    'unknown-kind': ({ field, value, meant }) => [
      `nothing to compile: the input holds only objects that kpc ignores, because ${field} is ${quote(value)}`,
      didYouMean(meant),
    ],
    'nothing-read': ({ kinds }) => [
      `nothing to check: the input holds ${nameSome(kinds)}, but nothing that kpc reads`,
      'name files with Services, EndpointSlices, Nodes, workloads, routes or NetworkPolicies',
    ],
    kustomization: (build) => [
      `nothing to compile: ${build.folder ?? 'the input'} holds no Services, but a Kustomization that names other files`,
      ...buildWays(build),
    ],
    kubeconfig: [
      'nothing to compile: the input is a kubeconfig, which only names clusters',
      'to read its cluster, use --cluster on the command line, with the variable KUBECONFIG',
      'give the output of "kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml"',
    ],
  }),
  'nothing-programmed': describeNothingProgrammed,
};
