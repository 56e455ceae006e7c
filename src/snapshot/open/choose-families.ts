import { families, type Family } from '../../kernel/family.ts';

/** Values of --ip-family; auto means the families that the Services and the node use. */
export const ipFamilyChoices = ['auto', 'ipv4', 'ipv6', 'dual'] as const;

export type IpFamilyChoice = (typeof ipFamilyChoices)[number];

export function chooseFamilies(choice: IpFamilyChoice, used: () => readonly Family[]): readonly Family[] {
  switch (choice) {
    case 'ipv4':
    case 'ipv6':
      return [choice];
    case 'dual':
      return families;
    case 'auto':
      return used();
  }
}
