import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { joinWords, count } from '../../base/printable.ts';
import { families, type Family } from '../../kernel/family.ts';
import { forwardingSysctls, sysctlPath } from '../../kernel/sysctls-and-modules.ts';
import { isModeOf, newestRelease } from '../../kube-proxy/releases.ts';
import { modeFacts, programs, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import {
  describeMissing,
  examineFeatures,
  examineKernel,
  nodeCheck,
  type Examined,
  type NodeCheck,
  type Needs,
} from './node-checks.ts';
import { excerptOf, type Host } from '../node/host.ts';
import { readNetwork } from '../node/network.ts';
import { mostSaid, Room } from '../node/output.ts';
import {
  adviseUnseen,
  capNetAdmin,
  capSysModule,
  findKubeProxy,
  hasCapability,
  rightsAdvice,
} from '../node/processes.ts';
import { newSetsWords, readsAllNft, writesNewSets } from '../../kube-proxy/nft-table.ts';
import { compareVersions, isRefusal, parseVersion, tools, readVariants, variantOf, type Tool } from '../node/tools.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { isNothingOwned, nothingOwned } from '../state/owned-names.ts';
import { explainError } from '../state/failure.ts';
import { describeOtherNetworks, readJournal, readRecord, stateFolder } from '../state/record.ts';
import { assertTrustedState } from '../state/trusted-files.ts';
import { findModule, isInKernel, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import { parseReading, readNode, type ReadingPart, type ReadingScope } from '../node/node-reading.ts';
import { decideOwnership } from '../plan/ownership.ts';
import { emptyState } from '../../kernel/state.ts';

export const modesOfToday = proxyModes.filter((mode) => isModeOf(mode, newestRelease));

/** Checks what each of today's modes needs; checks common to all have no mode. `owned`: kpc-apply's objects. */
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

/** Checks a node before a bundle is applied. Changes nothing. */
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

/** Checks the tools before any change. An apply finds the rest itself: it has just read the node. */
export async function examineBeforeApply(
  host: Host,
  needs: Needs,
  { used, modules, adopt, assumeAlone }: BeforeApply,
): Promise<readonly NodeCheck[]> {
  const examined: Examined = { host, needs, modules, mayChange: await hasCapability(host, capNetAdmin) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined, ({ name, purpose }) => purpose === undefined && used.has(name)),
    examineModules(examined),
    examineKernel(host, needs.mode),
    examineKubeProxy(host, adopt && !assumeAlone),
  ]);
  return groups.flat().filter(({ severity }) => severity === 'error');
}

function examineRights({ mayChange }: Examined): readonly NodeCheck[] {
  if (mayChange) return [nodeCheck('ok', 'rights', 'allowed to change the network (CAP_NET_ADMIN)')];
  const text = 'not allowed to change the network: /proc/self/status shows no CAP_NET_ADMIN';
  return [nodeCheck('error', 'rights', text, rightsAdvice)];
}

/** Checks that tools exist, work and are new enough: all that the mode needs, or those that `isUsed` accepts. */
function examineTools(examined: Examined, isUsed: (tool: Tool) => boolean = () => true): Promise<readonly NodeCheck[]> {
  const { tools: ofMode } = modeFacts[examined.needs.mode];
  // Every mode needs ip; none needs the tools with a purpose of their own.
  const isOfMode = ({ name, family, purpose }: Tool) => name === 'ip' || purpose !== undefined || family in ofMode;
  const asked = tools.filter((tool) => isUsed(tool) && isOfMode(tool));
  return Promise.all(asked.map((tool) => examineTool(examined, tool)));
}

