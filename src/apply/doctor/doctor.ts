import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { families } from '../../kernel/family.ts';
import { modeFacts, programs, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { describeMissing, examineFeatures, examineKernel } from './examine-nftables.ts';
import { finding, type Examined, type Finding, type Needs } from './finding.ts';
import { excerptOf, type Host } from '../node/host.ts';
import { capNetAdmin, capSysModule, findKubeProxy, hasCapability, rightsAdvice } from '../node/processes.ts';
import { compareVersions, isRefusal, parseVersion, tools, type Tool } from '../node/tools.ts';
import { isEmptyBelongings } from '../state/belongings.ts';
import { explainError } from '../state/failure.ts';
import { readRecord, readSnapshot, stateFolder } from '../state/record.ts';
import { assertTrustedState } from '../state/trusted-files.ts';
import { findModule, isInKernel, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import { readNode, type ReadingPart } from '../node/node-reading.ts';
import { sysctlPath } from '../plan/node-decisions.ts';

/** What can be known without a bundle: for each mode, what it needs. A finding that all modes share has no mode. */
export async function examineForAnyMode(host: Host): Promise<readonly Finding[]> {
  const groups = await Promise.all(
    proxyModes.map((mode) => {
      const { modules, sysctls, tools: leastVersions } = modeFacts[mode];
      const anyValue = sysctls.map((name) => ({ name, value: undefined }));
      return examineNode(host, { mode, modules, sysctls: anyValue, leastVersions, manifest: undefined });
    }),
  );
  const keys = groups.map((group) => new Set(group.map((each) => JSON.stringify(each))));
  const isCommon = (each: Finding) => keys.every((known) => known.has(JSON.stringify(each)));
  const ofMode = (mode: ProxyMode, i: number) =>
    (groups[i] ?? []).filter((each) => !isCommon(each)).map((each) => ({ ...each, mode }));
  return [...(groups[0] ?? []).filter(isCommon), ...proxyModes.flatMap(ofMode)];
}

/** Everything worth knowing about a node before a bundle is applied to it. Changes nothing. */
export async function examineNode(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const modules = await readModuleIndex(host, [...needs.modules, 'ip_set']);
  const examined: Examined = { host, needs, modules, mayChange: await hasCapability(host, capNetAdmin) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined),
    examineReading(examined),
    examineModules(examined),
    examineSysctls(examined),
    programs(needs.mode, 'iptables') ? examineVariants(host) : [],
    examineKernel(host, needs.mode),
    programs(needs.mode, 'nftables') ? examineFeatures(examined) : [],
    examineForwarding(host, needs),
    examineKubeProxy(host),
    examineOtherSysctls(host, needs),
    examineEndpoints(needs),
  ]);
  return groups.flat();
}

/**
 * What must be so before anything is changed with these tools. The rest an apply finds out by itself: the node has just
 * been read, so that what reads it is there.
 */
export async function examineBeforeApply(
  host: Host,
  needs: Needs,
  used: ReadonlySet<string>,
  modules: ModuleIndex,
): Promise<readonly Finding[]> {
  const examined: Examined = { host, needs, modules, mayChange: await hasCapability(host, capNetAdmin) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined, ({ name, purpose }) => purpose === undefined && used.has(name)),
    examineModules(examined),
    examineKernel(host, needs.mode),
    examineKubeProxy(host),
  ]);
  return groups.flat().filter(({ severity }) => severity === 'error');
}

function examineRights({ mayChange }: Examined): readonly Finding[] {
  if (mayChange) return [finding('ok', 'rights', 'allowed to change the network (CAP_NET_ADMIN)')];
  const text = 'not allowed to change the network: /proc/self/status shows no CAP_NET_ADMIN';
  return [finding('error', 'rights', text, rightsAdvice)];
}

/** Whether the tools are there, work, and are new enough: all that the mode needs, or those of them that are used. */
function examineTools(examined: Examined, isUsed: (tool: Tool) => boolean = () => true): Promise<readonly Finding[]> {
  const { tools: ofMode } = modeFacts[examined.needs.mode];
  // Every mode needs ip, and none those with a purpose of their own.
  const isOfMode = ({ name, family, purpose }: Tool) => name === 'ip' || purpose !== undefined || family in ofMode;
  const asked = tools.filter((tool) => isUsed(tool) && isOfMode(tool));
  return Promise.all(asked.map((tool) => examineTool(examined, tool)));
}

