/** The kube-proxy whose rules kpc compiles: the same for every bundle of this kpc. */
export const kubeProxyVersion = 'v1.36.3';