async function examineTool({ host, needs, modules }: Examined, tool: Tool): Promise<NodeCheck> {
  const { name, family, versionArgs, purpose } = tool;
  const loss = purpose === undefined ? '' : ` (without it, ${purpose})`;
  const fault = (text: string, advice: string): NodeCheck => {
    return { ...nodeCheck(purpose === undefined ? 'error' : 'warning', 'tools', text, advice), tool: name };
  };
  const result = await host.run({ tool: name, args: versionArgs, room: new Room(mostSaid) });
  if (result.kind === 'missing') return fault(`${name} is missing${loss}`, `install the package ${family}`);
  const [details = ''] = excerptOf(result.stdout || result.stderr).split('\n');
  const version = parseVersion(details.replace(/^.*?[\s-]v?(?=\d)/, ''));
  if (result.status !== 0 || !version) {
    const reason = excerptOf(result.stderr).split('\n', 1).join() || details || 'it printed nothing';
    // ipvsadm asks the kernel for IPVS first, even to print its version.
    const lacksIpvs = name === 'ipvsadm' && /ip_vs|ipvs/i.test(reason) && !isInKernel(modules, 'ip_vs');
    const advice = lacksIpvs
      ? 'nothing is wrong with ipvsadm: IPVS is not in the kernel, see ip_vs'
      : `see what "${name} ${versionArgs.join(' ')}" says`;
    return fault(`${name} does not work: ${reason}${loss}`, isRefusal(reason) ? rightsAdvice : advice);
  }
  const least = needs.leastVersions[family] ?? '0';
  if (compareVersions(version, parseVersion(least) ?? [0]) < 0) {
    const text = `${name} is ${version.join('.')}, but at least ${least} is needed`;
    return fault(text, `upgrade the package ${family}`);
  }
  if (name === 'nft' && writesNewSets(version)) {
    return nodeCheck(
      'note',
      'tools',
      `${name}: ${details}; ${newSetsWords}`,
      `if a kube-proxy runs here in nftables mode, run ${readsAllNft} or newer`,
    );
  }
  return nodeCheck('ok', 'tools', `${name}: ${details}`);
}

/** Reads addresses and, where the mode uses them, rules and sets, as an apply does: tools print a version even without kernel support. */
async function examineReading({ host, needs, mayChange }: Examined): Promise<readonly NodeCheck[]> {
  const used = needs.manifest?.families ?? ['ipv4'];
  const hasRules = programs(needs.mode, 'iptables');
  const needed = new Set<ReadingPart>(hasRules ? [...used, 'addresses'] : ['addresses']);
  const unread = hasRules ? {} : { ipv4: '', ipv6: '', ipset: '', ipvsadm: '' };
  // These have checks of their own.
  const others = { 'nft ipv4': '', 'nft ipv6': '', 'other ipv4': '', 'other ipv6': '' };
  const scope = { needed, variants: await readVariants(host), timeouts: false, settings: [] };
  try {
    const { addresses } = await readNode(host, scope, { ...others, ...unread });
    return examineAddresses(needs, addresses);
  } catch (error) {
    const { code, message, advice, tool = '' } = explainError(error);
    // Missing tools and rights have their own checks.
    if (code === 'tool-missing' || (isRefusal(message) && !mayChange)) return [];
    const [text = ''] = message.split('\n');
    // A kernel may support only one variant of iptables.
    const isVariant =
      tool.endsWith('-save') && /nft|nf_tables/i.test(message) && !message.includes('cannot show the table');
    const variant =
      'boot a kernel that has nf_tables, or switch to the legacy variant (update-alternatives --config iptables)';
    return [nodeCheck('error', 'tools', text, isVariant ? variant : advice)];
  }
}

/** A bundle is compiled for one node, whose addresses serve its node ports. */
function examineAddresses({ manifest }: Needs, addresses: string): readonly NodeCheck[] {
  const expected = manifest?.node.hostAddresses ?? [];
  if (expected.length === 0) return [];
  const { links } = parseIpAddrJson(addresses);
  const present = new Set(links.flatMap((link) => link.addresses).map(({ address }) => address.text));
  const missing = expected.filter((address) => !present.has(address));
  if (missing.length === 0) return [nodeCheck('ok', 'addresses', 'this node has the addresses of the bundle')];
  const text = `this node does not have ${missing.join(', ')}, and the bundle was compiled for it`;
  const advice = 'check that this is the bundle of this node; if it is, compile it again with --host-addresses';
  return [nodeCheck('warning', 'addresses', text, advice)];
}

