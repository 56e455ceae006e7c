import { families, type Family } from '../../kernel/family.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { programs, type ProxyMode } from '../../kube-proxy/modes.ts';
import { finding, type Finding, type Needs } from './finding.ts';
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
const endpoint: { readonly [F in Family]: string } = { ipv4: '192.0.2.1:80', ipv6: '[2001:db8::1]:80' };
const ofFamily = (module: string) => (family: Family) => [module, `${module}_${family}`];

const features: readonly Feature[] = [
  {
    modules: () => ['nft_chain_nat', 'nft_nat'],
    what: 'send packets to endpoints (dnat)',
    trial: (family) => `${hook('nat', 'prerouting', -100)} meta l4proto tcp dnat to ${endpoint[family]}`,
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
  const release = ((await host.readFile('/proc/sys/kernel/osrelease')) ?? '').trim();
  const kernel = parseVersion(release);
  if (!kernel) return [finding('note', 'kernel', 'cannot tell the version of the kernel')];
  if (compareVersions(kernel, leastKernel) >= 0) return [finding('ok', 'kernel', `kernel ${release}`)];
  const text = `the kernel is ${release}, but kube-proxy asks for at least ${leastKernel.join('.')} in this mode`;
  return [finding('error', 'kernel', text, 'boot a newer kernel, or compile for iptables mode')];
}

async function examineFeatures(host: Host, used: readonly Family[]): Promise<readonly Finding[]> {
  const names = ['nf_tables', ...features.flatMap(({ modules }) => families.flatMap(modules))];
  const index = await readModuleIndex(host, [...new Set(names)]);
  switch (findModule(index, 'nf_tables')) {
    case 'missing':
      return [describeMissing(index, 'nf_tables')];
    case 'loadable': {
      // To try anything would load it: that is for the apply.
      const asked = new Set(features.flatMap(({ modules }) => used.flatMap(modules)));
      const missing = [...asked].filter((module) => findModule(index, module) === 'missing');
      return [
        finding('ok', 'modules', 'nf_tables can be loaded'),
        ...missing.map((module) => describeMissing(index, module)),
      ];
    }
    case 'loaded':
    case 'present':
    case 'built-in':
    case 'unknown':
      return tryFeatures(host, index, used);
  }
}

/** A module that the kernel lacks. */
export function describeMissing({ loadsModules }: ModuleIndex, module: string): Finding {
  const advice = loadsModules
    ? 'install the modules package of this kernel, or boot a kernel that has it'
    : 'boot a kernel that has it: this one loads no modules';
  return finding('error', 'modules', `${module} is missing: this kernel neither has it nor can load it`, advice);
}

/** Asks the kernel, and makes nothing. It refuses a rule whose module is missing and cannot be loaded. */
async function tryFeatures(host: Host, index: ModuleIndex, used: readonly Family[]): Promise<readonly Finding[]> {
  const trials = used.flatMap((family) => features.map((feature) => ({ family, feature })));
  const tried = await Promise.all(
    trials.map(async ({ family, feature }) => {
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
    const ok = finding('ok', 'nftables', 'the kernel takes all that the rules need');
    return [ok, ...(await examineSmallChanges(host))];
  }
  const { reason } = first;
  const isOne = refusals.length === trials.length && refusals.every((refusal) => refusal.reason === reason);
  // Then nft could not even begin with the rules.
  if (isOne && isRefusal(reason)) {
    const text = `nft is not allowed to change anything here: ${reason}`;
    return [finding('error', 'nftables', text, await adviseRights(host))];
  }
  if (isOne && /cache initialization failed/i.test(reason)) {
    const advice = 'see what "nft list tables" says; boot a kernel that has nf_tables';
    return [finding('error', 'nftables', `nft cannot work with this kernel: ${reason}`, advice)];
  }
  const mayChange = (await hasCapability(host, capNetAdmin)) === true;
  const rights = await adviseRights(host);
  return refusals.map(({ family, feature, reason: why }) => {
    const text = `this kernel cannot ${feature.what} for ${nftFamily[family]}: ${why}`;
    return finding('error', 'nftables', text, mayChange ? adviseOnModules(index, feature.modules(family)) : rights);
  });
}

function adviseOnModules({ complete, loadsModules }: ModuleIndex, names: readonly string[]): string {
  const modules = names.join(' ');
  if (!loadsModules) return `boot a kernel that has ${modules}: this one loads no modules`;
  return complete
    ? `run modprobe -a ${modules}; if that fails, install the modules package of this kernel`
    : `load it on the host, since this is a container or has no list of modules: modprobe -a ${modules}`;
}

/** Whether kpc-apply can prove a small change without listing the whole tables. If not, it makes the change anyway. */
async function examineSmallChanges(host: Host): Promise<readonly Finding[]> {
  const listed = 'so each apply lists the whole tables, which takes seconds for thousands of Services';
  if (!(await askKernel(host, aboutTables))) {
    const text = `perl cannot ask the kernel for single chains and sets, ${listed}`;
    return [finding('note', 'nftables', text, 'install perl (Debian: package perl-base)')];
  }
  const result = await host.run({ tool: 'unshare', args: ['--net', 'true'] });
  if (result.kind === 'ended' && result.status === 0) return [];
  const text = `unshare (package util-linux) cannot make a network namespace to try a change in, ${listed}`;
  return [finding('note', 'nftables', text, 'give the container the capability SYS_ADMIN')];
}

/** Sysctls that let a node forward packets, by family. kube-proxy sets them in IPVS mode alone. */
export const forwardingSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.ipv4.ip_forward',
  ipv6: 'net.ipv6.conf.all.forwarding',
};

/** Warns of a node that forwards nothing, for a bundle of these families. */
export async function examineForwarding(host: Host, used: readonly Family[]): Promise<readonly Finding[]> {
  const names = used.map((family) => forwardingSysctls[family]);
  const values = await Promise.all(names.map((name) => host.readFile(sysctlPath(name))));
  return names
    .filter((_, i) => values[i]?.trim() === '0')
    .map((name) => {
      const text = `${name} is 0: the node forwards nothing to endpoints, and kube-proxy does not set it in nftables mode`;
      return finding('warning', 'sysctls', text, `run sysctl -w ${name}=1, and keep it in /etc/sysctl.d`);
    });
}
