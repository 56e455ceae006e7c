// Configurations, and why each release's kube-proxy does not start with them, as record.mjs recorded it.
// @ts-check
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @typedef {object} Configuration
 * @property {string} text A KubeProxyConfiguration in YAML.
 * @property {Record<string, string>} refusals Release → why its kube-proxy does not start, '' if it does.
 */

const file = join(import.meta.dirname, 'configurations.json');

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

/** @returns {Configuration[]} */
export function readConfigurations() {
  /** @type {Record<string, Record<string, string>>} */
  const read = JSON.parse(readFileSync(file, 'utf8'));
  return Object.entries(read).map(([lines, refusals]) => ({ text: `${head}${lines}\n`, refusals }));
}

/** @param {Configuration[]} configurations */
export function writeConfigurations(configurations) {
  const written = configurations.map(({ text, refusals }) => [text.slice(head.length, -1), sort(refusals)]);
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(written), undefined, 2)}\n`);
}

/** @param {Record<string, string>} refusals */
function sort(refusals) {
  return Object.fromEntries(Object.entries(refusals).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