async function examineModules({ host, needs, modules, mayChange }: Examined): Promise<readonly NodeCheck[]> {
  // A process without that right has a finding for it already.
  const mayLoad = !mayChange || (await hasCapability(host, capSysModule));
  // One finding for all modules in the same situation; those that another mode needs too get one for all modes.
  const kinds = new Map<string, string[]>();
  for (const name of needs.modules) {
    const modes = modesOfToday.filter((mode) => modeFacts[mode].modules.includes(name));
    const kind = [findModule(modules, name), ...modes].join();
    kinds.set(kind, [...(kinds.get(kind) ?? []), name]);
  }
  return [...kinds.values()].map((names) => describeModules(modules, names, mayLoad));
}

function describeModules(index: ModuleIndex, names: readonly string[], mayLoad: boolean): NodeCheck {
  const place = findModule(index, names[0] ?? '');
  const [which, verb] = [joinWords(names), names.length === 1 ? 'is' : 'are'];
  const [it, load] = [names.length === 1 ? 'it' : 'they', `modprobe -a ${names.join(' ')}`];
  switch (place) {
    case 'present':
      return nodeCheck('ok', 'modules', `${which} ${verb} in the kernel`);
    case 'loadable': {
      if (mayLoad) return nodeCheck('ok', 'modules', `${which} can be loaded`);
      const text = `${which} ${verb} not loaded, and cannot be loaded from here: CAP_SYS_MODULE is missing`;
      return nodeCheck('warning', 'modules', text, `run on the host: ${load}`);
    }
    case 'unknown': {
      const text = `${which} ${verb} not visible, and the kernel's list of modules is missing here: ${it} may be built in`;
      const advice = `if ${it} ${verb} not built in, run on the host: ${load}; after a kernel upgrade, reboot`;
      return nodeCheck('note', 'modules', text, index.loadsModules ? advice : undefined);
    }
    case 'missing':
      return describeMissing(index, names);
    default:
      return place satisfies never;
  }
}

/** Checks the sysctls that the mode or the bundle sets; those of IPVS come with module ip_vs. */
async function examineSysctls({ host, needs, modules }: Examined): Promise<readonly NodeCheck[]> {
  const hasIpvs = isInKernel(modules, 'ip_vs');
  const asked = needs.sysctls.filter(({ name }) => hasIpvs || !/\.vs\./.test(name));
  return Promise.all(
    asked.map(async ({ name, value }) => {
      const present = (await host.readFile(sysctlPath(name)))?.trim();
      if (present === undefined) {
        const advice = 'set it on the host: a container sees only the sysctls of its own network namespace';
        return nodeCheck('warning', 'sysctls', `${name} does not exist here`, advice);
      }
      const found = `${name} is ${present}`;
      if (value === undefined || value === present) return nodeCheck('ok', 'sysctls', found);
      if (await host.isWritable(sysctlPath(name)))
        return nodeCheck('ok', 'sysctls', `${found}, and can be set to ${value}`);
      const advice = `set it on the host, as root: sysctl -w ${name}=${value}`;
      return nodeCheck('error', 'sysctls', `${found}, and cannot be set to ${value} from here`, advice);
    }),
  );
}

