// Text of strangers on the page: isolated, so that its direction stays its own, and with hidden
// characters made visible. See lib/text.ts.
import { pieces } from "../lib/text";

export function T({ text, lines = false, most = 2000 }: { text: string; lines?: boolean; most?: number }) {
  const cut = text.length > most ? text.slice(0, most) : text;
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
      {cut !== text && <span class="faint"> … ({(text.length - most).toLocaleString("en")} more)</span>}
    </bdi>
  );
}

/** The name of a series: what it is stands out from its labels. */
export function Name({ name }: { name: string }) {
  const brace = name.indexOf("{");
  if (brace <= 0)
    return (
      <span class="name">
        <T text={name} />
      </span>
    );
  return (
    <span class="name">
      <T text={name.slice(0, brace)} />
      <span class="labels">
        <T text={name.slice(brace)} />
      </span>
    </span>
  );
}
