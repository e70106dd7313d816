// Untrusted text on the page: isolated, so that its direction does not affect other text, and with hidden
// characters made visible; see lib/text.ts.
import { edged, pieces } from "../lib/text";

interface Props {
  text: string;
  lines?: boolean;
  most?: number;
  /** Whether leading and trailing blanks are visible. */
  edges?: boolean;
}

export function T({ text, lines = false, most = 2000, edges = false }: Props) {
  const part = text.length > most ? text.slice(0, most) : text;
  const cut = edges ? edged(part) : part;
  return (
    <bdi class={lines ? "t lines" : "t"}>
      {pieces(cut, lines).map((piece) =>
        piece.code ? (
          <span class="hidden-character" title={piece.code}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
      {part !== text && <span class="faint"> … ({(text.length - most).toLocaleString("en")} more)</span>}
    </bdi>
  );
}

/** The name of a series, more prominent than its labels. */
export function Name({ name }: { name: string }) {
  const brace = name.indexOf("{");
  if (brace <= 0)
    return (
      <span class="name">
        <T text={name} edges />
      </span>
    );
  return (
    <span class="name">
      <T text={name.slice(0, brace)} edges />
      <span class="labels">
        <T text={name.slice(brace)} />
      </span>
    </span>
  );
}
