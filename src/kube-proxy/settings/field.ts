import type { Schema } from '../../diagnostics/json-schema.ts';

/** A field of a KubeProxyConfiguration, which holds a T. */
export interface Field<Name extends string = string, T = unknown> {
  /** With its section: "ipvs.scheduler". */
  readonly name: Name;
  readonly path: readonly string[];
  readonly schema: Schema<T>;
}

/** Makes a field, in a section or outside of one, with what kube-proxy takes there. */
export function field<const Name extends string, T>(name: Name, schema: Schema<T>): Field<Name, T> {
  return { name, path: name.split('.'), schema };
}

/** The field's own name, without its section. */
export function lastName({ path }: Field): string {
  return path.at(-1) ?? '';
}
