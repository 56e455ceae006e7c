/** For people, for programs, and the two that tell a CI what --check found. */
export const outputFormats = ['text', 'json', 'github', 'junit'] as const;

export type OutputFormat = (typeof outputFormats)[number];
