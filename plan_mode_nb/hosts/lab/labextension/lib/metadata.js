// @ts-check
// The notebook's metadata as a whole: the index, attachments, and what the kernel's messages do to them. Pure: no
// JupyterLab, no DOM. A notebook may come from a stranger or a newer version: whatever has not the shape known here
// is left exactly as it is.
import { LONGEST, PAGE, ROOT, SessionLog, chunkKey, foldPlan, unplanned } from './log.js';

/**
 * @typedef {import('./log.js').Store} Store
 * @typedef {import('./log.js').Answer} Answer
 * @typedef {{ format: 1, agents: Record<string, string>, sessions: Record<string, object>, chosen?: Record<string,
 *   number>, stripped?: string[] }} Index
 * @typedef {{ session: string, start: number, events: string[], prev: string, header: object, agents: Record<string,
 *   string>, chosen?: Record<string, number>, attachments?: Record<string, string>, images?: string[] }} Append
 */

/** A longer image, in base64, could not be sent to the kernel at all; a model takes none of that size. */
const LARGEST = 6_000_000;

/** @param {string} sha hex digest of the bytes */
export const attachmentKey = sha => `${ROOT}/attachments/${sha}`;

/** @param {unknown} value @returns {value is Record<string, any>} */
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
/** @param {unknown} value @returns {value is Record<string, string>} */
const isTexts = value => isObject(value) && Object.values(value).every(text => typeof text === 'string');
/**
 * An id that can name a key: not empty, no slash, not the attachments' own room.
 * @param {unknown} id
 * @returns {id is string}
 */
const isId = id =>
  typeof id === 'string' && id !== '' && !id.includes('/') && id !== 'attachments' && id !== '__proto__';
/** @param {unknown} value @returns {value is number} */
const isPosition = value => Number.isSafeInteger(value) && Number(value) >= 0;

/** @param {unknown} value @returns {value is string} */
const isDigest = value => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
/** @param {unknown} value @returns {value is string[]} */
const isDigests = value => Array.isArray(value) && value.every(isDigest);
/** @param {unknown} value @returns {value is string} */
const isImage = value => typeof value === 'string' && value.length <= LARGEST && /^[A-Za-z0-9+/]*={0,2}$/.test(value);

/** How often a name was sent to another session. @param {unknown} value @returns {value is Record<string, number>} */
const isCounts = value => isObject(value) && Object.values(value).every(isPosition);

/** @param {unknown} value @returns {value is Index} */
export function isIndex(value) {
  return (
    isObject(value) &&
    value.format === 1 &&
    isTexts(value.agents) &&
    isObject(value.sessions) &&
    Object.values(value.sessions).every(isObject) &&
    (value.chosen === undefined || isCounts(value.chosen)) &&
    (value.stripped === undefined ||
      (Array.isArray(value.stripped) && value.stripped.every(id => typeof id === 'string')))
  );
}

/** The session of the agent `main`; '' without one, or when the index is not of this format. @param {Store} store */
export function mainSession(store) {
  const index = store.get(ROOT);
  return isIndex(index) && Object.hasOwn(index.agents, 'main') && isId(index.agents.main) ? index.agents.main : '';
}

/** @param {any} data @returns {data is Append} */
export function isAppend(data) {
  return (
    isObject(data) &&
    isId(data.session) &&
    isPosition(data.start) &&
    typeof data.prev === 'string' &&
    Array.isArray(data.events) &&
    data.events.every((/** @type {unknown} */ line) => typeof line === 'string') &&
    isObject(data.header) &&
    isTexts(data.agents) &&
    (data.chosen === undefined || isCounts(data.chosen)) &&
    (data.attachments === undefined || isTexts(data.attachments)) &&
    (data.images === undefined || isDigests(data.images))
  );
}

/** Whether a session, or the one that it was forked from when copies diverged, was stripped.
 * @param {Index} index @param {string} session */
const isStripped = (index, session) => !!index.stripped?.some(id => session === id || session.startsWith(`${id}~`));

/** The names as the kernel has them, but for one that was sent elsewhere more often than it knows.
 * @param {Index} index @param {Append} data */
function nameAgents(index, { agents, chosen = {} }) {
  for (const [name, session] of Object.entries(agents)) {
    const count = chosen[name] ?? 0;
    if ((index.chosen?.[name] ?? 0) > count) continue;
    index.agents[name] = session;
    if (count) index.chosen = { ...index.chosen, [name]: count };
  }
}

/** Every session of one notebook's metadata, and the answers to the kernel's messages. */
export class NotebookLog {
  /** @type {Map<string, SessionLog>} */ #logs = new Map();
  /** The main session's fold before its last chunk, which starts at `start`. */
  #folded = { session: '', start: 0, before: unplanned() };

