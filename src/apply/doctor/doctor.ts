import { describeError } from '../../bundle/errors.ts';
import { settingsOf } from '../../bundle/manifest.ts';
import { tableNames } from '../../kernel/iptables/iptables.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { classifyChain } from '../../kube-proxy/chains.ts';
import { modeFacts, programs, proxyModes } from '../../kube-proxy/modes.ts';
import { describeMissing, examineKernel, examineNftables } from './examine-nftables.ts';
import { examineOtherModes, examineReading, examineTools } from './examine-tools.ts';
import type { Finding, Needs } from './finding.ts';
import { excerptOf, type Host } from '../node/host.ts';
import {
  adviseRights,
  adviseStop,
  capNetAdmin,
  capSysModule,
  describeKubeProxy,
  findKubeProxy,
  hasCapability,
  isRoots,
} from '../node/processes.ts';
import { isRefusal } from '../node/tools.ts';
import { isEmptyBelongings } from '../state/belongings.ts';
import { explainError } from '../state/failure.ts';
import { readBootId } from '../state/process-identity.ts';
import { readRecord, readSnapshot, stateFolder } from '../state/record.ts';
import { assertTrustedState } from '../state/trusted-files.ts';
import { findModule, isInKernel, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import { readAddresses } from '../node/node-reading.ts';
import { decideOnNode, isMet, readNodeFacts, sysctlPath } from '../plan/node-decisions.ts';

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
      return examineNode(patient, {
        mode,
        modules,
        sysctls: sysctls.map((name) => ({ name, value: undefined })),
        leastVersions,
        manifest: undefined,
      });
    }),
  );
  const keyOf = (finding: Finding) => JSON.stringify(finding);
  const isCommon = (finding: Finding) =>
    groups.every((group) => group.some((other) => keyOf(other) === keyOf(finding)));
  return [
    ...(groups[0] ?? []).filter(isCommon),
    ...proxyModes.flatMap((mode, i) =>
      (groups[i] ?? []).filter((finding) => !isCommon(finding)).map((finding) => ({ ...finding, mode })),
    ),
  ];
}

