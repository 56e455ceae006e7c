import { describeError } from '../../base/system-errors.ts';
import { settingsOf } from '../../bundle/manifest.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { modeFacts, programs, proxyModes } from '../../kube-proxy/modes.ts';
import { describeMissing, examineKernel, examineNftables } from './examine-nftables.ts';
import { examineReading, examineTools } from './examine-tools.ts';
import { finding, type Examined, type Finding, type Needs } from './finding.ts';
import { excerptOf, type Host } from '../node/host.ts';
import { adviseRights, capNetAdmin, capSysModule, findKubeProxy, hasCapability, isRoots } from '../node/processes.ts';
import { isRefusal } from '../node/tools.ts';
import { isEmptyBelongings } from '../state/belongings.ts';
import { explainError } from '../state/failure.ts';
import { readBootId } from '../state/process-identity.ts';
import { readRecord, readSnapshot, stateFolder } from '../state/record.ts';
import { assertTrustedState } from '../state/trusted-files.ts';
import { findModule, isInKernel, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import { readAddresses } from '../node/node-reading.ts';
import { decideOnNode, isMet, readNodeFacts, sysctlPath, type Setting } from '../plan/node-decisions.ts';

/** What there is to know without a bundle: first what each mode needs, then for each mode what it alone does. */
export async function examineForAnyMode(host: Host): Promise<readonly Finding[]> {
  const runs = new Map<string, ReturnType<Host['run']>>();
  const patient: Host = {
    ...host,
    run: (command) => {
      const key = JSON.stringify(command);
      const run = runs.get(key) ?? host.run(command);
      runs.set(key, run);
      return run;
    },
  };
  const groups = await Promise.all(
    proxyModes.map(async (mode) => {
      const { modules, sysctls, tools: leastVersions } = modeFacts[mode];
      const anyValue = sysctls.map((name) => ({ name, value: undefined }));
      return examineNode(patient, { mode, modules, sysctls: anyValue, leastVersions, manifest: undefined });
    }),
  );
  const keys = groups.map((group) => new Set(group.map((each) => JSON.stringify(each))));
  const isCommon = (each: Finding) => keys.every((known) => known.has(JSON.stringify(each)));
  return [
    ...(groups[0] ?? []).filter(isCommon),
    ...proxyModes.flatMap((mode, i) =>
      (groups[i] ?? []).filter((each) => !isCommon(each)).map((each) => ({ ...each, mode })),
    ),
  ];
}

/** Everything worth knowing about a node before a bundle is applied to it. Changes nothing. */
export async function examineNode(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const modules = await readModuleIndex(host, [...needs.modules, 'ip_set']);
  const examined: Examined = { host, needs, modules, rights: await adviseRights(host) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined),
    examineReading(examined),
    examineModules(examined),
    examineSysctls(examined),
    programs(needs.mode, 'iptables') ? examineVariants(host) : [],
    examineNftables(examined),
    examineKubeProxy(host),
    examineOtherSysctls(host, needs),
    examineAddresses(host, needs),
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
  const examined: Examined = { host, needs, modules, rights: await adviseRights(host) };
  const groups = await Promise.all([
    examineRights(examined),
    examineTools(examined, ({ name, neededBy }) => neededBy !== 'no mode' && used.has(name)),
    examineModules(examined),
    examineKernel(host, needs.mode),
    examineKubeProxy(host),
  ]);
  return groups.flat().filter(({ severity }) => severity === 'error');
}

async function examineRights({ host, rights }: Examined): Promise<readonly Finding[]> {
  const has = await hasCapability(host, capNetAdmin);
  if (has) return [finding('ok', 'rights', 'allowed to change the network (CAP_NET_ADMIN)')];
  if (has === undefined) {
    const text = 'cannot tell whether kpc-apply may change the network: /proc/self/status lists no capabilities';
    return [finding('error', 'rights', text, 'run it where /proc is mounted')];
  }
  return [finding('error', 'rights', 'not allowed to change the network: CAP_NET_ADMIN is missing', rights)];
}

async function examineModules({ host, needs, modules }: Examined): Promise<readonly Finding[]> {
  // A process that may not change the network either has that finding already.
  const mayLoad = (await hasCapability(host, capSysModule)) !== false || !(await hasCapability(host, capNetAdmin));
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
      if (!index.loadsModules) {
        return finding(
          'note',
          'modules',
          `${module} is not visible, and this kernel loads no modules: it may be built in`,
        );
      }
      const text = `${module} is not loaded, and this kernel's list of modules is missing here: it may be built in`;
      const advice = `if it is not built in, load it on the host (modprobe ${module}); after a kernel upgrade, reboot`;
      return finding('note', 'modules', text, advice);
    }
    case 'missing':
      return describeMissing(index, module);
    default:
      return place satisfies never;
  }
}

