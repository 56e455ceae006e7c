import { nameSome } from '../base/name-some.ts';

import type { DiagnosticTable, Severity } from './table.ts';

/** Why nothing is programmed for a Service. */
export type LeftOutReason =
  'no-cluster-ip' | 'headless' | 'external-name' | 'other-proxy' | 'headless-label' | 'no-ports' | 'other-family';

const reasonWords: { readonly [R in LeftOutReason]: string } = {
  'no-cluster-ip':
    'without a cluster IP (--service-cluster-ip-range chooses some, or give the objects as the cluster has them)',
  headless: 'headless (clusterIP None)',
  'external-name': 'of type ExternalName',
  'other-proxy': 'left to another proxy (label service.kubernetes.io/service-proxy-name)',
  'headless-label': 'with the label service.kubernetes.io/headless, which this release leaves out',
  'no-ports': 'without ports',
  'other-family': 'of an address family that --ip-family leaves out',
};

/** In the order of the message. */
export const leftOutReasons = Object.keys(reasonWords) as readonly LeftOutReason[];

/** Reasons that look like a mistake: the input is incomplete, or the flags ask for the wrong part of it. */
const faulty: ReadonlySet<LeftOutReason> = new Set(['no-cluster-ip', 'other-family']);

interface NothingProgrammed {
  /** How many Services there are. */
  readonly services: number;
  readonly leftOut: readonly { readonly reason: LeftOutReason; readonly services: readonly string[] }[];
}

function weighEmptyResult({ leftOut }: NothingProgrammed): Severity {
  return leftOut.some(({ reason }) => faulty.has(reason)) ? 'error' : 'warning';
}

function describeEmptyResult(details: NothingProgrammed): string {
  const { services, leftOut } = details;
  const groups = leftOut.map(
    ({ reason, services: names }) => `${names.length} ${reasonWords[reason]}: ${nameSome(names)}`,
  );
  const which = services === 1 ? 'the one Service' : `any of the ${services} Services`;
  const [nothing, take] =
    weighEmptyResult(details) === 'error' ? ['nothing would be', 'would remove'] : ['nothing is', 'removes'];
  return `${nothing} programmed for ${which}, and the result ${take} all Services from a node: ${groups.join('; ')} (if this is intended, add --allow-empty)`;
}

interface NoInput {
  readonly problem: 'nothing-named' | 'no-objects' | 'kustomization';
}

function describeNoInput({ problem }: NoInput): string {
  switch (problem) {
    case 'nothing-named':
      return 'nothing to compile: name manifests with -f, such as -f services.yaml, -f a-folder/ or -f - for stdin';
    case 'no-objects':
      return 'nothing to compile: the input holds no objects at all';
    case 'kustomization':
      return 'nothing to compile: the input is a Kustomization, which says only where the objects are: run "kustomize build FOLDER | kpc compile -f -"';
  }
}

interface NoServices {
  /** What the input holds instead of Services. */
  readonly instead: 'endpoints' | 'misspelled-kinds' | 'other-objects';
}

function describeNoServices({ instead }: NoServices): string {
  switch (instead) {
    case 'other-objects':
      return 'the input holds no Services: the compiled rules remove all Services from a node';
    case 'endpoints':
      return 'the input holds EndpointSlices or Endpoints, but no Services: the compiled rules remove all Services from a node; add the Services';
    case 'misspelled-kinds':
      return 'the input holds no Services, only objects whose kind or apiVersion looks misspelled: the compiled rules would remove all Services from a node (kpc compile --allow-empty takes it, if this is intended)';
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
      weigh: ({ instead }: NoServices) => (instead === 'misspelled-kinds' ? 'error' : 'warning'),
    },
    meaning: 'the input holds no Services, and the result removes all Services from a node',
    words: describeNoServices,
  },
  'nothing-programmed': {
    severity: {
      among: ['error', 'warning'],
      weigh: weighEmptyResult,
    },
    meaning: 'kube-proxy programs nothing for any of the Services, and the result removes all from a node',
    words: describeEmptyResult,
  },
} satisfies DiagnosticTable;
