// @ts-check
// What anywidget loads. A card shows what its traits say and sends one custom message an act, which carries
// everything; it decides nothing. Nothing typed ever travels as synced state: a click overtakes throttled state
// updates and cuts the words.
import { approval } from './approval.js';
import { controls } from './controls.js';
import { question } from './question.js';
import { review } from './review.js';
import { shell } from './shell.js';

const KINDS = { review, question, approval, controls };
const TRAITS = ['state', '_sent', 'title', 'note', 'html', 'diff_html', 'plan', 'busy', 'tool', 'reason', 'preview'];

/** Whoever must answer should see the buttons: once, when the card has its place. @param {HTMLElement} root */
function comeIntoView(root) {
  const observer = new ResizeObserver(() => {
    if (!root.offsetHeight) return;
    observer.disconnect();
    root.scrollIntoView({ block: 'nearest' });
  });
  observer.observe(root);
  return observer;
}

export default {
  /** @param {{ model: import('./shell.js').Model, el: HTMLElement }} context */
  render({ model, el }) {
    const card = shell(model);
    const view = KINDS[/** @type {keyof typeof KINDS} */ (model.get('kind'))](card);
    const redraw = () => card.redraw(view);
    const decided = () => model.set('_sent', false);
    model.on('change:state', decided);
    for (const trait of TRAITS) model.on(`change:${trait}`, redraw);
    redraw();
    el.append(card.root);
    const observer = card.open() && card.root.dataset.kind !== 'controls' ? comeIntoView(card.root) : null;
    return () => {
      observer?.disconnect();
      model.off('change:state', decided);
      for (const trait of TRAITS) model.off(`change:${trait}`, redraw);
    };
  }
};
