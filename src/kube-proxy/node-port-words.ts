/**
 * The words that name networks in --nodeport-addresses (pkg/proxy/apis/config/types.go): `primary` for the node's own
 * addresses, `localhost` for 127.0.0.0/8 and ::1/128, `all` for 0.0.0.0/0 and ::/0.
 */
export const nodePortWords = ['primary', 'localhost', 'all'] as const;

export type NodePortWord = (typeof nodePortWords)[number];

export function isNodePortWord(text: string): text is NodePortWord {
  return nodePortWords.some((word) => word === text);
}
