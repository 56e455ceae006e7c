/** The build replaces these two constants. */
declare const KPC_VERSION: string | undefined;
declare const KPC_BUILD: string | undefined;

/** The version in package.json; "0.0.0" if the sources run unbuilt. */
export const version: string = typeof KPC_VERSION === 'undefined' ? '0.0.0' : KPC_VERSION;

/** A text that differs between builds; '' if the sources run unbuilt. */
export const build: string = typeof KPC_BUILD === 'undefined' ? '' : KPC_BUILD;

export const repository: string = 'OWNER/REPOSITORY';

export const projectUrl = repository.startsWith('OWNER/') ? undefined : `https://github.com/${repository}`;
