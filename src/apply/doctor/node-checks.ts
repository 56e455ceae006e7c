import type { CheckArguments, CheckFault, NftFeature } from '../../base/findings/node-checks.ts';
import type { Severity } from '../../base/findings/rows.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import { programs, type ProxyMode } from '../../kube-proxy/modes.ts';
import { excerptOf, type Host } from '../node/host.ts';
import { findModule, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { isStateFile } from '../../bundle/state-files.ts';
import { lengthOfOthers, mostRead } from '../node/output.ts';
import { readingParts, type NodeReading } from '../node/node-reading.ts';
import { families, type Family } from '../../kernel/address.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { compareVersions, isRefusal, parseVersion, type Version } from '../node/tools.ts';

export type NodeCheck = CheckFault & {
  readonly severity: Severity | 'ok';
  /** Undefined if all examined modes need this check. */
  readonly mode?: ProxyMode;
  readonly tool?: string;
};

/** `code`: the part checked, such as "kernel" or "iptables". */
export function nodeCheck<Code extends CheckFault['code']>(
  severity: NodeCheck['severity'],
  code: Code,
  details: CheckArguments[Code],
): NodeCheck {
  return { severity, code, arguments: details } as NodeCheck;
}

/** Returns the modes that the node can run. An error in one mode does not affect the others. */
export function fitModes(checks: readonly NodeCheck[], modes: readonly ProxyMode[]): readonly ProxyMode[] {
  const errors = checks.filter(({ severity }) => severity === 'error');
  return modes.filter((mode) => errors.every((each) => each.mode !== undefined && each.mode !== mode));
}

export interface Needs {
  readonly mode: ProxyMode;
  readonly modules: readonly string[];
  readonly sysctls: readonly { readonly name: string; readonly value: string | undefined }[];
  readonly leastVersions: Readonly<Record<string, string>>;
  readonly manifest: Manifest | undefined;
}

export interface Examined {
  readonly host: Host;
  readonly needs: Needs;
  readonly modules: ModuleIndex;
  readonly mayChange: boolean;
}

/**
 * Checks that the node stays readable with this bundle, because otherwise it could be neither verified nor restored. nft prints a table
 * longer than the bundle writes it. Test: apply/bounded-listings.test.ts.
 */
export function examineRoom({ files }: StoredBundle, reading: NodeReading): readonly NodeCheck[] {
  const wanted = [...files].map(([name, { length }]) => {
    if (name === 'nftables.nft') return 2 * length;
    return isStateFile(name) ? length : 0;
  });
  const present = readingParts.map((part) => reading[part]);
  const sum = (lengths: readonly number[]) => lengths.reduce((total, each) => total + each, 0);
  if (sum([...wanted, ...present.map(({ length }) => length)]) <= mostRead) return [];
  const others = present.map(lengthOfOthers);
  if (sum([...wanted, ...others]) <= mostRead) return [];
  const [most, bundle] = [megabytes(mostRead), megabytes(sum(wanted))];
  return [nodeCheck('error', 'tools', { found: 'no-room', most, bundle, others: megabytes(sum(others)) })];
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

/** The oldest kernel that kube-proxy accepts for nftables mode (platformCheckSupported in cmd/kube-proxy/app). */
const leastKernel: Version = [5, 13];

/** Kernel features that kube-proxy's rules use: modules, feature, and a chain and rule that need no other feature. */
const features: readonly (readonly [modules: string, feature: NftFeature, chain: string, rule: string])[] = [
  ['nft_chain_nat nft_nat', 'dnat', 'nat prerouting', 'meta l4proto tcp dnat to ENDPOINT'],
  ['nft_chain_nat nft_masq', 'masquerade', 'nat postrouting', 'masquerade fully-random'],
  ['nft_numgen', 'numgen', 'filter input', 'numgen random mod 2 vmap { 0 : accept, 1 : drop }'],
  ['nft_fib nft_fib_FAMILY', 'fib', 'filter prerouting', 'fib daddr type local accept'],
  ['nft_reject nft_reject_FAMILY', 'reject', 'filter input', 'reject'],
  ['nft_ct', 'ct', 'filter input', 'ct state new accept'],
];

const endpoints: { readonly [F in Family]: string } = { ipv4: '192.0.2.1:80', ipv6: '[2001:db8::1]:80' };

function modulesFor(used: readonly Family[]): readonly string[] {
  const names = features.flatMap(([modules]) => used.flatMap((family) => modules.replace('FAMILY', family).split(' ')));
  return [...new Set(names)];
}

/** Checks the kernel's version. An apply needs no other check, because nft refuses unsupported rules without changing the node. */
export async function examineKernel(host: Host, mode: ProxyMode): Promise<readonly NodeCheck[]> {
  if (!programs(mode, 'nftables')) return [];
  const release = (await host.readFile('/proc/sys/kernel/osrelease'))?.trim();
  if (release === undefined) return [nodeCheck('note', 'kernel', { found: 'unknown' })];
  return compareVersions(parseVersion(release) ?? [0], leastKernel) >= 0
    ? [nodeCheck('ok', 'kernel', { found: 'new', release })]
    : [nodeCheck('error', 'kernel', { found: 'old', release, least: leastKernel.join('.') })];
}

export async function examineFeatures(examined: Examined): Promise<readonly NodeCheck[]> {
  const { host, needs } = examined;
  const used = needs.manifest?.families ?? families;
  const index = await readModuleIndex(host, ['nf_tables', ...modulesFor(families)]);
  const place = findModule(index, 'nf_tables');
  if (place === 'missing') return [missingModules(index, ['nf_tables'])];
  if (place !== 'loadable') return tryFeatures(examined, used);
  // Trying a feature would load nf_tables, so only look for its modules.
  const missing = modulesFor(used).filter((module) => findModule(index, module) === 'missing');
  const ok = nodeCheck('ok', 'modules', { found: 'loadable', names: ['nf_tables'] });
  return missing.length === 0 ? [ok] : [ok, missingModules(index, missing)];
}

export function missingModules({ loadsModules }: ModuleIndex, names: readonly string[]): NodeCheck {
  return nodeCheck('error', 'modules', { found: 'missing', names, loadsModules });
}

/** Tries each feature with `nft --check`, which changes nothing and refuses a rule whose module is missing. */
async function tryFeatures({ host, mayChange }: Examined, used: readonly Family[]): Promise<readonly NodeCheck[]> {
  const trials = used.flatMap((family) => features.map((feature) => [family, ...feature] as const));
  const tried = await Promise.all(
    trials.map(async ([family, modules, feature, chain, rule]) => {
      const hook = `type ${chain.replace(' ', ' hook ')} priority 0;`;
      const trial = `chain trial { ${hook} ${rule.replace('ENDPOINT', endpoints[family])}; };`;
      const stdin = `table ${nftFamily[family]} kpc-doctor { ${trial} }\n`;
      const result = await host.run({ tool: 'nft', args: ['-c', '-f', '-'], stdin });
      if (result.kind === 'missing') return 'missing';
      if (result.status === 0) return [];
      const [said = ''] = excerptOf(result.stderr).split('\n');
      const reason = said.replace(/^.*?Error: /, '');
      return [{ family, feature, reason, modules: modules.replace('FAMILY', family) }];
    }),
  );
  if (tried.includes('missing')) return [nodeCheck('note', 'nftables', { found: 'no-tool' })];
  const refusals = tried.flatMap((each) => (each === 'missing' ? [] : each));
  const [first] = refusals;
  if (!first) return [nodeCheck('ok', 'nftables', { found: 'whole' })];
  const { reason } = first;
  // The same refusal for all features means that nft could not even begin.
  if (refusals.length === trials.length && refusals.every((refusal) => refusal.reason === reason)) {
    return [nodeCheck('error', 'nftables', { found: isRefusal(reason) ? 'not-allowed' : 'broken', said: reason })];
  }
  return refusals.map(({ family, feature, reason: said, modules }) =>
    nodeCheck('error', 'nftables', { found: 'lacks', feature, family: nftFamily[family], said, modules, mayChange }),
  );
}
