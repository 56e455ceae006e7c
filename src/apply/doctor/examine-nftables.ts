import { families, type Family } from '../../kernel/family.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { programs, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Finding, Needs } from './finding.ts';
import { excerptOf, type Host } from '../node/host.ts';
import { findModule, readModuleIndex, type ModuleIndex } from '../node/kernel-modules.ts';
import { aboutTables, askKernel } from '../node/nft-netlink.ts';
import { sysctlPath } from '../plan/node-decisions.ts';
import { adviseRights, capNetAdmin, hasCapability } from '../node/processes.ts';
import { compareVersions, isRefusal, parseVersion, type Version } from '../node/tools.ts';

/** What kube-proxy asks for before it starts in this mode (platformCheckSupported in cmd/kube-proxy/app). */
const leastKernel: Version = [5, 13];

/** A part of the kernel that kube-proxy's rules need, and a rule that needs nothing else of the kind. */
interface Feature {
  readonly modules: (family: Family) => readonly string[];
  readonly what: string;
  /** A chain of a table of the family. */
  readonly trial: (family: Family) => string;
}

const hook = (type: string, where: string, priority: number) => `type ${type} hook ${where} priority ${priority};`;
const address: { readonly [F in Family]: string } = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' };
const ofFamily = (module: string) => (family: Family) => [module, `${module}_${family}`];

const features: readonly Feature[] = [
  {
    modules: () => ['nft_chain_nat', 'nft_nat'],
    what: 'send packets to endpoints (dnat)',
    trial: (family) => `${hook('nat', 'prerouting', -100)} meta l4proto tcp dnat to ${addressAndPort(family)}`,
  },
  {
    modules: () => ['nft_chain_nat', 'nft_masq'],
    what: 'masquerade',
    trial: () => `${hook('nat', 'postrouting', 100)} masquerade fully-random`,
  },
  {
    modules: () => ['nft_numgen'],
    what: 'draw an endpoint at random (numgen)',
    trial: () => `${hook('filter', 'input', 0)} numgen random mod 2 vmap { 0 : accept, 1 : drop }`,
  },
  {
    modules: ofFamily('nft_fib'),
    what: 'tell local addresses (fib)',
    trial: () => `${hook('filter', 'prerouting', -110)} fib daddr type local accept`,
  },
  {
    modules: ofFamily('nft_reject'),
    what: 'refuse packets (reject)',
    trial: () => `${hook('filter', 'input', 0)} reject`,
  },
  {
    modules: () => ['nft_ct'],
    what: 'tell new connections from others (ct)',
    trial: () => `${hook('filter', 'input', 0)} ct state new accept`,
  },
];

function addressAndPort(family: Family): string {
  return family === 'ipv4' ? `${address.ipv4}:80` : `[${address.ipv6}]:80`;
}

/** Whether the kernel can do what the rules of nftables mode ask of it. Nothing for other modes. */
export async function examineNftables(host: Host, needs: Needs): Promise<readonly Finding[]> {
  if (!programs(needs.mode, 'nftables')) return [];
  const used = needs.manifest?.families ?? families;
  const groups = await Promise.all([
    examineKernel(host, needs.mode),
    examineFeatures(host, used),
    examineForwarding(host, used),
  ]);
  return groups.flat();
}

/** What must be right before the first change. nft itself refuses the rest, and then changes nothing. */
export async function examineKernel(host: Host, mode: ProxyMode): Promise<readonly Finding[]> {
  if (!programs(mode, 'nftables')) return [];
  const subject = 'kernel';
  const release = ((await host.readFile('/proc/sys/kernel/osrelease')) ?? '').trim();
  const kernel = parseVersion(release);
  if (!kernel) return [{ severity: 'note', subject, text: 'cannot tell the version of the kernel' }];
  if (compareVersions(kernel, leastKernel) >= 0) return [{ severity: 'ok', subject, text: `kernel ${release}` }];
  const text = `the kernel is ${release}, but kube-proxy asks for at least ${leastKernel.join('.')} in this mode`;
  return [{ severity: 'error', subject, text, advice: 'boot a newer kernel, or compile for iptables mode' }];
}

async function examineFeatures(host: Host, used: readonly Family[]): Promise<readonly Finding[]> {
  const names = ['nf_tables', ...features.flatMap(({ modules }) => families.flatMap(modules))];
  const index = await readModuleIndex(host, [...new Set(names)]);
  switch (findModule(index, 'nf_tables')) {
    case 'missing':
      return [describeMissing(index, 'nf_tables')];
    case 'loadable':
      // To try anything would load it: that is for the apply.
      return listFeatures(index, used);
    case 'loaded':
    case 'present':
    case 'built-in':
    case 'unknown':
      return tryFeatures(host, index, used);
  }
}

/** A module that the kernel lacks. */
export function describeMissing({ loadsModules }: ModuleIndex, module: string): Finding {
  return {
    severity: 'error',
    subject: 'modules',
    text: `${module} is missing: this kernel neither has it nor can load it`,
    advice: loadsModules
      ? 'install the modules package of this kernel, or boot a kernel that has it'
      : 'boot a kernel that has it: this one loads no modules',
  };
}