async function examineTool({ host, needs, modules }: Examined, tool: Tool): Promise<Finding> {
  const { name, family, versionArgs, purpose } = tool;
  const loss = purpose === undefined ? '' : ` (without it, ${purpose})`;
  const fault = (text: string, advice: string): Finding => {
    return { ...finding(purpose === undefined ? 'error' : 'warning', 'tools', text, advice), tool: name };
  };
  const result = await host.run({ tool: name, args: versionArgs });
  if (result.kind === 'missing') return fault(`${name} is missing${loss}`, `install the package ${family}`);
  const [details = ''] = excerptOf(result.stdout || result.stderr).split('\n');
  const version = parseVersion(details.replace(/^.*?[\s-]v?(?=\d)/, ''));
  if (result.status !== 0 || !version) {
    const reason = excerptOf(result.stderr).split('\n', 1).join() || details || 'it printed nothing';
    // ipvsadm asks the kernel for IPVS before it does anything, even to print its version.
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
  return finding('ok', 'tools', `${name}: ${details}`);
}

/**
 * Reads addresses, and in the modes of iptables rules and sets, as an apply reads them: tools print a version even without
 * kernel support. Compares the addresses with those that the bundle was compiled for.
 */
async function examineReading({ host, needs, mayChange }: Examined): Promise<readonly Finding[]> {
  const used = needs.manifest?.families ?? ['ipv4'];
  const hasRules = programs(needs.mode, 'iptables');
  const needed = new Set<ReadingPart>(hasRules ? [...used, 'addresses'] : ['addresses']);
  const unread = hasRules ? {} : { ipv4: '', ipv6: '', ipset: '', ipvsadm: '' };
  const scope = { needed, families: used, timeouts: false, settings: [] };
  try {
    // The tables of nftables have their own findings.
    const { addresses } = await readNode(host, scope, { 'nft ipv4': '', 'nft ipv6': '', ...unread });
    return examineAddresses(needs, addresses);
  } catch (error) {
    const { code, message, advice, tool = '' } = explainError(error);
    // Missing tools and rights have their own findings.
    if (code === 'tool-missing' || (isRefusal(message) && !mayChange)) return [];
    const [text = ''] = message.split('\n');
    // A kernel may have the one variant of iptables and not the other.
    const isVariant =
      tool.endsWith('-save') && /nft|nf_tables/i.test(message) && !message.includes('cannot show the table');
    const variant =
      'boot a kernel that has nf_tables, or switch to the legacy variant (update-alternatives --config iptables)';
    return [finding('error', 'tools', text, isVariant ? variant : advice)];
  }
}

/** A bundle is compiled for one node: node ports listen on its addresses. */
function examineAddresses({ manifest }: Needs, addresses: string): readonly Finding[] {
  const expected = manifest?.node.hostAddresses ?? [];
  if (expected.length === 0) return [];
  const { links } = parseIpAddrJson(addresses);
  const present = new Set(links.flatMap((link) => link.addresses).map(({ address }) => address.text));
  const missing = expected.filter((address) => !present.has(address));
  if (missing.length === 0) return [finding('ok', 'addresses', 'this node has the addresses of the bundle')];
  const text = `this node does not have ${missing.join(', ')}, and the bundle was compiled for it`;
  const advice = 'check that this is the bundle of this node; if it is, compile it again with --host-addresses';
  return [finding('warning', 'addresses', text, advice)];
}

async function examineModules({ host, needs, modules, mayChange }: Examined): Promise<readonly Finding[]> {
  // A process that may not change the network either has that finding already.
  const mayLoad = !mayChange || (await hasCapability(host, capSysModule));
  return needs.modules.map((module) => describeModule(modules, module, mayLoad));
}

function describeModule(index: ModuleIndex, module: string, mayLoad: boolean): Finding {
  const place = findModule(index, module);
  switch (place) {
    case 'present':
      return finding('ok', 'modules', `${module} is in the kernel`);
    case 'loadable': {
      if (mayLoad) return finding('ok', 'modules', `${module} can be loaded`);
      const text = `${module} is not loaded, and cannot be loaded from here: CAP_SYS_MODULE is missing`;
      return finding('warning', 'modules', text, `load it on the host: modprobe ${module}`);
    }
    case 'unknown': {
      const text = `${module} is not visible, and the kernel's list of modules is missing here: it may be built in`;
      const advice = `if it is not built in, load it on the host (modprobe ${module}); after a kernel upgrade, reboot`;
      return finding('note', 'modules', text, index.loadsModules ? advice : undefined);
    }
    case 'missing':
      return describeMissing(index, module);
    default:
      return place satisfies never;
  }
}

/** The sysctls that the mode or the bundle sets. Those of IPVS come with ip_vs, which the module findings cover. */
async function examineSysctls({ host, needs, modules }: Examined): Promise<readonly Finding[]> {
  const hasIpvs = isInKernel(modules, 'ip_vs');
  const asked = needs.sysctls.filter(({ name }) => hasIpvs || !/\.vs\./.test(name));
  return Promise.all(
    asked.map(async ({ name, value }) => {
      const present = (await host.readFile(sysctlPath(name)))?.trim();
      if (present === undefined) {
        const advice = 'set it on the host: a container sees only the sysctls of its own network namespace';
        return finding('warning', 'sysctls', `${name} does not exist here`, advice);
      }
      const is = `${name} is ${present}`;
      if (value === undefined || value === present) return finding('ok', 'sysctls', is);
      if (await host.isWritable(sysctlPath(name))) return finding('ok', 'sysctls', `${is}, and can be set to ${value}`);
      const advice = `set it on the host, as root: sysctl -w ${name}=${value}`;
      return finding('error', 'sysctls', `${is}, and cannot be set to ${value} from here`, advice);
    }),
  );
}

/** Rules in both variants of iptables, legacy and nft, all match: the other variant's are easily overlooked. */
async function examineVariants(host: Host): Promise<readonly Finding[]> {
  const version = await host.run({ tool: 'iptables', args: ['--version'] });
  if (version.kind === 'missing' || version.status !== 0) return [];
  const [variant, other] = version.stdout.includes('nf_tables') ? ['nft', 'legacy'] : ['legacy', 'nft'];
  // Without a table's name: to ask for one by name would make it.
  const saved = await Promise.all(
    ['iptables', 'ip6tables'].map((tool) => host.run({ tool: `${tool}-${other}-save`, args: [] })),
  );
  const texts = saved.flatMap((result) => (result.kind === 'ended' && result.status === 0 ? [result.stdout] : []));
  // kubelet has its own chains in either variant.
  const strays = texts.join('\n').match(/^:KUBE-(?:SERVICES|NODEPORTS|SVC-\w+|SEP-\w+) /gm)?.length ?? 0;
  const what = `iptables is the ${variant} variant`;
  if (strays > 0) {
    const text = `${what}, but the ${other} variant holds ${strays} KUBE- chains too, and they still match`;
    const advice = `remove them with iptables-${other} and ip6tables-${other}, or make ${other} the default (update-alternatives --config iptables)`;
    return [finding('warning', 'iptables', text, advice)];
  }
  if (texts.length > 0) return [finding('ok', 'iptables', `${what}; the ${other} variant holds no KUBE- chains`)];
  const why = `iptables-${other}-save is missing or fails`;
  return [finding('note', 'iptables', `${what}; what the ${other} variant holds is unknown: ${why}`)];
}

/** What Linux calls the namespace of processes that holds all others. */
const wholeNode = 'pid:[4026531836]';

async function examineKubeProxy(host: Host): Promise<readonly Finding[]> {
  const found = await findKubeProxy(host);
  if (found !== undefined) {
    const advice = `${found.advice} first, then take over what it leaves with apply --adopt`;
    const text = `${found.text}: it would undo what kpc-apply does`;
    return [finding('error', 'kube-proxy', text, advice)];
  }
  const processes = await host.readLink('/proc/self/ns/pid');
  if (processes === undefined || processes === wholeNode) {
    return [finding('ok', 'kube-proxy', 'kube-proxy is not running in this network')];
  }
  const text = 'kube-proxy is not running in this container; the processes of the node are not visible here';
  const advice = 'make sure that kube-proxy does not run on the node in this network';
  return [finding('note', 'kube-proxy', text, advice)];
}

/** A bundle to review is easily taken for one to apply. */
export function examineEndpoints({ manifest }: Pick<Needs, 'manifest'>): readonly Finding[] {
  const pods = manifest?.assumedEndpoints?.flatMap((workload) => workload.pods) ?? [];
  if (pods.length === 0) return [];
  const many = pods.length === 1 ? 'an endpoint' : `${pods.length} endpoints`;
  const text = `the bundle sends connections to ${many} that kpc assumed (--assume-endpoints), at addresses that no Pod has`;
  const advice = 'compile it with what the cluster has: kubectl get services,endpointslices,nodes -A -o yaml';
  return [finding('warning', 'endpoints', text, advice)];
}

/** Sysctls that let a node forward packets, by family. kube-proxy sets them in IPVS mode alone. */
export const forwardingSysctls = { ipv4: 'net.ipv4.ip_forward', ipv6: 'net.ipv6.conf.all.forwarding' } as const;

/** Warns of a node that forwards nothing, in nftables mode. */
export function examineForwarding(host: Host, { mode, manifest }: Pick<Needs, 'mode' | 'manifest'>) {
  const text = 'the node forwards nothing to endpoints, and kube-proxy does not set it in nftables mode';
  const used = programs(mode, 'nftables') ? (manifest?.families ?? families) : [];
  const names = used.map((family) => forwardingSysctls[family]);
  return examineZeros(
    host,
    names.map((name) => {
      const advice = `run sysctl -w ${name}=1, and keep it in /etc/sysctl.d`;
      return { name, severity: 'warning', text, advice };
    }),
  );
}

/** Sysctls that no bundle of the mode sets. */
function examineOtherSysctls(host: Host, { mode, sysctls }: Needs): Promise<readonly Finding[]> {
  // kube-proxy's strictARP, which MetalLB asks for: Linux answers ARP on every link for every address that the node has.
  const arp = 'net.ipv4.conf.all.arp_ignore';
  const isSet = sysctls.some((sysctl) => sysctl.name === arp && sysctl.value !== undefined);
  const answersArp: ZeroSysctl = {
    name: arp,
    severity: 'note',
    text: "the node answers ARP for every address on kube-ipvs0, load balancers' too",
    advice: 'if MetalLB or another program announces these addresses, compile with --ipvs-strict-arp',
  };
  const bypassesRules: ZeroSysctl = {
    name: 'net.bridge.bridge-nf-call-iptables',
    severity: 'warning',
    text: 'pods on one bridge may not reach each other through a Service',
    advice: 'set it to 1 if pods are on a Linux bridge',
  };
  return examineZeros(host, programs(mode, 'virtualServers') && !isSet ? [bypassesRules, answersArp] : [bypassesRules]);
}

/** A sysctl, and what it means that it is 0. */
interface ZeroSysctl extends Pick<Finding, 'severity' | 'text' | 'advice'> {
  readonly name: string;
}

async function examineZeros(host: Host, asked: readonly ZeroSysctl[]): Promise<readonly Finding[]> {
  const values = await Promise.all(asked.map(({ name }) => host.readFile(sysctlPath(name))));
  return asked
    .filter((_, i) => values[i]?.trim() === '0')
    .map(({ name, severity, text, advice }) => finding(severity, 'sysctls', `${name} is 0: ${text}`, advice));
}

/** The folder where kpc-apply keeps its records. */
export async function examineState(host: Host, path: string): Promise<readonly Finding[]> {
  const folder = stateFolder(path);
  try {
    await assertTrustedState(host, path);
    const { owned } = await readRecord(host, folder);
    if (await readSnapshot(host, folder.journal)) {
      const advice = 'if none is running, run "kpc-apply rollback", or apply again';
      return [finding('warning', 'state', `${path}: an apply is running, or did not finish`, advice)];
    }
    const isEmpty = isEmptyBelongings(owned);
    const made = isEmpty ? 'kpc-apply has made nothing here since the node booted' : 'the record is whole';
    return [finding('ok', 'state', `${path}: ${made}`)];
  } catch (error) {
    const { message, advice, code } = explainError(error);
    return [finding(code === 'system-error' ? 'warning' : 'error', 'state', message, advice)];
  }
}
