// The list of keys, over the page.
import { useEffect, useRef } from "preact/hooks";
import { helped } from "../state/keys";

const KEYS = [
  ["/", "Search or filter"],
  ["?", "This list"],
  ["Escape", "Close the open menu, or reset the zoom"],
  ["← →", "On a chart: previous or next interval; with Shift, ten at a time"],
  ["Home End", "On a chart: first or last interval"],
  ["+ −", "On a chart: zoom in or out"],
  ["Enter", "On a chart: open the mark, or explain the interval"],
] as const;

export function KeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helped.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog class="keys" ref={dialog} aria-label="Keys" onClose={() => (helped.value = false)}>
      {open && (
        <>
          <h2>Keys</h2>
          <dl>
            {KEYS.map(([key, text]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
          <button type="button" class="quiet" onClick={() => (helped.value = false)}>
            Close
          </button>
        </>
      )}
    </dialog>
  );
}
