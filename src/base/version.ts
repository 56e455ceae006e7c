/** Replaced by scripts/build.mjs. */
declare const KPC_VERSION: string | undefined;

/** The version of package.json; "0.0.0" where the sources run without having been built. */
export const version: string = typeof KPC_VERSION === 'undefined' ? '0.0.0' : KPC_VERSION;
