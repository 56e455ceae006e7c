export const headlessLabel = 'service.kubernetes.io/headless';

/** A Service with this label belongs to another proxy (apis.LabelServiceProxyName in pkg/proxy/apis/well_known_labels.go). */
export const proxyNameLabel = 'service.kubernetes.io/service-proxy-name';

/** The labels of Services that kube-proxy's informer filters out. */
export const skippingLabels = { 'other-proxy': proxyNameLabel, 'headless-label': headlessLabel } as const;

/** Why kube-proxy programs nothing for a Service. */
export const skipReasons = ['headless', 'external-name', 'other-proxy', 'headless-label', 'no-cluster-ip'] as const;

export type SkipReason = (typeof skipReasons)[number];

export function skippingLabelOf({ skipped }: { readonly skipped: SkipReason | undefined }): string | undefined {
  return skipped === 'other-proxy' || skipped === 'headless-label' ? skippingLabels[skipped] : undefined;
}
