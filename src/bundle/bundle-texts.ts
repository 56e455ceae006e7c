import { hashHex } from '#hash';
import type { FileText } from '../base/chunks.ts';
import type { Cluster, ServicePort } from '../cluster/model.ts';
import type { BundleFileName } from './manifest.ts';
import type { PartTexts } from './state-files.ts';
import { writeServicePieces, writeServices } from './services-file.ts';

/** The parts of a bundle's text that bundles of other nodes may have in common with it. */
export interface BundleTexts extends PartTexts {
  readonly writeServices: (cluster: Cluster) => FileText;
  readonly countServices: (cluster: Cluster) => ServiceCounts;
  /** The SHA-256 of a file in hex. */
  digest(name: BundleFileName, text: FileText): string;
}

/** Each text made when it is asked for, for one bundle alone. */
export const freshTexts: BundleTexts = {
  each: (format) => format,
  writeServices: writeServicePieces,
  countServices,
  digest: (_, text) => hashHex(text),
};

/**
 * Keeps the texts of what bundles of many nodes have in common: those of the objects that their states share, and the
 * checksum of each file as it was last. It changes no byte.
 */
export class BundleMemo implements BundleTexts {
  readonly writeServices: (cluster: Cluster) => string = remember(writeServices);
  readonly countServices: (cluster: Cluster) => ServiceCounts = remember(countServices);
  readonly #parts = new Map<unknown, (part: never) => string>();
  readonly #last = new Map<BundleFileName, { readonly text: FileText; readonly digest: string }>();

  each<Part extends object>(format: (part: Part) => string): (part: Part) => string {
    // What was kept for a function is of that function's own type.
    const known = this.#parts.get(format) as ((part: Part) => string) | undefined;
    if (known) return known;
    const remembered = remember(format);
    this.#parts.set(format, remembered);
    return remembered;
  }

  digest(name: BundleFileName, text: FileText): string {
    const last = this.#last.get(name);
    if (last?.text === text) return last.digest;
    const digest = hashHex(text);
    this.#last.set(name, { text, digest });
    return digest;
  }
}

/** How many Services, and ports of Services in whatever family, are programmed. */
interface ServiceCounts {
  readonly services: number;
  readonly servicePorts: number;
}

/** The ports are sorted, so those of one Service, and one port's families, follow each other. */
export function countServices(cluster: Cluster): ServiceCounts {
  let services = 0;
  let servicePorts = 0;
  let last: ServicePort | undefined;
  for (const port of cluster.servicePorts) {
    const isSameService = port.namespace === last?.namespace && port.service === last.service;
    const isSamePort = isSameService && port.portName === last?.portName && port.protocol === last.protocol;
    if (!isSameService) services++;
    if (!isSamePort) servicePorts++;
    last = port;
  }
  return { services, servicePorts };
}

function remember<T extends object, R>(make: (item: T) => R): (item: T) => R {
  const known = new WeakMap<T, { readonly made: R }>();
  return (item) => {
    let entry = known.get(item);
    if (!entry) known.set(item, (entry = { made: make(item) }));
    return entry.made;
  };
}
