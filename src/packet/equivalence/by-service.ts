import { serviceOf, type Scene } from '../trace/scene.ts';
import { compareScenes, ownAddresses, type Difference } from './compare.ts';
import { Findings, type Effect, type Finding, type Severity } from './findings.ts';
import { targetFinder } from './subject.ts';

/** What becomes of the same packets to some Services on two sides. */
interface ServiceEffect extends Effect {
  /** "namespace/name", sorted; empty for packets to no Service. */
  readonly services: readonly string[];
}

/** What becomes of packets on two sides. */
export interface ServiceEffects {
  readonly effects: readonly ServiceEffect[];
  /** Whether some packets only go to other endpoints, or to the same with other chances: no effect says so. */
  readonly choosesOthers: boolean;
  /** Whether pods that reach themselves through a Service are not treated alike, which no effect says either. */
  readonly touchesHairpins: boolean;
}

/** Sends one packet of each class to both sides, and says for which Services they end otherwise. */
export function effectsByService(from: Scene, to: Scene): ServiceEffects {
  const find = targetFinder([from, to], ownAddresses([from, to]));
  const ofServices = new Map<string, { readonly findings: Findings; readonly collect: (found: Difference) => void }>();
  compareScenes(from, to, (difference) => {
    const labels = find(difference.packet).labels.map((label) => serviceOf({ label }));
    for (const service of new Set(labels.length === 0 ? [''] : labels)) {
      let known = ofServices.get(service);
      if (!known) {
        const findings = new Findings();
        known = { findings, collect: findings.collector(from, to) };
        ofServices.set(service, known);
      }
      known.collect(difference);
    }
  });
  const effects = new Map<string, ServiceEffect>();
  let choosesOthers = false;
  let touchesHairpins = false;
  for (const [service, { findings }] of [...ofServices].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const found = findings.list();
    const others = found.filter(({ cause }) => cause !== 'hairpin');
    if (others.length < found.length) touchesHairpins = true;
    for (const effect of ownEffects(others)) {
      if (effect.from === effect.to) {
        choosesOthers = true;
        continue;
      }
      const key = JSON.stringify([effect.target, effect.senders, effect.from, effect.to]);
      const before = effects.get(key)?.services ?? [];
      effects.set(key, { ...effect, services: service === '' ? before : [...before, service] });
    }
  }
  const sorted = [...effects.values()].toSorted((a, b) => weights.indexOf(a.severity) - weights.indexOf(b.severity));
  return { effects: sorted, choosesOthers, touchesHairpins };
}

/** The worst first. */
const weights: readonly Severity[] = ['breaks', 'changes', 'opens', 'fails-otherwise'];

/** The effects on one Service, whatever their causes: each once, with all senders that have it. */
function ownEffects(findings: readonly Finding[]): readonly Effect[] {
  const effects = new Map<string, Effect>();
  for (const effect of findings.flatMap((finding) => finding.effects)) {
    const key = JSON.stringify([effect.target, effect.from, effect.to]);
    const before = effects.get(key);
    const senders = [...new Set([...(before?.senders ?? []), ...effect.senders])].toSorted();
    effects.set(key, { ...effect, ...before, senders, classes: effect.classes + (before?.classes ?? 0) });
  }
  return [...effects.values()];
}
