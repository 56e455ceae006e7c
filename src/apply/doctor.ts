import { describeError } from '../bundle/errors.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { settingsOf } from '../bundle/manifest.ts';
import { parseIpAddrJson } from '../kernel/link.ts';
import type { Host } from './host.ts';
import { findModule, readModuleIndex, type ModuleIndex } from './modules.ts';
import { decideOnNode, readNodeFacts, sysctlPath } from './node-decisions.ts';
import { inspectTools, tools, type Tool, type ToolState } from './tools.ts';

/** One thing that doctor looked at. An error is something that an apply would fail for. */
export interface Finding {
  readonly severity: 'ok' | 'note' | 'warning' | 'error';
  /** What was looked at: "modules", "tools" … */
  readonly subject: string;
  readonly text: string;
  /** What to do about it; undefined where nothing is to be done. */
  readonly advice?: string | undefined;
}

/** What a node is to be fit for. Without a bundle: for any, in IPVS mode. */
export interface Needs {
  readonly mode: 'ipvs' | 'iptables';
  readonly modules: readonly string[];
  readonly sysctls: readonly string[];
  readonly schedulers: readonly string[];
  /** Tool family → version. */
  readonly leastVersions: Readonly<Record<string, string>>;
  readonly manifest: Manifest | undefined;
}

/** What any bundle in IPVS mode may need. */
export const generalNeeds: Needs = {
  mode: 'ipvs',
  modules: ['ip_vs', 'ip_vs_rr', 'nf_conntrack', 'ip_set', 'xt_set', 'dummy'],
  sysctls: ['net.ipv4.ip_forward', 'net.ipv4.vs.conntrack'],
  schedulers: ['rr'],
  leastVersions: { iptables: '1.6.2', ipset: '6.0', ipvsadm: '1.30' },
  manifest: undefined,
};

/** Everything worth knowing about a node before a bundle is applied to it. Changes nothing. */
export async function examineNode(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const modules = await readModuleIndex(host, [...needs.modules, ...needs.schedulers.map(schedulerModule)]);
  const groups = await Promise.all([
    examineRights(host),
    examineTools(host, needs),
    examineModules(modules, needs),
    examineSchedulers(modules, needs),
    examineSysctls(host, modules, needs),
    examineVariants(host),
    examineKubeProxy(host),
    examineBridges(host),
    examineAddresses(host, needs),
  ]);
  return groups.flat();
}

/** What must be so before anything is changed. The rest an apply finds out by itself. */
export async function examineBeforeApply(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const modules = await readModuleIndex(host, needs.modules);
  const groups = await Promise.all([
    examineRights(host),
    examineTools(host, needs),
    examineModules(modules, needs),
    examineKubeProxy(host),
  ]);
  return groups.flat().filter((finding) => finding.severity === 'error');
}

const capNetAdmin = 1n << 12n;

async function examineRights(host: Host): Promise<readonly Finding[]> {
  const status = (await host.readFile('/proc/self/status')) ?? '';
  const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1];
  if (capabilities !== undefined && (BigInt(`0x${capabilities}`) & capNetAdmin) !== 0n) {
    return [{ severity: 'ok', subject: 'rights', text: 'may change the network (CAP_NET_ADMIN)' }];
  }
  return [
    {
      severity: 'error',
      subject: 'rights',
      text: 'may not change the network: CAP_NET_ADMIN is missing',
      advice: 'run it as root',
    },
  ];
}

async function examineTools(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const asked = tools.filter((tool) => tool.neededBy !== 'ipvs' || needs.mode === 'ipvs');
  const states = await inspectTools(host, asked, needs.leastVersions);
  return states.flatMap((state) => describeTool(state) ?? []);
}

function describeTool(state: ToolState): Finding | undefined {
  const subject = 'tools';
  const { tool } = state;
  const severity = tool.neededBy === 'nobody' ? 'warning' : 'error';
  switch (state.kind) {
    case 'missing':
      return {
        severity,
        subject,
        text: `${tool.name} is missing${explainPurpose(tool)}`,
        advice: `install the package ${tool.package}`,
      };
    case 'broken':
      return {
        severity,
        subject,
        text: `${tool.name} does not work: ${state.reason}${explainPurpose(tool)}`,
        advice: `see what "${tool.name} ${(tool.versionArgs ?? []).join(' ')}" says; reinstall the package ${tool.package}`,
      };
    case 'too-old':
      return {
        severity,
        subject,
        text: `${tool.name} is ${state.version}, and ${state.least} is the least that will do`,
        advice: `upgrade the package ${tool.package}`,
      };
    case 'fine':
      return state.version === '' ? undefined : { severity: 'ok', subject, text: `${tool.name}: ${state.details}` };
    default:
      return state satisfies never;
  }
}

function explainPurpose(tool: Tool): string {
  return tool.purpose === undefined ? '' : ` (without it, ${tool.purpose})`;
}

function examineModules(index: ModuleIndex, needs: Needs): readonly Finding[] {
  return needs.modules.map((module) => describeModule(index, module));
}

function describeModule(index: ModuleIndex, module: string): Finding {
  const subject = 'modules';
  const place = findModule(index, module);
  switch (place) {
    case 'loaded':
      return { severity: 'ok', subject, text: `${module} is loaded` };
    case 'built-in':
      return { severity: 'ok', subject, text: `${module} is built into the kernel` };
    case 'loadable':
      return { severity: 'ok', subject, text: `${module} can be loaded` };
    case 'unknown':
      return {
        severity: 'note',
        subject,
        text: `${module} is not loaded, and this kernel has no list of its modules: it may be built in`,
      };
    case 'missing':
      return {
        severity: 'error',
        subject,
        text: `${module} is missing: this kernel neither has it nor can load it`,
        advice: 'install the modules package of this kernel, or boot a kernel that has it',
      };
    default:
      return place satisfies never;
  }
}

