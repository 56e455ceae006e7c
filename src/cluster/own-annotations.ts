/** kpc's own annotations, which no other program knows. */
export const ownAnnotations = {
  /** On any object: the codes of findings that kpc lint accepts, such as "external-ips, open-node-port". */
  ignore: 'kpc.dev/ignore',
  /** On a Service. */
  scheduler: 'kpc.dev/ipvs-scheduler',
  /** On a Service. */
  forwarding: 'kpc.dev/ipvs-forwarding-method',
} as const;

const names: readonly string[] = Object.values(ownAnnotations);

/** Whether a name looks like one of kpc's annotations but is not. */
export function isStrayAnnotation(name: string): boolean {
  return name.startsWith('kpc.dev/') && !names.includes(name);
}
