import { diagnose, placeAtLine, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Address } from '../kernel/address.ts';
import { splitOutputs } from '../dumps/split-outputs.ts';
import { parseIpAddrText } from '../dumps/ip-addr-text.ts';
import { parseIpAddrJson } from '../kernel/link/link.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';

/** The node's own addresses without those of kube-ipvs0; none if a diagnostic says that the text is wrong. */
export interface HostAddresses {
  readonly addresses: readonly Address[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What `ip -j addr` printed on a node, with the name that diagnostics give it. */
export interface HostText {
  readonly name: string;
  readonly text: string;
}

/** The addresses in what `ip -j addr` or `ip addr` printed, without those that kube-proxy itself put on kube-ipvs0. */
export function parseHostAddresses(file: HostText | Diagnostic): HostAddresses {
  if ('severity' in file) return { addresses: [], diagnostics: [file] };
  const { links, unread } = parsePrinted(file.text);
  const [first] = unread;
  if (first) return { addresses: [], diagnostics: [badHostAddresses(file.name, first.reason)] };
  const addresses = links
    .filter((link) => link.name !== serviceLink)
    .flatMap((link) => link.addresses.map(({ address }) => address));
  return { addresses, diagnostics: [] };
}

/** What is no text of ip addr is taken for JSON, whose reader says what is wrong with it. */
function parsePrinted(text: string): ReturnType<typeof parseIpAddrJson> {
  const printed = splitOutputs(text).outputs.filter(({ kind }) => kind === 'ip addr');
  if (printed.length === 0) return parseIpAddrJson(text);
  const readings = printed.map((output) => parseIpAddrText(output.text));
  return { links: readings.flatMap(({ links }) => links), unread: readings.flatMap(({ unread }) => unread) };
}

/** Why a file is of no use. */
export function badHostAddresses(file: string, reason: string): Diagnostic {
  return diagnose('bad-host-addresses', { problem: 'content', reason }, placeAtLine(file));
}
