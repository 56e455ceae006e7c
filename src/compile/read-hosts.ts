import { statSync } from 'node:fs';
import { join } from 'node:path';
import { readNamedFile } from '../base/read-file.ts';
import { describeError } from '../bundle/errors.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { isName } from '../base/object-names.ts';
import type { Address } from '../kernel/address.ts';
import type { Hosts } from './fleet-nodes.ts';
import { badHostAddresses, parseHostAddresses, type HostText } from './host-addresses.ts';

/** Reads a file, or says why it cannot be read. */
export function readHostText(file: string): HostText | Diagnostic {
  try {
    return { name: file, text: readNamedFile(file).toString('utf8') };
  } catch (error) {
    return badHostAddresses(file, describeError(error));
  }
}

/** Whether --host-addresses names a folder, with what `ip -j addr` prints on each node in NODE.json. */
export function isHostFolder(path: string | undefined): path is string {
  return path !== undefined && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}

/** Reads NODE.json for each of the nodes; those without one have the addresses of their Node object. */
export function readHostFolder(path: string | undefined, nodes: readonly string[]): Hosts {
  const addresses = new Map<string, readonly Address[]>();
  if (path === undefined) return { addresses, diagnostics: [] };
  if (!isHostFolder(path)) {
    return { addresses, diagnostics: [diagnose('bad-host-addresses', { problem: 'no-folder', path })] };
  }
  const diagnostics: Diagnostic[] = [];
  const without: string[] = [];
  for (const node of nodes) {
    const file = join(path, `${node}.json`);
    if (!isName(node, 'subdomain') || !statSync(file, { throwIfNoEntry: false })) {
      without.push(node);
      continue;
    }
    const read = parseHostAddresses(readHostText(file));
    addresses.set(node, read.addresses);
    for (const diagnostic of read.diagnostics) diagnostics.push(diagnostic);
  }
  if (without.length > 0) {
    diagnostics.push(diagnose('no-host-addresses', { path, nodes: nodes.length, without }));
  }
  return { addresses, diagnostics };
}
