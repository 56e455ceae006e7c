import type { Schema } from '../../../base/json/schema.ts';
import { object } from '../../../base/json/kubernetes-schema.ts';
import { configuredSections, fieldsInSection } from '../../../settings/table.ts';

const sections = configuredSections.map((name) => [name, object(fieldsInSection(name))] as const);

/** The settings read its other fields by path. */
export interface KubeProxyConfig {
  readonly mode?: string | null;
}

/** All fields of kube-proxy's KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1). */
export const kubeProxyConfigurationSchema = object({
  ...fieldsInSection(''),
  ...Object.fromEntries(sections),
}) as Schema<KubeProxyConfig>;
