import { programs } from '../../kube-proxy/modes.ts';
import { finding, type Examined, type Finding } from './finding.ts';
import { isInKernel, type ModuleIndex } from '../node/kernel-modules.ts';
import { readNode } from '../node/node-reading.ts';
import { inspectTools, isOfMode, isRefusal, tools, type Tool, type ToolState } from '../node/tools.ts';
import { explainError, type Failure } from '../state/failure.ts';

/** Whether the tools are there, work, and are new enough: all that the mode needs, or those of them that are used. */
export async function examineTools(
  { host, needs, modules, rights }: Examined,
  isUsed: (tool: Tool) => boolean = () => true,
): Promise<readonly Finding[]> {
  const asked = tools.filter((tool) => isUsed(tool) && isOfMode(tool, needs.mode));
  const states = await inspectTools(host, asked, needs.leastVersions);
  return states.flatMap((state) => describeTool(state, modules, rights) ?? []);
}

function describeTool(state: ToolState, modules: ModuleIndex, rights: string): Finding | undefined {
  const { name, family, neededBy, purpose } = state.tool;
  const loss = purpose === undefined ? '' : ` (without it, ${purpose})`;
  const fault = (text: string, advice: string): Finding => {
    return { ...finding(neededBy === 'no mode' ? 'warning' : 'error', 'tools', text, advice), tool: name };
  };
  switch (state.kind) {
    case 'missing':
      return fault(`${name} is missing${loss}`, `install the package ${family}`);
    case 'broken':
      return fault(
        `${name} does not work: ${state.reason}${loss}`,
        adviseOnBroken(state.tool, state.reason, modules, rights),
      );
    case 'too-old':
      return fault(
        `${name} is ${state.version}, but at least ${state.least} is needed`,
        `upgrade the package ${family}`,
      );
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
  const call = `${tool.name} ${tool.versionArgs.join(' ')}`;
  if (isRefusal(reason)) return rights;
  if (/shared librar|symbol lookup|exec format/i.test(reason)) return `reinstall the package ${tool.family}`;
  return `see what "${call}" says`;
}

/** Whether a node of rules or sets can be read, as an apply reads it: tools print their version on a kernel that has nothing for them, too. */
export async function examineReading({ host, needs, rights }: Examined): Promise<readonly Finding[]> {
  if (!programs(needs.mode, 'iptables')) return [];
  const used = needs.manifest?.families ?? ['ipv4'];
  const scope = { needed: new Set(used), tables: new Set<string>(), families: used, timeouts: false, settings: [] };
  try {
    // These have findings of their own.
    await readNode(host, scope, { 'nft ipv4': '', 'nft ipv6': '', addresses: '' });
    return [];
  } catch (error) {
    const failure = explainError(error);
    // That a tool is missing is reported already.
    if (failure.code === 'tool-missing') return [];
    const [text = ''] = failure.message.split('\n');
    return [finding('error', 'tools', text, adviseOnFailure(failure, rights))];
  }
}

function adviseOnFailure({ message, advice, tool = '' }: Failure, rights: string): string {
  if (isRefusal(message)) return rights;
  // A kernel may have the one variant of iptables and not the other.
  return tool.endsWith('-save') && /nft|nf_tables/i.test(message) && !message.includes('cannot show the table')
    ? 'boot a kernel that has nf_tables, or switch to the legacy variant (update-alternatives --config iptables)'
    : advice;
}
