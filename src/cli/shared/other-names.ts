/** What other programs of Kubernetes, or people, call the flags of kpc: without dashes. */
const otherNames: Readonly<Record<string, string>> = {
  'kube-version': 'kubernetes-version',
  'k8s-version': 'kubernetes-version',
  mode: 'proxy-mode',
  'node-port-range': 'service-node-port-range',
  'nodeport-range': 'service-node-port-range',
  'pod-cidr': 'cluster-cidr',
  'pod-network-cidr': 'cluster-cidr',
  'service-cidr': 'service-cluster-ip-range',
  'service-cidrs': 'service-cluster-ip-range',
  'service-ip-range': 'service-cluster-ip-range',
};

/** The flag among these that a name stands for elsewhere: what is spelled like it may be quite another one. */
export function findOtherName(name: string, flags: readonly string[]): string | undefined {
  const other = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined;
  return other !== undefined && flags.includes(other) ? other : undefined;
}
