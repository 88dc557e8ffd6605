// @ts-check
// Small pieces of DOM that every card is made of.

/**
 * An element with its properties, or attributes where it has no such property, and its children.
 * @param {string} tag
 * @param {Record<string, any>} [set]
 * @param {...(Node | string | null)} children null: none
 * @returns {any} typed by its use
 */
export function make(tag, set = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(set)) {
    if (name in element) /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value);
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** @param {string} label @param {() => void} onclick @param {string} [look] class names @returns {HTMLButtonElement} */
export const button = (label, onclick, look = '') =>
  make('button', { type: 'button', className: `pmnb-button ${look}`, onclick }, label);

/**
 * Aria-disabled, not `disabled`: the button keeps the focus and stays reachable, and a click can say why nothing
 * happens.
 * @param {HTMLElement} element
 * @param {boolean} off
 */
export const inert = (element, off) => element.setAttribute('aria-disabled', String(off));

/** @param {string} label @param {string} placeholder @param {number} [rows] @returns {HTMLTextAreaElement} */
export const textBox = (label, placeholder, rows = 1) =>
  make('textarea', { className: 'pmnb-box', 'aria-label': label, placeholder, rows, dir: 'auto' });

/** The words in a box exactly as typed; '' when it is blank. @param {HTMLTextAreaElement} box */
export const words = box => (box.value.trim() ? box.value : '');

/** What pushes the buttons after it to the end of their row. */
export const gap = () => make('span', { className: 'pmnb-gap' });

// Joiners and variation selectors stay: emoji and several scripts need them.
// eslint-disable-next-line no-control-regex
const HIDING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Text with controls, bidirectional overrides and zero-width characters as marks: they could hide or reorder what is
 * read before a decision.
 * @param {string} text
 */
export const visible = text =>
  text.replace(/\r\n/g, '\n').replace(HIDING, found => {
    const code = found.charCodeAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return `⟦U+${code.toString(16).toUpperCase().padStart(4, '0')}⟧`;
  });