function listFeatures(index: ModuleIndex, used: readonly Family[]): readonly Finding[] {
  const asked = new Set(features.flatMap(({ modules }) => used.flatMap(modules)));
  const missing = [...asked].filter((module) => findModule(index, module) === 'missing');
  const ok: Finding = { severity: 'ok', subject: 'modules', text: 'nf_tables can be loaded' };
  return [ok, ...missing.map((module) => describeMissing(index, module))];
}

/** A rule that the kernel refused, and nft's reason. */
interface Refusal {
  readonly family: Family;
  readonly feature: Feature;
  readonly reason: string;
}

/** Asks the kernel, and makes nothing. It refuses a rule whose module is missing and cannot be loaded. */
async function tryFeatures(host: Host, index: ModuleIndex, used: readonly Family[]): Promise<readonly Finding[]> {
  const trials = used.flatMap((family) => features.map((feature) => ({ family, feature })));
  const tried = await Promise.all(
    trials.map(async ({ family, feature }): Promise<readonly Refusal[]> => {
      const stdin = `table ${nftFamily[family]} kpc-doctor { chain trial { ${feature.trial(family)}; }; }\n`;
      const result = await host.run({ tool: 'nft', args: ['-c', '-f', '-'], stdin });
      // That it is missing is said where the tools are.
      if (result.kind === 'missing' || result.status === 0) return [];
      const [said = ''] = excerptOf(result.stderr).split('\n');
      return [{ family, feature, reason: said.replace(/^.*?Error: /, '') || 'nft gives no reason' }];
    }),
  );
  const refusals = tried.flat();
  const [first] = refusals;
  if (!first) {
    const ok: Finding = { severity: 'ok', subject: 'nftables', text: 'the kernel takes all that the rules need' };
    return [ok, ...(await examineSmallChanges(host))];
  }
  const isOne = refusals.length === trials.length && refusals.every(({ reason }) => reason === first.reason);
  if (isOne && isOfAnyRule(first.reason)) return [await describeStandstill(host, first.reason)];
  return Promise.all(refusals.map((refusal) => describeRefusal(host, index, refusal)));
}

/** Whether kpc-apply can prove a small change without listing the whole tables. If not, it makes the change all the same. */
async function examineSmallChanges(host: Host): Promise<readonly Finding[]> {
  const listed = 'so each apply lists the whole tables, which takes seconds for thousands of Services';
  const finding = { severity: 'note', subject: 'nftables' } as const;
  if (!(await askKernel(host, aboutTables))) {
    const text = `perl cannot ask the kernel for single chains and sets, ${listed}`;
    return [{ ...finding, text, advice: 'install perl (Debian: package perl-base)' }];
  }
  const result = await host.run({ tool: 'unshare', args: ['--net', 'true'] });
  if (result.kind === 'ended' && result.status === 0) return [];
  const text = `unshare (package util-linux) cannot make a network namespace to try a change in, ${listed}`;
  return [{ ...finding, text, advice: 'give the container the capability SYS_ADMIN' }];
}

/** Whether nft could not even begin with the rules. */
function isOfAnyRule(reason: string): boolean {
  return /cache initialization failed/i.test(reason) || isRefusal(reason);
}

async function describeStandstill(host: Host, reason: string): Promise<Finding> {
  const [severity, subject] = ['error', 'nftables'] as const;
  if (isRefusal(reason)) {
    return {
      severity,
      subject,
      text: `nft is not allowed to change anything here: ${reason}`,
      advice: await adviseRights(host),
    };
  }
  const text = `nft cannot work with this kernel: ${reason}`;
  return { severity, subject, text, advice: 'see what "nft list tables" says; boot a kernel that has nf_tables' };
}

async function describeRefusal(host: Host, index: ModuleIndex, { family, feature, reason }: Refusal): Promise<Finding> {
  const text = `this kernel cannot ${feature.what} for ${nftFamily[family]}: ${reason}`;
  return { severity: 'error', subject: 'nftables', text, advice: await advise(host, index, feature, family) };
}

async function advise(host: Host, index: ModuleIndex, feature: Feature, family: Family): Promise<string> {
  if ((await hasCapability(host, capNetAdmin)) !== true) return adviseRights(host);
  const modules = feature.modules(family).join(' ');
  const isContainer = !index.complete && index.loadsModules;
  if (isContainer)
    return `load it on the host, since this is a container or has no list of modules: modprobe -a ${modules}`;
  return index.loadsModules
    ? `run modprobe -a ${modules}; if that fails, install the modules package of this kernel`
    : `boot a kernel that has ${modules}: this one loads no modules`;
}

/** Sysctls that let a node forward packets, by family. kube-proxy sets them in IPVS mode alone. */
export const forwardingSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.ipv4.ip_forward',
  ipv6: 'net.ipv6.conf.all.forwarding',
};

/** Warns of a node that forwards nothing, for a bundle of these families. */
export async function examineForwarding(host: Host, used: readonly Family[]): Promise<readonly Finding[]> {
  const values = await Promise.all(used.map((family) => host.readFile(sysctlPath(forwardingSysctls[family]))));
  return used.flatMap((family, i): readonly Finding[] => {
    if (values[i]?.trim() !== '0') return [];
    const name = forwardingSysctls[family];
    return [
      {
        severity: 'warning',
        subject: 'sysctls',
        text: `${name} is 0: the node forwards nothing to endpoints, and kube-proxy does not set it in nftables mode`,
        advice: `run sysctl -w ${name}=1, and keep it in /etc/sysctl.d`,
      },
    ];
  });
}
