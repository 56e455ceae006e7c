import type { CheckArguments } from '../../base/findings/node-checks.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { families, type Family } from '../../kernel/address.ts';
import { forwardingSysctls, sysctlPath } from '../../kernel/sysctls-and-modules.ts';
import { isModeOf, newestRelease } from '../../kube-proxy/releases.ts';
import { modeFacts, programs, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import {
  examineFeatures,
  examineKernel,
  missingModules,
  nodeCheck,
  type Examined,
  type NodeCheck,
  type Needs,
} from './node-checks.ts';
import { excerptOf, type Host } from '../node/host.ts';
import { readNodeNetwork } from '../node/network.ts';
import { mostSaid, Room } from '../node/output.ts';
import { capNetAdmin, capSysModule, findKubeProxy, hasCapability } from '../node/processes.ts';
import { writesNewSets } from '../../kube-proxy/nft-table.ts';
import {
  compareVersions,
  isRefusal,
  parseVersion,
  tools,
  readVariants,
  variantOfPlace,
  type Tool,
} from '../node/tools.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { isNothingOwned, nothingOwned } from '../state/owned-names.ts';
import { explainError, type Failure } from '../state/failure.ts';
import { listOtherNetworks, readJournal, readRecord, stateFolder } from '../state/record.ts';
import { assertTrustedState } from '../state/trusted-files.ts';
import { findModule, isInKernel, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import { parseReading, readWholeNode, type ReadingPart, type ReadingScope } from '../node/node-reading.ts';
import { decideOwnership } from '../plan/ownership.ts';
import { emptyState } from '../../kernel/state.ts';

export const modesOfToday = proxyModes.filter((mode) => isModeOf(mode, newestRelease));

/** Checks the node for each current proxy mode. A check that holds for all modes has no mode. `owned`: kpc-apply's objects. */
export async function examineForAnyMode(host: Host, owned: OwnedNames): Promise<readonly NodeCheck[]> {
  const groups = await Promise.all(
    modesOfToday.map((mode) => {
      const { modules, sysctls, tools: leastVersions } = modeFacts[mode];
      const anyValue = sysctls.map((name) => ({ name, value: undefined }));
      return examineNode(host, { mode, modules, sysctls: anyValue, leastVersions, manifest: undefined }, owned);
    }),
  );
  const keys = groups.map((group) => new Set(group.map((each) => JSON.stringify(each))));
  const isCommon = (each: NodeCheck) => keys.every((known) => known.has(JSON.stringify(each)));
  const ofMode = (mode: ProxyMode, i: number) =>
    (groups[i] ?? []).filter((each) => !isCommon(each)).map((each) => ({ ...each, mode }));
  return [...(groups[0] ?? []).filter(isCommon), ...modesOfToday.flatMap(ofMode)];
}

export async function examineNode(host: Host, needs: Needs, owned: OwnedNames): Promise<readonly NodeCheck[]> {
  const modules = await readModuleIndex(host, [...needs.modules, 'ip_set']);
  const examined: Examined = { host, needs, modules, mayChange: await hasCapability(host, capNetAdmin) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined),
    examineReading(examined),
    examineModules(examined),
    examineSysctls(examined),
    examineVariants(examined, owned),
    examineKernel(host, needs.mode),
    programs(needs.mode, 'nftables') ? examineFeatures(examined) : [],
    examineForwarding(host, needs),
    examineKubeProxy(host),
    examineOtherSysctls(host, needs),
    examineRoutes(host, needs),
    examineEndpoints(needs),
  ]);
  return groups.flat();
}

interface BeforeApply {
  readonly used: ReadonlySet<string>;
  readonly modules: ModuleIndex;
  readonly adopt: boolean;
  readonly assumeAlone: boolean;
}

/** Returns the errors that must stop an apply before any change. Makes few checks, because an apply has just read the node. */
export async function examineBeforeApply(
  host: Host,
  needs: Needs,
  { used, modules, adopt, assumeAlone }: BeforeApply,
): Promise<readonly NodeCheck[]> {
  const examined: Examined = { host, needs, modules, mayChange: await hasCapability(host, capNetAdmin) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined, ({ name, isOptional }) => !isOptional && used.has(name)),
    examineModules(examined),
    examineKernel(host, needs.mode),
    examineKubeProxy(host, adopt && !assumeAlone),
  ]);
  return groups.flat().filter(({ severity }) => severity === 'error');
}

function examineRights({ mayChange }: Examined): readonly NodeCheck[] {
  return [
    mayChange ? nodeCheck('ok', 'rights', { found: 'enough' }) : nodeCheck('error', 'rights', { found: 'too-few' }),
  ];
}

