// Text of strangers on the page: isolated, so that its direction stays its own, and with hidden
// characters made visible. See lib/text.ts.
import { edged, pieces } from "../lib/text";

interface Props {
  text: string;
  lines?: boolean;
  most?: number;
  /** Blanks at either end show. */
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

/** The name of a series: what it is stands out from its labels. */
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
