// Chooses what the chart shows: names are offered while one types.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, ask } from "../api/client";
import type { NamesAnswer } from "../api/types";
import { plain } from "../lib/text";
import { set, state } from "../state/page";

/** Milliseconds of rest after a key before names are asked for. */
const REST = 200;

/** A pattern that finds what contains the text, unless it is a pattern already. */
export function patternOf(text: string): string {
  return text === "" ? "*" : /[*?[\]]/.test(text) ? text : `*${text}*`;
}

export function Picker() {
  const { series } = state.value;
  const [text, write] = useState("");
  const [names, offer] = useState<string[]>([]);
  const [open, show] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!open) return;
    const under = new AbortController();
    const timer = setTimeout(() => {
      ask<NamesAnswer>(address("names", { pattern: patternOf(text), limit: 50 }), null, under.signal)
        .then((answer) => offer(answer.data?.names ?? []))
        .catch(() => offer([]));
    }, REST);
    return () => {
      clearTimeout(timer);
      under.abort();
    };
  }, [text, open]);
  const add = (name: string) => {
    if (name && !series.includes(name)) set({ series: [...series, name] }, true);
    write("");
    show(false);
  };
  return (
    <>
      {series.length > 0 && (
        <button type="button" class="quiet" onClick={() => set({ series: [] }, true)}>
          Usual series
        </button>
      )}
      <form
        class="picker"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          if (names.includes(text)) add(text);
          else if (names[0]) add(names[0]);
        }}
      >
        <input
          ref={input}
          type="search"
          aria-label="Show a series in the chart"
          placeholder="Show a series …"
          autocomplete="off"
          spellcheck={false}
          list="picker-names"
          value={text}
          maxLength={512}
          onFocus={() => show(true)}
          onInput={(event) => {
            const wanted = event.currentTarget.value;
            write(wanted);
            if (
              event instanceof InputEvent &&
              event.inputType !== "insertReplacementText" &&
              event.data !== undefined
            )
              return;
            if (names.includes(wanted)) add(wanted);
          }}
        />
        <datalist id="picker-names">
          {names.map((name) => (
            <option key={name} value={name} label={plain(name)} />
          ))}
        </datalist>
      </form>
    </>
  );
}
