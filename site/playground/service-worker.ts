// Keeps the page's own files, so that the page opens without a network. The build sets their names and a version.
declare const FILES: readonly string[];
declare const VERSION: string;

const cacheName = `kpc-playground-${VERSION}`;
const worker = self as unknown as ServiceWorkerScope;

/** The parts of a service worker that are needed here. The types of a page lack them. */
interface ServiceWorkerScope {
  readonly skipWaiting: () => Promise<void>;
  readonly clients: { readonly claim: () => Promise<void> };
  readonly addEventListener: ((type: 'install' | 'activate', listener: (event: WaitingEvent) => void) => void) &
    ((type: 'fetch', listener: (event: RequestEvent) => void) => void);
}

interface WaitingEvent extends Event {
  readonly waitUntil: (work: Promise<unknown>) => void;
}

interface RequestEvent extends Event {
  readonly request: Request;
  readonly respondWith: (response: Promise<Response>) => void;
}

worker.addEventListener('install', (event) => {
  event.waitUntil(keepFiles());
});

worker.addEventListener('activate', (event) => {
  event.waitUntil(removeOldFiles());
});

worker.addEventListener('fetch', (event) => {
  if (event.request.method === 'GET') event.respondWith(find(event.request));
});

async function keepFiles(): Promise<void> {
  const cache = await caches.open(cacheName);
  await cache.addAll(FILES.map((file) => new Request(file, { cache: 'reload' })));
  await worker.skipWaiting();
}

async function removeOldFiles(): Promise<void> {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith('kpc-playground-') && name !== cacheName);
  await Promise.all(old.map((name) => caches.delete(name)));
  await worker.clients.claim();
}

async function find(request: Request): Promise<Response> {
  const kept = await caches.match(request, { ignoreSearch: true, cacheName });
  return kept ?? fetch(request);
}
