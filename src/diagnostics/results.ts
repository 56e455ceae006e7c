import { nameSome } from '../base/name-some.ts';

import type { DiagnosticTable } from './table.ts';

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

/** A Service that gets a cluster IP only later has none in what is not from a cluster. */
function isRefusedResult({ leftOut, isRefused }: NothingProgrammed): boolean {
  return isRefused || leftOut.some(({ reason }) => reason === 'no-cluster-ip');
}

/** How to write an empty result after all. */
const allowing = '(if this is intended, add --allow-empty)';

function describeEmptyResult(details: NothingProgrammed): string {
  const { services, leftOut, assuming } = details;
  const groups = leftOut.map(
    ({ reason, services: names }) => `${names.length} ${reasonWords[reason]}: ${nameSome(names)}`,
  );
  const which = services === 1 ? 'the one Service' : `any of the ${services} Services`;
  const what = `nothing would be programmed for ${which}, and the result would remove all Services from a node: ${groups.join('; ')}`;
  if (leftOut.some(({ reason }) => reason === 'no-cluster-ip')) {
    const command = assuming === undefined ? '' : `: ${assuming}`;
    return `${what}; give the objects as the cluster has them, or let kpc assume what manifests from git lack with --assume${command} ${allowing}`;
  }
  return isRefusedResult(details) ? `${what} ${allowing}` : what;
}

type NoInput =
  | { readonly problem: 'nothing-named' | 'no-objects' }
  /** `build` is the command that makes objects of it. */
  | { readonly problem: 'kustomization'; readonly build: string };

function describeNoInput(details: NoInput): string {
  switch (details.problem) {
    case 'nothing-named':
      return 'nothing to compile: name manifests with -f, such as -f services.yaml, -f a-folder/ or -f - for stdin';
    case 'no-objects':
      return 'nothing to compile: the input holds no objects at all';
    case 'kustomization':
      return `nothing to compile: the input is a Kustomization, which says only where the objects are: run "${details.build}"`;
  }
}

interface NoServices {
  /** What the input holds instead of Services. */
  readonly instead: 'endpoints' | 'misspelled-kinds' | 'other-objects';
  /** Whether the result would be written, and not only shown. */
  readonly isRefused: boolean;
}

function describeNoServices({ instead, isRefused }: NoServices): string {
  const found = describeWithoutServices(instead);
  return isRefused ? `${found}: the result would remove all Services from a node ${allowing}` : found;
}

function describeWithoutServices(instead: NoServices['instead']): string {
  switch (instead) {
    case 'other-objects':
      return 'the input holds no Services';
    case 'endpoints':
      return 'the input holds EndpointSlices or Endpoints, but no Services; add the Services';
    case 'misspelled-kinds':
      return 'the input holds no Services, only objects whose kind or apiVersion looks misspelled';
  }
}

/** Inputs that program nothing. */
export const resultDiagnostics = {
  'no-input': {
    severity: 'error',
    meaning: 'there is nothing to compile',
    words: describeNoInput,
  },
  'no-services': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ isRefused }: NoServices) => (isRefused ? 'error' : 'warning'),
    },
    meaning: 'the input holds no Services, and the result would remove all Services from a node',
    words: describeNoServices,
  },
  'nothing-programmed': {
    severity: {
      among: ['error', 'warning'],
      weigh: (details: NothingProgrammed) => (isRefusedResult(details) ? 'error' : 'warning'),
    },
    meaning: 'kube-proxy programs nothing for any of the Services, and the result would remove all from a node',
    words: describeEmptyResult,
  },
} satisfies DiagnosticTable;
