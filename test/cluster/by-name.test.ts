import { describe, expect, test } from 'vitest';
import { ByName, eitherOf, namesOf } from '../../src/cluster/grouping.ts';

describe('values by namespace and name', () => {
  test('are found by both, and a slash in one of them makes no other name', () => {
    const values = new ByName<number>();
    values.set('a', 'b/c', 1);
    values.set('a/b', 'c', 2);
    values.set('a', 'd', 3);
    expect(values.get('a', 'b/c')).toBe(1);
    expect(values.get('a/b', 'c')).toBe(2);
    expect(values.get('a', 'd')).toBe(3);
    expect(values.get('a', 'c')).toBeUndefined();
    expect(values.has('a/b', 'd')).toBe(false);
  });

  test('the last that was set counts', () => {
    const values = new ByName<number>();
    values.set('a', 'b', 1);
    values.set('a', 'b', 2);
    expect(values.get('a', 'b')).toBe(2);
  });

  test('names like those of an object’s own fields are names like others', () => {
    const values = new ByName<number>();
    expect(values.get('__proto__', 'constructor')).toBeUndefined();
    values.set('__proto__', 'constructor', 1);
    expect(values.get('__proto__', 'constructor')).toBe(1);
  });

  test('names of two lists are in either', () => {
    const names = eitherOf(namesOf([{ namespace: 'a', name: 'b' }]), namesOf([{ namespace: 'c', name: 'd' }]));
    expect(names.has('a', 'b')).toBe(true);
    expect(names.has('c', 'd')).toBe(true);
    expect(names.has('a', 'd')).toBe(false);
  });
});