/** Everything worth knowing about a node before a bundle is applied to it. Changes nothing. */
export async function examineNode(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const modules = await readModuleIndex(host, [...needs.modules, 'nf_tables', 'ip_set']);
  const groups = await Promise.all([
    examineRights(host),
    examineTools(host, modules, needs),
    examineReading(host, modules, needs),
    // Without a bundle, each mode is looked at.
    needs.manifest === undefined ? [] : examineOtherModes(host, modules, needs.mode),
    examineModules(host, modules, needs),
    examineSysctls(host, modules, needs),
    programs(needs.mode, 'iptables') ? examineVariants(host) : [],
    examineNftables(host, needs),
    examineKubeProxy(host),
    examineBridges(host),
    programs(needs.mode, 'virtualServers') ? examineArp(host, needs) : [],
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
  const groups = await Promise.all([
    examineRights(host),
    examineTools(host, modules, needs, ({ name, neededBy }) => neededBy !== 'no mode' && used.has(name)),
    examineModules(host, modules, needs),
    examineKernel(host, needs.mode),
    examineKubeProxy(host),
  ]);
  return groups.flat().filter((finding) => finding.severity === 'error');
}

async function examineRights(host: Host): Promise<readonly Finding[]> {
  const subject = 'rights';
  const has = await hasCapability(host, capNetAdmin);
  if (has) return [{ severity: 'ok', subject, text: 'allowed to change the network (CAP_NET_ADMIN)' }];
  if (has === undefined) {
    const text = 'cannot tell whether kpc-apply may change the network: /proc/self/status lists no capabilities';
    return [{ severity: 'error', subject, text, advice: 'run it where /proc is mounted' }];
  }
  const text = 'not allowed to change the network: CAP_NET_ADMIN is missing';
  return [{ severity: 'error', subject, text, advice: await adviseRights(host) }];
}

async function examineModules(host: Host, index: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  // Who may not change the network either has been told so.
  const mayLoad = (await hasCapability(host, capSysModule)) !== false || !(await hasCapability(host, capNetAdmin));
  return needs.modules.map((module) => describeModule(index, module, mayLoad));
}

function describeModule(index: ModuleIndex, module: string, mayLoad: boolean): Finding {
  const subject = 'modules';
  const place = findModule(index, module);
  switch (place) {
    case 'loaded':
      return { severity: 'ok', subject, text: `${module} is loaded` };
    case 'present':
      return { severity: 'ok', subject, text: `${module} is in the kernel` };
    case 'built-in':
      return { severity: 'ok', subject, text: `${module} is built into the kernel` };
    case 'loadable':
      if (mayLoad) return { severity: 'ok', subject, text: `${module} can be loaded` };
      return {
        severity: 'warning',
        subject,
        text: `${module} is not loaded, and cannot be loaded from here: CAP_SYS_MODULE is missing`,
        advice: `load it on the host: modprobe ${module}`,
      };
    case 'unknown':
      return describeUnknown(index, module);
    case 'missing':
      return describeMissing(index, module);
    default:
      return place satisfies never;
  }
}

function describeUnknown({ loadsModules }: ModuleIndex, module: string): Finding {
  if (!loadsModules) {
    const text = `${module} is not visible, and this kernel loads no modules: it may be built in`;
    return { severity: 'note', subject: 'modules', text };
  }
  return {
    severity: 'note',
    subject: 'modules',
    text: `${module} is not loaded, and this kernel's list of modules is missing here: it may be built in`,
    advice: `if it is not built in, load it on the host (modprobe ${module}); after a kernel upgrade, reboot`,
  };
}

async function examineSysctls(host: Host, index: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  try {
    return await findSysctls(host, index, needs);
  } catch (error) {
    // Some of the node is for root's eyes only, and the doctor is asked by others too.
    const text = `some sysctls cannot be read: ${describeError(error)}`;
    return [{ severity: 'warning', subject: 'sysctls', text, advice: 'run it as root' }];
  }
}

async function findSysctls(host: Host, index: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  const decided =
    needs.manifest === undefined ? [] : decideOnNode(settingsOf(needs.manifest), await readNodeFacts(host));
  const named = needs.sysctls.map(({ name, value }) => ({ name, path: sysctlPath(name), value, isAsked: true }));
  const hasIpvs = isInKernel(index, 'ip_vs');
  // What the node decides is left alone where it cannot be set.
  const all = [...named, ...decided.map((each) => ({ ...each, isAsked: false }))];
  const findings = await Promise.all(
    all.map(async (setting): Promise<readonly Finding[]> => {
      const { name, path } = setting;
      const value = await host.readFile(path);
      const subject = 'sysctls';
      if (value !== undefined) return [{ subject, ...(await describeValue(host, setting, value.trim())) }];
      // A setting of IPVS comes with ip_vs, of which the modules' findings speak.
      if (/\.vs\./.test(name) && !hasIpvs) return [];
      const advice = 'set it on the host: a container sees only the sysctls of its own network namespace';
      return [{ severity: 'warning', subject, text: `${name} does not exist here`, advice }];
    }),
  );
  return findings.flat();
}

/** A setting that is there, and may have to become another. */
async function describeValue(
  host: Host,
  setting: {
    readonly name: string;
    readonly path: string;
    readonly value: string | undefined;
    readonly onlyRaises?: true | undefined;
    readonly isAsked: boolean;
  },
  present: string,
): Promise<Omit<Finding, 'subject'>> {
  const { name, path, value, onlyRaises, isAsked } = setting;
  if (value === undefined || isMet({ value, onlyRaises }, present))
    return { severity: 'ok', text: `${name} is ${present}` };
  if (await host.isWritable(path)) return { severity: 'ok', text: `${name} is ${present}, and can be set to ${value}` };
  return {
    severity: isAsked ? 'error' : 'note',
    text: `${name} is ${present}, and cannot be set to ${value} from here`,
    advice: (await isRoots(host, 'self')) ? `set it on the host: sysctl -w ${name}=${value}` : 'run it as root',
  };
}

/** Rules in both variants of iptables, legacy and nft, all match: the other variant's are easily overlooked. */
async function examineVariants(host: Host): Promise<readonly Finding[]> {
  const version = await host.run({ tool: 'iptables', args: ['--version'] });
  if (version.kind === 'missing' || version.status !== 0) return [];
  const variant = version.stdout.includes('nf_tables') ? 'nft' : 'legacy';
  const other = variant === 'nft' ? 'legacy' : 'nft';
  const subject = 'iptables';
  // Without a table's name: to ask for one by name would make it.
  const saved = await Promise.all(
    ['iptables', 'ip6tables'].map((tool) => host.run({ tool: `${tool}-${other}-save`, args: [] })),
  );
  const texts = saved.flatMap((result) => (result.kind === 'ended' && result.status === 0 ? [result.stdout] : []));
  const strays = texts.reduce((sum, text) => sum + countChains(text), 0);
  if (strays > 0) {
    return [
      {
        severity: 'warning',
        subject,
        text: `iptables is the ${variant} variant, but the ${other} variant holds ${strays} KUBE- chains too, and they still match`,
        advice: `remove them with iptables-${other} and ip6tables-${other}, or make ${other} the default (update-alternatives --config iptables)`,
      },
    ];
  }
  if (texts.length > 0)
    return [
      {
        severity: 'ok',
        subject,
        text: `iptables is the ${variant} variant; the ${other} variant holds no KUBE- chains`,
      },
    ];
  const refused = saved.flatMap((result) => (result.kind === 'ended' ? excerptOf(result.stderr).split('\n') : []));
  const reason = refused.find((line) => line !== '');
  const cause =
    reason === undefined
      ? `without iptables-${other}-save, kpc-apply`
      : `iptables-${other}-save fails: ${reason}; so kpc-apply`;
  const text = `iptables is the ${variant} variant; ${cause} cannot tell whether the ${other} variant holds rules too`;
  return [{ severity: 'note', subject, text }];
}

/** kube-proxy's chains in what iptables-save printed; kubelet has some of its own in either variant. */
function countChains(saved: string): number {
  let count = 0;
  let table: string | undefined;
  for (const [, heading, chain] of saved.matchAll(/^(?:\*(\S+)|:(\S+))/gm)) {
    if (heading !== undefined) table = heading;
    const found = tableNames.find((name) => name === table);
    if (chain !== undefined && found && classifyChain(found, chain) !== undefined) count++;
  }
  return count;
}

async function examineKubeProxy(host: Host): Promise<readonly Finding[]> {
  const subject = 'kube-proxy';
  const found = await findKubeProxy(host);
  if (found === undefined) return [await describeNoKubeProxy(host)];
  return [
    {
      severity: 'error',
      subject,
      text: `${describeKubeProxy(found)}: it would undo what kpc-apply does`,
      advice: `${adviseStop(found)} first, then take over what it leaves with apply --adopt`,
    },
  ];
}

/** What Linux calls the namespace of processes that holds all others. */
const wholeNode = 'pid:[4026531836]';

async function describeNoKubeProxy(host: Host): Promise<Finding> {
  const subject = 'kube-proxy';
  const processes = await host.readLink('/proc/self/ns/pid');
  if (processes === undefined || processes === wholeNode) {
    return { severity: 'ok', subject, text: 'kube-proxy is not running in this network' };
  }
  const text = 'kube-proxy is not running in this container; the processes of the node are not visible here';
  return {
    severity: 'note',
    subject,
    text,
    advice: 'make sure that kube-proxy does not run on the node in this network',
  };
}

/** A bundle is compiled for one node: node ports listen on its addresses. */
async function examineAddresses(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const expected = needs.manifest?.node.hostAddresses ?? [];
  if (expected.length === 0) return [];
  const addresses = await readAddresses(host).catch(explainError);
  if (typeof addresses !== 'string') {
    // That ip is missing, or that the rights are, is reported where the tools and rights are.
    const { code, message: text, advice } = addresses;
    if (code === 'tool-missing' || isRefusal(text)) return [];
    return [{ severity: 'error', subject: 'tools', text, advice }];
  }
  const { links } = parseIpAddrJson(addresses);
  const present = new Set(links.flatMap((link) => link.addresses).map(({ address }) => address.text));
  const missing = expected.filter((address) => !present.has(address));
  const subject = 'addresses';
  if (missing.length === 0) return [{ severity: 'ok', subject, text: 'this node has the addresses of the bundle' }];
  return [
    {
      severity: 'warning',
      subject,
      text: `this node does not have ${missing.join(', ')}, and the bundle was compiled for it`,
      advice: 'check that this is the bundle of this node; if it is, compile it again with --host-addresses',
    },
  ];
}

/** A bundle to review is easily taken for one to apply. */
export function examineEndpoints({ manifest }: Pick<Needs, 'manifest'>): readonly Finding[] {
  const pods = manifest?.assumedEndpoints?.flatMap((workload) => workload.pods) ?? [];
  if (pods.length === 0) return [];
  const many = pods.length === 1 ? 'an endpoint' : `${pods.length} endpoints`;
  const text = `the bundle sends connections to ${many} that kpc assumed (--assume-endpoints), at addresses that no Pod has`;
  const advice = 'compile it with what the cluster has: kubectl get services,endpointslices,nodes -A -o yaml';
  return [{ severity: 'warning', subject: 'endpoints', text, advice }];
}

async function examineBridges(host: Host): Promise<readonly Finding[]> {
  const value = await host.readFile('/proc/sys/net/bridge/bridge-nf-call-iptables');
  if (value === undefined || value.trim() === '1') return [];
  return [
    {
      severity: 'warning',
      subject: 'sysctls',
      text: 'net.bridge.bridge-nf-call-iptables is 0: pods on one bridge may not reach each other through a Service',
      advice: 'set it to 1 if pods are on a Linux bridge',
    },
  ];
}

/** kube-proxy's strictARP, which MetalLB asks for: Linux answers ARP on every link for every address that the node has. */
async function examineArp(host: Host, { sysctls }: Needs): Promise<readonly Finding[]> {
  const name = 'net.ipv4.conf.all.arp_ignore';
  if (sysctls.some((sysctl) => sysctl.name === name && sysctl.value !== undefined)) return [];
  const value = await host.readFile(sysctlPath(name));
  if (value?.trim() !== '0') return [];
  return [
    {
      severity: 'note',
      subject: 'sysctls',
      text: `${name} is 0: the node answers ARP for every address on kube-ipvs0, load balancers' too`,
      advice: 'if MetalLB or another program announces these addresses, compile with --ipvs-strict-arp',
    },
  ];
}

/** The folder where kpc-apply keeps its records. */
export async function examineState(host: Host, path: string): Promise<readonly Finding[]> {
  const subject = 'state';
  const folder = stateFolder(path);
  try {
    await assertTrustedState(host, path);
    const bootId = await readBootId(host);
    const [{ owned }, unfinished] = [
      await readRecord(host, folder, bootId),
      await readSnapshot(host, folder.journal, bootId),
    ];
    if (unfinished) {
      const text = `${path}: an apply is running, or did not finish`;
      return [
        { severity: 'warning', subject, text, advice: 'if none is running, run "kpc-apply rollback", or apply again' },
      ];
    }
    const made = isEmptyBelongings(owned)
      ? 'kpc-apply has made nothing here since the node booted'
      : 'the record is whole';
    return [{ severity: 'ok', subject, text: `${path}: ${made}` }];
  } catch (error) {
    const { message: text, advice, code } = explainError(error);
    return [{ severity: code === 'system-error' ? 'warning' : 'error', subject, text, advice }];
  }
}
