import { isSameValue } from '../../base/json/same-value.ts';
import type { ShownPort } from '../../cluster/model.ts';
import { families } from '../../kernel/address.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import type { DumpedSnapshot } from '../../snapshot/snapshot.ts';
import type { KernelChange } from '../changes/kernel-change.ts';
import { diffSides } from '../diff/diff-sides.ts';
import type { Scene } from '../trace/scene.ts';
import type { LostRules } from './causes.ts';

interface DifferingSysctl {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** The parts of a node's state that differ between two sides and so may be a cause. */
export interface DifferingParts {
  /** Reports whether kube-proxy's objects differ: those of these ports, or those that no port owns. */
  readonly rules: (ports: readonly ShownPort[]) => boolean;
  /** Returns what one side lacks. Undefined if each side lacks something, or if nothing differs other than endpoints. */
  readonly lost: (ports: readonly ShownPort[]) => LostRules | undefined;
  readonly foreign: boolean;
  readonly kernel: boolean;
  readonly sysctls: readonly DifferingSysctl[];
}

/** Compares the sides as kpc diff does. Parts that a compiled side takes from a dump, or does not show, count as changed. */
export function differingParts([{ side: old }, { side: fresh }]: readonly [Scene, Scene]): DifferingParts {
  const { servicePorts, base, foreign } = diffSides(old, fresh, { foreign: true });
  const ofRules = base.filter(({ kind }) => !ofNode.has(kind));
  const byLabel = new Map(servicePorts.map((port) => [port.label, port]));
  const partsOf = (ports: readonly ShownPort[]) => ports.flatMap(({ label }) => byLabel.get(label) ?? []);
  const dumps = old.kind === 'dump' && fresh.kind === 'dump' ? ([old, fresh] as const) : undefined;
  const sysctls = dumps ? changedSysctls(...dumps) : [];
  const ownOf = (diffs: typeof servicePorts) => {
    const own = diffs.filter(({ reasons }) => !reasons.some(({ kind }) => kind.startsWith('endpoint-')));
    return [...ofRules, ...own.flatMap(({ kernel }) => kernel)];
  };
  const lacking = (side: Scene['side'], way: string): LostRules => {
    const all = ownOf(servicePorts).filter((change) => wayOf(change) === way);
    return {
      kind: 'lost-rules',
      side: side.name,
      lost: all.slice(0, mostLost),
      more: Math.max(0, all.length - mostLost),
    };
  };
  const lost = { removed: lacking(fresh, 'removed'), added: lacking(old, 'added') };
  return {
    rules: (ports) => ofRules.length > 0 || partsOf(ports).length > 0,
    lost: (ports) => {
      const [way = 'both', ...others] = new Set(ownOf(partsOf(ports)).map(wayOf));
      return others.length > 0 || way === 'both' ? undefined : lost[way];
    },
    foreign: !dumps || foreign.length > 0 || !isSameValue(chainPolicies(old), chainPolicies(fresh)),
    kernel: !dumps || sysctls.length > 0 || !isSameValue(nodeParts(old), nodeParts(fresh)),
    sysctls,
  };
}

/** The number of lost objects to name. */
const mostLost = 3;

const ofNode: ReadonlySet<KernelChange['kind']> = new Set(['sysctl', 'setting', 'module', 'ipvs-timeouts']);

function wayOf({ change, fields }: KernelChange): 'added' | 'removed' | 'both' {
  if (change !== 'changed') return change;
  if (!('added' in fields) || ('edited' in fields && fields.edited.length > 0)) return 'both';
  if (fields.added.length === 0 && fields.removed.length > 0) return 'removed';
  return fields.removed.length === 0 && fields.added.length > 0 ? 'added' : 'both';
}

function changedSysctls({ state: from }: DumpedSnapshot, { state: to }: DumpedSnapshot): readonly DifferingSysctl[] {
  return [...from.sysctls].flatMap(([name, value]) => {
    const other = to.sysctls.get(name);
    const isOfNetwork = name.startsWith('net.') && !name.endsWith('_count');
    return isOfNetwork && other !== undefined && other !== value ? [{ name, from: value, to: other }] : [];
  });
}

function nodeParts({ routes, state: { links } }: Scene['side']) {
  return { routes, links: links.filter(({ name }) => name !== serviceLink) };
}

/** Returns the policies of iptables' built-in chains, which kpc diff leaves out. */
function chainPolicies({ state: { iptables } }: Scene['side']) {
  return families.map((family) =>
    Object.values(iptables[family] ?? {}).map((table) =>
      [...table].flatMap(([name, { policy }]) => (policy ? [[name, policy]] : [])),
    ),
  );
}
