// @ts-check
// What JupyterLab and Notebook activate: a carrier for every open notebook, the chip, the command.
import { Carrier } from './carrier.js';
import { createChip } from './chip.js';

const ID = 'plan-mode-nb:plugin';
const TOGGLE = 'plan-mode-nb:toggle';

/**
 * @typedef {import('@jupyterlab/notebook').NotebookPanel} NotebookPanel
 * @typedef {import('@jupyterlab/notebook').INotebookTracker} INotebookTracker
 * @typedef {import('@jupyterlab/apputils').IToolbarWidgetRegistry} IToolbarWidgetRegistry
 * @typedef {import('@jupyterlab/apputils').ICommandPalette} ICommandPalette
 * @typedef {import('@jupyterlab/settingregistry').ISettingRegistry} ISettingRegistry
 */

/** @param {(name: string) => Promise<any>} shared a module that the application itself uses
 * @returns {Promise<import('@jupyterlab/application').JupyterFrontEndPlugin<void>>} */
export async function createPlugin(shared) {
  const names = [
    '@jupyterlab/apputils',
    '@jupyterlab/notebook',
    '@jupyterlab/settingregistry',
    '@jupyterlab/services',
    '@lumino/widgets'
  ];
  const [apputils, notebook, registry, services, widgets] = await Promise.all(names.map(shared));
  return {
    id: ID,
    description: 'Plan mode: toolbar chip, commands, and the session log in notebook metadata.',
    autoStart: true,
    requires: [notebook.INotebookTracker],
    optional: [apputils.IToolbarWidgetRegistry, apputils.ICommandPalette, registry.ISettingRegistry],
    activate(
      app,
      /** @type {INotebookTracker} */ tracker,
      /** @type {IToolbarWidgetRegistry | null} */ toolbars,
      /** @type {ICommandPalette | null} */ palette,
      /** @type {ISettingRegistry | null} */ settings
    ) {
      const carrierOf = carriers(services.KernelMessage, () => app.commands.notifyCommandChanged(TOGGLE));
      tracker.forEach(carrierOf);
      tracker.widgetAdded.connect((_, panel) => {
        carrierOf(panel);
      });
      const chips = chipSetting(settings);
      toolbars?.addFactory('Notebook', 'planMode', panel => {
        const chip = createChip(widgets.Widget, carrierOf(/** @type {NotebookPanel} */ (panel)), () => chips.when);
        chips.shown.add(chip);
        chip.disposed.connect(() => chips.shown.delete(chip));
        return chip;
      });
      const current = () => tracker.currentWidget && carrierOf(tracker.currentWidget);
      app.commands.addCommand(TOGGLE, {
        label: 'Plan Mode',
        caption: 'Select or leave plan mode for the agent of this notebook',
        isToggleable: true,
        isEnabled: () => !!current()?.kernel,
        isToggled: () => !!current()?.target,
        execute: () => {
          const carrier = current();
          carrier?.select(!carrier.target);
        }
      });
      palette?.addItem({ command: TOGGLE, category: 'Plan mode' });
    }
  };
}

/** One carrier a document, however many panels show it: they share its kernel connection.
 * @param {typeof import('@jupyterlab/services').KernelMessage} KernelMessage @param {() => void} changed
 * @returns {(panel: NotebookPanel) => Carrier} */
function carriers(KernelMessage, changed) {
  /** @type {WeakMap<object, Carrier>} */ const known = new WeakMap();
  return panel => {
    const { context } = panel;
    let carrier = known.get(context);
    if (!carrier) {
      const fresh = (carrier = new Carrier(context, KernelMessage));
      known.set(context, fresh);
      fresh.listeners.add(changed);
      context.disposed.connect(() => fresh.dispose());
    }
    return carrier;
  };
}

/** The setting `chip`, followed live. @param {ISettingRegistry | null} settings */
function chipSetting(settings) {
  const chips = { when: 'when-active', shown: /** @type {Set<{ refresh(): void }>} */ (new Set()) };
  settings
    ?.load(ID)
    .then(loaded => {
      const read = () => {
        chips.when = String(loaded.get('chip').composite);
        chips.shown.forEach(chip => chip.refresh());
      };
      loaded.changed.connect(read);
      read();
    })
    .catch(error => console.error('plan-mode-nb: the settings could not be read, the chip shows when active.', error));
  return chips;
}
