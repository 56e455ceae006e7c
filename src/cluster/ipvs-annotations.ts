import type { ForwardingMethod } from '../kernel/ipvs.ts';

/** kpc's own annotations of a Service; kube-proxy knows neither. */
export const schedulerAnnotation = 'kpc.dev/ipvs-scheduler';
export const forwardingAnnotation = 'kpc.dev/ipvs-forwarding-method';

/** The schedulers of the Linux kernel that kube-proxy may be told to use, and mh. */
export const schedulers = ['rr', 'wrr', 'lc', 'wlc', 'lblc', 'lblcr', 'sh', 'dh', 'sed', 'nq', 'mh'] as const;

export const forwardingMethods: readonly ForwardingMethod[] = ['masquerade', 'direct', 'tunnel'];

type Annotations = Readonly<Record<string, string>>;

/** The scheduler asked for; undefined where none is, or none that exists (which the annotations' check reports). */
export function readScheduler(annotations: Annotations): string | undefined {
  const scheduler = annotations[schedulerAnnotation];
  return schedulers.find((known) => known === scheduler);
}

/** The forwarding method asked for; undefined as for readScheduler. */
export function readForwardingMethod(annotations: Annotations): ForwardingMethod | undefined {
  const method = annotations[forwardingAnnotation];
  return forwardingMethods.find((known) => known === method);
}
