import { manifests, aNode, aService } from './examples.ts';
import { nameSome } from '../base/join-words.ts';
import { wordsBy, type DiagnosticTable, type Words } from './diagnostic-rows.ts';

/** Why nothing is programmed for a Service. */
export type LeftOutReason =
  'no-cluster-ip' | 'headless' | 'external-name' | 'other-proxy' | 'headless-label' | 'no-ports' | 'other-family';

const reasonWords: { readonly [R in LeftOutReason]: string } = {
  'no-cluster-ip': 'without a cluster IP',
  headless: 'headless (clusterIP None)',
  'external-name': 'of type ExternalName',
  'other-proxy': 'left to another proxy (label service.kubernetes.io/service-proxy-name)',
  'headless-label': 'with the label service.kubernetes.io/headless, which this release leaves out',
  'no-ports': 'without ports',
  'other-family': 'of an address family that --ip-family leaves out',
};

/** In the order of the message. */
export const leftOutReasons = Object.keys(reasonWords) as readonly LeftOutReason[];

interface NothingProgrammed {
  /** How many Services there are. */
  readonly services: number;
  readonly leftOut: readonly { readonly reason: LeftOutReason; readonly services: readonly string[] }[];
  readonly isRefused: boolean;
  /** The command as it was called, with what makes it assume what is missing; undefined if that would not help. */
  readonly assuming: string | undefined;
}

function lacksClusterIp({ leftOut }: NothingProgrammed): boolean {
  return leftOut.some(({ reason }) => reason === 'no-cluster-ip');
}

/** A Service that gets a cluster IP only later has none in what is not from a cluster. */
function isRefusedResult(details: NothingProgrammed): boolean {
  return details.isRefused || lacksClusterIp(details);
}

/** How to write an empty result after all. */
const allowing = 'if this is intended, add --allow-empty';

function describeEmptyResult(details: NothingProgrammed): Words {
  const { services, leftOut, assuming } = details;
  const groups = leftOut.map(
    ({ reason, services: names }) => `${names.length} ${reasonWords[reason]}: ${nameSome(names)}`,
  );
  const which = services === 1 ? 'the one Service' : `any of the ${services} Services`;
  const command = assuming === undefined ? '' : `, as with "${assuming}"`;
  const assume = `let kpc assume what manifests from git lack with --assume${command}; or give the objects as the cluster has them`;
  const help = lacksClusterIp(details) ? `${assume}; ${allowing}` : allowing;
  return [
    `nothing would be programmed for ${which}, and the result would remove all Services from a node: ${groups.join('; ')}`,
    isRefusedResult(details) ? help : undefined,
  ];
}

interface NoServices {
  /** What the input holds instead of Services. */
  readonly instead: keyof typeof instead;
  /** Whether the result would be written, and not only shown. */
  readonly isRefused: boolean;
}

const instead = {
  endpoints: ['the input holds EndpointSlices or Endpoints, but no Services', 'add the Services'],
  'misspelled-kinds': ['the input holds no Services, only objects whose kind or apiVersion looks misspelled'],
  'other-objects': ['the input holds no Services'],
} as const;

function describeNoServices(details: NoServices): Words {
  const [wrong, help] = instead[details.instead];
  if (!details.isRefused) return [wrong, help];
  return [
    `${wrong}: the result would remove all Services from a node`,
    help === undefined ? allowing : `${help}; ${allowing}`,
  ];
}

/** Inputs that program nothing. */
export const resultDiagnostics = {
  'no-input': {
    severity: 'error',
    meaning: 'there is nothing to compile',
    example: () => ({ words: ['compile'], files: {} }),
    words: wordsBy('problem', {
      'nothing-named': [
        'nothing to compile',
        'name manifests with -f, such as -f services.yaml, -f a-folder/ or -f - for stdin',
      ],
      'no-objects': [
        'nothing to compile: the input holds no objects at all',
        'give what "kubectl get services,endpointslices,nodes -A -o yaml" prints; describe, diff and trace also read what "nft list ruleset" or "iptables-save" prints',
      ],
      /** `build` is the command that makes objects of it. */
      kustomization: ({ build }: { readonly build: string }) => [
        'nothing to compile: the input is a Kustomization, which names only where the objects are',
        `run "${build}"`,
      ],
    }),
  },
  'no-services': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ isRefused }: NoServices) => (isRefused ? 'error' : 'warning'),
    },
    meaning: 'the input holds no Services, and the result would remove all Services from a node',
    example: () => manifests(aNode('spec: {}')),
    words: describeNoServices,
  },
  'nothing-programmed': {
    severity: {
      among: ['error', 'warning'],
      weigh: (details: NothingProgrammed) => (isRefusedResult(details) ? 'error' : 'warning'),
    },
    meaning: 'kube-proxy programs nothing for any of the Services, and the result would remove all from a node',
    example: () => manifests(aService('clusterIP: None')),
    words: describeEmptyResult,
  },
} satisfies DiagnosticTable;
