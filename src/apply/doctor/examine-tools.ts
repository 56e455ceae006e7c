import { joinWords } from '../../base/join-words.ts';
import { families } from '../../kernel/family.ts';
import type { ObjectKind } from '../../kernel/kinds.ts';
import { programs, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Finding, Needs } from './finding.ts';
import { excerptOf, formatCommand, type Command, type Host } from '../node/host.ts';
import { findModule, isInKernel, type ModuleIndex } from '../node/kernel-modules.ts';
import { findHiddenTable, saveTools } from '../node/node-reading.ts';
import { adviseRights, isRefusal } from '../node/capabilities.ts';
import { inspectTools, isOfMode, tools, type Tool, type ToolState } from '../node/tools.ts';
import { faultOfRules, faultOfSets } from '../node/whole-output.ts';

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
  const subject = 'tools';
  const { tool } = state;
  const severity = tool.neededBy === 'no mode' ? 'warning' : 'error';
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
        advice: adviseOnBroken(tool, state.reason, modules, rights),
      };
    case 'too-old':
      return {
        severity,
        subject,
        text: `${tool.name} is ${state.version}, but at least ${state.least} is needed`,
        advice: `upgrade the package ${tool.package}`,
      };
    case 'fine':
      return state.version === '' ? undefined : { severity: 'ok', subject, text: `${tool.name}: ${state.details}` };
    default:
      return state satisfies never;
  }
}

/** What to do about a tool that is there and fails, by what it says. */
function adviseOnBroken(tool: Tool, reason: string, modules: ModuleIndex, rights: string): string {
  // ipvsadm asks the kernel for IPVS before it does anything, be it to tell its version.
  if (tool.family === 'ipvsadm' && /ip_vs|ipvs/i.test(reason)) {
    switch (findModule(modules, 'ip_vs')) {
      case 'missing':
        return `nothing is wrong with ${tool.name}: this kernel has no IPVS; boot one that has it, or use iptables mode`;
      case 'unknown':
        return `${tool.name} works, but IPVS is not loaded: load it where the kernel's modules are (modprobe ip_vs), or boot a kernel that has it`;
      case 'loadable':
        return `${tool.name} works, but IPVS is not loaded: run modprobe ip_vs as root`;
      case 'loaded':
      case 'present':
      case 'built-in':
        break;
    }
  }
  const call = `${tool.name} ${(tool.versionArgs ?? []).join(' ')}`;
  if (isRefusal(reason)) return rights;
  if (/shared librar|symbol lookup|exec format/i.test(reason)) return `reinstall the package ${tool.package}`;
  return `see what "${call}" says`;
}

function explainPurpose(tool: Tool): string {
  return tool.purpose === undefined ? '' : ` (without it, ${tool.purpose})`;
}

/** Whether the tools get at the kernel: they tell their version on a kernel that has nothing for them, too. */
export async function examineReading(host: Host, modules: ModuleIndex, needs: Needs): Promise<readonly Finding[]> {
  const used = needs.manifest?.families ?? ['ipv4'];
  const hasRules = programs(needs.mode, 'iptables');
  const commands: readonly Command[] = [
    ...families
      .filter((family) => hasRules && used.includes(family))
      .map((family) => ({ tool: saveTools[family], args: [] })),
    // Where there are no sets yet, to ask for them would load their module.
    ...(programs(needs.mode, 'sets') && isInKernel(modules, 'ip_set') ? [{ tool: 'ipset', args: ['save'] }] : []),
  ];
  const findings = await Promise.all(commands.map((command) => examineCommand(host, command)));
  return findings.flat();
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
  return [
    {
      severity: 'note',
      subject: 'tools',
      text: `${joinWords(missing)} ${missing.length === 1 ? 'is' : 'are'} missing: kpc-apply cannot see what a kube-proxy of another mode left`,
      advice: `if one ran here, install ${joinWords(packages)}`,
    },
  ];
}

function packageOf(name: string): string {
  const known = tools.find((tool) => tool.name === name.replace(/^ip6/, 'ip'));
  return known?.package ?? name;
}

async function examineCommand(host: Host, command: Command): Promise<readonly Finding[]> {
  const subject = 'tools';
  const result = await host.run(command);
  if (result.kind === 'missing') {
    // Of ipset it is said already: it is asked for its version.
    if (command.tool === 'ipset') return [];
    return [{ severity: 'error', subject, text: `${command.tool} is missing`, advice: 'install the package iptables' }];
  }
  if (result.status === 0) {
    const family = families.find((each) => saveTools[each] === command.tool);
    const fault = family ? faultOfRules(result.stdout, family) : faultOfSets(result.stdout);
    if (fault === undefined) return describeHiddenTable(command, result.stdout);
    return [describeFault(command, fault)];
  }
  const [reason = ''] = excerptOf(result.stderr).split('\n');
  return [
    {
      severity: 'error',
      subject,
      text: `"${formatCommand(command)}" fails: ${reason || 'it printed no reason'}`,
      advice: isRefusal(reason)
        ? await adviseRights(host)
        : `run it by hand to see what it says; if the kernel lacks a feature, boot a kernel that has it${variantAdvice(command, reason)}`,
    },
  ];
}

/** A tool that reports success, and whose output is not whole: see whole-output.ts. */
export function describeFault(command: Command, fault: string): Finding {
  const text = `"${formatCommand(command)}" exits with status 0, but its output is not whole: ${fault}`;
  return { severity: 'error', subject: 'tools', text, advice: `check that ${command.tool} is the real program` };
}

/** A table that iptables-save leaves out can be added to, but neither be checked nor put back. */
function describeHiddenTable({ tool }: Command, output: string): readonly Finding[] {
  const family = families.find((each) => saveTools[each] === tool);
  const failure = family && findHiddenTable(output, family);
  return failure ? [{ severity: 'error', subject: 'tools', text: failure.message, advice: failure.advice }] : [];
}

/** A kernel may have the one variant of iptables and not the other. */
function variantAdvice({ tool }: Command, reason: string): string {
  if (!tool.startsWith('ip') || !/nft|nf_tables/i.test(reason)) return '';
  return ', or switch to the legacy variant (update-alternatives --config iptables)';
}
