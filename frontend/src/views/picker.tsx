// Chooses the series of the chart, with suggestions while typing; each chosen series can be removed.
import { useEffect, useState } from "preact/hooks";
import { plain } from "../lib/text";
import { T } from "../parts/text";
import { announce } from "../state/announce";
import { set, state } from "../state/page";
import { meant, namesOf, patternOf } from "./names";

/** Debounce of the suggestions, milliseconds. */
const REST = 200;

/** `refused`: series of the URL with invalid names. */
export function Picker({ refused }: { refused: readonly string[] }) {
  const { series } = state.value;
  const [text, write] = useState("");
  const [found, offer] = useState<{ of: string; names: string[] }>({ of: "", names: [] });
  const [open, show] = useState(false);
  const [hint, setHint] = useState("");
  useEffect(() => {
    if (!open) return;
    const under = new AbortController();
    const timer = setTimeout(() => {
      namesOf(patternOf(text), under.signal)
        .then((names) => offer({ of: text, names }))
        .catch(() => undefined);
    }, REST);
    return () => {
      clearTimeout(timer);
      under.abort();
    };
  }, [text, open]);
  const add = (name: string) => {
    if (!series.includes(name)) set({ series: [...series, name] }, true);
    announce(`${plain(name, 80)} is on the chart.`);
    write("");
    setHint("");
    show(false);
  };
  /** Suggestions may belong to an earlier entry; then those for this one are requested. */
  const enter = async () => {
    const names = found.of === text ? found.names : await namesOf(patternOf(text), AbortSignal.timeout(5000));
    const name = meant(text, names);
    if (name !== null) add(name);
    else if (text !== "") setHint(names.length > 0 ? "Several match: pick one" : "No such metric");
  };
  return (
    <>
      {series.map((name) => (
        <button
          type="button"
          key={name}
          class={refused.includes(name) ? "quiet chip bad-text" : "quiet chip"}
          onClick={() => set({ series: series.filter((each) => each !== name) }, true)}
          aria-label={`Remove ${plain(name, 80)}${refused.includes(name) ? " (invalid name)" : ""}`}
          title={refused.includes(name) ? "Invalid name" : undefined}
        >
          <span class="chip-text">
            <T text={name} most={120} edges />
          </span>
          <span aria-hidden="true">×</span>
        </button>
      ))}
      {series.length > 0 && (
        <button type="button" class="quiet" onClick={() => set({ series: [] }, true)}>
          Reset
        </button>
      )}
      <form
        class="picker"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          enter().catch(() => setHint("Names could not be loaded"));
        }}
      >
        <input
          type="search"
          aria-label="Show a series in the chart"
          aria-describedby="picker-hint"
          placeholder="Show a series …"
          autocomplete="off"
          spellcheck={false}
          list="picker-names"
          value={text}
          maxLength={512}
          onFocus={() => show(true)}
          onInput={(event) => {
            const typed = event.currentTarget.value;
            write(typed);
            setHint("");
            show(true);
            if (
              event instanceof InputEvent &&
              event.inputType !== "insertReplacementText" &&
              event.data !== undefined
            )
              return;
            if (found.names.includes(typed)) add(typed);
          }}
        />
        <datalist id="picker-names">
          {found.names.map((name) => (
            <option key={name} value={name} label={plain(name)} />
          ))}
        </datalist>
        <p id="picker-hint" class="picker-hint" role="status">
          {hint}
        </p>
      </form>
    </>
  );
}
