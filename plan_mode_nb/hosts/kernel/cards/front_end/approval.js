// @ts-check
// The approval card: one tool call, and exactly what would run.
import { button, gap, inert, make, visible } from './elements.js';
import { head } from './shell.js';

/** @param {import('./shell.js').Card} card @returns {import('./shell.js').View} */
export function approval(card) {
  const { model, body, foot } = card;
  const drawHead = head(card, 'Approval');
  const tool = make('code', { className: 'pmnb-tag' });
  const reason = make('span', { dir: 'auto' });
  const size = make('span', { className: 'pmnb-size' });
  const region = { tabIndex: 0, role: 'region', 'aria-label': 'What would run', dir: 'ltr' };
  const preview = make('pre', { className: 'pmnb-scroll pmnb-preview', ...region });
  /** @param {string} label */
  const decide = label => () => {
    const id = model.get('questions')[0]?.id ?? 'approval';
    card.act({ kind: 'answer', answers: [{ id, selected: [label] }] });
  };
  const reject = button('Reject', decide('Reject'));
  const allow = button('Allow once', decide('Allow once'), 'pmnb-primary');
  body.append(make('p', { className: 'pmnb-reason' }, tool, reason, size), preview);
  foot.append(make('div', { className: 'pmnb-actions' }, gap(), reject, allow));
  return {
    draw() {
      drawHead();
      const text = model.get('preview');
      tool.textContent = model.get('tool');
      reason.textContent = model.get('reason');
      preview.textContent = visible(text);
      // Lines that are scrolled out of sight are announced before they are allowed.
      const lines = text.replace(/\n$/, '').split('\n').length;
      size.textContent = lines > 1 ? `${lines} lines` : '';
      for (const element of [reject, allow]) inert(element, !card.open() || card.sent());
    }
  };
}
