import type { Schema } from '../../../base/json/schema.ts';
import { object } from '../../../base/json/kubernetes-schema.ts';
import { configuredSections, fieldsInSection } from '../../../settings/table.ts';

const sections = configuredSections.map((name) => [name, object(fieldsInSection(name))] as const);

export interface KubeProxyConfig {
  readonly mode?: string | null;
}

export const kubeProxyConfigurationSchema = object({
  ...fieldsInSection(''),
  ...Object.fromEntries(sections),
}) as Schema<KubeProxyConfig>;
