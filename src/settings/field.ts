import type { Schema } from '../diagnostics/json-schema.ts';

/** A field of a KubeProxyConfiguration, of which a T may be read. */
export interface Field<Name extends string = string, T = unknown> {
  /** With the section that it is in: "ipvs.scheduler". */
  readonly name: Name;
  readonly path: readonly string[];
  readonly schema: Schema<T>;
}

/** A field, on its own or in a section, and what kube-proxy takes there. */
export function field<const Name extends string, T>(name: Name, schema: Schema<T>): Field<Name, T> {
  return { name, path: name.split('.'), schema };
}

/** What a field's own name is, without that of its section. */
export function lastName({ path }: Field): string {
  return path.at(-1) ?? '';
}
