// @ts-check
// The plan chip in the notebook's toolbar.

const CSS = `
.pmnb-Chip { display: flex; align-items: center; }
.pmnb-Chip button { display: inline-flex; align-items: center; gap: 5px; height: 20px; padding: 0 9px;
  border-radius: 10px; cursor: pointer; border: 1px solid var(--jp-brand-color1, #1976d2); background: transparent;
  color: var(--jp-ui-font-color1, #212121); font: inherit; font-size: var(--jp-ui-font-size1, 13px);
  line-height: 1; white-space: nowrap; }
.pmnb-Chip button::before { content: ''; width: 7px; height: 7px; border-radius: 50%; box-sizing: border-box;
  border: 1.5px solid var(--jp-brand-color1, #1976d2); }
.pmnb-Chip button[data-active='true']::before { background: var(--jp-brand-color1, #1976d2); }
.pmnb-Chip button[data-pending='true'] { border-style: dashed; }
.pmnb-Chip button:hover { background: var(--jp-layout-color2, #eee); }
.pmnb-Chip button:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.pmnb-Chip button:disabled { opacity: .6; cursor: default; }`;

/** What the chip says: its text, its accessible name, and what a click selects.
 * @param {Pick<import('./carrier.js').Carrier, 'state' | 'asked' | 'late' | 'target'>} carrier */
export function chipText({ state, asked, late, target }) {
  const change = target === state.active ? '' : target ? 'on' : 'off';
  const when = asked !== null ? (late ? 'when this cell ends' : '…') : 'from next step';
  const later = asked !== null || change ? ` (${`${change} ${when}`.trim()})` : '';
  const does = target ? 'Leave plan mode' : state.active ? 'Stay in plan mode' : 'Turn plan mode on';
  return {
    shown: state.active || target || later !== '',
    text: `Plan${later}${target ? ' ×' : ''}`,
    name: `Plan mode ${state.active ? 'on' : 'off'}${later}. ${does}`,
    select: !target
  };
}

/** @param {typeof import('@lumino/widgets').Widget} Widget @param {import('./carrier.js').Carrier} carrier
 * @param {() => string} when the setting: when-active, always, never */
export function createChip(Widget, carrier, when) {
  class Chip extends Widget {
    constructor() {
      super();
      this.addClass('pmnb-Chip');
      if (!document.getElementById('pmnb-chip-style')) {
        const style = document.head.appendChild(document.createElement('style'));
        style.id = 'pmnb-chip-style';
        style.textContent = CSS;
      }
      this.button = this.node.appendChild(document.createElement('button'));
      this.button.type = 'button';
      this.button.addEventListener('click', () => carrier.select(chipText(carrier).select));
      this.refresh = this.refresh.bind(this);
      carrier.listeners.add(this.refresh);
      this.refresh();
    }

    refresh() {
      const { shown, text, name } = chipText(carrier);
      this.setHidden(when() === 'never' || (when() === 'when-active' && !shown));
      const { button } = this;
      if (button.textContent !== text) button.textContent = text;
      button.setAttribute('aria-label', name);
      button.dataset.active = String(carrier.state.active);
      button.dataset.pending = String(carrier.target !== carrier.state.active);
      button.disabled = !carrier.kernel;
      button.title = !carrier.kernel
        ? 'Start the kernel to change plan mode.'
        : carrier.loaded
          ? name
          : 'Run %load_ext plan_mode_nb in this notebook to change plan mode.';
    }

    dispose() {
      carrier.listeners.delete(this.refresh);
      super.dispose();
    }
  }
  return new Chip();
}
