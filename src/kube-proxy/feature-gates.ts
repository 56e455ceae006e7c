import { recordedGates } from './feature-gates.recorded.ts';

/**
 * The Kubernetes releases that kpc follows, oldest first, with the version whose source kpc follows (a pre-release if the release is not
 * out). kpc's output was compared with all of them except v1.31.14. For modes see `modeHistories`.
 */
export const kubeProxyVersions = {
  '1.25': 'v1.25.16',
  '1.30': 'v1.30.14',
  '1.31': 'v1.31.14',
  '1.32': 'v1.32.10',
  '1.33': 'v1.33.13',
  '1.34': 'v1.34.2',
  '1.35': 'v1.35.4',
  '1.36': 'v1.36.3',
  '1.37': 'v1.37.2',
  '1.38': 'v1.38.0-beta.0',
} as const;

export type Release = keyof typeof kubeProxyVersions;

export const releases = Object.keys(kubeProxyVersions) as readonly Release[];

/** Reports whether a release is not out yet, so that the version kpc follows may change. */
export function isPreview(release: Release): boolean {
  return kubeProxyVersions[release].includes('-');
}

export const newestRelease = releases.findLast((release) => !isPreview(release)) as Release;

export type FeatureGates = ReadonlyMap<string, boolean>;

export interface Gate {
  readonly name: string;
  /** AllAlpha and AllBeta turn on the gates in their stage. Other gates are generally available or deprecated. */
  readonly stage: 'alpha' | 'beta' | 'other';
  readonly isOnByDefault: boolean;
  readonly isLocked: boolean;
  readonly needs: readonly string[];
}

/**
 * Returns the position of a release's letter in each line. Computes it on demand, so that commands without gates keep no table in memory.
 */
function columnOf(release: string): number {
  const [, heading = ''] = recordedGates.split('\n', 2);
  return heading.split(' ').findIndex((version) => version.startsWith(`v${release}.`));
}

/** The first release in which some gates need other gates. */
const firstWithNeeds: Release = '1.35';

export function gateOf(name: string, release: Release): Gate | undefined {
  // Search the text instead of parsing it, because kpc needs few of its hundreds of lines.
  const start = /^\w+$/.test(name) ? recordedGates.indexOf(`\n${name} `) + 1 : 0;
  return start === 0
    ? undefined
    : readGateLine(recordedGates.slice(start, recordedGates.indexOf('\n', start)), release);
}

function readGateLine(line: string, release: Release): Gate | undefined {
  const [name = '', letters = '', needs = ''] = line.split(' ');
  const column = columnOf(release);
  const letter = letters[column] ?? '-';
  if (letter === '-') return undefined;
  const lower = letter.toLowerCase();
  return {
    name,
    stage: lower === 'a' ? 'alpha' : lower === 'b' ? 'beta' : 'other',
    isOnByDefault: letter !== lower,
    isLocked: lower === 'l',
    needs: needs.split(',').flatMap((written) => {
      const [need = '', since = firstWithNeeds] = written.split('@');
      return column >= columnOf(since) && gateOf(need, release) ? [need] : [];
    }),
  };
}

export function gatesOf(release: Release): readonly Gate[] {
  const [, , ...lines] = recordedGates.split('\n');
  return lines.flatMap((line) => readGateLine(line, release) ?? []);
}

export function releasesWithGate(name: string): readonly Release[] {
  return releases.filter((release) => gateOf(name, release));
}

export function isOn({ name, stage, isOnByDefault }: Gate, gates: FeatureGates): boolean {
  const ofStage = stage === 'other' ? undefined : gates.get(stage === 'alpha' ? 'AllAlpha' : 'AllBeta');
  return gates.get(name) ?? ofStage ?? isOnByDefault;
}

/** Why kube-proxy does not start. `unmet` has enabled gates, each with the disabled gates that it needs. */
export type GateFault = { readonly release: Release } & (
  | { readonly problem: 'unknown'; readonly gate: string }
  | { readonly problem: 'locked'; readonly gate: string; readonly isOn: boolean }
  | {
      readonly problem: 'needs';
      readonly unmet: readonly { readonly gate: string; readonly needs: readonly string[] }[];
    }
);

/** Returns why a release's kube-proxy does not start with these gates (SetFromMap of component-base/featuregate). */
export function findGateFaults(gates: FeatureGates, release: Release): readonly GateFault[] {
  const wrong = [...gates].flatMap(([gate, value]): readonly GateFault[] => {
    const known = gateOf(gate, release);
    if (!known) return [{ problem: 'unknown', gate, release }];
    return known.isLocked && known.isOnByDefault !== value ? [{ problem: 'locked', gate, isOn: value, release }] : [];
  });
  if (gates.size === 0 || wrong.length > 0) return wrong;
  const on = new Set(gatesOf(release).flatMap((gate) => (isOn(gate, gates) ? [gate.name] : [])));
  const unmet = gatesOf(release)
    .filter(({ name }) => on.has(name))
    .map(({ name, needs }) => ({ gate: name, needs: needs.filter((need) => !on.has(need)) }))
    .filter(({ needs }) => needs.length > 0);
  return unmet.length > 0 ? [{ problem: 'needs', unmet, release }] : [];
}
