import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { newestRelease, releases, type Release } from '../../src/kube-proxy/releases.ts';
import type { Input, PacketQuestion } from './compiler.ts';
import { example } from './example.ts';

export const modeList: readonly ProxyMode[] = ['iptables', 'ipvs', 'nftables'];
export const releaseList: readonly Release[] = releases;

export const views = ['files', 'services', 'trace', 'compare'] as const;
export type ViewName = (typeof views)[number];

export function isView(name: string): name is ViewName {
  return views.some((each) => each === name);
}

/** All that a link holds. */
export interface PageState {
  readonly manifests: string;
  /** Another version of the manifests, to compare with. */
  readonly second: string;
  readonly node: string;
  readonly mode: ProxyMode;
  readonly release: Release;
  readonly assume: boolean;
  readonly view: ViewName;
  readonly file: string;
  readonly service: string;
  readonly from: string;
  readonly to: string;
  readonly protocol: PacketQuestion['protocol'];
  /** What to compare with: a mode, a release, or "manifests". */
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
  from: 'external',
  to: '',
  protocol: '',
  against: 'nftables',
};

/** The name that diagnostics give the manifests. */
export const manifestsName = 'manifests.yaml';

export function inputOf({ manifests, node, mode, release, assume }: PageState): Input {
  return { name: manifestsName, text: manifests, node, mode, release, assume };
}

/** The other side of a comparison. */
export function secondInputOf(state: PageState): Input {
  const input = inputOf(state);
  const mode = modeList.find((each) => each === state.against);
  const release = releaseList.find((each) => each === state.against);
  if (mode) return { ...input, mode };
  if (release) return { ...input, release };
  return { ...input, name: 'second.yaml', text: state.second };
}