function schedulerModule(scheduler: string): string {
  return `ip_vs_${scheduler}`;
}

function examineSchedulers(index: ModuleIndex, needs: Needs): readonly Finding[] {
  if (needs.mode !== 'ipvs') return [];
  return needs.schedulers.map((scheduler): Finding => {
    const place = findModule(index, schedulerModule(scheduler));
    const subject = 'schedulers';
    if (place !== 'missing') return { severity: 'ok', subject, text: `IPVS scheduler ${scheduler} is there` };
    return {
      severity: 'error',
      subject,
      text: `IPVS scheduler ${scheduler} is missing`,
      advice: `install the kernel's module ${schedulerModule(scheduler)}, or compile with another --ipvs-scheduler`,
    };
  });
}

async function examineSysctls(host: Host, index: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  try {
    return await findSysctls(host, index, needs);
  } catch (error) {
    // Some of the node is for root's eyes only, and the doctor is asked by others too.
    const text = `not all settings can be read: ${describeError(error)}`;
    return [{ severity: 'warning', subject: 'sysctls', text, advice: 'run it as root' }];
  }
}

async function findSysctls(host: Host, index: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  const decided =
    needs.manifest === undefined ? [] : decideOnNode(settingsOf(needs.manifest), await readNodeFacts(host));
  const named = needs.sysctls.map((name) => ({ name, path: sysctlPath(name) }));
  return Promise.all(
    [...named, ...decided].map(async ({ name, path }): Promise<Finding> => {
      const value = await host.readFile(path);
      const subject = 'sysctls';
      if (value !== undefined) return { severity: 'ok', subject, text: `${name} is ${value.trim()}` };
      const waits = /\.vs\./.test(name) && findModule(index, 'ip_vs') !== 'loaded';
      if (waits) return { severity: 'ok', subject, text: `${name} comes with ip_vs, which is not loaded yet` };
      return {
        severity: 'warning',
        subject,
        text: `${name} is not to be found here`,
        advice: 'set it where it is: a container sees only the settings of its own network',
      };
    }),
  );
}

/** Rules in both variants of iptables, legacy and nft, all match: the other variant's are easily overlooked. */
async function examineVariants(host: Host): Promise<readonly Finding[]> {
  const version = await host.run({ tool: 'iptables', args: ['--version'] });
  if (version.kind === 'missing') return [];
  const variant = version.stdout.includes('nf_tables') ? 'nft' : 'legacy';
  const other = variant === 'nft' ? 'legacy' : 'nft';
  const saved = await host.run({ tool: `iptables-${other}-save`, args: ['-t', 'nat'] });
  const strays = saved.kind === 'ended' ? (saved.stdout.match(/^:KUBE-/gm)?.length ?? 0) : 0;
  const subject = 'iptables';
  if (strays === 0) return [{ severity: 'ok', subject, text: `iptables is the ${variant} variant, and alone` }];
  return [
    {
      severity: 'warning',
      subject,
      text: `iptables is the ${variant} variant, but the ${other} one holds ${strays} KUBE- chains too, which still match`,
      advice: `remove them with iptables-${other}, or make it the default (update-alternatives --config iptables)`,
    },
  ];
}

async function examineKubeProxy(host: Host): Promise<readonly Finding[]> {
  const subject = 'kube-proxy';
  const pid = await findKubeProxy(host);
  if (pid === undefined) return [{ severity: 'ok', subject, text: 'no kube-proxy is running in this network' }];
  return [
    {
      severity: 'error',
      subject,
      text: `a kube-proxy is running (process ${pid}): it would undo what kpc-apply does`,
      advice: 'stop it first, and take over what it leaves with apply --adopt',
    },
  ];
}

/** The id of a kube-proxy's process. Looks at one process after the other: they may be more than files may be open. */
async function findKubeProxy(host: Host): Promise<string | undefined> {
  const own = await host.readLink('/proc/self/ns/net');
  for (const pid of await host.list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const name = await host.readFile(`/proc/${pid}/comm`);
    if (name?.trim() !== 'kube-proxy' || !(await isRoots(host, pid))) continue;
    const network = await host.readLink(`/proc/${pid}/ns/net`);
    // One in the network of a container (a node of a test cluster, say) is no matter of this one.
    if (network === undefined || network === own) return pid;
  }
  return undefined;
}

/**
 * Whether root runs a process. No kube-proxy can do its work for anybody else, but anybody can call a process one, a
 * setuid program too: so the real user counts as well as the effective one.
 */
async function isRoots(host: Host, pid: string): Promise<boolean> {
  const status = (await host.readFile(`/proc/${pid}/status`)) ?? '';
  return /^Uid:\s+0\s+0\s/m.test(status);
}

/** A bundle is compiled for one node: node ports listen on its addresses. */
async function examineAddresses(host: Host, needs: Needs): Promise<readonly Finding[]> {
  const expected = needs.manifest?.node.hostAddresses ?? [];
  const result = await host.run({ tool: 'ip', args: ['-j', 'addr'] });
  if (expected.length === 0 || result.kind === 'missing') return [];
  const { links } = parseIpAddrJson(result.stdout);
  const present = new Set(links.flatMap((link) => link.addresses).map(({ address }) => address));
  const missing = expected.filter((address) => !present.has(address));
  const subject = 'addresses';
  if (missing.length === 0) return [{ severity: 'ok', subject, text: 'this node has the addresses of the bundle' }];
  return [
    {
      severity: 'warning',
      subject,
      text: `this node has not got ${missing.join(', ')}, for which the bundle was compiled`,
      advice: 'see whether it is the bundle of this node; else compile it with --host-addresses',
    },
  ];
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