/** Rules of both iptables variants match packets, and those of the unused variant are easily overlooked. */
async function examineVariants({ host, needs, mayChange }: Examined, owned: OwnedNames): Promise<readonly NodeCheck[]> {
  const variants = await readVariants(host);
  const what = `iptables is the ${variants.ipv4} variant`;
  let unread: string | undefined;
  const scope: ReadingScope = {
    needed: new Set(),
    variants,
    ipvs: null,
    timeouts: false,
    settings: [],
    onLeftOut: ({ message }) => void (unread ??= message.split('\n', 1).join()),
  };
  const others = { ipset: '', ipvsadm: '', 'ipvs timeouts': '', addresses: '', 'nft ipv4': '', 'nft ipv6': '' };
  const state = parseReading(await readNode(host, scope, { ipv4: '', ipv6: '', ...others, addresses: '[]' }));
  const decision = decideOwnership(state, emptyState, { owned, variants, adopt: false, excluded: [] });
  const other = variantOf('other ipv4', variants);
  const held: readonly (readonly [whose: string, chains: number, advice: string])[] = [
    ['kpc-apply', decision.owned.chains.length, 'apply again: kpc-apply moves its rules to the variant in use'],
    ['kube-proxy', decision.leftovers.length, 'take them over with apply --adopt, or remove them with cleanup --adopt'],
  ];
  const found = held.filter(([, chains]) => chains > 0);
  if (found.length > 0) {
    return found.map(([whose, chains, advice]) => {
      const text = `${what}, but the ${other} variant holds ${count(chains, 'chain')} of ${whose} too, and they still match`;
      return nodeCheck('warning', 'iptables', text, advice);
    });
  }
  if (unread !== undefined) {
    if (isRefusal(unread) && !mayChange) return [];
    const text = `${what}; what the ${other} variant holds is unknown: ${unread}`;
    return [nodeCheck('note', 'iptables', text, `install the ${other} variant's tools to see it`)];
  }
  if (!programs(needs.mode, 'iptables')) return [];
  const asked = await host.run({ tool: 'iptables-save', args: ['--version'], room: new Room(mostSaid) });
  if (asked.kind === 'missing')
    return [nodeCheck('note', 'iptables', 'the variant of iptables is not checked: iptables-save is missing')];
  return [nodeCheck('ok', 'iptables', `${what}; the ${other} variant holds no chains of kube-proxy`)];
}

/** Checks for a running kube-proxy. `mustSee`: its leftovers would be adopted, so one out of sight matters. */
async function examineKubeProxy(host: Host, mustSee = false): Promise<readonly NodeCheck[]> {
  const found = await findKubeProxy(host);
  switch (found.kind) {
    case 'running': {
      const advice = `${found.advice} first, then take over what it leaves with apply --adopt`;
      const text = `${found.text}: it would undo what kpc-apply does`;
      return [nodeCheck('error', 'kube-proxy', text, advice)];
    }
    case 'unknown': {
      const text = `it is unknown whether a kube-proxy runs in this network: ${found.text}`;
      const advice = mustSee ? adviseUnseen(found, 'no kube-proxy') : `${found.advice}; --adopt needs to know it`;
      return [nodeCheck(mustSee ? 'error' : 'note', 'kube-proxy', text, advice)];
    }
    case 'none':
      return [nodeCheck('ok', 'kube-proxy', 'kube-proxy is not running in this network')];
    default:
      return found satisfies never;
  }
}

/** Refuses or warns about a bundle compiled without endpoints: made for review, easily applied by mistake. */
export function examineEndpoints({ manifest }: Pick<Needs, 'manifest'>): readonly NodeCheck[] {
  const pods = manifest?.assumedEndpoints?.flatMap((workload) => workload.pods) ?? [];
  if (pods.length === 0) return [];
  const many = pods.length === 1 ? 'an endpoint' : `${pods.length} endpoints`;
  const text = `the bundle sends connections to ${many} that kpc assumed (--assume-endpoints), at addresses that no Pod has`;
  const advice =
    'compile it with what the cluster has: kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml';
  return [nodeCheck('warning', 'endpoints', text, advice)];
}

/** Warns if a node in nftables mode forwards nothing. */
export function examineForwarding(host: Host, { mode, manifest }: Pick<Needs, 'mode' | 'manifest'>) {
  const text = 'the node forwards nothing to endpoints, and kube-proxy does not set it in nftables mode';
  const used = programs(mode, 'nftables') ? (manifest?.families ?? families) : [];
  const names = used.map((family) => forwardingSysctls[family]);
  return examineZeros(
    host,
    names.map((name) => {
      const help = `run sysctl -w ${name}=1, and keep it in /etc/sysctl.d`;
      return { name, severity: 'warning', text, help };
    }),
  );
}

