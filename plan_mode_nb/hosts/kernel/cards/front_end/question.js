// @ts-check
// The question card: every question that was asked at once.
import { button, gap, inert, make, textBox, visible, words } from './elements.js';
import { head } from './shell.js';

/**
 * @typedef {{ id: string, question: string, header?: string, detail?: string,
 *   options?: { label: string, description?: string }[], multiSelect?: boolean }} Question
 * @typedef {{ id: string, selected: string[], custom?: string }} Answer
 */

/** @param {import('./shell.js').Card} card @returns {import('./shell.js').View} */
export function question(card) {
  const { model, body, foot } = card;
  const drawHead = head(card, 'Question');
  const fields = /** @type {Question[]} */ (model.get('questions')).map(asked => field(asked, model.get('title')));
  const many = fields.length > 1;
  const send = button(
    many ? 'Send answers' : 'Send answer',
    () => {
      const answers = fields.map(one => one.read());
      const missing = answers.indexOf(null);
      if (missing < 0 || !card.open()) return card.act({ kind: 'answer', answers });
      fields[missing].focus();
      return card.say(
        many ? `Question ${missing + 1} has no answer yet.` : 'Choose or type an answer, or dismiss the question.'
      );
    },
    'pmnb-primary'
  );
  const dismiss = button('Dismiss', () => card.act({ kind: 'dismiss' }), 'pmnb-quiet');
  body.append(make('div', { className: 'pmnb-scroll' }, ...fields.map(one => one.element)));
  foot.append(make('div', { className: 'pmnb-actions' }, dismiss, gap(), send));
  return {
    draw() {
      drawHead();
      const off = !card.open() || card.sent();
      for (const element of [send, dismiss]) inert(element, off);
      for (const { element } of fields) element.disabled = off;
    }
  };
}

/**
 * One question. Own words count while their own choice is made; typing them makes it.
 * @param {Question} question @param {string} title of the card
 */
function field({ id, question, header, detail, options = [], multiSelect }, title) {
  // A radio button's group is its name, within the whole page.
  const group = { type: multiSelect ? 'checkbox' : 'radio', name: `pmnb-${Math.random()}` };
  const label = options.length ? 'Your own answer' : 'Your answer';
  const box = textBox(label, label);
  const own = make('input', { ...group, hidden: !options.length, 'aria-label': 'Answer in your own words' });
  box.oninput = () => {
    own.checked = words(box) !== '';
  };
  const inputs = options.map(() => make('input', group));
  const rows = options.map((option, i) => {
    const description = option.description ? make('small', {}, visible(option.description)) : null;
    return make(
      'label',
      { className: 'pmnb-option' },
      inputs[i],
      make('span', { dir: 'auto' }, visible(option.label), description)
    );
  });
  const tag = header && header !== title ? make('span', { className: 'pmnb-tag' }, visible(header)) : null;
  const element = make(
    'fieldset',
    { className: 'pmnb-field' },
    make('legend', { dir: 'auto' }, tag, visible(question)),
    detail ? make('div', { className: 'pmnb-detail', dir: 'auto' }, visible(detail)) : null,
    ...rows,
    make('div', { className: 'pmnb-option' }, own, box)
  );
  return {
    element,
    focus: () => (inputs[0] ?? box).focus(),
    /** @returns {Answer | null} null: none yet */
    read() {
      const selected = options.filter((_, i) => inputs[i].checked).map(option => option.label);
      const custom = own.checked ? words(box) : '';
      return selected.length || custom ? { id, selected, ...(custom && { custom }) } : null;
    }
  };
}
