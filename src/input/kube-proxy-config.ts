import type { RawKubeProxyConfiguration } from './schemas/kube-proxy-configuration.ts';

/** A KubeProxyConfiguration whose shape has been checked. Its values are checked where they become settings. */
export type KubeProxyConfig = RawKubeProxyConfiguration;
