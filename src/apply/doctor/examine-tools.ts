import { joinWords } from '../../base/join-words.ts';
import { families } from '../../kernel/family.ts';
import type { ObjectKind } from '../../kernel/kinds.ts';
import { programs, type ProxyMode } from '../../kube-proxy/modes.ts';
import { finding, type Finding, type Needs } from './finding.ts';
import type { Host } from '../node/host.ts';
import { isInKernel, type ModuleIndex } from '../node/kernel-modules.ts';
import { findUnreadable } from '../node/node-reading.ts';
import { adviseRights } from '../node/processes.ts';
import { inspectTools, isOfMode, isRefusal, tools, type Tool, type ToolState } from '../node/tools.ts';
import type { Failure } from '../state/failure.ts';

/** Whether the tools are there, work, and are new enough: all that the mode needs, or those of them that are used. */
export async function examineTools(
  host: Host,
  modules: ModuleIndex,
  needs: Needs,
  isUsed: (tool: Tool) => boolean = () => true,
): Promise<readonly Finding[]> {
  const asked = tools.filter((tool) => isUsed(tool) && isOfMode(tool, needs.mode));
  const states = await inspectTools(host, asked, needs.leastVersions);
  const rights = await adviseRights(host);
  return states.flatMap((state) => describeTool(state, modules, rights) ?? []);
}

function describeTool(state: ToolState, modules: ModuleIndex, rights: string): Finding | undefined {
  const { tool } = state;
  const { name, purpose } = tool;
  const severity = tool.neededBy === 'no mode' ? 'warning' : 'error';
  const loss = purpose === undefined ? '' : ` (without it, ${purpose})`;
  switch (state.kind) {
    case 'missing':
      return {
        ...finding(severity, 'tools', `${name} is missing${loss}`, `install the package ${tool.family}`),
        tool: name,
      };
    case 'broken': {
      const advice = adviseOnBroken(tool, state.reason, modules, rights);
      return { ...finding(severity, 'tools', `${name} does not work: ${state.reason}${loss}`, advice), tool: name };
    }
    case 'too-old': {
      const text = `${name} is ${state.version}, but at least ${state.least} is needed`;
      return finding(severity, 'tools', text, `upgrade the package ${tool.family}`);
    }
    case 'fine':
      return state.version === '' ? undefined : finding('ok', 'tools', `${name}: ${state.details}`);
    default:
      return state satisfies never;
  }
}

/** What to do about a tool that is there and fails, by what it says. */
function adviseOnBroken(tool: Tool, reason: string, modules: ModuleIndex, rights: string): string {
  // ipvsadm asks the kernel for IPVS before it does anything, even to print its version.
  if (tool.family === 'ipvsadm' && /ip_vs|ipvs/i.test(reason) && !isInKernel(modules, 'ip_vs')) {
    return `nothing is wrong with ${tool.name}: IPVS is not in the kernel, see ip_vs`;
  }
  const call = `${tool.name} ${(tool.versionArgs ?? []).join(' ')}`;
  if (isRefusal(reason)) return rights;
  if (/shared librar|symbol lookup|exec format/i.test(reason)) return `reinstall the package ${tool.family}`;
  return `see what "${call}" says`;
}

/** Whether the tools get at the kernel: they print their version on a kernel that has nothing for them, too. */
export async function examineReading(host: Host, modules: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  const used = needs.manifest?.families ?? ['ipv4'];
  const failures = await findUnreadable(host, [
    ...families.filter((family) => programs(needs.mode, 'iptables') && used.includes(family)),
    // If there are no sets yet, to ask for them would load their module.
    ...(programs(needs.mode, 'sets') && isInKernel(modules, 'ip_set') ? (['ipset'] as const) : []),
  ]);
  const rights = await adviseRights(host);
  return failures.flatMap((failure): readonly Finding[] => {
    const { tool = '', code, message } = failure;
    const asked = tools.find(({ name }) => name === tool)?.versionArgs !== undefined;
    // Of a tool that is asked for its version, this is reported already.
    if (code === 'tool-missing' && asked) return [];
    const [text = ''] = message.split('\n');
    const advice =
      code === 'tool-missing' ? `install the package ${packageOf(tool)}` : adviseOnFailure(failure, rights);
    return [finding('error', 'tools', text, advice)];
  });
}

function adviseOnFailure({ message, advice, tool = '' }: Failure, rights: string): string {
  if (isRefusal(message)) return rights;
  // A kernel may have the one variant of iptables and not the other.
  return tool.endsWith('-save') && /nft|nf_tables/i.test(message) && !message.includes('cannot show the table')
    ? 'boot a kernel that has nf_tables, or switch to the legacy variant (update-alternatives --config iptables)'
    : advice;
}

/**
 * Names missing tools that list what kube-proxy makes in another mode. An apply works without them, and leaves what they
 * would list. Says nothing of modes whose parts are not in the kernel.
 */
export async function examineOtherModes(
  host: Host,
  modules: ModuleIndex,
  mode: ProxyMode,
): Promise<readonly Finding[]> {
  const hasIpvs = (await host.readFile('/proc/net/ip_vs')) !== undefined;
  const kinds: readonly (readonly [ObjectKind, isThere: boolean, lists: readonly string[]])[] = [
    ['iptables', true, ['iptables-save', 'ip6tables-save']],
    ['sets', isInKernel(modules, 'ip_set'), ['ipset']],
    ['virtualServers', hasIpvs, ['ipvsadm']],
    ['nftables', isInKernel(modules, 'nf_tables'), ['nft']],
  ];
  const asked = kinds.flatMap(([kind, isThere, lists]) => (isThere && !programs(mode, kind) ? lists : []));
  const results = await Promise.all(asked.map((tool) => host.run({ tool, args: ['--version'] })));
  const missing = asked.filter((_, i) => results[i]?.kind === 'missing');
  if (missing.length === 0) return [];
  const packages = [...new Set(missing.map((name) => packageOf(name)))];
  const text = `${joinWords(missing)} ${missing.length === 1 ? 'is' : 'are'} missing: kpc-apply cannot see what a kube-proxy of another mode left`;
  return [finding('note', 'tools', text, `if one ran here, install ${joinWords(packages)}`)];
}

function packageOf(name: string): string {
  return tools.find((tool) => tool.name === name.replace(/^ip6/, 'ip'))?.family ?? name;
}