function examineTools(examined: Examined, isUsed: (tool: Tool) => boolean = () => true): Promise<readonly NodeCheck[]> {
  const { tools: ofMode } = modeFacts[examined.needs.mode];
  // Every mode needs ip.
  const isOfMode = ({ name, family, isOptional }: Tool) => name === 'ip' || isOptional || family in ofMode;
  const asked = tools.filter((tool) => isUsed(tool) && isOfMode(tool));
  return Promise.all(asked.map((tool) => examineTool(examined, tool)));
}

async function examineTool({ host, needs, modules }: Examined, tool: Tool): Promise<NodeCheck> {
  const { name, family, versionArgs, isOptional } = tool;
  const fault = (details: CheckArguments['tools']): NodeCheck => {
    return { ...nodeCheck(isOptional ? 'warning' : 'error', 'tools', details), tool: name };
  };
  const result = await host.run({ tool: name, args: versionArgs, room: new Room(mostSaid) });
  if (result.kind === 'missing') return fault({ found: 'missing', name, family });
  const [details = ''] = excerptOf(result.stdout || result.stderr).split('\n');
  const version = parseVersion(details.replace(/^.*?[\s-]v?(?=\d)/, ''));
  if (result.status !== 0 || !version) {
    const said = excerptOf(result.stderr).split('\n', 1).join() || details;
    // ipvsadm needs IPVS in the kernel even to print its version.
    const lacksIpvs = name === 'ipvsadm' && /ip_vs|ipvs/i.test(said) && !isInKernel(modules, 'ip_vs');
    const because = isRefusal(said) ? 'rights' : lacksIpvs ? 'no-ipvs' : undefined;
    return fault({ found: 'broken', name, asked: versionArgs.join(' '), said, because });
  }
  const least = needs.leastVersions[family] ?? '0';
  if (compareVersions(version, parseVersion(least) ?? [0]) < 0) {
    return fault({ found: 'old', name, family, version: version.join('.'), least });
  }
  return name === 'nft' && writesNewSets(version)
    ? nodeCheck('note', 'tools', { found: 'writes-new-sets', name, details })
    : nodeCheck('ok', 'tools', { found: 'works', name, details });
}

/** Reads the node as an apply does, because tools print a version even if the kernel lacks support. */
async function examineReading({ host, needs, mayChange }: Examined): Promise<readonly NodeCheck[]> {
  const used = needs.manifest?.families ?? ['ipv4'];
  const hasRules = programs(needs.mode, 'iptables');
  const needed = new Set<ReadingPart>(hasRules ? [...used, 'addresses'] : ['addresses']);
  const unread = hasRules ? {} : { ipv4: '', ipv6: '', ipset: '', ipvsadm: '' };
  // nftables and the other iptables variant have checks of their own.
  const others = { 'nft ipv4': '', 'nft ipv6': '', 'other ipv4': '', 'other ipv6': '' };
  const scope = { needed, variants: await readVariants(host), timeouts: false, settings: [] };
  try {
    const { addresses } = await readWholeNode(host, scope, { ...others, ...unread });
    return examineAddresses(needs, addresses);
  } catch (error) {
    const failure = explainError(error);
    const { code, finding, tool = '' } = failure;
    // Missing tools and rights have their own checks.
    if (code === 'tool-missing' || (failure.lacksRights && !mayChange)) return [];
    const said = 'said' in finding.arguments ? finding.arguments.said : '';
    // A kernel may support only one variant of iptables.
    const isVariant = tool.endsWith('-save') && /nft|nf_tables/i.test(said);
    return [nodeCheck('error', 'tools', { found: 'unreadable', failure: finding, isVariant })];
  }
}

function examineAddresses({ manifest }: Needs, addresses: string): readonly NodeCheck[] {
  const expected = manifest?.node.hostAddresses ?? [];
  if (expected.length === 0) return [];
  const { links } = parseIpAddrJson(addresses);
  const present = new Set(links.flatMap((link) => link.addresses).map(({ address }) => address.text));
  const missing = expected.filter((address) => !present.has(address));
  return missing.length === 0
    ? [nodeCheck('ok', 'addresses', { found: 'all' })]
    : [nodeCheck('warning', 'addresses', { found: 'missing', addresses: missing })];
}

