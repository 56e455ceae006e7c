import { modeFacts, programs } from '../../kube-proxy/modes.ts';
import { finding, type Examined, type Finding } from './finding.ts';
import { excerptOf } from '../node/host.ts';
import { isInKernel, type ModuleIndex } from '../node/kernel-modules.ts';
import { readNode } from '../node/node-reading.ts';
import { compareVersions, isRefusal, parseVersion, tools, type Tool } from '../node/tools.ts';
import { explainError, type Failure } from '../state/failure.ts';

/** Whether the tools are there, work, and are new enough: all that the mode needs, or those of them that are used. */
export function examineTools(
  examined: Examined,
  isUsed: (tool: Tool) => boolean = () => true,
): Promise<readonly Finding[]> {
  const { tools: ofMode } = modeFacts[examined.needs.mode];
  const asked = tools.filter((tool) => isUsed(tool) && (tool.neededBy !== 'some modes' || tool.family in ofMode));
  return Promise.all(asked.map((tool) => examineTool(examined, tool)));
}

async function examineTool({ host, needs, modules, rights }: Examined, tool: Tool): Promise<Finding> {
  const { name, family, versionArgs, neededBy, purpose } = tool;
  const loss = purpose === undefined ? '' : ` (without it, ${purpose})`;
  const fault = (text: string, advice: string): Finding => {
    return { ...finding(neededBy === 'no mode' ? 'warning' : 'error', 'tools', text, advice), tool: name };
  };
  const result = await host.run({ tool: name, args: versionArgs });
  if (result.kind === 'missing') return fault(`${name} is missing${loss}`, `install the package ${family}`);
  const [details = ''] = excerptOf(result.stdout || result.stderr).split('\n');
  const version = parseVersion(details.replace(/^.*?[\s-]v?(?=\d)/, ''));
  if (result.status !== 0 || !version) {
    const [complaint = ''] = excerptOf(result.stderr).split('\n');
    const reason = complaint || details || 'it printed nothing';
    return fault(`${name} does not work: ${reason}${loss}`, adviseOnBroken(tool, reason, modules, rights));
  }
  const least = needs.leastVersions[family] ?? '0';
  if (compareVersions(version, parseVersion(least) ?? [0]) < 0) {
    const text = `${name} is ${version.join('.')}, but at least ${least} is needed`;
    return fault(text, `upgrade the package ${family}`);
  }
  return finding('ok', 'tools', `${name}: ${details}`);
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

/** Checks that rules and sets can be read as an apply reads them: tools print a version even without kernel support. */
export async function examineReading({ host, needs, rights }: Examined): Promise<readonly Finding[]> {
  if (!programs(needs.mode, 'iptables')) return [];
  const used = needs.manifest?.families ?? ['ipv4'];
  const scope = { needed: new Set(used), families: used, timeouts: false, settings: [] };
  try {
    // These parts have their own findings.
    await readNode(host, scope, { 'nft ipv4': '', 'nft ipv6': '', addresses: '' });
    return [];
  } catch (error) {
    const failure = explainError(error);
    // A missing tool has been reported already.
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
