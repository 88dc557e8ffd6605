// @ts-check
// A session's events as they lie in notebook metadata, and what plan mode amounts to in them. Pure: no JupyterLab, no
// DOM.
import { sha256 } from './sha256.js';

/**
 * Where metadata entries live; `get` returns a copy, `set` replaces one entry.
 * @typedef {{ get(key: string): any, set(key: string, value: any): void }} Store
 * @typedef {{ active: boolean, pending: boolean | null }} PlanState
 * @typedef {{ length: number, lacks?: string[] } | { want: number } | { diverged: number, stripped?: true }} Answer
 *   exactly one of the three; `lacks`: images asked about that are not here; `stripped`: this session was removed for
 *   good
 * @typedef {{ start: number, lines: string[] }} Chunk
 */

export const ROOT = 'plan_mode_nb';
/** A chunk takes no further line once it holds this many code points. */
export const SEAL = 16_384;
/**
 * What one `page` message holds at most, in UTF-16 units, unless a single line is longer: a websocket message ends at
 * 10 MiB.
 */
export const PAGE = 1_000_000;
/** A longer line, in UTF-16 units, could not be sent to the kernel at all. */
export const LONGEST = 2_500_000;

/** @param {string} session @param {number} start seq of the chunk's first event */
export const chunkKey = (session, start) => `${ROOT}/${session}/${String(start).padStart(7, '0')}`;

/** Length in Unicode code points, as the kernel counts it. @param {string} text */
export const points = text => text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);

/** @param {unknown} line @returns {line is string} */
const isLine = line => typeof line === 'string' && line.length <= LONGEST;
/** What a chunk's entry holds. @param {unknown} value @returns {value is string[]} */
export const isLines = value => Array.isArray(value) && value.length > 0 && value.every(isLine);

/**
 * One session in a store. Remembers where its last chunk starts and the chained hash so far, so an append costs what
 * it adds; `forget()` when somebody else wrote. Never throws on what it finds, and never writes: `plan` says what to
 * set.
 */
export class SessionLog {
  #tail = 0;
  #chain = { length: 0, hash: '' };

  /** @param {Store} store @param {string} session */
  constructor(store, session) {
    this.store = store;
    this.session = session;
  }

  /** Trust nothing that was remembered. */
  forget() {
    this.#tail = 0;
    this.#chain = { length: 0, hash: '' };
  }

