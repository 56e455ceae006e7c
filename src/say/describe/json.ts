import type { MasqueradedClients } from '../../cluster/plan-masquerade.ts';
import { kernelPortJson, portJson } from '../port-facts.ts';
import type { ShownServices } from '../../snapshot/decompile.ts';
import { describeSkippedListings } from '../way/dumps.ts';
import type { DecompiledPort, Masquerade } from '../../snapshot/decompiled-port.ts';
import type { DumpReading } from '../../ask/describe/read-dumped.ts';
import { describeLeftovers, flowsJson } from './dump.ts';
import { logJson } from './log.ts';
import { addedRules, describePresent } from '../changes.ts';
import type { KernelItem, ServiceDescription } from '../../ask/describe/describe-services.ts';
import { faultWords } from '../way/lack.ts';
import { podWords } from './service.ts';

/** A Service from manifests or a bundle in --output json of kpc describe. */
export function serviceJson(description: ServiceDescription) {
  return {
    ...description,
    ports: description.ports.map(({ label, ...each }) => ({
      servicePort: label,
      ...each,
      problems: each.problems?.map(faultWords),
      kernel: each.kernel.map(kernelItemJson),
      families: each.families.map(({ port, endpoints, masquerade, ...use }) => {
        return { ...portJson(port), endpoints, ...use, masquerade: masqueradeJson(masquerade) };
      }),
    })),
  };
}

function kernelItemJson({ change, takenBy }: KernelItem) {
  const { kind, fields, place } = change;
  const text = describePresent(change, takenBy !== undefined);
  return { kind, ...fields, text, rules: addedRules(change), takenBy, place: place?.locate() };
}

/** A Service port from a dump in --output json. */
export function decompiledJson(port: DecompiledPort) {
  const { endpoints: _, ...known } = kernelPortJson(port);
  return {
    servicePort: port.label,
    ...known,
    fallback: port.fallback,
    masquerade: masqueradeJson(port.masquerade),
    endpoints: port.endpoints?.map(({ label: endpoint, takes, draining }) => ({ endpoint, takes, draining })),
  };
}

/** All Services of a dump, and leftovers of another mode, in --output json. */
function dumpJson({ ports, leftovers }: ShownServices) {
  const left = describeLeftovers(leftovers);
  return { servicePorts: ports.map(decompiledJson), leftovers: left.length > 0 ? left : undefined };
}

export function readingJson(read: DumpReading) {
  const {
    flows,
    dump: { log, shown },
  } = read;
  return {
    ...remarksJson(read),
    ...dumpJson(shown),
    flows: flows && flowsJson(flows, () => true),
    log: log && logJson(log),
  };
}

/** A dump's skipped outputs, for programs. */
export function remarksJson({ dump: { doubts } }: Pick<DumpReading, 'dump'>) {
  const skipped = describeSkippedListings(doubts);
  return { skipped: skipped.length > 0 ? skipped : undefined };
}

function masqueradeJson(masquerade: Masquerade | undefined) {
  if (!masquerade) return undefined;
  const { clusterIP, external } = masquerade;
  return { clusterIP: clusterIP && clientsJson(clusterIP), external: external && clientsJson(external) };
}

function clientsJson(clients: MasqueradedClients) {
  return clients.kind === 'all-but-pods' ? { kind: 'all-but' as const, clients: podWords(clients.pods) } : clients;
}
