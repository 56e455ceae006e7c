import type { LocalhostHandling, NodePortListeners } from '../../kube-proxy/node-port-listeners.ts';

/** Words to follow "listens on". */
export function listenerWords(listeners: NodePortListeners): string {
  switch (listeners.kind) {
    case 'listed':
      return listeners.addresses.join(', ') || 'no address';
    case 'all':
      return listeners.loopback ? 'all addresses of the node' : 'all addresses of the node but loopback';
    case 'unknown':
      return 'other addresses';
  }
}

export const localhostWords: { readonly [H in LocalhostHandling]: string } = {
  listens: 'kube-proxy itself listens',
  rejected: 'rejected',
  'no-rule': 'no rule',
};