  /** @param {Store} store @param {(write: () => void) => void} [transact] runs writes that belong together */
  constructor(store, transact = write => write()) {
    this.store = store;
    this.transact = transact;
  }

  /** @param {string} session */
  of(session) {
    let log = this.#logs.get(session);
    if (!log) this.#logs.set(session, (log = new SessionLog(this.store, session)));
    return log;
  }

  /** Somebody else wrote `key`. @param {string} key */
  changed(key) {
    for (const log of this.#logs.values()) if (key.startsWith(`${ROOT}/${log.session}/`)) log.forget();
    const { session, start } = this.#folded;
    if (key.startsWith(`${ROOT}/${session}/`) && key < chunkKey(session, start)) this.#folded.session = '';
  }

  /**
   * Plan mode in the main session; null when what lies there cannot be read. Costs what was added since the last
   * call.
   */
  plan() {
    const session = mainSession(this.store);
    if (!session) return this.store.get(ROOT) === undefined ? unplanned() : null;
    if (this.#folded.session !== session || this.store.get(chunkKey(session, this.#folded.start)) === undefined)
      this.#folded = { session, start: 0, before: unplanned() };
    const log = this.of(session);
    if (log.end().damaged) return null;
    try {
      let state = this.#folded.before;
      for (const chunk of log.chunks(this.#folded.start)) {
        this.#folded = { session, start: chunk.start, before: state };
        state = foldPlan(chunk.lines, state);
      }
      return state;
    } catch {
      return null; // a line that is no event, or carries no boolean: as unreadable as a chunk that is no list
    }
  }

  /** Append as the kernel asks, all or nothing: `want` and `diverged` leave everything as it was. `lacks`: those of the
   * images asked about that are not here.
   * @param {Append} data @returns {Answer} */
  append(data) {
    const found = this.store.get(ROOT);
    const index = found === undefined ? { format: 1, agents: {}, sessions: {} } : found;
    // 0: nothing of this session may stand here, whatever its length.
    if (!isIndex(index)) return { diverged: 0 };
    if (isStripped(index, data.session)) return { diverged: 0, stripped: true };
    const { answer, writes } = this.of(data.session).plan(data.start, data.events, data.prev);
    if (!('length' in answer)) return answer;
    const known = JSON.stringify(index);
    if (!Object.hasOwn(index.sessions, data.session)) index.sessions[data.session] = data.header;
    nameAgents(index, data);
    this.transact(() => {
      for (const [sha, base64] of Object.entries(data.attachments ?? {}))
        if (isDigest(sha) && this.store.get(attachmentKey(sha)) === undefined)
          this.store.set(attachmentKey(sha), base64);
      for (const [key, lines] of writes) this.store.set(key, lines);
      if (found === undefined || JSON.stringify(index) !== known) this.store.set(ROOT, index);
    });
    const lacks = (data.images ?? []).filter(sha => this.store.get(attachmentKey(sha)) === undefined);
    return lacks.length ? { ...answer, lacks } : answer;
  }

  /**
   * What `get` asks for: `images`, as many as fit; else the index as it is (null without one, false when it is too big
   * to send), and a page of `session`, by default the main one; with its first page how long each session is.
   * @param {{ session?: unknown, start?: unknown, images?: unknown }} data
   * @returns {Record<string, any>}
   */
  page(data) {
    if (data.images !== undefined) return { attachments: this.images(isDigests(data.images) ? data.images : []) };
    const session = isId(data.session) ? data.session : mainSession(this.store);
    const start = isPosition(data.start) ? data.start : 0;
    const page = session ? this.of(session).page(start) : { start, events: [], length: 0 };
    const index = this.store.get(ROOT) ?? null;
    const sent = JSON.stringify(index).length > LONGEST ? false : index;
    const ids = start === 0 && isIndex(sent) ? Object.keys(sent.sessions).filter(isId) : [];
    const lengths = Object.fromEntries(ids.map(id => [id, this.of(id).length]));
    return { index: sent, ...(ids.length ? { lengths } : {}), session, ...page };
  }

  /**
   * Images from the first asked for on, at least one and as many as fit into a message; null for one that is not here,
   * or that cannot be sent.
   * @param {string[]} asked
   */
  images(asked, limit = PAGE) {
    /** @type {Record<string, string | null>} */ const found = {};
    let size = 0;
    for (const sha of asked) {
      const value = this.store.get(attachmentKey(sha));
      const image = isImage(value) ? value : null;
      if (size && size + (image?.length ?? 0) > limit) break;
      found[sha] = image;
      size += image?.length ?? 0;
    }
    return found;
  }

  /** What `hello` says of this notebook. */
  hello() {
    const session = mainSession(this.store);
    const index = this.store.get(ROOT);
    const more = isIndex(index) && Object.keys(index.sessions).some(id => id !== session);
    return { session, length: session ? this.of(session).length : 0, ...(more ? { more } : {}) };
  }
}
