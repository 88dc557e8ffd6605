// @ts-check
// The controls card, while a turn runs: stop, plan mode, steer.
import { button, inert, make, textBox, words } from './elements.js';

/** @param {import('./shell.js').Card} card @returns {import('./shell.js').View} */
export function controls(card) {
  const { model, root, body, foot } = card;
  const stop = button('Stop', () => card.act({ kind: 'stop' }), 'pmnb-stop');
  const plan = planSwitch(card);
  const box = textBox('Steer', 'Add a message to the next step');
  const steer = () => {
    const text = words(box);
    if (!text) return box.focus();
    if (!card.act({ kind: 'steer', text }, false)) return;
    box.value = '';
    card.say('Sent: it joins the next step.');
  };
  box.onkeydown = event => {
    // 229 is the key that ends an input method's composition, by when isComposing is already false in some browsers.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    steer();
  };
  const send = button('Steer', steer);
  body.append(stop, plan.element, make('span', { className: 'pmnb-steer' }, box, send));
  foot.remove();
  root.setAttribute('aria-label', 'Turn controls');
  return {
    draw() {
      plan.draw();
      for (const element of [plan.toggle, send]) inert(element, !card.open());
      inert(stop, !card.open() || card.sent());
      box.readOnly = !card.open();
    },
    status: () =>
      card.open() && model.get('busy') ? 'Only the kernel’s stop button acts while Python runs.' : undefined
  };
}

/**
 * Plan mode as it will be, and "from the next step" while that is not yet so.
 * @param {import('./shell.js').Card} card
 */
function planSwitch(card) {
  const { model } = card;
  // What was asked for and the kernel has not yet taken up, so that two quick clicks are there and back.
  /** @type {{ active: boolean, before: unknown } | null} */ let asked = null;
  const target = () => {
    const { active, pending } = model.get('plan');
    if (asked?.before !== model.get('plan')) asked = null;
    return asked?.active ?? pending ?? active;
  };
  const toggle = button(
    'Plan mode',
    () => {
      const active = !target();
      if (!card.act({ kind: 'plan', active }, false)) return;
      asked = { active, before: model.get('plan') };
      draw();
    },
    'pmnb-switch'
  );
  toggle.setAttribute('role', 'switch');
  const later = make('span', { className: 'pmnb-later' });
  const draw = () => {
    toggle.setAttribute('aria-checked', String(target()));
    later.textContent = target() === model.get('plan').active ? '' : 'from the next step';
  };
  return { element: make('span', { className: 'pmnb-plan-mode' }, toggle, later), toggle, draw };
}
