import { createHash } from 'node:crypto';
import type { Cluster } from '../cluster/model.ts';
import type { Chain } from '../kernel/iptables.ts';
import { formatAppends } from '../kernel/iptables.ts';
import type { VirtualServer } from '../kernel/ipvs.ts';
import { formatVirtualServer } from '../kernel/ipvs.ts';
import type { BundleFileName } from './manifest.ts';
import { writeServices } from './services-file.ts';

/**
 * Keeps the texts of what bundles of many nodes have in common: those of the objects that their states share, and the
 * checksum of each file as it was last. It changes no byte.
 */
export class BundleMemo {
  readonly formatVirtualServer: (server: VirtualServer) => string = remember(formatVirtualServer);
  readonly formatAppends: (chain: Chain) => string = remember(formatAppends);
  readonly writeServices: (cluster: Cluster) => string = remember(writeServices);
  readonly #last = new Map<BundleFileName, { readonly text: string; readonly digest: string }>();

  /** The SHA-256 of a file in hex. */
  digest(name: BundleFileName, text: string): string {
    const last = this.#last.get(name);
    if (last?.text === text) return last.digest;
    const digest = createHash('sha256').update(text).digest('hex');
    this.#last.set(name, { text, digest });
    return digest;
  }
}

function remember<T extends object>(format: (item: T) => string): (item: T) => string {
  const texts = new WeakMap<T, string>();
  return (item) => {
    let text = texts.get(item);
    if (text === undefined) texts.set(item, (text = format(item)));
    return text;
  };
}