async function examineSysctls({ host, needs, modules, rights }: Examined): Promise<readonly Finding[]> {
  try {
    const { manifest } = needs;
    const decided = manifest === undefined ? [] : decideOnNode(settingsOf(manifest), await readNodeFacts(host));
    const hasIpvs = isInKernel(modules, 'ip_vs');
    const all: readonly LookedAtSetting[] = [
      // IPVS sysctls come with ip_vs, which the module findings cover.
      ...needs.sysctls.map((each) => ({ ...each, path: sysctlPath(each.name), cannotBeSet: 'error' as const })),
      // Sysctls that the node decides are left alone if they cannot be set.
      ...decided.map((each) => ({ ...each, cannotBeSet: 'note' as const })),
    ].filter(({ name }) => hasIpvs || !/\.vs\./.test(name));
    return await Promise.all(all.map((setting) => examineSetting(host, setting, rights)));
  } catch (error) {
    // Some of the node is for root's eyes only, and the doctor is asked by others too.
    return [finding('warning', 'sysctls', `some sysctls cannot be read: ${describeError(error)}`, 'run it as root')];
  }
}

interface LookedAtSetting extends Pick<Setting, 'name' | 'path' | 'onlyRaises'> {
  /** Undefined if any will do. */
  readonly value: string | undefined;
  readonly cannotBeSet: Finding['severity'];
}

async function examineSetting(
  host: Host,
  { name, path, value, onlyRaises, cannotBeSet }: LookedAtSetting,
  rights: string,
): Promise<Finding> {
  const present = (await host.readFile(path))?.trim();
  if (present === undefined) {
    const advice = 'set it on the host: a container sees only the sysctls of its own network namespace';
    return finding('warning', 'sysctls', `${name} does not exist here`, advice);
  }
  const is = `${name} is ${present}`;
  if (value === undefined || isMet({ value, onlyRaises }, present)) return finding('ok', 'sysctls', is);
  if (await host.isWritable(path)) return finding('ok', 'sysctls', `${is}, and can be set to ${value}`);
  const advice = (await isRoots(host, 'self')) ? `set it on the host: sysctl -w ${name}=${value}` : rights;
  return finding(cannotBeSet, 'sysctls', `${is}, and cannot be set to ${value} from here`, advice);
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
  const [reason = 'it is missing'] = saved.flatMap((result) =>
    result.kind === 'ended' ? excerptOf(result.stderr) : [],
  );
  const cause = `iptables-${other}-save fails: ${reason.split('\n')[0]}`;
  return [finding('note', 'iptables', `${what}; what the ${other} variant holds is unknown: ${cause}`)];
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

/** A bundle is compiled for one node: node ports listen on its addresses. */
async function examineAddresses(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const expected = needs.manifest?.node.hostAddresses ?? [];
  if (expected.length === 0) return [];
  const addresses = await readAddresses(host).catch(explainError);
  if (typeof addresses !== 'string') {
    // That ip is missing, or that the rights are, is reported where the tools and rights are.
    const { code, message, advice } = addresses;
    return code === 'tool-missing' || isRefusal(message) ? [] : [finding('error', 'tools', message, advice)];
  }
  const { links } = parseIpAddrJson(addresses);
  const present = new Set(links.flatMap((link) => link.addresses).map(({ address }) => address.text));
  const missing = expected.filter((address) => !present.has(address));
  if (missing.length === 0) return [finding('ok', 'addresses', 'this node has the addresses of the bundle')];
  const text = `this node does not have ${missing.join(', ')}, and the bundle was compiled for it`;
  const advice = 'check that this is the bundle of this node; if it is, compile it again with --host-addresses';
  return [finding('warning', 'addresses', text, advice)];
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

/** Sysctls that no bundle of the mode sets. */
async function examineOtherSysctls(host: Host, { mode, sysctls }: Needs): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const bridges = await host.readFile('/proc/sys/net/bridge/bridge-nf-call-iptables');
  if (bridges !== undefined && bridges.trim() !== '1') {
    const text =
      'net.bridge.bridge-nf-call-iptables is 0: pods on one bridge may not reach each other through a Service';
    findings.push(finding('warning', 'sysctls', text, 'set it to 1 if pods are on a Linux bridge'));
  }
  // kube-proxy's strictARP, which MetalLB asks for: Linux answers ARP on every link for every address that the node has.
  const name = 'net.ipv4.conf.all.arp_ignore';
  const isSet = sysctls.some((sysctl) => sysctl.name === name && sysctl.value !== undefined);
  if (programs(mode, 'virtualServers') && !isSet && (await host.readFile(sysctlPath(name)))?.trim() === '0') {
    const text = `${name} is 0: the node answers ARP for every address on kube-ipvs0, load balancers' too`;
    const advice = 'if MetalLB or another program announces these addresses, compile with --ipvs-strict-arp';
    findings.push(finding('note', 'sysctls', text, advice));
  }
  return findings;
}

/** The folder where kpc-apply keeps its records. */
export async function examineState(host: Host, path: string): Promise<readonly Finding[]> {
  const folder = stateFolder(path);
  try {
    await assertTrustedState(host, path);
    const bootId = await readBootId(host);
    const { owned } = await readRecord(host, folder, bootId);
    if (await readSnapshot(host, folder.journal, bootId)) {
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
