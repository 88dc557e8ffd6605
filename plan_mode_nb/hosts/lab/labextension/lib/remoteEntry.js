// @ts-check
// The module-federation container that JupyterLab expects, written by hand: Lab loads this classic script, calls
// init(shareScope), then get('./extension'). The rest is ES modules beside it. The folder must not be called
// `static`: Lab serves that one as immutable for a year, so an upgrade would not be seen.
(() => {
  /** @typedef {Record<string, Record<string, { get(): Promise<() => any>, loaded?: boolean | number }>>} ShareScope */
  const here = /** @type {HTMLScriptElement} */ (document.currentScript).src;
  /** @type {ShareScope} */ let scope = {};

  /** A module that the application itself uses: the version it has loaded, else the newest, as a singleton resolves.
   * @param {string} name */
  async function shared(name) {
    const versions = Object.entries(scope[name] ?? {});
    if (!versions.length)
      throw new Error(`plan-mode-nb: this JupyterLab does not share ${name}; it needs 4.4 or newer.`);
    versions.sort(
      ([a, x], [b, y]) => Number(!!y.loaded) - Number(!!x.loaded) || b.localeCompare(a, 'en', { numeric: true })
    );
    return (await versions[0][1].get())();
  }

  const page = /** @type {any} */ (window);
  (page._JUPYTERLAB ??= {})['plan-mode-nb'] = {
    init(/** @type {ShareScope} */ shareScope) {
      scope = shareScope;
    },
    async get() {
      const { createPlugin } = await import(new URL('./plugin.js', here).href);
      const plugin = await createPlugin(shared);
      return () => ({ __esModule: true, default: plugin });
    }
  };
})();
