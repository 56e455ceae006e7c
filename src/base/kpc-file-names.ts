/** What a golden says of the node and the settings that it was compiled for. A folder that holds it is a golden. */
export const goldenHead = 'golden.json';

/** What a bundle is. A folder that holds it is a bundle. */
export const bundleHead = 'manifest.json';

/** The file that holds flags for a repository. */
export const kpcYaml = 'kpc.yaml';
