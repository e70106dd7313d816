// Makes untrusted text safe to display. Control characters, including bidirectional ones, become visible;
// nothing is removed, and nothing here creates markup.

// C0, DEL, C1; soft hyphen; Arabic letter mark; zero width; directional; invisible; BOM; tags;
// lone halves of surrogate pairs. Joiners stay where they have work to do: in emoji, Arabic, Indic.
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0e\ufeff\ufff9-\ufffb]|(?<!\p{Emoji})\ufe0f|(?<![\p{Extended_Pictographic}\p{EMod}\p{Script=Arabic}\p{M}\ufe0f])[\u200c\u200d]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

export interface Piece {
  text: string;
  /** The hidden character that it replaces, e.g. U+202E; undefined for unchanged text. */
  code?: string;
}

function code(character: string): string {
  return "U+" + (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

function shown(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x20) return String.fromCodePoint(0x2400 + point);
  if (point === 0x7f) return "\u2421";
  return `\u27e8${code(character)}\u27e9`;
}

/** Split a text into visible text and replacements of hidden characters.
 *
 * `lines`: keep newlines and tabs, for multi-line texts. */
export function pieces(text: string, lines = false): Piece[] {
  const result: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const hidden = match[0];
    if (lines && (hidden === "\n" || hidden === "\t")) continue;
    if (match.index > end) result.push({ text: text.slice(end, match.index) });
    result.push({ text: shown(hidden), code: code(hidden) });
    end = match.index + hidden.length;
  }
  if (end < text.length) result.push({ text: text.slice(end) });
  return result;
}

/** A name with its leading and trailing blanks made visible. */
export function edged(name: string): string {
  return name.replace(/^ +| +$/g, (blanks) => "\u2420".repeat(blanks.length));
}

/** A text as a Python literal, with hidden characters escaped. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(HIDDEN, (character) => {
    const point = character.codePointAt(0) ?? 0;
    return point > 0xffff
      ? `\\U${point.toString(16).padStart(8, "0")}`
      : `\\u${point.toString(16).padStart(4, "0")}`;
  });
}

/** Text as `pieces` show it, as one string: for canvases, titles and labels of controls. */
export function plain(text: string, most = 200): string {
  const cut = text.length > most ? text.slice(0, most) + "\u2026" : text;
  return cut.replace(HIDDEN, shown);
}
