// @ts-check
// Joins one notebook with its kernel: the log into metadata, plan mode's state out of both.
import { ROOT } from './log.js';
import { NotebookLog, isAppend, mainSession } from './metadata.js';

/**
 * The one comm of this protocol. The kernel registers it under this id and never opens it, so no client can claim,
 * refuse or lose it: pages read it from the kernel's iopub stream and send to it by id. A reload, a second tab or a
 * console changes nothing.
 */
export const COMM = 'plan_mode_nb';
/** A kernel that waits in a turn answers within this; an ordinary cell does not. */
const PROMPT_MS = 300;
/** An idle kernel that has not answered after this has no plan_mode_nb loaded. */
const PATIENCE_MS = 1500;

/**
 * @typedef {import('./log.js').PlanState} PlanState
 * @typedef {import('@jupyterlab/notebook').NotebookPanel['context']} Context
 * @typedef {import('@jupyterlab/services').KernelMessage.IMessage} Message
 */

/** @type {Set<string>} */ const reported = new Set();
/** Say it once: a message handler may meet the same trouble with every step. @param {unknown} error */
function report(error) {
  if (reported.has(String(error))) return;
  reported.add(String(error));
  console.error('plan-mode-nb:', error);
}

export class Carrier {
  /** @type {PlanState} */ #folded = { active: false, pending: null };
  // As the kernel pushed it, which is ahead of the log within a step.
  /** @type {(PlanState & { session: string }) | null} */ #pushed = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  // The kernel knows what this page holds; it sends the log to pages that it knows.
  #greeted = false;
  #writing = false;
  #folding = false;
  /** The choice that was sent and is not yet answered. @type {boolean | null} */ asked = null;
  /** The answer waits for an ordinary cell to end. */ late = false;
  /** The kernel side has spoken since the kernel started. */ loaded = false;
  /** Called after every change. @type {Set<() => void>} */ listeners = new Set();

  /** @param {Context} context @param {typeof import('@jupyterlab/services').KernelMessage} KernelMessage */
  constructor(context, KernelMessage) {
    this.context = context;
    this.KernelMessage = KernelMessage;
    /** @type {import('@jupyter/ydoc').YNotebook} */ this.model = /** @type {any} */ (context.model).sharedModel;
    this.log = new NotebookLog(
      { get: key => this.model.getMetadata(key), set: (key, value) => this.model.setMetadata(key, value) },
      write => this.#write(write)
    );
    const { sessionContext } = context;
    sessionContext.iopubMessage.connect(this.#onMessage, this);
    sessionContext.kernelChanged.connect(this.#onKernel, this);
    sessionContext.statusChanged.connect(this.#onStatus, this);
    sessionContext.connectionStatusChanged.connect(this.#onConnection, this);
    context.pathChanged.connect(this.#hello, this);
    const ready = () => {
      if (context.isDisposed) return;
      this.model.metadataChanged.connect(this.#onMetadata, this);
      this.#fold();
      this.#hello();
    };
    context.ready.then(ready).catch(report);
  }

  get kernel() {
    return this.context.sessionContext.session?.kernel ?? null;
  }

  /**
   * Plan mode in this notebook. A push for another session (a second notebook on this kernel) is not about this one.
   * @returns {PlanState}
   */
  get state() {
    const session = mainSession(this.log.store);
    return this.#pushed && (!session || session === this.#pushed.session) ? this.#pushed : this.#folded;
  }

  /** What plan mode will be once everything that is under way has happened. */
  get target() {
    return this.asked ?? this.state.pending ?? this.state.active;
  }

  /**
   * Ask the kernel to select plan mode or to leave it; nothing changes here before it answers.
   * @param {boolean} active
   */
  select(active) {
    if (!this.kernel) return;
    this.asked = active;
    this.late = false;
    this.#send({ op: 'select', active });
    this.#wait(PROMPT_MS);
    this.#changed();
  }

  dispose() {
    clearTimeout(this.#timer);
    this.listeners.clear();
  }

  /** @param {number} milliseconds */
  #wait(milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.asked === null) return;
      if (this.kernel?.status === 'busy') this.late = true;
      else if (milliseconds < PATIENCE_MS) this.#wait(PATIENCE_MS);
      else this.#answered();
      this.#changed();
    }, milliseconds);
  }

  #answered() {
    clearTimeout(this.#timer);
    this.asked = null;
    this.late = false;
  }

  #onKernel() {
    this.#restarted();
    this.#hello();
  }

  /** @param {unknown} _ @param {string} status */
  #onStatus(_, status) {
    if (/restarting|dead|terminating/.test(status)) this.#restarted();
    if (status === 'idle' && this.late) this.#wait(PATIENCE_MS);
    this.#changed();
  }

  /** @param {unknown} _ @param {string} status */
  #onConnection(_, status) {
    if (status === 'connected') this.#hello();
  }

  /** What the kernel said went with it; the log stays. */
  #restarted() {
    this.loaded = false;
    this.#greeted = false;
    this.#pushed = null;
    this.#answered();
    this.#changed();
  }

