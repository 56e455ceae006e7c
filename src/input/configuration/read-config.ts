import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import type { Sourced } from '../../cluster/objects.ts';
import { readUnit, type ClusterFacts } from './cluster-config.ts';
import { placeAt } from '../documents/document.ts';
import type { KubeProxyConfig } from '../objects/shapes/kube-proxy-configuration.ts';
import { sortDiagnostics } from '../sort-diagnostics.ts';
import { TextFile } from '../documents/text-file.ts';
import { collectFiles } from '../read-inputs.ts';

/** What --config names. Without a config there is an error among the diagnostics. */
export interface ConfigFile {
  readonly config: Sourced<KubeProxyConfig> | undefined;
  /** What it also says about the cluster, or in another program's words. */
  readonly facts: readonly ClusterFacts[];
  readonly diagnostics: readonly Finding[];
  /** The file, if it could be read. */
  readonly file: TextFile | undefined;
}

/** Reads a KubeProxyConfiguration, the ConfigMap that holds one, under whatever key, or kube-proxy's systemd unit; a diagnostic is why there is no text. */
export function readConfigText(file: TextFile | Finding): ConfigFile {
  if (!(file instanceof TextFile)) return { config: undefined, facts: [], diagnostics: [file], file: undefined };
  const read = readConfig(file);
  return { ...read, diagnostics: sortDiagnostics(read.diagnostics), file };
}

export function readConfig(file: TextFile): Omit<ConfigFile, 'file'> {
  const unit = readUnit(file.text, placeAt(file, 0));
  if (unit === 'unknown')
    return { config: undefined, facts: [], diagnostics: [diagnose('no-config', {}, placeAt(file, 0))] };
  if (unit) return { config: undefined, facts: [unit], diagnostics: [] };
  const { configs, facts, diagnostics } = collectFiles([file], { areConfigs: true });
  const [config, ...others] = configs;
  for (const { source } of others) {
    diagnostics.push(diagnose('duplicate-configuration', {}, source.place([])));
  }
  const isExplained = config ?? (diagnostics.some(isError) || facts.some(({ configures }) => configures));
  if (!isExplained) {
    const place = diagnostics.find(({ code }) => code === 'unknown-kind')?.place ?? placeAt(file, 0);
    diagnostics.push(diagnose('no-config', {}, place));
  }
  return { config, facts, diagnostics };
}