/** Where the kernel lists routes, and how a default route looks there. */
const routeLists: { readonly [F in Family]: readonly [path: string, isDefault: RegExp] } = {
  // Link, destination, gateway, flags, three numbers, mask.
  ipv4: ['/proc/net/route', /^(?!lo\t)\S+\t0{8}\t\S+\t\S+\t\S+\t\S+\t\S+\t0{8}\t/m],
  // Destination and prefix length first, the link last. The kernel's own default on lo only refuses.
  ipv6: ['/proc/net/ipv6_route', /^0{32} 00 (?!.* lo$)/m],
};

/** The kernel looks up a route to a cluster IP before rules replace it, unless the address is on kube-ipvs0. */
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
    const text = `the node has no default route for ${nameFamily[family]}: its own connections to cluster IPs fail, unless another route covers them`;
    return [nodeCheck('warning', 'routes', text, 'add a default route, or one to the range of the cluster IPs')];
  });
}

const nameFamily: { readonly [F in Family]: string } = { ipv4: 'IPv4', ipv6: 'IPv6' };

/** Checks sysctls that no bundle of the mode sets. */
function examineOtherSysctls(host: Host, { mode, sysctls }: Needs): Promise<readonly NodeCheck[]> {
  // kube-proxy's strictARP, which MetalLB requires: Linux answers ARP on every link for all of the node's addresses.
  const arp = 'net.ipv4.conf.all.arp_ignore';
  const isSet = sysctls.some((sysctl) => sysctl.name === arp && sysctl.value !== undefined);
  const answersArp: ZeroSysctl = {
    name: arp,
    severity: 'note',
    text: "the node answers ARP for every address on kube-ipvs0, load balancers' too",
    help: 'if MetalLB or another program announces these addresses, compile with --ipvs-strict-arp',
  };
  const bypassesRules: ZeroSysctl = {
    name: 'net.bridge.bridge-nf-call-iptables',
    severity: 'warning',
    text: 'pods on one bridge may not reach each other through a Service',
    help: 'set it to 1 if pods are on a Linux bridge',
  };
  return examineZeros(host, programs(mode, 'virtualServers') && !isSet ? [bypassesRules, answersArp] : [bypassesRules]);
}

interface ZeroSysctl extends Pick<NodeCheck, 'severity' | 'text' | 'help'> {
  readonly name: string;
}

async function examineZeros(host: Host, asked: readonly ZeroSysctl[]): Promise<readonly NodeCheck[]> {
  const values = await Promise.all(asked.map(({ name }) => host.readFile(sysctlPath(name))));
  return asked
    .filter((_, i) => values[i]?.trim() === '0')
    .map(({ name, severity, text, help }) => nodeCheck(severity, 'sysctls', `${name} is 0: ${text}`, help));
}

/** Checks the state folder; returns what kpc-apply owns by its record, nothing if that cannot be read. */
export async function examineState(
  host: Host,
  base: string,
): Promise<{ readonly owned: OwnedNames; readonly checks: readonly NodeCheck[] }> {
  let owned = nothingOwned;
  try {
    await assertTrustedState(host, base);
    const folder = stateFolder(base, await readNetwork(host, false));
    ({ owned } = await readRecord(host, folder));
    const others = await describeOtherNetworks(host, folder);
    const elsewhere = others.map((text) =>
      nodeCheck('warning', 'state', text, 'use another --state-dir for each network'),
    );
    if (await readJournal(host, folder)) {
      const advice = 'if none is running, run "kpc-apply rollback", or apply again';
      const text = `${base}: an apply is running, or did not finish`;
      return { owned, checks: [nodeCheck('warning', 'state', text, advice), ...elsewhere] };
    }
    const isEmpty = isNothingOwned(owned);
    const made = isEmpty ? 'kpc-apply has made nothing here since the node booted' : 'the record is whole';
    return { owned, checks: [nodeCheck('ok', 'state', `${base}: ${made}`), ...elsewhere] };
  } catch (error) {
    const { message, advice, code } = explainError(error);
    return { owned, checks: [nodeCheck(code === 'system-error' ? 'warning' : 'error', 'state', message, advice)] };
  }
}
