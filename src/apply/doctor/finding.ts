import type { Manifest } from '../../bundle/manifest.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { Host } from '../node/host.ts';
import type { ModuleIndex } from '../node/kernel-modules.ts';

/** One thing that doctor looked at. An error is something that an apply would fail for. */
export interface Finding {
  readonly severity: 'ok' | 'note' | 'warning' | 'error';
  /** What was looked at: "modules", "tools" … */
  readonly subject: string;
  readonly text: string;
  /** The mode that needs it, unless all that were examined do. */
  readonly mode?: ProxyMode | undefined;
  /** What to do about it; undefined for nothing. */
  readonly advice?: string | undefined;
  /** The tool that is at fault, if one is. */
  readonly tool?: string | undefined;
}

/** Makes a Finding. `subject` is the part that it is about, such as "kernel" or "iptables". */
export function finding(severity: Finding['severity'], subject: string, text: string, advice?: string): Finding {
  return { severity, subject, text, advice };
}

/** What a node should be fit for. Without a bundle: for any in the mode. */
export interface Needs {
  readonly mode: ProxyMode;
  readonly modules: readonly string[];
  /** The value is undefined if any will do. */
  readonly sysctls: readonly { readonly name: string; readonly value: string | undefined }[];
  /** Tool family → version. */
  readonly leastVersions: Readonly<Record<string, string>>;
  readonly manifest: Manifest | undefined;
}

/** A node to examine, and what it needs. */
export interface Examined {
  readonly host: Host;
  readonly needs: Needs;
  readonly modules: ModuleIndex;
  /** Whether kpc-apply may change the network. */
  readonly mayChange: boolean;
}
