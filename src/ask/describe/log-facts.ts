import type { ProxyLog } from '../../dumps/kube-proxy-log.ts';
import { proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';

export function modeOfLog(log: ProxyLog): ProxyMode | undefined {
  return proxyModes.find((mode) => mode === log.facts.get('mode')?.[0]);
}

/** Reads the node's addresses. The log lists them in quotes, in some releases after the name of each family. */
export function loggedAddresses({ facts }: ProxyLog): readonly string[] {
  const listed = facts.get('node-ips')?.[0] ?? '';
  return listed === '' ? [] : listed.replace(/"IPv[46]":|"/g, '').split(',');
}

export const modeSources = ['fallback', 'default', 'config', 'flag'] as const;

export function modeSource({ problems, facts, flags }: ProxyLog): (typeof modeSources)[number] | undefined {
  if (problems.has('fallback')) return 'fallback';
  if (problems.has('default-mode') || facts.has('assumed-mode')) return 'default';
  if (flags.get('--config')) return 'config';
  return flags.get('--proxy-mode') ? 'flag' : undefined;
}
