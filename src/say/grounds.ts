import type { Grounds, ReadAs } from '../base/findings/files.ts';
import { quote } from '../base/printable.ts';
import type { ModeSource } from '../kube-proxy/modes.ts';

/** The text after the name of a mode that kpc chose because nothing names a mode. */
export const unnamedMode = '(nothing names a mode)';

const modeSources: Readonly<Record<ModeSource, string>> = {
  nothing: ` ${unnamedMode}`,
  'empty-flag': " (kube-proxy's default)",
  configuration: " (kube-proxy's default)",
  dump: " (the dump's; other settings by flags and defaults)",
};

/** Returns the text to add after the name of a mode. */
export function modeFromWords(from: ModeSource | undefined): string {
  return from === undefined ? '' : modeSources[from];
}

/** Returns "node node-1 (assumed), mode ipvs (nothing names a mode), ipv4". */
export function groundsWords({ node, mode, modeFrom, families, assumed }: Grounds): string {
  const mark = (what: Grounds['assumed'][number]): string => (assumed.includes(what) ? ' (assumed)' : '');
  const where = node === undefined ? 'any node' : `node ${node}${mark('node')}`;
  return `${where}, mode ${mode}${modeFromWords(modeFrom)}, ${families.join(' and ')}${mark('families')}`;
}

type Compiled = Extract<ReadAs, { readonly as: 'manifests' | 'bundle' | 'golden' }>;

function compiledWords({ grounds, release }: Compiled): string {
  const why = release?.shownBy && ` (${shownByWords(release.shownBy)})`;
  return `${groundsWords(grounds)}${release ? `, Kubernetes ${release.release}${why ?? ''}` : ''}`;
}

function shownByWords(shown: NonNullable<NonNullable<Compiled['release']>['shownBy']>): string {
  if (shown.by === 'node') return `as the Node ${quote(shown.node)} says`;
  return shown.notThatOfNode === undefined
    ? 'the dump fits it best'
    : `the dump fits it better than ${shown.notThatOfNode}, which the Node names`;
}

/** Returns "manifests, compiled for node node-1, mode ipvs, ipv4". */
export function readAsWords(what: ReadAs): string {
  switch (what.as) {
    case 'manifests':
      return `manifests, compiled for ${compiledWords(what)}`;
    case 'two-releases':
      return `manifests, compiled for ${groundsWords(what.grounds)}, by Kubernetes ${what.from} and ${what.to}`;
    case 'bundle':
    case 'golden':
      return `a ${what.as} for ${compiledWords(what)}`;
    case 'stored-dump': {
      const rules = what.families.length === 0 ? 'no rules of kube-proxy' : what.families.join(' and ');
      const more = what.more.length === 0 ? '' : `, with ${what.more.join(', ')}`;
      return `a dump of ${what.node}, mode ${what.mode}, ${rules}${more}`;
    }
    case 'dump':
      return `a dump of a node${what.files.length === 0 ? ', of which no file could be read' : `: ${what.files.map(fileWords).join(', ')}`}`;
  }
}

/** Returns "node.txt (iptables-save, ipvsadm -Ln)". Returns only the file's name if the name says what the file contains. */
function fileWords({ name, outputs }: Extract<ReadAs, { readonly as: 'dump' }>['files'][number]): string {
  const [first] = outputs;
  const tells = outputs.length === 1 && first !== undefined && name.startsWith(first);
  return tells ? name : `${name} (${outputs.join(', ')})`;
}
