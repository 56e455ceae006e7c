import { chooseEndpoints } from '../../cluster/endpoint-choice.ts';
import type { Cluster, ShownPort } from '../../cluster/model.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { behaviourReason, stepsBetween, type BehaviourReason } from '../../kube-proxy/releases.ts';
import type { Fate } from '../../packet/packet.ts';
import type { Scene } from '../trace/scene.ts';
import type { Difference } from './compare.ts';
import { portText } from './destinations.ts';

/** Endpoints as sorted text. */
type Choice = Readonly<Record<'cluster' | 'local', string>>;

/**
 * Returns a function that finds the behaviours by which the two kube-proxies choose the endpoints that packets reach. They are the cause
 * only if packets reach what each side chooses under the same policy.
 */
export function behaviourFinder(
  { side: old }: Scene,
  { side: fresh }: Scene,
): (ports: readonly ShownPort[], difference: Difference) => readonly BehaviourReason[] {
  if (old.kind === 'dump' || fresh.kind === 'dump' || !fresh.readBy) return () => [];
  const { readBy, node } = fresh;
  const steps = stepsBetween(old.behaviours, fresh.behaviours, [old.mode, fresh.mode]);
  const choicesOf = ({ servicePorts }: Cluster): ReadonlyMap<string, Choice> =>
    new Map(
      servicePorts.map((port) => {
        const { cluster, local } = chooseEndpoints(port, node);
        return [portText(port), { cluster: listed(cluster), local: listed(local) }];
      }),
    );
  let known: readonly ReadonlyMap<string, Choice>[] | undefined;
  return (ports, { from, to }) => {
    const [before, after] = [from, to].map(reached);
    if (steps.length === 0 || before === after) return [];
    const choices = (known ??= [old.behaviours, ...steps.map(({ does }) => does)].map((does) =>
      choicesOf(readBy(does)),
    ));
    const own = ports.flatMap((port) =>
      (['cluster', 'local'] as const).map((policy) => {
        return choices.map((each) => each.get(portText(port))?.[policy]);
      }),
    );
    const chosen = own.find((each) => each[0] === before && each.at(-1) === after) ?? [];
    return steps.flatMap(({ behaviour }, at) =>
      chosen[at] === chosen[at + 1]
        ? []
        : behaviourReason(behaviour, old.settings.release, fresh.settings.release, fresh.behaviours),
    );
  };
}

function reached({ endpoints }: Fate): string {
  return listed(endpoints.map((each) => ({ label: formatSocketAddress(each) })));
}

function listed(endpoints: readonly { readonly label: string }[]): string {
  return [...new Set(endpoints.map(({ label }) => label))].sort().join();
}
