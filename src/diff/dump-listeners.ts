import type { KernelState } from '../kernel/state.ts';
import { findNodePortListeners, type FindListeners } from '../kube-proxy/node-port-listeners.ts';
import type { Coverage } from './coverage.ts';

/**
 * Finds where node ports listen by the state of a dump. A part of a list, and a set without its elements, do not tell where
 * nothing listens.
 */
export function findDumpListeners(
  state: KernelState,
  { virtualServers }: Pick<Coverage, 'virtualServers'>,
): FindListeners {
  const find = findNodePortListeners(virtualServers ? state : { ...state, virtualServers: [] });
  return (nodePort) => {
    const listeners = find(nodePort);
    return listeners.kind === 'listed' && listeners.addresses.size === 0 ? { kind: 'unknown' } : listeners;
  };
}
