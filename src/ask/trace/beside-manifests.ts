import { portAddresses, serviceName, type ServicePort, type ShownPort } from '../../cluster/model.ts';
import { joinHostPort } from '../../kernel/address.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { DecompiledPort } from '../../snapshot/decompiled-port.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { showsTranslation } from '../describe/find-ports.ts';
import type { Destination } from './question.ts';
import { servicePortAt, servicesWithoutEndpoints } from './service-ends.ts';

/** What only the dump has (`node`), and what only the manifests beside it have. */
export interface OneSided {
  readonly node: readonly string[];
  readonly manifests: readonly string[];
}

/** Compares the Service port that a packet goes to with the manifests beside the dump. Undefined if the dump does not show the port. */
export function besideManifests(target: Destination, side: Snapshot) {
  const named = side.kind === 'dump' ? side.named : undefined;
  const { family } = target.address;
  if (!named || side.kind !== 'dump' || !showsTranslation(side, family)) return undefined;
  const label = target.label ?? (servicePortAt(target, side, named.addresses) ?? servicePortAt(target, side))?.label;
  const written = named.servicePorts.find((each) => each.label === label && each.family === family);
  const shown = written && side.shownPort(written.label, family);
  if (!shown || shown.hidesAddresses) return undefined;
  const isGiven =
    !servicesWithoutEndpoints({ cluster: named }).has(serviceName(written)) &&
    written.endpoints.every(({ status }) => !status.assumed);
  return {
    label: written.label,
    places: withoutShared(placesOf(shown), placesOf(written)),
    endpoints: isGiven ? compareEndpoints(shown, written) : withoutShared([], []),
  };
}

function placesOf(port: ShownPort): readonly string[] {
  const own = portAddresses(port).map(({ address }) => joinHostPort(address.text, port.port ?? 0));
  return port.nodePort ? [...own, `node:${port.nodePort}`] : own;
}

function compareEndpoints({ endpoints: held }: DecompiledPort, written: ServicePort): OneSided {
  const { internalPolicyLocal, externalPolicyLocal, endpoints } = written;
  // kube-proxy leaves out some endpoints under policy Local and with hints.
  const areAllUsed =
    !internalPolicyLocal &&
    !externalPolicyLocal &&
    endpoints.every(({ status }) => status.zoneHints.length + status.nodeHints.length === 0);
  if (!held) return withoutShared([], []);
  const known = endpoints.map(formatSocketAddress);
  const wanted = endpoints.filter(({ status }) => areAllUsed && status.ready).map(formatSocketAddress);
  const used = held.flatMap(({ draining, label }) => (draining ? [] : label));
  return { node: withoutShared(used, known).node, manifests: withoutShared(used, wanted).manifests };
}

function withoutShared(node: readonly string[], manifests: readonly string[]): OneSided {
  return {
    node: node.filter((each) => !manifests.includes(each)),
    manifests: manifests.filter((each) => !node.includes(each)),
  };
}
