// Chooses what the chart shows: names are offered while one types, and each that is shown can be taken
// away again.
import { useEffect, useState } from "preact/hooks";
import { plain } from "../lib/text";
import { T } from "../parts/text";
import { announce } from "../state/announce";
import { set, state } from "../state/page";
import { meant, namesOf, patternOf } from "./names";

/** Milliseconds of rest after a key before names are asked for. */
const REST = 200;

/** `refused`: series of the address that cannot be names. */
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
  /** The offers may be of an earlier entry: then it is asked for this one. */
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
          aria-label={`${refused.includes(name) ? "Not a name: " : ""}${plain(name, 80)}: take away`}
          title={refused.includes(name) ? "This cannot be a name" : undefined}
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
          enter().catch(() => setHint("Names cannot be loaded now"));
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