async function examineModules({ host, needs, modules, mayChange }: Examined): Promise<readonly NodeCheck[]> {
  // The check of rights already reports a process without CAP_NET_ADMIN.
  const mayLoad = !mayChange || (await hasCapability(host, capSysModule));
  // Group modules with the same result and the same modes, so that modules common to all modes are reported once.
  const kinds = new Map<string, string[]>();
  for (const name of needs.modules) {
    const modes = modesOfToday.filter((mode) => modeFacts[mode].modules.includes(name));
    const kind = [findModule(modules, name), ...modes].join();
    kinds.set(kind, [...(kinds.get(kind) ?? []), name]);
  }
  return [...kinds.values()].map((names) => checkModules(modules, names, mayLoad));
}

function checkModules(index: ModuleIndex, names: readonly string[], mayLoad: boolean): NodeCheck {
  const place = findModule(index, names[0] ?? '');
  switch (place) {
    case 'present':
      return nodeCheck('ok', 'modules', { found: 'present', names });
    case 'loadable':
      return mayLoad
        ? nodeCheck('ok', 'modules', { found: 'loadable', names })
        : nodeCheck('warning', 'modules', { found: 'not-allowed', names });
    case 'unknown':
      return nodeCheck('note', 'modules', { found: 'unknown', names, loadsModules: index.loadsModules });
    case 'missing':
      return missingModules(index, names);
    default:
      return place satisfies never;
  }
}

async function examineSysctls({ host, needs, modules }: Examined): Promise<readonly NodeCheck[]> {
  const hasIpvs = isInKernel(modules, 'ip_vs');
  const asked = needs.sysctls.filter(({ name }) => hasIpvs || !/\.vs\./.test(name));
  return Promise.all(
    asked.map(async ({ name, value }) => {
      const present = (await host.readFile(sysctlPath(name)))?.trim();
      if (present === undefined) return nodeCheck('warning', 'sysctls', { found: 'absent', name });
      if (value === undefined || value === present) {
        return nodeCheck('ok', 'sysctls', { found: 'right', name, value: present });
      }
      return (await host.isWritable(sysctlPath(name)))
        ? nodeCheck('ok', 'sysctls', { found: 'settable', name, value: present, wanted: value })
        : nodeCheck('error', 'sysctls', { found: 'fixed', name, value: present, wanted: value });
    }),
  );
}

/** Warns about rules in both iptables variants. Both match packets, but rules in the unused variant are easily overlooked. */
async function examineVariants({ host, needs, mayChange }: Examined, owned: OwnedNames): Promise<readonly NodeCheck[]> {
  const variants = await readVariants(host);
  let unread: Failure | undefined;
  const scope: ReadingScope = {
    needed: new Set(),
    variants,
    ipvs: null,
    timeouts: false,
    settings: [],
    onLeftOut: (failure) => void (unread ??= failure),
  };
  const others = { ipset: '', ipvsadm: '', 'ipvs timeouts': '', addresses: '', 'nft ipv4': '', 'nft ipv6': '' };
  const state = parseReading(await readWholeNode(host, scope, { ipv4: '', ipv6: '', ...others, addresses: '[]' }));
  const decision = decideOwnership(state, emptyState, { owned, variants, adopt: false, excluded: [] });
  const both = { variant: variants.ipv4, other: variantOfPlace('other ipv4', variants) };
  const held = [
    { by: 'kpc-apply', chains: decision.owned.chains.length },
    { by: 'kube-proxy', chains: decision.leftovers.length },
  ] as const;
  const found = held.filter(({ chains }) => chains > 0);
  if (found.length > 0) {
    return found.map((each) => nodeCheck('warning', 'iptables', { found: 'both', ...both, ...each }));
  }
  if (unread !== undefined) {
    if (unread.lacksRights && !mayChange) return [];
    return [nodeCheck('note', 'iptables', { found: 'unknown', ...both, failure: unread.finding })];
  }
  if (!programs(needs.mode, 'iptables')) return [];
  const asked = await host.run({ tool: 'iptables-save', args: ['--version'], room: new Room(mostSaid) });
  return asked.kind === 'missing'
    ? [nodeCheck('note', 'iptables', { found: 'no-tool' })]
    : [nodeCheck('ok', 'iptables', { found: 'one', ...both })];
}

/**
 * Checks for a running kube-proxy. `mustSee` (with --adopt): a kube-proxy that might be hidden is an error, because kpc-apply would adopt
 * its rules.
 */
async function examineKubeProxy(host: Host, mustSee = false): Promise<readonly NodeCheck[]> {
  const found = await findKubeProxy(host);
  switch (found.kind) {
    case 'running':
      return [nodeCheck('error', 'kube-proxy', { found: 'running', process: found.process })];
    case 'unknown': {
      const unseen = { found: 'unknown', unseen: found.unseen, mustSee } as const;
      return [nodeCheck(mustSee ? 'error' : 'note', 'kube-proxy', unseen)];
    }
    case 'none':
      return [nodeCheck('ok', 'kube-proxy', { found: 'none' })];
    default:
      return found satisfies never;
  }
}

