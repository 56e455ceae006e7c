import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import { excerptOf, type Host } from './host.ts';

/** A program that kpc-apply runs, and what tells its version. */
export interface Tool {
  readonly name: string;
  /** The name it has in a manifest's list of least versions; Debian's package, which most distributions name alike. */
  readonly family: string;
  /** Of some modes: of those whose facts name its family. */
  readonly neededBy: 'every mode' | 'some modes' | 'no mode';
  /** Undefined where it does not matter. */
  readonly versionArgs?: readonly string[] | undefined;
  /** What is lost without it, where it is not needed. */
  readonly purpose?: string | undefined;
}

/** Whether a mode goes with a tool; it may well run without, where it is not needed. */
export function isOfMode({ neededBy, family }: Tool, mode: ProxyMode): boolean {
  return neededBy !== 'some modes' || family in modeFacts[mode].tools;
}

const versionArgs = ['--version'];
const noUdp = 'UDP clients keep sending to a removed endpoint until they pause';

export const tools: readonly Tool[] = [
  { name: 'ip', family: 'iproute2', neededBy: 'every mode', versionArgs: ['-V'] },
  { name: 'iptables-save', family: 'iptables', neededBy: 'some modes' },
  { name: 'iptables-restore', family: 'iptables', neededBy: 'some modes', versionArgs },
  { name: 'ip6tables-restore', family: 'iptables', neededBy: 'some modes', versionArgs },
  { name: 'ipset', family: 'ipset', neededBy: 'some modes', versionArgs },
  { name: 'ipvsadm', family: 'ipvsadm', neededBy: 'some modes', versionArgs },
  { name: 'nft', family: 'nftables', neededBy: 'some modes', versionArgs },
  { name: 'conntrack', family: 'conntrack', neededBy: 'no mode', versionArgs, purpose: noUdp },
  { name: 'modprobe', family: 'kmod', neededBy: 'no mode', versionArgs, purpose: 'kernel modules cannot be loaded' },
];

export type ToolState =
  | { readonly kind: 'missing'; readonly tool: Tool }
  | { readonly kind: 'broken'; readonly tool: Tool; readonly reason: string }
  | { readonly kind: 'too-old'; readonly tool: Tool; readonly version: string; readonly least: string }
  | { readonly kind: 'fine'; readonly tool: Tool; readonly version: string; readonly details: string };

/** Runs each of the tools for its version, all at once. `least` is a manifest's list: tool family → version. */
export function inspectTools(
  host: Host,
  wanted: readonly Tool[],
  least: Readonly<Record<string, string>>,
): Promise<readonly ToolState[]> {
  return Promise.all(wanted.map((tool) => inspectTool(host, tool, least[tool.family])));
}

async function inspectTool(host: Host, tool: Tool, least: string | undefined): Promise<ToolState> {
  if (tool.versionArgs === undefined) return { kind: 'fine', tool, version: '', details: '' };
  const result = await host.run({ tool: tool.name, args: tool.versionArgs });
  if (result.kind === 'missing') return { kind: 'missing', tool };
  const details = excerptOf(result.stdout || result.stderr).split('\n')[0] ?? '';
  const version = parseVersion(details.replace(/^.*?[\s-]v?(?=\d)/, ''));
  if (result.status !== 0 || !version) {
    const [complaint = ''] = excerptOf(result.stderr).split('\n');
    return { kind: 'broken', tool, reason: complaint || details || 'it printed nothing' };
  }
  const wanted = least === undefined ? undefined : parseVersion(least);
  if (least !== undefined && wanted && compareVersions(version, wanted) < 0) {
    return { kind: 'too-old', tool, version: version.join('.'), least };
  }
  return { kind: 'fine', tool, version: version.join('.'), details };
}

/** A version as numbers: "v1.8.9" → [1, 8, 9]. */
export type Version = readonly number[];

/** The first dotted number in a text. Undefined where there is none. */
export function parseVersion(text: string): Version | undefined {
  const match = /(?<!\d)\d+(?:\.\d+)+/.exec(text) ?? /\d+/.exec(text);
  return match ? match[0].split('.').map(Number) : undefined;
}

/** Numbers that are not there count as 0: 1.8 is 1.8.0. */
export function compareVersions(a: Version, b: Version): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
