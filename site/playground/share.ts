import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { isView, modeList, releaseList, type PageState } from './state.ts';

/** Longer links are neither made nor read, because some programs cut them off. */
const longestLink = 60_000;
const longestText = 2_000_000;

/** Packs a state into the part of a link behind "#", which is never sent to a server. Returns undefined if the link would be too long. */
export async function packState(state: PageState): Promise<string | undefined> {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  if (bytes.length > longestText) return undefined;
  const packed = await collect(new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw')), Infinity);
  if (!packed) return undefined;
  const binary = Array.from(packed, (byte) => String.fromCharCode(byte)).join('');
  const text = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return text.length > longestLink ? undefined : text;
}

/** Reads what packState wrote; undefined for anything else that a link may hold. */
export async function unpackState(fragment: string): Promise<PageState | undefined> {
  if (fragment.length > longestLink || !/^[\w-]+$/.test(fragment)) return undefined;
  try {
    const binary = atob(fragment.replaceAll('-', '+').replaceAll('_', '/'));
    const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const bytes = await collect(
      new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw')),
      longestText,
    );
    return bytes && readState(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
  } catch {
    return undefined;
  }
}

const kept = 'kpc-playground';

/** Keeps a state for a reload of this tab. Returns false if the browser refuses or has too little room. */
export function keepState(state: PageState): boolean {
  try {
    sessionStorage.setItem(kept, JSON.stringify(state));
    return true;
  } catch {
    forgetState();
    return false;
  }
}

/** Removes the state, because an older one would return in place of a state that could not be kept. */
function forgetState(): void {
  try {
    sessionStorage.removeItem(kept);
  } catch {
    // Ignore the error, because there is no state to remove.
  }
}

export function keptState(): PageState | undefined {
  try {
    return readState(JSON.parse(sessionStorage.getItem(kept) ?? 'null'));
  } catch {
    return undefined;
  }
}

async function collect(stream: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

function readState(value: unknown): PageState | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = new Map(Object.entries(value));
  const text = (name: keyof PageState): string => {
    const found: unknown = fields.get(name);
    return typeof found === 'string' ? found : '';
  };
  const manifests = fields.get('manifests');
  const mode: ProxyMode | undefined = modeList.find((each) => each === text('mode'));
  const release = releaseList.find((each) => each === text('release'));
  const view = text('view');
  const protocol = (['', 'tcp', 'udp', 'sctp', 'icmp'] as const).find((each) => each === text('protocol'));
  if (typeof manifests !== 'string' || !mode || !release || !isView(view)) return undefined;
  return {
    manifests,
    second: text('second'),
    node: text('node').slice(0, 253),
    mode,
    release,
    assume: fields.get('assume') === true,
    view,
    file: text('file'),
    service: text('service'),
    from: text('from').slice(0, 500),
    to: text('to').slice(0, 500),
    inInterface: text('inInterface').slice(0, 50),
    protocol: protocol ?? '',
    against: text('against').slice(0, 50),
  };
}
