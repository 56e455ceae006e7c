/** The scripts that the page starts. */
type OwnScript = 'worker.js' | 'service-worker.js';

interface Policies {
  readonly createPolicy: (
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ) => { readonly createScriptURL: (url: string) => string };
}

/**
 * Returns a script's address in the form that the page's Content-Security-Policy requires. The policy allows no other scripts, and no HTML
 * from text. Browsers without trusted types accept the plain text.
 */
export function scriptUrl(name: OwnScript): string {
  policy ??= makePolicy();
  return policy === 'none' ? name : policy.createScriptURL(name);
}

let policy: ReturnType<Policies['createPolicy']> | 'none' | undefined;

function makePolicy(): ReturnType<Policies['createPolicy']> | 'none' {
  const { trustedTypes } = globalThis as { readonly trustedTypes?: Policies };
  if (!trustedTypes) return 'none';
  return trustedTypes.createPolicy('kpc', {
    createScriptURL: (url) => {
      if (url === 'worker.js' || url === 'service-worker.js') return url;
      throw new TypeError('not a script of this page');
    },
  });
}
