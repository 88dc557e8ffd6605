// @ts-check
// The review card: the whole plan, and what to do with it.
import { button, gap, inert, make, textBox, words } from './elements.js';
import { head } from './shell.js';

const APPROVE = 'Approve';
const KEEP = 'Keep planning';

/** @param {import('./shell.js').Card} card @returns {import('./shell.js').View} */
export function review(card) {
  const { model, body, foot } = card;
  const drawHead = head(card, 'Plan review');
  const look = 'pmnb-scroll pmnb-plan jp-RenderedHTMLCommon';
  const plan = make('div', { className: look, tabIndex: 0, role: 'region', dir: 'auto' });
  const views = viewSwitch(() => view.draw());
  const save = button('Save plan', () => download(model.get('title'), model.get('markdown')), 'pmnb-quiet');
  const box = textBox('Feedback', 'What should change? Words keep planning, they never approve.', 2);
  /** @param {string} label */
  const decide = label => {
    const custom = words(box);
    if (label === APPROVE && custom && card.open())
      return card.say('Words never approve: send them with Keep planning.');
    const id = model.get('questions')[0]?.id ?? 'plan-review';
    card.act({ kind: 'answer', answers: [{ id, selected: [label], ...(custom && { custom }) }] });
  };
  const discuss = button('Discuss', () => card.act({ kind: 'dismiss' }), 'pmnb-quiet');
  discuss.title = 'Stop here, talk or run cells; say “%agent present it again” when ready.';
  const keep = button(KEEP, () => decide(KEEP));
  const approve = button(APPROVE, () => decide(APPROVE));
  body.append(views.element, plan);
  foot.append(box, make('div', { className: 'pmnb-actions' }, discuss, save, gap(), keep, approve));
  let shown = '';
  const view = {
    draw() {
      drawHead();
      const changes = views.draw(model.get('diff_html') !== '');
      const html = model.get(changes ? 'diff_html' : 'html');
      if (html !== shown) plan.innerHTML = shown = html;
      plan.setAttribute('aria-label', changes ? 'Changes' : 'Plan');
      const off = !card.open() || card.sent();
      const spoken = words(box) !== '';
      for (const element of [discuss, keep]) inert(element, off);
      inert(approve, off || spoken);
      approve.classList.toggle('pmnb-primary', !spoken);
      keep.classList.toggle('pmnb-primary', spoken);
      box.readOnly = off;
      box.hidden = !card.open() && !spoken;
    },
    status() {
      return card.open() && !card.sent() && words(box)
        ? 'With words, Keep planning sends them; nothing is approved.'
        : undefined;
    }
  };
  box.oninput = () => card.redraw(view);
  return view;
}

/** Plan or Changes. `draw` says which one shows. @param {() => void} changed */
function viewSwitch(changed) {
  let changes = false;
  /** @param {boolean} value */
  const show = value => () => {
    changes = value;
    changed();
  };
  const buttons = [button('Plan', show(false), 'pmnb-view'), button('Changes', show(true), 'pmnb-view')];
  const element = make('div', { className: 'pmnb-views', role: 'group', 'aria-label': 'View' }, ...buttons);
  return {
    element,
    /** @param {boolean} any whether there are changes to show */
    draw(any) {
      element.hidden = !any;
      changes &&= any;
      buttons.forEach((one, i) => one.setAttribute('aria-pressed', String(changes === (i === 1))));
      return changes;
    }
  };
}

/** Save the exact bytes by the browser: it works on a remote kernel too. @param {string} title @param {string} text */
function download(title, text) {
  const words = title.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? ['plan'];
  const href = URL.createObjectURL(new Blob([new TextEncoder().encode(text)], { type: 'text/markdown' }));
  const link = make('a', { href, download: `${words.join('-').slice(0, 60)}.md`, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // a download may begin late
}
