/** Both replaced by the build. */
declare const KPC_VERSION: string | undefined;
declare const KPC_BUILD: string | undefined;

/** The version of package.json; "0.0.0" where the sources run without having been built. */
export const version: string = typeof KPC_VERSION === 'undefined' ? '0.0.0' : KPC_VERSION;

/** Differs wherever the program does; '' where the sources run without having been built. */
export const build: string = typeof KPC_BUILD === 'undefined' ? '' : KPC_BUILD;
