import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { parseShard } from '../bundle/fleet/shard.ts';
import { parseAssignmentRanges, parsePodNetworks } from '../input/configuration/range-flags.ts';
import { resolveSettings } from '../input/configuration/settings.ts';
import { checkNodeName } from './fleet-nodes.ts';
import { parseVersionChoice, startingRelease } from './kubernetes-version.ts';
import { checkNamespace, type InputOptions } from './load-texts.ts';

/** The flags of a command, of which it may know some only. */
export interface GivenFlags extends Partial<InputOptions> {
  readonly node?: string | readonly string[] | undefined;
  readonly shard?: string | undefined;
}

/** What is wrong with the values of flags alone, for a command whose input is not read because other flags are wrong. */
export function checkFlags(flags: GivenFlags): readonly Diagnostic[] {
  const version = parseVersionChoice(flags.kubernetesVersion);
  const { diagnostics: wrongSettings } = resolveSettings(undefined, flags, startingRelease(version.choice, []));
  const names = typeof flags.node === 'string' ? [flags.node] : (flags.node ?? []);
  return [
    ...names.flatMap((name) => checkNodeName(name) ?? []),
    ...(flags.shard !== undefined && !parseShard(flags.shard) ? [diagnose('bad-shard', { shard: flags.shard })] : []),
    ...checkNamespace(flags.namespace),
    ...version.diagnostics,
    ...wrongSettings,
    ...parseAssignmentRanges(flags).diagnostics,
    ...parsePodNetworks(flags.assumeEndpoints).diagnostics,
  ].filter(isError);
}
