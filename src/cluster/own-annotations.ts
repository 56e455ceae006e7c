/** kpc's own annotations; no other program knows one of them. */
export const ownAnnotations = {
  /** Of any object: the codes of its findings that kpc lint accepts, as "external-ips, open-node-port". */
  ignore: 'kpc.dev/ignore',
  /** Of a Service. */
  scheduler: 'kpc.dev/ipvs-scheduler',
  /** Of a Service. */
  forwarding: 'kpc.dev/ipvs-forwarding-method',
} as const;

const names: readonly string[] = Object.values(ownAnnotations);

/** Whether an annotation looks like one of kpc's, and is none. */
export function isStrayAnnotation(name: string): boolean {
  return name.startsWith('kpc.dev/') && !names.includes(name);
}
