import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { newestRelease, releases, type Release } from '../../src/kube-proxy/feature-gates.ts';
import { example } from './example.ts';
import type { Input, PacketQuestion, ReadInput } from './questions.ts';

export const modeList: readonly ProxyMode[] = ['iptables', 'ipvs', 'nftables'];
export const releaseList: readonly Release[] = releases;

export const views = ['services', 'files', 'trace', 'compare'] as const;
export type ViewName = (typeof views)[number];

export function isView(name: string): name is ViewName {
  return views.some((each) => each === name);
}

export interface PageState {
  /** Manifests, or a node's output. */
  readonly manifests: string;
  /** A second such text, to compare with. */
  readonly second: string;
  readonly node: string;
  readonly mode: ProxyMode;
  readonly release: Release;
  readonly assume: boolean;
  readonly view: ViewName;
  readonly file: string;
  /** The chosen Service, or allServices; "" if none was chosen. */
  readonly service: string;
  readonly from: string;
  /** "" for the first Service. */
  readonly to: string;
  readonly inInterface: string;
  readonly protocol: PacketQuestion['protocol'];
  /** What to compare with: a mode, a release, or "manifests" for the second text. */
  readonly against: string;
}

export const startState: PageState = {
  manifests: example,
  second: '',
  node: '',
  mode: 'ipvs',
  release: newestRelease,
  assume: true,
  view: 'services',
  file: '',
  service: '',
  from: 'pod',
  to: '',
  inInterface: '',
  protocol: '',
  against: 'nftables',
};

/** Returns what to compare with: another mode, another release or another text, never the present one. A dump's mode is fixed. */
export function otherSide(
  { against, mode, release }: Pick<PageState, 'against' | 'mode' | 'release'>,
  kind: ReadInput['kind'],
): string {
  if (kind === 'dump') return 'manifests';
  if (against !== mode && against !== release) return against;
  const others: readonly string[] = against === mode ? modeList.toReversed() : releaseList.toReversed();
  return others.find((each) => each !== against) ?? 'manifests';
}

export function inputOf({ manifests, second, node, mode, release, assume }: PageState): Input {
  return { name: 'manifests.yaml', text: manifests, beside: second, node, mode, release, assume };
}

export function secondInputOf(state: PageState, against: string): Input {
  const input = inputOf(state);
  const mode = modeList.find((each) => each === against);
  const release = releaseList.find((each) => each === against);
  if (mode) return { ...input, mode };
  if (release) return { ...input, release };
  return { ...input, name: 'second.yaml', text: state.second, beside: '' };
}