/** Warns about a bundle with assumed endpoints. Such a bundle is made for review, but easily applied by mistake. */
export function examineEndpoints({ manifest }: Pick<Needs, 'manifest'>): readonly NodeCheck[] {
  const pods = manifest?.assumedEndpoints?.flatMap((workload) => workload.pods) ?? [];
  return pods.length === 0 ? [] : [nodeCheck('warning', 'endpoints', { assumed: pods.length })];
}

export function examineForwarding(host: Host, { mode, manifest }: Pick<Needs, 'mode' | 'manifest'>) {
  const used = manifest?.families ?? families;
  const names = used
    .map((family) => forwardingSysctls[family])
    .filter((name) => !modeFacts[mode].sysctls.includes(name));
  return examineZeros(
    host,
    names.map((name) => ({ name, effect: 'no-forwarding' })),
  );
}

const routeLists: { readonly [F in Family]: readonly [path: string, isDefault: RegExp] } = {
  // Columns: link, destination, gateway, flags, three numbers, mask.
  ipv4: ['/proc/net/route', /^(?!lo\t)\S+\t0{8}\t\S+\t\S+\t\S+\t\S+\t\S+\t0{8}\t/m],
  // Columns: destination, prefix length, …, link. The kernel's own default route on lo only rejects packets.
  ipv6: ['/proc/net/ipv6_route', /^0{32} 00 (?!.* lo$)/m],
};

/**
 * Warns if there is no default route, because the kernel looks up a route to the cluster IP before rules replace this address. IPVS mode
 * needs no such route.
 */
async function examineRoutes(host: Host, { mode, manifest }: Needs): Promise<readonly NodeCheck[]> {
  if (programs(mode, 'virtualServers')) return [];
  const used = manifest?.families ?? (['ipv4'] as const);
  const lists = await Promise.all(
    used.map((family) => {
      const [path, isDefault] = routeLists[family];
      return host.readFile(path, { keeps: (line) => isDefault.test(line) });
    }),
  );
  return used.flatMap((family, i) => {
    const list = lists[i];
    if (list === undefined || routeLists[family][1].test(list)) return [];
    return [nodeCheck('warning', 'routes', { family })];
  });
}

function examineOtherSysctls(host: Host, { mode, sysctls }: Needs): Promise<readonly NodeCheck[]> {
  // kube-proxy's strictARP sets this sysctl, which MetalLB requires. Otherwise Linux answers ARP on every link for all of the node's
  // addresses.
  const arp = 'net.ipv4.conf.all.arp_ignore';
  const isSet = sysctls.some((sysctl) => sysctl.name === arp && sysctl.value !== undefined);
  const bypassesRules: ZeroSysctl = { name: 'net.bridge.bridge-nf-call-iptables', effect: 'bridge' };
  const answersArp: ZeroSysctl = { name: arp, effect: 'arp' };
  return examineZeros(host, programs(mode, 'virtualServers') && !isSet ? [bypassesRules, answersArp] : [bypassesRules]);
}

type ZeroSysctl = Omit<CheckArguments['sysctls'] & { found: 'zero' }, 'found'>;

async function examineZeros(host: Host, asked: readonly ZeroSysctl[]): Promise<readonly NodeCheck[]> {
  const values = await Promise.all(asked.map(({ name }) => host.readFile(sysctlPath(name))));
  return asked
    .filter((_, i) => values[i]?.trim() === '0')
    .map((zero) => nodeCheck(zero.effect === 'arp' ? 'note' : 'warning', 'sysctls', { found: 'zero', ...zero }));
}

export async function examineState(host: Host, base: string) {
  let owned = nothingOwned;
  try {
    await assertTrustedState(host, base);
    const folder = stateFolder(base, await readNodeNetwork(host, false));
    ({ owned } = await readRecord(host, folder));
    const others = await listOtherNetworks(host, folder);
    const check = (await readJournal(host, folder))
      ? nodeCheck('warning', 'state', { found: 'unfinished', folder: base })
      : nodeCheck('ok', 'state', { found: 'whole', folder: base, isEmpty: isNothingOwned(owned) });
    const elsewhere = others.map((other) => nodeCheck('warning', 'state', { found: 'elsewhere', ...other }));
    return { owned, checks: [check, ...elsewhere] };
  } catch (error) {
    const { code, finding } = explainError(error);
    const severity = code === 'system-error' ? 'warning' : 'error';
    return { owned, checks: [nodeCheck(severity, 'state', { found: 'unreadable', failure: finding })] };
  }
}
