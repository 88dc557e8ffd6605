// @ts-check
// What the cards share: the frame, the state in words, one message an act, and whose keys are typed here.
import { make } from './elements.js';

/**
 * @typedef {{
 *   get(name: string): any, set(name: string, value: any): void, send(message: object): void,
 *   on(event: string, listener: () => void): void, off(event: string, listener: () => void): void
 * }} Model as anywidget hands it over
 * @typedef {{ draw(): void, status?(): string | undefined }} View a kind: paint the traits; its own words for the state
 * @typedef {ReturnType<typeof shell>} Card
 */

/**
 * For each kind: what is over when it is over, and its states in words.
 * @type {Record<string, Record<string, string>>}
 */
const WORDS = {
  review: {
    noun: 'review',
    waiting: 'Waiting for you.',
    approved: 'Approved. The agent carries the plan out from the next step.',
    'keep planning': 'Keep planning: the agent goes on planning.',
    dismissed: 'Put aside. Talk or run cells; say “%agent present it again” when ready.'
  },
  question: {
    noun: 'question',
    waiting: 'Waiting for you.',
    answered: 'Answered.',
    dismissed: 'Dismissed, no answer given.'
  },
  approval: {
    noun: 'approval',
    waiting: 'Waiting for you.',
    allowed: 'Allowed once.',
    rejected: 'Rejected: it does not run.'
  },
  controls: { noun: 'turn', waiting: 'Working…', sent: 'Stopping…', over: 'The turn is over.' }
};
/** @type {Record<string, string>} */
const ENDS = {
  sent: 'Sent…',
  left: 'Plan mode was left; nothing was approved.',
  dismissed: 'Dismissed.',
  interrupted: 'Interrupted; nothing was decided.',
  unavailable: 'Nobody could answer; nothing was decided.',
  over: 'Over.'
};

/** A frame for the card of `model`. @param {Model} model */
export function shell(model) {
  const kind = String(model.get('kind'));
  const body = make('div', { className: 'pmnb-body' });
  const foot = make('div', { className: 'pmnb-foot' });
  const status = make('div', { className: 'pmnb-status', role: 'status' });
  /** @type {HTMLElement} */ const root = make('section', { className: 'pmnb-card' }, body, foot, status);
  root.dataset.kind = kind;
  keepKeys(root);
  const open = () => model.get('state') === 'waiting';
  // Local to the page and shared by every view of the card; the kernel's answer is a change of state.
  const sent = () => open() && model.get('_sent') === true;
  /** @param {string} text */
  const say = text => {
    if (status.textContent !== text) status.textContent = text;
  };
  /** @param {View} view */
  const redraw = view => {
    const state = model.get('state');
    root.dataset.state = state;
    view.draw();
    const word = sent() ? 'sent' : state;
    say(view.status?.() ?? WORDS[kind][word] ?? ENDS[word] ?? state);
  };
  /**
   * Send one act; one that `decides` locks the card until its state changes. Says why when it cannot be sent.
   * @param {object} message @param {boolean} [decides] @returns {boolean} whether it was sent
   */
  const act = (message, decides = true) => {
    const over = `This ${WORDS[kind].noun} is over`;
    if (!open() || (decides && sent())) {
      if (!open()) say(`${over}.`);
      return false;
    }
    try {
      model.send(message);
    } catch {
      say(`${over}: its kernel is gone.`); // a comm whose kernel was restarted refuses
      return false;
    }
    if (decides) model.set('_sent', true);
    return true;
  };
  return { model, root, body, foot, open, sent, say, redraw, act };
}

/** Kind, state, title and note above a card that asks. @param {Card} card @param {string} kind in words */
export function head({ model, root, body, open }, kind) {
  const state = make('span', { className: 'pmnb-state' });
  const title = make('h3', { className: 'pmnb-title', dir: 'auto' });
  const note = make('p', { className: 'pmnb-note', dir: 'auto' });
  body.before(
    make('header', { className: 'pmnb-head' }, make('div', { className: 'pmnb-kind' }, kind, state), title, note)
  );
  return () => {
    title.textContent = model.get('title');
    note.textContent = model.get('note');
    title.hidden = !title.textContent || title.textContent === kind;
    note.hidden = !note.textContent;
    state.textContent = open() ? 'waiting for you' : model.get('state');
    root.setAttribute('aria-label', !title.hidden ? `${kind}: ${title.textContent}` : kind);
  };
}

/**
 * Keys typed in a card are its own, not the notebook's command mode; saving stays the notebook's.
 * @param {HTMLElement} root
 */
function keepKeys(root) {
  root.setAttribute('data-lm-suppress-shortcuts', 'true');
  /** @param {KeyboardEvent} event */
  const keep = event => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
    else if (event.type === 'keydown' && event.key.toLowerCase() === 's' && root.closest('.jp-Notebook')) {
      event.preventDefault();
      root.parentElement?.dispatchEvent(new KeyboardEvent('keydown', event));
    }
  };
  root.addEventListener('keydown', keep);
  root.addEventListener('keypress', keep);
  root.addEventListener('keyup', keep);
}
