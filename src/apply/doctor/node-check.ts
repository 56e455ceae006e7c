import { about, objectOf, oneOf, optional, text as anyText, type Shaped } from '../../base/json/schema.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import { proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Host } from '../node/host.ts';
import type { ModuleIndex } from '../node/kernel-modules.ts';

export const nodeCheckSchema = objectOf({
  severity: oneOf('ok', 'note', 'warning', 'error'),
  subject: about('what was looked at: "modules", "tools"', anyText),
  text: anyText,
  mode: optional(about('absent if all modes that were examined need it', oneOf(...proxyModes))),
  help: optional(anyText),
  tool: optional(about('the one at fault', anyText)),
});

/** One thing that doctor looked at. An error is something that an apply would fail for. */
export type NodeCheck = Shaped<typeof nodeCheckSchema>;

/** `subject` is the part that it is about, such as "kernel" or "iptables". */
export function nodeCheck(severity: NodeCheck['severity'], subject: string, text: string, help?: string): NodeCheck {
  return { severity, subject, text, help };
}

/** The modes that the node is fit for: what one of them lacks is nothing to the others. */
export function fitModes(checks: readonly NodeCheck[], modes: readonly ProxyMode[]): readonly ProxyMode[] {
  const errors = checks.filter(({ severity }) => severity === 'error');
  return modes.filter((mode) => errors.every((each) => each.mode !== undefined && each.mode !== mode));
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