  /**
   * Tell the kernel what this page holds. A kernel without plan_mode_nb would only log a warning about it, so
   * notebooks that have nothing to do with plan mode stay silent.
   */
  #hello() {
    const concerned = this.loaded || this.log.store.get(ROOT) !== undefined;
    if (!this.context.isReady || !concerned) return;
    this.#greeted = this.#send({ op: 'hello', path: this.context.path, ...this.log.hello() });
  }

  /** @param {unknown} _ @param {Message} message */
  #onMessage(_, message) {
    const content = /** @type {any} */ (message.content);
    if (message.header.msg_type !== 'comm_msg' || content.comm_id !== COMM) return;
    this.context.ready
      .then(() => {
        if (!this.context.isDisposed) this.#receive(content.data);
      })
      .catch(report);
  }

  /** @param {any} data */
  #receive(data) {
    this.loaded = true;
    // One writer: the page that the kernel names. Two would both turn dirty, and of two notebooks on one kernel one
    // would take the other's log.
    const mine = data.to === this.kernel?.clientId;
    if (data.op === 'hello' || !this.#greeted) this.#hello();
    switch (data.op) {
      case 'hello':
        break;
      case 'plan':
        this.#receivePlan(data);
        break;
      case 'get':
        if (mine) this.#send({ op: 'page', n: data.n, path: this.context.path, ...this.log.page(data) });
        break;
      case 'append':
        if (mine) this.#receiveAppend(data);
        break;
      default:
        report(`a message that is not known here: ${JSON.stringify(data.op)}`);
    }
    this.#changed();
  }

  /** @param {any} data */
  #receivePlan({ active, pending, session }) {
    if (typeof active !== 'boolean' || (pending !== null && typeof pending !== 'boolean'))
      throw new TypeError('a plan push of a wrong shape');
    this.#pushed = { active, pending: pending === active ? null : pending, session };
    this.#answered();
  }

  /** @param {any} data */
  #receiveAppend(data) {
    if (!isAppend(data)) throw new TypeError('an append of a wrong shape');
    const answer = this.log.append(data);
    this.#send({ op: 'ack', n: /** @type {any} */ (data).n, session: data.session, ...answer });
    this.#fold();
  }

  /** @param {import('@lumino/coreutils').JSONObject} data @returns {boolean} false: there is no kernel to take it */
  #send(data) {
    const { kernel } = this;
    if (!kernel || kernel.isDisposed || kernel.connectionStatus === 'disconnected') return false;
    if (/dead|terminating/.test(kernel.status)) return false;
    const message = this.KernelMessage.createMessage({
      msgType: 'comm_msg',
      channel: 'shell',
      session: kernel.clientId,
      username: kernel.username,
      content: { comm_id: COMM, data }
    });
    // The protocol has its own answers; a restart cancels this one, and a hello follows it.
    kernel.sendShellMessage(message, false, true).done.catch(() => undefined);
    return true;
  }

  /** @param {() => void} write */
  #write(write) {
    this.#writing = true;
    try {
      this.model.transact(write, false); // not undoable: Ctrl+Z is for cells
    } finally {
      this.#writing = false;
    }
  }

  /** @param {unknown} _ @param {{ key: string }} change */
  #onMetadata(_, { key }) {
    if (this.#writing || !key.startsWith(ROOT)) return;
    this.log.changed(key);
    if (this.#folding) return;
    this.#folding = true; // a revert sets every key: fold once, after the last
    queueMicrotask(() => {
      this.#folding = false;
      if (!this.context.isDisposed) this.#fold();
    });
  }

  #fold() {
    const { active, pending } = this.log.plan() ?? { active: false, pending: null };
    this.#folded = { active, pending };
    this.#changed();
  }

  #changed() {
    this.listeners.forEach(listener => listener());
  }
}
