import { about, listOf, objectOf, oneOf, text } from '../../base/json/schema.ts';
import { releases } from '../../kube-proxy/releases.ts';

/** What `kpc version` and `kpc-apply version` print. */
export const version = objectOf({
  kubeProxyVersion: about('the kube-proxy that it follows', text),
  releases: about('of Kubernetes, whose kube-proxy it follows', listOf(oneOf(...releases))),
  nodeVersion: about('of the Node that runs it', text),
});
