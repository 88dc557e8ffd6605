// What the tests of the pure part share.
import { createHash } from 'node:crypto';

/** Metadata in memory; `get` returns a copy, as the notebook's model does. */
export function memory(content = {}) {
  const entries = new Map(Object.entries(structuredClone(content)));
  return {
    entries,
    get: key => structuredClone(entries.get(key)),
    set: (key, value) => {
      entries.set(key, structuredClone(value));
    }
  };
}

const hex = text => createHash('sha256').update(text).digest('hex');
/** The chained hash, by its definition. */
export const chained = (session, lines) => lines.reduce((hash, line) => hex(hash + line), hex(session));

/** `count` different lines of different lengths. */
export const numbered = count =>
  Array.from({ length: count }, (_, seq) => JSON.stringify({ type: 'x', seq, data: 'y'.repeat((seq * 7) % 900) }));