  /**
   * The last chunk (an empty one when there is none) and, if an entry is not a list of lines, the position where
   * reading ends.
   * @returns {Chunk & { damaged: boolean }}
   */
  end() {
    if (this.#tail && !isLines(this.store.get(chunkKey(this.session, this.#tail)))) this.forget();
    let last = { start: this.#tail, lines: /** @type {string[]} */ ([]) };
    for (const chunk of this.chunks(this.#tail)) last = chunk;
    this.#tail = last.start;
    const damaged = this.store.get(chunkKey(this.session, last.start + last.lines.length)) !== undefined;
    return { ...last, damaged };
  }

  get length() {
    const { start, lines } = this.end();
    return start + lines.length;
  }

  /** The chunks from the one that starts at `from`, in order: each starts where the one before ends.
   * @param {number} [from] @returns {Generator<Chunk>} */
  *chunks(from = 0) {
    for (let start = from; ;) {
      const lines = this.store.get(chunkKey(this.session, start));
      if (!isLines(lines)) return;
      yield { start, lines };
      start += lines.length;
    }
  }

  /** The lines from position `from`. @param {number} from @returns {Generator<string>} */
  *lines(from) {
    for (const { start, lines } of this.chunks(this.#tail <= from ? this.#tail : 0))
      for (let i = Math.max(0, from - start); i < lines.length; i++) yield lines[i];
  }

  /**
   * h(length): h(0) = sha256(session id), h(k+1) = sha256(h(k) + line k), hex chained as text.
   * @param {number} length
   */
  chained(length) {
    if (!this.#chain.hash || this.#chain.length > length) this.#chain = { length: 0, hash: sha256(this.session) };
    for (const line of this.#chain.length < length ? this.lines(this.#chain.length) : []) {
      if (this.#chain.length === length) break;
      this.#chain = { length: this.#chain.length + 1, hash: sha256(this.#chain.hash + line) };
    }
    return this.#chain.hash;
  }

  /**
   * What appending `lines` at position `start` comes to. Positions already held must be equal (a retry, another tab)
   * and are skipped; a gap answers the position wanted; a difference, here or in the chained hash `prev` before
   * `start`, is never written over.
   * @param {number} start
   * @param {string[]} lines
   * @param {string} prev
   * @returns {{ answer: Answer, writes: Map<string, string[]> }} the entries to set
   */
  plan(start, lines, prev) {
    const nothing = new Map();
    const { damaged, ...tail } = this.end();
    let length = tail.start + tail.lines.length;
    if (damaged || !lines.every(isLine)) return { answer: { diverged: length }, writes: nothing };
    if (start > length) return { answer: { want: length }, writes: nothing };
    if (start === length && this.chained(start) !== prev) return { answer: { diverged: start }, writes: nothing };
    let at = start;
    for (const held of start < length ? this.lines(start) : []) {
      if (at === start + lines.length) break;
      if (held !== lines[at - start]) return { answer: { diverged: at }, writes: nothing };
      at += 1;
    }
    const writes = new Map();
    let { start: key, lines: chunk } = tail;
    let size = chunk.reduce((sum, line) => sum + points(line), 0);
    for (const line of lines.slice(at - start)) {
      if (size >= SEAL) {
        [key, chunk, size] = [length, [], 0];
        // Beyond a hole: whatever lies there is not ours to replace.
        if (this.store.get(chunkKey(this.session, key)) !== undefined)
          return { answer: { diverged: key }, writes: nothing };
      }
      chunk.push(line);
      writes.set(chunkKey(this.session, key), chunk);
      size += points(line);
      length += 1;
    }
    return { answer: { length }, writes };
  }

  /** One page from `start` on, at most `limit` UTF-16 units but at least one line, and the whole log's length; `damaged`
   * where something lies behind that end that cannot be read.
   * @param {number} start @param {number} [limit] */
  page(start, limit = PAGE) {
    const events = [];
    let size = 0;
    for (const line of this.lines(start)) {
      if (events.length && size + line.length > limit) break;
      events.push(line);
      size += line.length;
    }
    const end = this.end();
    return { start, events, length: end.start + end.lines.length, ...(end.damaged ? { damaged: true } : {}) };
  }
}

/**
 * `selected`: a `plan/selected` was seen, so commands no longer count. `running`: the plan command that has not ended.
 * @typedef {{ commandId: string, wanted: boolean }} Running
 * @typedef {PlanState & { selected: boolean, running: Running | null }} PlanFold
 */

/** @returns {PlanFold} the fold of no event */
export const unplanned = () => ({ active: false, pending: null, selected: false, running: null });

const SPEAKS = /"(?:plan\/(?:mode|selected)|command\/(?:run|done))"/;

/**
 * Plan mode's fold, resumable: `foldPlan(b, foldPlan(a))` is `foldPlan(a + b)`. `pending` is null whenever it would
 * equal `active`.
 * @param {Iterable<string>} lines
 * @param {PlanFold} [from] not changed
 * @returns {PlanFold}
 * @throws when a line that matters is not JSON or carries something else than a boolean: the log is not to be read by
 *   truthiness
 */
export function foldPlan(lines, from = unplanned()) {
  let { active, pending, selected, running } = from;
  /** @param {boolean} wanted */
  const unlessSo = wanted => (wanted === active ? null : wanted);
  for (const line of lines) {
    if (!SPEAKS.test(line)) continue;
    const { type, data } = JSON.parse(line);
    if (type === 'plan/mode') [active, pending] = [boolean(data.active), null];
    else if (type === 'plan/selected') [selected, pending] = [true, unlessSo(boolean(data.active))];
    else if (selected) continue;
    else if (type === 'command/run' && data.name === 'plan' && typeof data.args === 'string')
      running = { commandId: data.commandId, wanted: data.args.trim().toLowerCase() !== 'off' };
    else if (type === 'command/done' && running && data.commandId === running.commandId) {
      if (data.kind === 'success') pending = unlessSo(running.wanted);
      running = null;
    }
  }
  return { active, pending, selected, running };
}

/** @param {unknown} value */
function boolean(value) {
  if (typeof value === 'boolean') return value;
  throw new TypeError(`a plan event carries ${JSON.stringify(value)} where true or false belongs`);
}
